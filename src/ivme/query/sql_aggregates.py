"""Aggregates of SELECT: from a node of the syntax tree to the columns that are maintained for it.

`AggregateCall` is what the node says, whatever its form: arguments, DISTINCT, ORDER BY, constants. `maintained` makes
keys of it, by the table of spellings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ivme.query.aggregates import AGGREGATES, LISTED
from ivme.query.expression import Call, Expression, Literal
from ivme.query.spellings import DISTINCT, NODES, WORDS, Spelling, key_of
from ivme.query.sql_expression import Scalars
from ivme.query.sql_joint import read_joint
from ivme.query.sql_scope import Key
from ivme.query.sql_text import DIALECT, SqlText, is_set, refuse_other_arguments
from ivme.query.sql_where import Body, refuse_computed_closure
from ivme.query.types import is_nested_kind
from ivme.query.written import spelled

_STORE = "store what you need of it as a separate column before loading"
WHOLE = f"select {LISTED} as separate columns, and compute with them when reading"
_REFUSED = {
    **dict.fromkeys(
        ("First", "Last", "FirstValue", "LastValue"),
        ("depends on the order in which rows come, which tables do not have", "use ANY_VALUE, MIN, MAX or MAX_BY"),
    ),
    **dict.fromkeys(
        ("ArrayConcatAgg", "ArrayUnionAgg"),
        ("puts arrays together, which are carried as wholes", "store the elements as rows, and use ARRAY_AGG"),
    ),
    "ApproxQuantile": ("is not supported", "use PERCENTILE_DISC(p) WITHIN GROUP (ORDER BY x), which is exact"),
}
"""Aggregates that are refused by name, with what to do instead."""

_LISTS = ("string_agg", "array_agg")
_ORDERED = ("percentile_cont", "percentile_disc", "mode", *_LISTS)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate as written: `word` is its name in the text, in capitals, and `text` the whole call."""

    node: exp.Expr
    spelling: Spelling
    word: str
    text: str
    arguments: tuple[exp.Expr, ...]
    order: tuple[exp.Ordered, ...] = ()
    is_distinct: bool = False
    constants: tuple[Any, ...] = ()

    @property
    def function(self) -> str:
        return self.spelling.function

    @property
    def own_text(self) -> str:
        """The text of the call where its function and its variable do not say the same."""
        is_plain = self.word.lower() == self.function and len(self.arguments) == 1 and not self.constants
        is_plain = is_plain and self.spelling.columns is tuple
        return "" if is_plain and (not self.is_distinct or self.function == "count") else self.text


@dataclass(frozen=True, slots=True)
class Maintained:
    """An aggregate over keys: its function, its argument, that of an aggregate of two, and constants."""

    function: str
    key: Key
    partner: Key | None
    options: tuple[Any, ...]


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a whole aggregate that is not refused by name."""
    return _spelling(_inner(node)) is not None


def _inner(node: exp.Expr) -> exp.Expr:
    """The function of a node, without WITHIN GROUP and IGNORE NULLS."""
    if isinstance(node, exp.WithinGroup) or (isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue)):
        inner: exp.Expr = node.this
        return inner
    return node


def _spelling(node: exp.Expr) -> Spelling | None:
    if isinstance(node, exp.Anonymous):
        return WORDS.get(node.name.lower())
    if isinstance(node, exp.Any):
        return WORDS["any"] if isinstance(node.this, exp.Paren) else None
    return NODES.get(type(node).__name__)


def refuse_by_name(source: SqlText, node: exp.Expr) -> None:
    """Refuses an aggregate that ivme does not have, by the name that it has in the text."""
    inner = node.this if isinstance(node, exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup) else node
    if isinstance(inner, exp.AggFunc) and not is_aggregate(node):
        reason, instead = _REFUSED.get(type(inner).__name__, ("is not supported", WHOLE))
        raise source.unsupported(f"the aggregate {_word(source, inner, '')} {reason}", node, instead)


def _word(source: SqlText, node: exp.Expr, default: str) -> str:
    """The name of a function as its author wrote it."""
    start, end = node.meta.get("start"), node.meta.get("end")
    if start is not None and end is not None:
        return str(source.text[start : end + 1]).upper()
    if isinstance(node, exp.Anonymous):
        return str(node.name).upper()
    token = source.previous(source.at(node) or 0)
    while token is not None and token.token_type in (TokenType.L_PAREN, TokenType.DISTINCT):
        token = source.previous(token.start)
    return token.text.upper() if token is not None and token.text.isidentifier() else default


def read_call(source: SqlText, node: exp.Expr) -> AggregateCall:
    """What an aggregate's node says; everything that is not handled is refused."""
    inner = _inner(node)
    spelling = _spelling(inner)
    assert spelling is not None
    word = _word(source, inner, spelling.words[0].upper())
    if word.lower() not in spelling.words:  # the node is not one of the text: a block counts, say
        word = spelling.words[0].upper()
    shown = spelled(node)
    call = AggregateCall(node, spelling, word, word + shown[shown.index("(") :], tuple(_arguments(inner)))
    refuse_other_arguments(source, inner, _HANDLED, WHOLE)
    call = _with_order(source, call, node)
    if call.arguments and isinstance(call.arguments[0], exp.Distinct):
        call = _with_distinct(source, call, call.arguments[0])
    return _with_constants(source, call, inner)


