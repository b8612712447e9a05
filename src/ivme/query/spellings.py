"""How aggregates are written, in SQL and in rules, and what is maintained for each.

Many are another aggregate over a computed column: COUNT_IF(c) counts CASE WHEN c THEN TRUE END. `columns_of_call` makes
these columns from the arguments; nothing behind the parsers knows more words than `AGGREGATES` has names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ivme.query.aggregates import AGGREGATES
from ivme.query.expression import Call, Expression, Literal
from ivme.query.types import Type

Columns = Callable[[Sequence[Expression]], tuple[Expression, ...]]
"""From the arguments of a call to the columns that are maintained; `tuple` takes them as they are."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """A way to write an aggregate: `sql` is shown in the documentation, and `words` are its names.

    `nodes` are sqlglot's classes for it. `function` is the aggregate, over the columns that `columns` makes of the
    arguments; `arguments` is how many there are, and `takes` their kinds, all if it is empty. `options` are the
    constants of a call that gives none. `note` is for the documentation: what is not said by the name.
    """

    sql: str
    words: tuple[str, ...]
    nodes: tuple[str, ...]
    function: str
    columns: Columns = tuple
    arguments: int = 1
    takes: tuple[str, ...] = ()
    options: tuple[Any, ...] = ()
    note: str = ""

    @property
    def is_in_rules(self) -> bool:
        """Whether rules know it: there its arguments are variables, and never constants."""
        return self.options is not NEEDS_CONSTANTS


NEEDS_CONSTANTS: tuple[Any, ...] = (None,)
"""The options of an aggregate that always comes with constants."""


def _if_true(arguments: Sequence[Expression]) -> tuple[Expression, ...]:
    return (Call("case", (arguments[0], Literal(value=True))),)


def _as_number(arguments: Sequence[Expression]) -> tuple[Expression, ...]:
    return (Call("cast_int", (arguments[0],)),)


def _where_known(value: Expression, other: Expression) -> Expression:
    """A value as a float, in the rows where the other argument has a value, too."""
    return Call("case", (Call("not", (Call("is_null", (other,)),)), Call("cast_float", (value,))))


def _first(arguments: Sequence[Expression]) -> tuple[Expression, ...]:
    return (_where_known(*arguments),)


def _second(arguments: Sequence[Expression]) -> tuple[Expression, ...]:
    return (_where_known(arguments[1], arguments[0]),)


def _both(arguments: Sequence[Expression]) -> tuple[Expression, ...]:
    return (*_first(arguments), *_second(arguments))


BY_FORM = "a!a"
"""The keys of MAX_BY(x, y): rows without y are left out, and x decides between equal ones."""


def key_of(form: str, parts: Sequence[Expression]) -> Expression:
    """The column of keys (`order_key`) over some values."""
    return Call("order_key", (Literal(form), *parts))


def _by(arguments: Sequence[Expression]) -> tuple[Expression, ...]:
    value, order = arguments
    return (key_of(BY_FORM, (order, value)),)


_NUMBERS = ("int", "float", "decimal")
_TRUTH = ("bool",)


def _paired(
    word: str, node: str, function: str = "", columns: Callable[..., tuple[Expression, ...]] = _both
) -> Spelling:
    sql = f"{word}(y, x)"
    return Spelling(sql, (word.lower(),), (node,), function or word.lower(), columns, 2, _NUMBERS)


SPELLINGS = (
    Spelling("COUNT(*), COUNT(a, ...)", ("count",), ("Count",), "count", note="rows, or those without NULLs in a, ..."),
    Spelling("SUM(a)", ("sum",), ("Sum",), "sum"),
    Spelling("AVG(a), MEAN(a)", ("avg", "mean"), ("Avg",), "avg"),
    Spelling("MIN(a)", ("min",), ("Min",), "min"),
    Spelling("MAX(a)", ("max",), ("Max",), "max"),
    Spelling("ANY_VALUE(a)", ("any_value",), ("AnyValue",), "min", note="the least value"),
    Spelling("COUNT_IF(c)", ("count_if",), ("CountIf",), "count", _if_true, takes=_TRUTH),
    Spelling("BOOL_AND(c), EVERY(c)", ("bool_and", "every"), ("LogicalAnd",), "bool_and", _as_number, takes=_TRUTH),
    Spelling(
        "BOOL_OR(c), SOME(c), ANY(c)", ("bool_or", "some", "any"), ("LogicalOr",), "bool_or", _as_number, 1, _TRUTH
    ),
    Spelling(
        *("APPROX_COUNT_DISTINCT(a)", ("approx_count_distinct",), ("ApproxDistinct",), "count_distinct"),
        note="the exact number",
    ),
    Spelling("VAR_SAMP(a), VARIANCE(a)", ("var_samp", "variance"), ("Variance",), "var_samp"),
    Spelling("VAR_POP(a)", ("var_pop", "variance_pop"), ("VariancePop",), "var_pop"),
    Spelling(
        *(
            "STDDEV_SAMP(a), STDDEV(a), STD(a)",
            ("stddev_samp", "stddev", "std"),
            ("Stddev", "StddevSamp"),
            "stddev_samp",
        ),
    ),
    Spelling("STDDEV_POP(a)", ("stddev_pop",), ("StddevPop",), "stddev_pop"),
    _paired("COVAR_POP", "CovarPop"),
    _paired("COVAR_SAMP", "CovarSamp"),
    _paired("CORR", "Corr"),
    _paired("REGR_COUNT", "RegrCount", "count", _first),
    _paired("REGR_AVGX", "RegrAvgx", "avg", _second),
    _paired("REGR_AVGY", "RegrAvgy", "avg", _first),
    _paired("REGR_SXX", "RegrSxx", "squared_deviations", _second),
    _paired("REGR_SYY", "RegrSyy", "squared_deviations", _first),
    _paired("REGR_SXY", "RegrSxy"),
    _paired("REGR_SLOPE", "RegrSlope"),
    _paired("REGR_INTERCEPT", "RegrIntercept"),
    _paired("REGR_R2", "RegrR2"),
    Spelling(
        *("MAX_BY(a, b)", ("max_by", "arg_max"), ("ArgMax",), "max_by", _by, 2),
        options=(BY_FORM,),
        note="of several rows with the greatest b, the greatest a",
    ),
    Spelling(
        *("MIN_BY(a, b)", ("min_by", "arg_min"), ("ArgMin",), "min_by", _by, 2),
        options=(BY_FORM,),
        note="of several rows with the least b, the least a, NULL first",
    ),
    Spelling("BIT_AND(a)", ("bit_and",), ("BitwiseAndAgg",), "bit_and"),
    Spelling("BIT_OR(a)", ("bit_or",), ("BitwiseOrAgg",), "bit_or"),
    Spelling("BIT_XOR(a)", ("bit_xor",), ("BitwiseXorAgg",), "bit_xor"),
    Spelling("MEDIAN(a)", ("median",), ("Median",), "percentile_cont", options=(Decimal("0.5"), False)),
    Spelling(
        "PERCENTILE(a, p), PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY a)",
        *(("percentile", "percentile_cont"), ("Quantile", "PercentileCont"), "percentile_cont"),
        options=NEEDS_CONSTANTS,
    ),
    Spelling(
        *("PERCENTILE_DISC(p) WITHIN GROUP (ORDER BY a)", ("percentile_disc",), ("PercentileDisc",), "percentile_disc"),
        options=NEEDS_CONSTANTS,
    ),
    Spelling(
        "MODE(a), MODE() WITHIN GROUP (ORDER BY a)",
        *(("mode",), ("Mode",), "mode"),
        options=(False,),
        note="of several values that are equally frequent, the first in the order",
    ),
    Spelling(
        "STRING_AGG(a, 'separator'), LISTAGG(a, 'separator') WITHIN GROUP (ORDER BY b), GROUP_CONCAT(a)",
        *(("string_agg", "listagg", "group_concat"), ("GroupConcat",), "string_agg"),
        options=NEEDS_CONSTANTS,
        note="rows that are equal in the order come in the order of a",
    ),
    Spelling(
        "ARRAY_AGG(a), ARRAY_AGG(a ORDER BY b), COLLECT_LIST(a)",
        *(("array_agg", "collect_list"), ("ArrayAgg",), "array_agg"),
        options=NEEDS_CONSTANTS,
        note="without NULLs; in the order of a unless said otherwise, and rows that are equal in the order too",
    ),
    Spelling(
        "COLLECT_SET(a), ARRAY_AGG(DISTINCT a)",
        *(("collect_set",), ("ArrayUniqueAgg",), "array_agg"),
        options=NEEDS_CONSTANTS,
        note="in the order of a",
    ),
)
"""Every aggregate that users may write, but for COUNT(DISTINCT a) and the like (`DISTINCT`)."""

DISTINCT = {
    "count": "count_distinct",
    "count_distinct": "count_distinct",
    **{name: name for name in ("min", "max", "bit_and", "bit_or", "bool_and", "bool_or", "string_agg", "array_agg")},
    **{name: f"{name}_distinct" for name in ("sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop")},
}
"""The aggregate of the distinct values, where there is one."""

WORDS = {word: each for each in SPELLINGS for word in each.words}
"""The spellings by the words that SQL and rules know them by."""

NODES = {node: each for each in SPELLINGS for node in each.nodes}
"""The spellings by sqlglot's classes."""


