"""Which function of the table a node of sqlglot calls, and with which arguments.

sqlglot rewrites many functions when it parses: DATE_SUB becomes the addition of a product, a pattern of DATE_FORMAT
becomes one of Python's. So some are told by their names, and some constants are read from the tokens of the text.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ivme.query.functions import FUNCTIONS
from ivme.query.sql_nodes import ARGUMENTS, FIELDS, FLAGS, NAMED
from ivme.query.sql_text import SqlText, refuse_other_arguments

Arguments = list[exp.Expr | None]

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)


class Calls:
    """Reads the functions of one text."""

    def __init__(self, source: SqlText) -> None:
        self._source = source

    def read(self, node: exp.Expr) -> tuple[str, Arguments] | None:
        """The function and its arguments; None where the node is not simply a call of one."""
        found = self._read(node)
        is_rewritten = not isinstance(node, exp.Anonymous)
        if found is not None and is_rewritten and len(self._tokens(node)) > FUNCTIONS[found[0]].maximum:
            message = f"the function {self.written(node)} does not take {len(self._tokens(node))} arguments"
            raise self._source.unsupported(message, node, f"write {FUNCTIONS[found[0]].sql}")
        return found

    def _read(self, node: exp.Expr) -> tuple[str, Arguments] | None:
        special = _SPECIAL.get(type(node))
        if special is not None:
            return special(self, node)
        found = ARGUMENTS.get(type(node))
        if found is None:
            return None
        name, keys = found
        self._only(node, *keys)
        return name, [unwrapped(argument) for key in keys for argument in _listed(node.args.get(key))]

    def written(self, node: exp.Expr) -> str:
        """The name of a function as its author wrote it, in capitals; "" where sqlglot does not tell."""
        start, end = node.meta.get("start"), node.meta.get("end")
        return self._source.text[start : end + 1].upper() if start is not None and end is not None else ""

    def _only(self, node: exp.Expr, *handled: str) -> None:
        refuse_other_arguments(
            self._source, node, (*handled, *FLAGS), "write only the arguments that docs/sql_functions.md lists"
        )

    def _tokens(self, node: exp.Expr) -> list[list[Token]]:
        """The tokens of each argument that a function is written with, some of which sqlglot drops."""
        end = self._end_of_name(node)
        arguments: list[list[Token]] = []
        depth = 0
        for token in self._source.tokens if end is not None else ():
            if token.start <= (end or 0):
                continue
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            if depth == 0:
                break
            if not arguments or (token.token_type == TokenType.COMMA and depth == 1):
                arguments.append([])
            else:
                arguments[-1].append(token)
        return arguments if arguments != [[]] else []

    def _end_of_name(self, node: exp.Expr) -> int | None:
        """Where the name of a function ends; sqlglot does not keep that of POSITION."""
        start = self._source.at(node) if isinstance(node, exp.StrPosition) and "end" not in node.meta else None
        if start is None:
            return node.meta.get("end")
        name = self._source.keyword(["POSITION"], before=start)
        return None if name is None else name + len("POSITION") - 1

    def _text(self, node: exp.Expr, place: int) -> str | None:
        """The text at a place of the arguments that a function is written with; None if it is not one."""
        found = self._tokens(node)[place : place + 1]
        token = found[0][0] if found and len(found[0]) == 1 else None
        return token.text if token is not None and token.token_type == TokenType.STRING else None

    def _constant(self, node: exp.Expr, place: int, what: str) -> exp.Expr:
        text = self._text(node, place)
        if text is None:
            message = f"{self.written(node)} of {what} that is not a constant text is not supported"
            raise self._source.unsupported(message, node, f"write {what} as a constant text")
        return exp.Literal.string(text)

    def _initcap(self, node: exp.Expr) -> tuple[str, Arguments]:
        """Spark's words are parted by blanks, which sqlglot gives as a second argument."""
        delimiter = node.expression
        given = isinstance(delimiter, exp.Literal) and delimiter.this == " " and "start" not in delimiter.meta
        self._only(node, "this", *(("expression",) if given else ()))
        return "initcap", [node.this]

    def _moved(self, node: exp.Expr) -> tuple[str, Arguments]:
        """DATE_ADD and DATE_SUB, which is the addition of days times -1."""
        self._only(node, "this", "expression", "unit")
        days = node.expression
        if self.written(node) == "DATE_SUB" and isinstance(days, exp.Mul):
            return "date_sub", [node.this, days.this]
        return "date_add", [node.this, days]

    def _timestampadd(self, node: exp.Expr) -> tuple[str, Arguments]:
        self._only(node, "this", "expression", "unit")
        return "timestampadd", [_unit(node), node.expression, node.this]

    def _difference(self, node: exp.Expr) -> tuple[str, Arguments]:
        """DATEDIFF(end, start), or with a unit TIMESTAMPDIFF(unit, start, end)."""
        self._only(node, "this", "expression", "unit")
        end, start = unwrapped(node.this), unwrapped(node.expression)
        if node.args.get("unit") is None:
            return "datediff", [end, start]
        return "timestampdiff", [_unit(node), start, end]

    def _date_trunc(self, node: exp.Expr) -> tuple[str, Arguments]:
        self._only(node, "this", "unit")
        return "date_trunc", [self._constant(node, 0, "a unit"), node.this]

    def _trunc(self, node: exp.Expr) -> tuple[str, Arguments]:
        written = self._tokens(node)[1:]
        if isinstance(node, exp.Trunc) or any(t.token_type == TokenType.NUMBER for each in written for t in each):
            message = f"{self.written(node)} of numbers is not a function of Spark"
            instead = "write CASE WHEN a < 0 THEN CEIL(a, digits) ELSE FLOOR(a, digits) END"
            raise self._source.unsupported(message, node, instead)
        self._only(node, "this", "unit")
        return "trunc", [node.this, self._constant(node, 1, "a unit")]

    def _to_digits(self, node: exp.Expr) -> tuple[str, Arguments]:
        """CEIL and FLOOR, perhaps with a constant number of digits."""
        self._only(node, "this", "decimals")
        name, digits = node.key, node.args.get("decimals")
        if digits is None:
            return name, [node.this]
        number = digits.this if isinstance(digits, exp.Neg) else digits
        if not isinstance(number, exp.Literal) or number.is_string or not number.this.isdigit():
            message = f"{node.key.upper()} needs a constant number of digits"
            raise self._source.unsupported(message, digits, "write the number of digits as a constant")
        return f"{name}_to", [node.this, digits]

    def _unix(self, node: exp.Expr) -> tuple[str, Arguments] | None:
        """UNIX_TIMESTAMP and FROM_UNIXTIME; without an argument it is the present moment."""
        if isinstance(node.this, exp.CurrentTimestamp):
            return None
        self._only(node, "this", "format")
        name = "unix_timestamp" if isinstance(node, exp.StrToUnix) else "from_unixtime"
        pattern = self._constant(node, 1, "a pattern") if len(self._tokens(node)) > 1 else None
        return name, [unwrapped(node.this), pattern]

    def _patterned(self, node: exp.Expr) -> tuple[str, Arguments]:
        """DATE_FORMAT, TO_DATE and TO_TIMESTAMP with a pattern; TO_DATE without one is a cast."""
        self._only(node, "this", "format")
        if node.args.get("format") is None:
            return "cast_date", [node.this]
        name = "date_format" if isinstance(node, exp.TimeToStr) else "to_timestamp"
        name = "to_date" if isinstance(node, exp.TsOrDsToDate) else name
        return name, [unwrapped(node.this), self._constant(node, 1, "a pattern")]

    def _logarithm(self, node: exp.Expr) -> tuple[str, Arguments]:
        self._only(node, "this", "expression")
        name = self.written(node).lower()
        return (name, [node.expression]) if name in ("log10", "log2") else ("log", [node.this, node.expression])

    def _pad(self, node: exp.Expr) -> tuple[str, Arguments]:
        self._only(node, "this", "expression", "fill_pattern")
        name = "lpad" if node.args.get("is_left") else "rpad"
        return name, [node.this, node.expression, node.args.get("fill_pattern")]

    def _trim(self, node: exp.Expr) -> tuple[str, Arguments]:
        self._only(node, "this", "expression", "position")
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim")
        return name, [node.this, node.expression]

    def _nvl2(self, node: exp.Expr) -> tuple[str, Arguments]:
        self._only(node, "this", "true", "false")
        if node.args.get("false") is None:
            raise self._source.unsupported("NVL2 needs three arguments", node, "write NVL2(a, b, c)")
        return "case", [
            exp.Not(this=exp.Is(this=node.this.copy(), expression=exp.Null())),
            node.args["true"],
            node.args["false"],
        ]

    def _decode(self, node: exp.Expr) -> tuple[str, Arguments]:
        """DECODE compares NULL as a value."""
        self._only(node, "expressions")
        value, *rest = node.expressions
        found: Arguments = []
        for option, result in zip(rest[0::2], rest[1::2], strict=False):
            found += [exp.NullSafeEQ(this=value.copy(), expression=option.copy()), result]
        return "case", [*found, *(rest[-1:] if len(rest) % 2 else [])]

    def _extract(self, node: exp.Expr) -> tuple[str, Arguments]:
        self._only(node, "this", "expression")
        return self._field(node, node.this.name), [unwrapped(node.expression)]

    def _field(self, node: exp.Expr, name: str) -> str:
        if name.lower() not in FIELDS:
            instead = "extract YEAR, QUARTER, MONTH, WEEK, DAY, DOW, DOY, HOUR, MINUTE or SECOND"
            instead += "; for seconds since 1970 write UNIX_TIMESTAMP(ts)" if name.lower() == "epoch" else ""
            raise self._source.unsupported(f"EXTRACT({name.upper()}) is not supported", node, instead)
        return FIELDS[name.lower()]

    def _anonymous(self, node: exp.Expr) -> tuple[str, Arguments] | None:
        name, given = node.name.lower(), list(node.expressions)
        if name in ("hash", "xxhash64"):
            message = f"{name.upper()} depends on the width of Spark's integers, and ivme's have one width"
            instead = "compute it before loading; CRC32, MD5, SHA1 and SHA2 of a text are other hashes"
            raise self._source.unsupported(message, node, instead)
        if name in ("isnull", "isnotnull") and len(given) == 1:
            tested = exp.Is(this=given[0].copy(), expression=exp.Null())
            return ("is_null", given) if name == "isnull" else ("not", [tested])
        if name in ("date_part", "datepart") and len(given) == 2 and isinstance(given[0], exp.Literal):
            return self._field(node, given[0].name), given[1:]
        if name == "zeroifnull" and len(given) == 1:
            return "coalesce", [*given, exp.Literal.number(0)]
        if name == "nullifzero" and len(given) == 1:
            return "nullif", [*given, exp.Literal.number(0)]
        return (NAMED[name], given) if name in NAMED else None