_HANDLED = (
    *("this", "expression", "expressions", "big_int", "separator", "quantile", "deterministic"),
    "nulls_excluded",  # of ARRAY_AGG, as in Spark
)


def _arguments(inner: exp.Expr) -> list[exp.Expr]:
    """The arguments that are not constants by their place."""
    if isinstance(inner, exp.PercentileCont | exp.PercentileDisc):
        return []
    if isinstance(inner, exp.Any):
        return [inner.this.unnest()]
    first = [] if isinstance(inner, exp.Anonymous) else [inner.this, inner.args.get("expression")]
    return [each for each in (*first, *inner.expressions) if isinstance(each, exp.Expr)]


def _with_order(source: SqlText, call: AggregateCall, node: exp.Expr) -> AggregateCall:
    """The call with its ORDER BY, inside of the parentheses or WITHIN GROUP."""
    order = node.expression if isinstance(node, exp.WithinGroup) else None
    arguments = call.arguments
    if order is None and arguments and isinstance(arguments[0], exp.Order):
        order, arguments = arguments[0], (arguments[0].this, *arguments[1:])
    if order is None:
        return call
    if call.function not in _ORDERED:
        raise source.unsupported(f"ORDER BY in {call.word} is not supported", node, "leave it out")
    ordered = tuple(order.expressions)
    if call.function not in _LISTS:
        if len(ordered) != 1 or arguments:
            raise source.unsupported(f"{call.word} needs one ORDER BY expression", node, _WITHIN.format(call.word))
        arguments = (ordered[0].this,)
    for each in ordered:
        refuse_other_arguments(source, each, ("this", "desc", "nulls_first"), "write ORDER BY expression [DESC]")
    return _replaced(call, arguments=arguments, order=ordered)


_WITHIN = "write {}(...) WITHIN GROUP (ORDER BY x)"


def _with_distinct(source: SqlText, call: AggregateCall, distinct: exp.Distinct) -> AggregateCall:
    refuse_other_arguments(source, distinct, ("expressions",), f"write {call.word}(DISTINCT x)")
    if call.function not in DISTINCT or call.spelling.arguments > 1:
        instead = "make a view of the distinct rows, and aggregate that"
        raise source.unsupported(f"{call.word}(DISTINCT ...) is not supported", call.node, instead)
    return _replaced(call, arguments=(*distinct.expressions, *call.arguments[1:]), is_distinct=True)


def _with_constants(source: SqlText, call: AggregateCall, inner: exp.Expr) -> AggregateCall:
    """The call with the constants of its function, and its arguments counted."""
    if len(call.arguments) > call.spelling.arguments and call.word != "COUNT":
        instead = f"write {call.spelling.sql.split(', ')[0]}" if call.spelling.arguments > 1 else "aggregate one column"
        raise source.unsupported(f"{call.word} has several arguments", call.node, instead)
    is_descending = bool(call.order and call.order[0].args.get("desc"))
    if call.function == "array_agg":
        return _replaced(call, is_distinct=call.is_distinct or isinstance(inner, exp.ArrayUniqueAgg))
    if call.function == "string_agg":
        return _replaced(call, constants=(_separator(source, call, inner),))
    if call.function == "mode":
        return _replaced(call, constants=(is_descending,))
    if call.function.startswith("percentile") and not isinstance(inner, exp.Median):
        given = inner.args.get("quantile") if isinstance(inner, exp.Quantile) else inner.this
        return _replaced(call, constants=(_fraction(source, call, inner, given), is_descending))
    return _replaced(call, constants=call.spelling.options)


