"""Windows of time in GROUP BY: TUMBLE and HOP, and Spark's `window(ts, '5 minutes')`, as expressions of the moment.

    SELECT window.start, COUNT(*) AS n FROM r GROUP BY window(ts, '5 minutes')

groups by the moment that begins the five minutes of each row, from 1970 on. A row is in several windows that slide, HOP
and `window(ts, '1 hour', '5 minutes')`: the rows are joined with the numbers of these windows. One without a moment is
in no window, as in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from ivme.query.functions.dates import MICROSECONDS
from ivme.query.rewrite.clauses import condition_of, own_nodes_of, set_where
from ivme.query.rewrite.script import fresh_name
from ivme.query.sql_intervals import is_interval, read_interval
from ivme.query.sql_text import WINDOW_CALL, SqlText

_NAMES = ("TUMBLE", "TUMBLE_START", "TUMBLE_END", "HOP", "HOP_START", "HOP_END", WINDOW_CALL)
_LENGTHS = "write lengths as INTERVAL '5' MINUTE, or '5 minutes', in days or less"
_MOST = 10_000
"""In so many windows that slide a row may be."""


@dataclass(frozen=True, slots=True)
class _Windows:
    """Windows of a moment: how long one is and how far the next one is from it, in microseconds."""

    moment: exp.Expr
    size: int
    slide: int

    def start(self, hops: str | None) -> exp.Expr:
        """The moment that begins the window of a row, of those that slide the one of a number of `hops`."""
        micros = exp.func("UNIX_MICROS", self.moment.copy(), dialect="spark")
        rest = exp.Anonymous(this="PMOD", expressions=[micros.copy(), exp.Literal.number(self.slide)])
        begin: exp.Expr = exp.Sub(this=micros, expression=rest)
        if hops is not None:
            number = exp.Column(this=exp.to_identifier("n"), table=exp.to_identifier(hops))
            begin = exp.Sub(this=begin, expression=exp.Mul(this=number, expression=exp.Literal.number(self.slide)))
        return exp.func("TIMESTAMP_MICROS", begin, dialect="spark")

    def end(self, hops: str | None) -> exp.Expr:
        length = exp.Interval(this=exp.Literal.string(str(self.size)), unit=exp.var("MICROSECOND"))
        return exp.Add(this=self.start(hops), expression=length)


def time_windows(source: SqlText, node: exp.Expr) -> exp.Expr:
    """The statement with expressions in the place of windows of time."""
    if not any(_is_call(each) for each in node.find_all(exp.Anonymous)):
        return node
    made = node.copy()
    for select in list(made.find_all(exp.Select)):
        calls = [each for each in own_nodes_of(select) if _is_call(each)]
        if calls:
            _replace(source, select, calls)
    return made


def _is_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in _NAMES


def _replace(source: SqlText, select: exp.Select, calls: list[exp.Expr]) -> None:
    found = [_read(source, call) for call in calls]
    windows = found[0]
    other = next((call for call, each in zip(calls, found, strict=True) if each != windows), None)
    if other is not None:
        instead = "write the other one in a SELECT around this one"
        raise source.unsupported("a SELECT has one kind of windows of time", other, instead)
    struct = next((call for call in calls if _is_struct(call)), None)
    if struct is not None:
        message = "window(...) as a column is a struct, which is not supported"
        raise source.unsupported(message, struct, "write window.start and window.end")
    missing = exp.Is(this=windows.moment.copy(), expression=exp.Null())
    set_where(select, [*condition_of(select), exp.Not(this=missing)])
    hops = _joined(select, windows) if windows.size > windows.slide else None
    for each in [node for node in own_nodes_of(select) if isinstance(node, exp.Column | exp.Dot)]:
        word = each.name.lower() if isinstance(each, exp.Column) else each.expression.name.lower()
        is_window = isinstance(each, exp.Dot) and _is_call(each.this)
        is_window |= isinstance(each, exp.Column) and each.table.lower() == "window" and not _has_table(select)
        if is_window and word in ("start", "end"):
            made = windows.start(hops) if word == "start" else windows.end(hops)
            is_item = each.parent is select
            each.replace(exp.Alias(this=made, alias=exp.to_identifier(word)) if is_item else made)
    for call in [each for each in own_nodes_of(select) if _is_call(each)]:
        call.replace(windows.end(hops) if call.name.upper().endswith("_END") else windows.start(hops))


def _is_struct(call: exp.Expr) -> bool:
    """Whether a call of Spark's function is read as a whole; in GROUP BY it only tells windows apart."""
    is_key = call.find_ancestor(exp.Group, exp.Select)
    return call.name == WINDOW_CALL and not isinstance(call.parent, exp.Dot) and not isinstance(is_key, exp.Group)


def _has_table(select: exp.Select) -> bool:
    """Whether a source is called `window`, whose columns these are."""
    holders = [select.args.get("from_"), *(select.args.get("joins") or ())]
    return any(each is not None and each.this.alias_or_name.lower() == "window" for each in holders)


def _read(source: SqlText, call: exp.Expr) -> _Windows:
    """The windows of a call: HOP has the slide before the size, as in streaming SQL, and Spark's window behind it."""
    given = call.expressions
    is_hop = call.name.upper().startswith("HOP")
    if not 2 + is_hop <= len(given) <= 3:
        word = "window" if call.name == WINDOW_CALL else call.name
        message = f"{word} takes a moment and {'two lengths' if is_hop else 'a length'} of time"
        raise source.unsupported(message, call, "write TUMBLE(ts, INTERVAL '5' MINUTE), or HOP(ts, slide, size)")
    lengths = [_length(source, each) for each in given[1:]]
    size, slide = (lengths[1], lengths[0]) if is_hop else (lengths[0], lengths[-1])
    if size % slide or size // slide > _MOST:
        message = "the size of a sliding window must be a multiple of its slide"
        raise source.unsupported(
            message, given[-1], f"write a size that is a multiple of the slide, up to {_MOST:,} times"
        )
    return _Windows(given[0], size, slide)


def _length(source: SqlText, node: exp.Expr) -> int:
    interval = node
    if isinstance(node, exp.Literal) and node.is_string:
        count, _, unit = node.this.strip().upper().partition(" ")
        if not (count.isascii() and count.isdigit()) or unit.strip().removesuffix("S") not in MICROSECONDS:
            raise source.unsupported("this is not a length of time", node, _LENGTHS)
        interval = exp.Interval(this=exp.Literal.string(count), unit=exp.var(unit.strip()))
    if not is_interval(interval):
        raise source.unsupported("this is not a length of time", node, _LENGTHS)
    found = read_interval(source, interval)
    length = found.days * MICROSECONDS["DAY"] + found.micros
    if found.months or length <= 0:
        raise source.unsupported("windows of time have a length in days or less, above 0", node, _LENGTHS)
    return length


def _joined(select: exp.Select, windows: _Windows) -> str:
    """Joins the rows with the numbers of the windows that each is in; the name of these."""
    holders = [select.args.get("from_"), *(select.args.get("joins") or ())]
    name = fresh_name("hops", [each.this.alias_or_name for each in holders if each is not None])
    rows = [exp.Tuple(expressions=[exp.Literal.number(n)]) for n in range(windows.size // windows.slide)]
    alias = exp.TableAlias(this=exp.to_identifier(name), columns=[exp.to_identifier("n")])
    select.append("joins", exp.Join(this=exp.Values(expressions=rows, alias=alias), kind="CROSS"))
    return name