def unwrapped(node: exp.Expr | None) -> exp.Expr | None:
    """An argument without the conversion to a date or a timestamp that sqlglot wraps it into, and Spark does anyway."""
    wrapped = isinstance(node, exp.TimeStrToTime) or (isinstance(node, exp.TsOrDsToDate) and not node.args.get("safe"))
    inner: exp.Expr | None = node.this if wrapped and node is not None else node
    return inner


def _listed(value: exp.Expr | list[exp.Expr] | None) -> list[exp.Expr | None]:
    return list(value) if isinstance(value, list) else [value]


def _unit(node: exp.Expr) -> exp.Expr:
    return exp.Literal.string(node.args["unit"].name.upper())


_SPECIAL: dict[type[exp.Expr], Callable[[Calls, exp.Expr], tuple[str, Arguments] | None]] = {
    exp.Initcap: Calls._initcap,
    exp.TsOrDsAdd: Calls._moved,
    exp.TimestampAdd: Calls._timestampadd,
    exp.DateDiff: Calls._difference,
    exp.TimestampDiff: Calls._difference,
    exp.TimestampTrunc: Calls._date_trunc,
    exp.DateTrunc: Calls._trunc,
    exp.Trunc: Calls._trunc,
    exp.Ceil: Calls._to_digits,
    exp.Floor: Calls._to_digits,
    exp.StrToUnix: Calls._unix,
    exp.UnixToStr: Calls._unix,
    exp.TimeToStr: Calls._patterned,
    exp.TsOrDsToDate: Calls._patterned,
    exp.StrToTime: Calls._patterned,
    exp.Log: Calls._logarithm,
    exp.Pad: Calls._pad,
    exp.Trim: Calls._trim,
    exp.Nvl2: Calls._nvl2,
    exp.DecodeCase: Calls._decode,
    exp.Extract: Calls._extract,
    exp.LowerHex: lambda _, node: ("lower", [exp.Hex(this=node.this.copy())]),  # LOWER(HEX(x)), as sqlglot has it
    exp.Anonymous: Calls._anonymous,
}