def _separator(source: SqlText, call: AggregateCall, inner: exp.Expr) -> str:
    """What STRING_AGG puts between values: nothing unless said, and commas for GROUP_CONCAT."""
    given = inner.args.get("separator")
    if given is None or isinstance(given, exp.Null):
        return "," if call.word == "GROUP_CONCAT" and given is None else ""
    if isinstance(given, exp.Literal) and given.is_string:
        return str(given.this)
    raise source.unsupported(
        f"the separator of {call.word} is not a constant text", given, f"write {call.word}(x, ', ')"
    )


def _fraction(source: SqlText, call: AggregateCall, inner: exp.Expr, given: exp.Expr | None) -> Decimal:
    """The fraction of a percentile, which is a constant from 0 to 1."""
    if isinstance(inner, exp.Quantile) and _commas(source, inner) > 1:
        raise source.unsupported(f"a frequency in {call.word} is not supported", call.node, "repeat the rows")
    if isinstance(given, exp.Literal) and not given.is_string and 0 <= Decimal(given.this) <= 1:
        return Decimal(given.this)
    raise source.unsupported(
        f"{call.word} needs a constant from 0 to 1", given or call.node, "write 0.5 for the median"
    )


def _commas(source: SqlText, inner: exp.Expr) -> int:
    """The commas between the arguments of a function, of which sqlglot leaves some out."""
    depth = found = 0
    start = source.keyword(WORDS["percentile"].words, before=source.at(inner.this)) or 0
    for token in source.tokens:
        if token.start <= start:
            continue
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        found += token.token_type == TokenType.COMMA and depth == 1
        if depth == 0:
            break
    return found


def _replaced(call: AggregateCall, **changed: Any) -> AggregateCall:
    fields = {name: getattr(call, name) for name in AggregateCall.__slots__}
    return AggregateCall(**{**fields, **changed})


def maintained(body: Body, scalars: Scalars, call: AggregateCall, key_of_node: Callable[[exp.Expr], Key]) -> Maintained:
    """The keys of an aggregate, which join the body's classes."""
    source, spelling = scalars.source, call.spelling
    if len(call.arguments) < spelling.arguments or any(isinstance(each, exp.Star) for each in call.arguments):
        instead = "aggregate one column" if spelling.arguments == 1 else f"write {spelling.sql}"
        raise source.unsupported(
            f"{call.text} needs {'a column' if spelling.arguments == 1 else 'two'}", call.node, instead
        )
    function = DISTINCT[call.function] if call.is_distinct else call.function
    if call.function in _LISTS:
        return _list_of(body, scalars, call)
    if spelling.columns is tuple and len(call.arguments) == 1:
        joint = None if call.is_distinct else read_joint(body, scalars, function, call.arguments[0])
        if joint is not None:
            return Maintained(f"{function}_product", *joint, ())
        key = key_of_node(call.arguments[0].unnest())
        _check_kind(body, call, key, AGGREGATES[function].takes)
        return Maintained(function, key, None, call.constants)
    occurrence, expressions = _joint(body, scalars, call, call.arguments)
    _refuse_nested(body, call, occurrence, expressions)
    if len(expressions) > spelling.arguments:
        key = _added(body, call, occurrence, key_of("a!" * len(expressions), expressions))
        return Maintained(function, key, None, ())
    for expression in expressions:
        _check_kind(body, call, Key(occurrence, expression), spelling.takes)
    keys = [_added(body, call, occurrence, column) for column in spelling.columns(expressions)]
    return Maintained(function, keys[0], keys[1] if len(keys) > 1 else None, call.constants)