def listed() -> str:
    """The table as documentation shows it, in Markdown.

    >>> print(listed().splitlines()[2])
    | `COUNT(*)`, `COUNT(a, ...)` | any | int | O(1) | rows, or those without NULLs in a, ... |
    """
    lines = ["| aggregate | of | gives | to read a changed group | |", "|---|---|---|---|---|"]
    lines += [
        f"| {_forms(each.sql)} | {_takes(each)} | {_gives(each)} | {_cost(each)} | {each.note} |" for each in SPELLINGS
    ]
    return "\n".join(lines) + "\n"


def _forms(sql: str) -> str:
    """The spellings, which commas outside of parentheses part."""
    parts, depth = [""], 0
    for character in sql:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return ", ".join(f"`{part.strip()}`" for part in parts)


def _takes(spelling: Spelling) -> str:
    return ", ".join(spelling.takes or AGGREGATES[spelling.function].takes) or "any"


def _gives(spelling: Spelling) -> str:
    samples = _SAMPLES if spelling.columns in (tuple, _by) else [Type("float")]
    kinds = [getattr(AGGREGATES[spelling.function].type(type_), "kind", "") for type_ in samples]
    if kinds == [type_.kind for type_ in _SAMPLES]:
        return "the type of a"
    return kinds[0] if len(set(kinds)) == 1 else "float, of decimals decimal"


_SAMPLES = (Type("int"), Type("float"), Type("decimal", 10, 2))
_COSTS = {
    **dict.fromkeys(("min", "max", "percentile"), "O(log N)"),
    "values": "linear in the values of the group",
}


def _cost(spelling: Spelling) -> str:
    return _COSTS.get(AGGREGATES[spelling.function].reads, "O(1)")
