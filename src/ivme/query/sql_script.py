"""A SELECT as a script of blocks: SELECTs in the language of `query.sql`, each over tables and earlier blocks.

What `query.sql` reads is one block, as it is. Everything else is taken apart by the passes of `query.rewrite`. Rules
that are more than one join are SELECTs too, which `rule_sql` writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from sqlglot import exp

from ivme.errors import QueryError, UnknownNameError, UnsupportedError
from ivme.query.block_names import block_name
from ivme.query.exact_text import exact_text
from ivme.query.functions import Function
from ivme.query.model import HeadColumn, Query, Table
from ivme.query.order import Order
from ivme.query.pairing import Pairing, PairingTypeError
from ivme.query.parse import is_sql
from ivme.query.read_select import ReadSelect
from ivme.query.rewrite.clock import with_clock, with_clock_table
from ivme.query.rewrite.domains import Refused, parameter_of
from ivme.query.rewrite.lift import Lift
from ivme.query.rewrite.order import take_order
from ivme.query.rewrite.plain_forms import plain_forms
from ivme.query.rewrite.qualify import reads_own_columns
from ivme.query.rewrite.quoted_columns import refuse_quoted_columns
from ivme.query.rewrite.ranges import take_ranges
from ivme.query.rewrite.ranks import distinct_on
from ivme.query.rewrite.script import Ordered, Script
from ivme.query.rewrite.strict import refuse_unknown_parts
from ivme.query.rewrite.time_windows import time_windows
from ivme.query.rule_sql import RuleSql, rule_sql
from ivme.query.sql import one_statement, read_query
from ivme.query.sql_kinds import cast_hint
from ivme.query.sql_pairing import alias_of, conditions_of, is_pairing, read_pairing
from ivme.query.sql_scope import KnownTables
from ivme.query.sql_text import SqlText
from ivme.query.sql_union import is_union, read_union
from ivme.query.union import Union, UnionTypeError
from ivme.query.written import spelled


@dataclass(frozen=True, slots=True)
class SqlScript:
    """The blocks of a query in the order in which they are made, by their names among themselves; the last is it.

    Blocks that are `ordered` show the first rows of another one. `rules` is what the SELECT was made of, if the text is
    in rule notation. `whole` is the query of a text that is one block; `shown` takes the place of the last one's head.
    Blocks are named by their number, unless they are `called` something: those of a part of a script keep their names.
    """

    source: SqlText
    selects: tuple[tuple[str, exp.Expr], ...]
    order: Order | None = None
    ordered: Mapping[str, Ordered] = field(default_factory=dict)
    rules: RuleSql | None = None
    whole: Query | None = None
    shown: tuple[HeadColumn, ...] | None = None
    called: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.selects)

    def name_of(self, number: int, view: str) -> str:
        """The name of a block in a database where the script is that of a view."""
        return self.called.get(self.selects[number][0]) or block_name(view, number + 1)

    def block(
        self, number: int, tables: Iterable[Table], blocks: Mapping[str, str], name: str
    ) -> Query | Union | Pairing:
        """A block over the tables, and over earlier blocks, which are tables called `blocks[their name here]`."""
        query = None if self.whole is None else replace(self.whole, name=name)
        if query is None:
            node = renamed(self.selects[number][1], blocks)
            if is_union(node):
                return read_union(self.source, node, tables, name)
            if is_pairing(node):
                return read_pairing(self.source, node, tables, name)
            query = read_query(self.source, node, tables, name)
        if self.shown is not None and number == len(self) - 1:
            return replace(query, head=self.shown)
        return query if self.rules is None or number < len(self) - 1 else self.rules.query(query)

    def no_common_type(self, number: int, error: UnionTypeError) -> UnsupportedError:
        """The refusal of a union, at what the user wrote for the column."""
        branches = self.selects[number][1].expressions
        items = [branch.expressions[error.column].unalias() for branch in branches]
        if not error.branches:
            instead = "write CAST(NULL AS type) in one place"
            return self.source.unsupported("a column that is NULL everywhere has no type", items[0], instead)
        (first, second), (type_, other) = (items[branch] for branch in error.branches), error.types
        message = f"{spelled(first)} is of type {type_} and {spelled(second)} of type {other}, with no type in common"
        return self.source.unsupported(message, second, cast_hint(type_.name, other.name))

    def not_comparable(self, number: int, error: PairingTypeError) -> UnsupportedError:
        """The refusal of a pairing, at the comparison that the user wrote."""
        node = self.selects[number][1]
        condition = conditions_of(node)[error.condition]
        is_flipped = alias_of(condition.this) != node.args["from_"].this.alias_or_name
        first, second = (each.name for each in (error.types[::-1] if is_flipped else error.types))
        message = f"{spelled(condition)} compares {first} with {second}"
        return self.source.unsupported(message, condition, cast_hint(first, second))

    def text(self, number: int, blocks: Mapping[str, str]) -> str:
        """A block as SQL, under the names that blocks have in the database."""
        node = renamed(self.selects[number][1], blocks)
        found = self.ordered.get(self.selects[number][0])
        if found is not None:
            return f"{exact_text(node)} {found.order.text}"
        if is_union(node):
            return " UNION ALL ".join(exact_text(each) for each in node.expressions)
        return exact_text(node)

    def known(self, last: Query, blocks: Mapping[str, str]) -> tuple[str, ...]:
        """For each input of the view the block of the values that it is compared with; "" for those without."""
        found = {parameter_of(name): called for name, called in blocks.items()}
        pairs = zip(last.parameters, last.input, strict=True)
        return tuple(found.get(name, "") if variable in last.null_safe else "" for name, variable in pairs)

    @property
    def order_text(self) -> str:
        """ORDER BY and LIMIT as SQL."""
        return "" if self.order is None else self.order.text


def renamed(select: exp.Expr, blocks: Mapping[str, str]) -> exp.Expr:
    """A block with other names for the tables that it reads."""
    node = select.copy()
    for table in node.find_all(exp.Table):
        if table.name in blocks:
            table.this.set("this", blocks[table.name])
    return node


def read_script(
    text: str,
    tables: Mapping[str, Table] | Iterable[Table],
    functions: Mapping[str, Function] = MappingProxyType({}),
    expire: object = None,
) -> SqlScript:
    """The blocks of a SELECT, or of rules; rows leave the outermost SELECT when they `expire`."""
    declared = tuple(tables.values() if isinstance(tables, Mapping) else tables)
    if is_sql(text):
        return script_of(*one_statement(text, functions=functions), declared, expire)
    rules = rule_sql(text, declared)
    return replace(script_of(*one_statement(rules.sql, rules.origin, functions), declared, expire), rules=rules)


def script_of(
    source: SqlText, written: exp.Expr, tables: Mapping[str, Table] | Iterable[Table], expire: object = None
) -> SqlScript:
    """The blocks of a statement. A refusal is that of the whole text, unless taking it apart finds a better reason."""
    declared = tuple(tables.values() if isinstance(tables, Mapping) else tables)
    refuse_quoted_columns(source, written, declared)
    plain = with_clock(source, plain_forms(source, written), expire)
    declared = with_clock_table(declared, [plain])
    node, order = take_order(source, distinct_on(time_windows(source, plain)))
    node, order = take_ranges(source, node, order)
    try:
        whole = read_query(source, node.copy(), declared, "Q")
    except (UnsupportedError, UnknownNameError) as refused:
        if isinstance(refused, UnknownNameError) and not reads_own_columns(node):
            raise
        return replace(_taken_apart(source, node, declared, refused), order=order)
    return SqlScript(source, (("", node),), order, whole=whole)


def _taken_apart(source: SqlText, node: exp.Expr, tables: tuple[Table, ...], refused: QueryError) -> SqlScript:
    if not tables and _first_table(node) is not None:
        raise refused
    script = Script(source, KnownTables(source, tables))
    try:
        refuse_unknown_parts(source, node)
        last = Lift(script, {}).query(node)
        blocks = script.blocks()
    except Refused as reason:
        error = reason.error
        raise (refused if error.position == refused.position else error) from None
    except UnsupportedError as error:
        raise (refused if error.position == refused.position else error) from None
    return SqlScript(source, (*blocks.items(), ("", last)), ordered=script.orders)


def refuse_tables(query: str | ReadSelect, functions: Mapping[str, Function]) -> None:
    """Refuses a query that reads a relation where there is none: only an explanation may infer what a table looks like.

    Rules, whose columns have no types then, are refused as such.
    """
    if isinstance(query, str) and not is_sql(query):
        return
    source, node = one_statement(query, functions=functions) if isinstance(query, str) else (query.source, query.node)
    table = _first_table(node)
    if table is not None:
        raise source.unknown(f"there is no table {table.name!r}", table, "make it by CREATE TABLE")


def named_relations(text: str, functions: Mapping[str, Function] = MappingProxyType({})) -> frozenset[str]:
    """All names in small letters by which a SELECT reads something, also in a WITH that nothing reads."""
    if not is_sql(text):
        return frozenset()
    return frozenset(table.name.lower() for table in one_statement(text, functions=functions)[1].find_all(exp.Table))


def _first_table(node: exp.Expr) -> exp.Table | None:
    """A relation that a query names, and that is not one of its own WITH."""
    own = {each.alias.lower() for each in node.find_all(exp.CTE)}
    return next((each for each in node.find_all(exp.Table) if each.name.lower() not in own), None)