def _list_of(body: Body, scalars: Scalars, call: AggregateCall) -> Maintained:
    """STRING_AGG or ARRAY_AGG over values, or over keys that have them in another order."""
    nodes = (call.arguments[0], *(each.this for each in call.order))
    occurrence, (value, *order) = _joint(body, scalars, call, nodes)
    _refuse_nested(body, call, occurrence, (value, *order))
    kind = body.kind(Key(occurrence, value))
    if kind == "binary" and call.function == "string_agg":
        raise scalars.source.unsupported(f"{call.text} is over a column of type binary", call.node, "use texts")
    if call.is_distinct and any(each != value for each in order):
        message = f"{call.word}(DISTINCT x) in the order of another expression has no answer: x may come with several"
        raise scalars.source.unsupported(message, call.node, f"order by {nodes[0].sql(dialect=DIALECT)}")
    is_text = call.function == "array_agg" or kind in ("string", None)
    text = value if is_text else Call("cast_string", (value,))
    letters = "".join(_letter(each) for each in call.order)
    form = "" if not letters or (order == [text] and letters == "a") else f"{letters}a!"
    column = key_of(form, (*order, text)) if form else text
    key = _added(body, call, occurrence, column)
    return Maintained(call.function, key, None, (*call.constants, form, call.is_distinct))


def _letter(ordered: exp.Ordered) -> str:
    """How a key sorts a part (`order_key`): capitals where NULLs come last."""
    letter = "d" if ordered.args.get("desc") else "a"
    return letter if ordered.args.get("nulls_first") else letter.upper()


def _joint(
    body: Body, scalars: Scalars, call: AggregateCall, nodes: Sequence[exp.Expr]
) -> tuple[int, list[Expression]]:
    """Expressions that are computed together, and the one table whose columns they read."""
    source = scalars.source
    found: dict[int, None] = {}
    for node in nodes:
        scalars.refuse_queries(node)
        if node.find(exp.AggFunc, exp.Window):
            raise source.unsupported(f"{call.word} of an aggregate is not supported", node, WHOLE)
        found.update(dict.fromkeys(scalars.occurrences(node)))
    if len(found) > 1:
        instead = "aggregate columns of one table, or make the join a separate view, and aggregate that"
        raise source.unsupported(f"{call.text} mixes columns of several tables", call.node, instead)
    tables = (i for i, each in enumerate(body.scope.occurrences) if each.closure is None)
    occurrence = next(iter(found), next(tables, None))
    if occurrence is None:
        raise source.unsupported(f"{call.text} reads no table", call.node, "aggregate columns")
    return occurrence, [_as_one_kind(body, occurrence, scalars.translate(node.unnest())) for node in nodes]


def _refuse_nested(body: Body, call: AggregateCall, occurrence: int, expressions: Sequence[Expression]) -> None:
    for expression in expressions:
        kind = body.kind(Key(occurrence, expression))
        if is_nested_kind(kind):
            message = f"{call.text} is over values of type {kind}, which are carried, compared and counted as wholes"
            raise body.scope.source.unsupported(message, call.node, _STORE)


def _as_one_kind(body: Body, occurrence: int, expression: Expression) -> Expression:
    """An expression whose values are all floats if some are, so that they compare by their bytes."""
    if isinstance(expression, Call) and body.kind(Key(occurrence, expression)) == "float":
        return Call("cast_float", (expression,))
    return expression


def _added(body: Body, call: AggregateCall, occurrence: int, column: Expression) -> Key:
    key = Key(occurrence, column)
    refuse_computed_closure(body.scope, key, call.node)
    body.check_kinds(key, call.node)
    return body.classes.add(key)


def _check_kind(body: Body, call: AggregateCall, key: Key, takes: tuple[str, ...]) -> None:
    kind = body.kind(key)
    if not takes or kind is None or kind in takes:
        return
    if "float" in takes:
        verb = "adds up" if call.function in ("sum", "avg") else "is over"
        instead = _STORE if is_nested_kind(kind) else "CAST the column to a number"
        message = f"{call.text} {verb} values of type {kind}"
    else:
        message, instead = f"{call.text} is over values of type {kind}, and takes {takes[0]}", f"CAST it to {takes[0]}"
    raise body.scope.source.unsupported(message, call.node, instead)


def counts_rows(scalars: Scalars, call: AggregateCall) -> bool:
    """Whether the call is COUNT(*): of a star, or of a literal that is not NULL."""
    if call.word != "COUNT" or call.is_distinct or len(call.arguments) != 1:
        return False
    (argument,) = call.arguments
    if isinstance(argument, exp.Star):
        return not any(is_set(value) for value in argument.args.values())
    if not isinstance(argument, exp.Literal | exp.Boolean):
        return False
    constant = scalars.translate(argument)
    return isinstance(constant, Literal) and constant.value is not None
