"""Names: every column gets the alias of its table, stars are spelled out, USING and NATURAL become ON.

SELECT *, b + 1 FROM R JOIN S USING (a)
SELECT R.a, R.b, S.c, R.b + 1 FROM R JOIN S ON R.a = S.a
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import ErrorLevel, exp

from ivme.query.rewrite.clauses import condition_of, conjuncts, own_columns, replaced, set_where
from ivme.query.rewrite.script import Script, aliased, column, fresh_name, named
from ivme.query.sql_deep_access import field_access
from ivme.query.sql_pairing import ASOF
from ivme.query.sql_scope import meant, nearest, same_name
from ivme.query.written import in_place_of, spelled

MADE = "#"
"""What the aliases of blocks begin with that joins in parentheses have become: their columns are as they are to be."""


@dataclass(frozen=True, slots=True)
class Inlined:
    """A part of FROM that is seen through: its tables by alias, its conditions, and what its columns are, by alias."""

    tables: dict[str, exp.Table]
    conditions: list[exp.Expr]
    sources: dict[str, dict[str, exp.Expr]]
    merged: dict[str, exp.Expr] = field(default_factory=dict)
    hidden: set[tuple[str, str]] = field(default_factory=set)


@dataclass(slots=True)
class Names:
    """What the FROM clause of a SELECT makes visible, in its order; `outer` is the SELECT around it.

    `sources` are the columns by the alias that users write, `tables` what is read under each alias, that of blocks that
    were added included. `merged` maps a lower-cased column that USING made one to the expression that it means;
    `renamed` says what a column is in what a part of FROM became: one of a block, or an expression over its tables.
    `bound` is what parameters equal in each row of the SELECT, by their names. `places` has the alias that a merged
    column stands before, where a join in parentheses brought it.
    """

    script: Script
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tables: dict[str, exp.Table] = field(default_factory=dict)
    merged: dict[str, exp.Expr] = field(default_factory=dict)
    hidden: set[tuple[str, str]] = field(default_factory=set)
    renamed: dict[tuple[str, str], exp.Expr] = field(default_factory=dict)
    outer: Names | None = None
    bound: dict[str, exp.Expr] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def alias_of(self, identifier: exp.Identifier) -> str | None:
        return named(identifier, self.sources)

    def column(self, alias: str, name: str) -> exp.Expr:
        """The column as it is called now, or the expression that it is."""
        found = self.renamed.get((alias, name))
        return column(alias, name) if found is None else found.copy()

    def current(self, node: exp.Expr) -> exp.Expr:
        """The expression with its columns as they are called now."""

        def change(each: exp.Expr) -> exp.Expr | None:
            return self.column(each.table, each.name) if isinstance(each, exp.Column) else None

        return replaced(node, change) if self.renamed else node.copy()

    def owners(self, identifier: exp.Identifier) -> list[tuple[str, str]]:
        """The columns of that name, as (alias, column)."""
        found = ((alias, named(identifier, columns)) for alias, columns in self.sources.items())
        return [(alias, name) for alias, name in found if name is not None]

    def star(self, alias: str | None = None) -> list[tuple[str, exp.Expr]]:
        """The columns of a star, each with its name; those of USING come first in their join, and once."""
        if alias is not None:
            return [(name, column(alias, name)) for name in self.sources[alias] if not name.startswith("#")]
        found = self._merged_before(None)
        for alias, columns in self.sources.items():
            found += self._merged_before(alias)
            shown = [name for name in columns if (alias, name) not in self.hidden and not name.startswith("#")]
            found += [(name, column(alias, name)) for name in shown]
        return found

    def _merged_before(self, alias: str | None) -> list[tuple[str, exp.Expr]]:
        mine = [(name, node) for name, node in self.merged.items() if self.places.get(name) == alias]
        return [(_name_of(node, name), node.copy()) for name, node in mine]


def _name_of(node: exp.Expr, name: str) -> str:
    is_written = isinstance(node, exp.Column) and not node.table.startswith(MADE)
    return node.name if is_written else name


def qualify(
    select: exp.Select, script: Script, outer: Names | None = None, inlined: Mapping[str, Inlined] | None = None
) -> Names:
    """Qualifies all names of a SELECT in place. Columns of `outer` keep their alias and are left for `subqueries`.

    Sources that are `inlined`, by their alias, are replaced by their tables.
    """
    names = Names(script, outer=outer)
    _read_sources(select, names, inlined or {})
    _expand_stars(select, names)
    _keep_names(select)
    aliases: dict[str, exp.Expr] = {
        item.alias.lower(): item for item in select.expressions if isinstance(item, exp.Alias)
    }
    for clause, value in select.args.items():
        if clause in ("from_", "with_", "joins") or value is None:
            continue
        if clause == "expressions":
            _qualify_items(value, names)
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, exp.Expr):
                _qualify_all(node, names, aliases if clause in ("group", "having", "order") else {})
    if inlined and not any(join.side for join in select.args.get("joins") or ()):
        _take_in(select, inlined)
    return names


def _qualify_items(items: list[exp.Expr], names: Names) -> None:
    """The columns of a SELECT; one may read those before it by their names, where no table has such a column."""
    before: dict[str, exp.Expr] = {}
    for item in items:
        _qualify_all(item, names, before)
        if isinstance(item, exp.Alias):
            before[item.alias.lower()] = item


def reads_own_columns(statement: exp.Expr) -> bool:
    """Whether a column of a SELECT has the name of one before it, which it may mean."""
    for select in statement.find_all(exp.Select):
        before: set[str] = set()
        for item in select.expressions:
            if any(not each.table and each.name.lower() in before for each in own_columns(item)):
                return True
            before |= {item.alias.lower()} if isinstance(item, exp.Alias) else set()
    return False


def _read_sources(select: exp.Select, names: Names, inlined: Mapping[str, Inlined]) -> None:
    start = select.args.get("from_")
    if start is None:
        return
    _add_source(start.this, names, inlined)
    for join in select.args.get("joins") or ():
        left = dict(names.sources)
        _add_source(join.this, names, inlined)
        if join.args.get("using") or join.method == "NATURAL":
            added = [alias for alias in names.sources if alias not in left]
            if len(added) > 1:
                message = "USING with a join in parentheses is not supported"
                raise names.script.source.unsupported(message, join.this, "write ON")
            _merge(join, names, left, added[0])
        if join.args.get("on") is not None:
            _qualify_all(join.args["on"], names, {})


def _take_in(select: exp.Select, inlined: Mapping[str, Inlined]) -> None:
    """Puts the tables and conditions of what is inlined into FROM and WHERE."""
    tables: list[exp.Expr] = []
    conditions: list[exp.Expr] = []
    for holder in (select.args["from_"], *(select.args.get("joins") or ())):
        conditions += conjuncts(holder.args.get("on"))
        found = inlined.get(holder.this.name)
        tables += [holder.this] if found is None else found.tables.values()
        conditions += [] if found is None else found.conditions
    select.set("from_", exp.From(this=tables[0]))
    select.set("joins", [exp.Join(this=table) for table in tables[1:]])
    set_where(select, [each.copy() for each in (*conditions, *condition_of(select))])


def _add_source(node: exp.Expr, names: Names, inlined: Mapping[str, Inlined]) -> None:
    source = names.script.source
    assert isinstance(node, exp.Table), "derived tables were lifted"
    found = inlined.get(node.name)
    if found is not None:
        names.tables |= found.tables
        names.merged |= {name: node.copy() for name, node in found.merged.items()}
        names.places |= dict.fromkeys(found.merged, next(iter(found.sources)))
        names.hidden |= found.hidden
        for alias, known in found.sources.items():
            _refuse_twice(alias, node, names)
            names.sources[alias] = tuple(known)
            names.renamed |= {(alias, name): made for name, made in known.items()}
        return
    columns = names.script.columns_of(node)
    if columns is None:
        raise source.unknown(f"the columns of {node.name} are not known", node, "declare the table")
    alias = node.alias or node.name
    _refuse_twice(alias, node, names)
    names.sources[alias] = columns
    inside = _unlike_outer(alias, names)
    if inside != alias:
        node.set("alias", exp.TableAlias(this=exp.to_identifier(inside, quoted=True)))
        names.renamed |= {(alias, name): column(inside, name) for name in columns}
    names.tables[inside] = node


def _unlike_outer(alias: str, names: Names) -> str:
    """An alias that no query around has: a table that hides one outside is told apart from it."""
    taken: list[str] = []
    scope = names.outer
    while scope is not None:
        taken += scope.tables
        scope = scope.outer
    return alias if alias not in taken else fresh_name(f"{alias} inside", [*taken, *names.tables])


def _refuse_twice(alias: str, node: exp.Expr, names: Names) -> None:
    if named(exp.to_identifier(alias), names.sources) is not None:
        message = f"two tables of FROM are called {alias!r}"
        raise names.script.source.unsupported(message, node, "give one of them an alias with AS")


def _merge(join: exp.Join, names: Names, left: dict[str, tuple[str, ...]], alias: str) -> None:
    """USING or NATURAL as ON; the name alone means the left column, or for outer joins the one that is there."""
    source, right = names.script.source, names.sources[alias]
    wanted = join.args.get("using") or [
        exp.to_identifier(name, quoted=True) for name in right if any(name in columns for columns in left.values())
    ]
    equalities = []
    for identifier in wanted:
        name = named(identifier, right)
        owners = [(other, found) for other, columns in left.items() if (found := named(identifier, columns))]
        merged = names.merged.get(identifier.name.lower())
        if name is None or not (owners or merged):
            raise source.unknown(f"both sides of USING need the column {identifier.name!r}", identifier, "write ON")
        first = merged.copy() if merged is not None else column(*owners[0])
        second = column(alias, name)
        place = identifier if join.args.get("using") else join.this
        sides = [in_place_of(each.copy(), place, spelled(each)) for each in (first, second)]
        is_nearest = join.method == ASOF and identifier is wanted[-1]
        comparison = (exp.GTE if is_nearest else exp.EQ)(this=sides[0], expression=sides[1])
        equalities.append(in_place_of(comparison, place))
        names.merged[identifier.name.lower()] = _merged(join.side, first, second)
        names.places.pop(identifier.name.lower(), None)
        names.hidden |= {(alias, name), *owners}
    join.set("using", None)
    join.set("method", ASOF if join.method == ASOF else None)
    on: exp.Expr | None = equalities[0] if equalities else None
    for each in equalities[1:]:
        on = exp.And(this=on, expression=each)
    join.set("on", on)


def _merged(side: str, first: exp.Expr, second: exp.Expr) -> exp.Expr:
    if side == "FULL":
        return exp.Coalesce(this=first, expressions=[second])
    return second if side == "RIGHT" else first


def _expand_stars(select: exp.Select, names: Names) -> None:
    items: list[exp.Expr] = []
    for item in select.expressions:
        star = item if isinstance(item, exp.Star) else item.this
        if not isinstance(star, exp.Star) or not isinstance(item, exp.Star | exp.Column):
            items.append(item)
            continue
        alias = None
        if isinstance(item, exp.Column):
            alias = names.alias_of(item.args["table"])
            if alias is None and names.owners(item.args["table"]):
                raise field_access(names.script.source, item, item.table)
            if alias is None:
                raise names.script.source.unknown(f"no table is called {item.table!r}", item, "")
        items += _star_items(star, names.star(alias), names)
    select.set("expressions", items)


def _star_items(star: exp.Star, columns: list[tuple[str, exp.Expr]], names: Names) -> list[exp.Expr]:
    """The columns of a star, without those of EXCEPT, with those of REPLACE and RENAME in their places."""
    left_out, replacing, renaming = (star.args.get(each) or [] for each in ("except_", "replace", "rename"))
    identifiers = [*map(_identifier, left_out), *(each.args["alias"] for each in replacing)]
    identifiers += [_identifier(each.this) for each in renaming]
    for identifier in identifiers:
        if not any(same_name(identifier, name) for name, _ in columns):
            message = f"there is no column {identifier.name!r} in *"
            raise names.script.source.unknown(message, identifier, nearest(identifier.name, [n for n, _ in columns]))
    items: list[exp.Expr] = []
    for name, node in columns:
        if any(same_name(_identifier(each), name) for each in left_out):
            continue
        other = next((each.this.copy() for each in replacing if same_name(each.args["alias"], name)), node)
        called = next((each.alias for each in renaming if same_name(_identifier(each.this), name)), name)
        items.append(aliased(other, called))
    return items


def _identifier(node: exp.Expr) -> exp.Identifier:
    found = node.this if isinstance(node, exp.Column) else node
    assert isinstance(found, exp.Identifier)
    return found


def _qualify_all(node: exp.Expr, names: Names, aliases: dict[str, exp.Expr]) -> None:
    for found in list(own_columns(node)):
        made = _resolved(found, names, aliases)
        if made is not None:
            found.replace(made)


def _resolved(node: exp.Column, names: Names, aliases: dict[str, exp.Expr]) -> exp.Expr | None:
    """What stands for a column; None if it stays as it is."""
    identifier, qualifier = node.this, node.args.get("table")
    if not isinstance(identifier, exp.Identifier):
        return None
    scope: Names | None = names
    while scope is not None:
        made = _in_scope(node, identifier, qualifier, scope)
        if made is not None:
            return made
        if scope is names and qualifier is None and identifier.name.lower() in aliases:
            stands: exp.Expr = aliases[identifier.name.lower()].this.copy()
            return stands
        scope = scope.outer
    if qualifier is not None and names.owners(qualifier):
        raise field_access(names.script.source, node, qualifier.name)
    known = list(names.sources) if qualifier is not None else [c for cs in names.sources.values() for c in cs]
    if qualifier is None:
        raise names.script.source.unknown(f"there is no column {node.name!r}", node, meant(identifier, known))
    raise names.script.source.unknown(f"no table is called {qualifier.name!r}", node, nearest(qualifier.name, known))


def _in_scope(
    node: exp.Column, identifier: exp.Identifier, qualifier: exp.Identifier | None, scope: Names
) -> exp.Expr | None:
    source = scope.script.source
    if qualifier is not None:
        alias = scope.alias_of(qualifier)
        if alias is None:
            is_made = qualifier.name.startswith(MADE) and qualifier.name in scope.tables
            return node.copy() if is_made else None
        name = named(identifier, scope.sources[alias])
        if name is None:
            message = f"there is no column {identifier.name!r} in {alias}"
            raise source.unknown(message, identifier, nearest(identifier.name, scope.sources[alias]))
        return _placed(scope.column(alias, name), node)
    merged = scope.merged.get(identifier.name.lower())
    if merged is not None:
        return _placed(scope.current(merged), node)
    owners = scope.owners(identifier)
    if len(owners) > 1:
        choices = " or ".join(f"{alias}.{name}" for alias, name in owners)
        raise source.unknown(f"the column {identifier.name!r} is ambiguous", identifier, f"write {choices}")
    return _placed(scope.column(*owners[0]), node) if owners else None


def _placed(made: exp.Expr, node: exp.Column) -> exp.Expr:
    """The replacement keeps the place of what it replaces, for messages; an expression has places of its own."""
    return in_place_of(made, node) if isinstance(made, exp.Column) else made


def _keep_names(select: exp.Select) -> None:
    """Each item of SELECT has an alias: the name under which its column was written."""
    items: list[exp.Expr] = []
    for item in select.expressions:
        if isinstance(item, exp.Alias):
            items.append(item)
        else:
            text = item.sql(dialect="spark", comments=False, unsupported_level=ErrorLevel.IGNORE)
            items.append(aliased(item, item.name if isinstance(item, exp.Column) else text))
    select.set("expressions", items)


def is_outer(node: exp.Column, names: Names) -> bool:
    """Whether a qualified column is one of the SELECT around."""
    return node.table not in names.tables
