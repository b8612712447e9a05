"""Random views over tables and views: joins of any shape, conditions, groups, aggregates, parameters, closures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from ivme.query.types import Type
from tests.fuzz.aggregates import FOLDS
from tests.fuzz.expressions import Expr, Grower, reference
from tests.fuzz.known import is_avoided
from tests.fuzz.values import Column
from tests.fuzz.views import (
    DEVIATIONS,
    GUARD,
    GUARDED,
    MOST_SQUARED_DIGITS,
    Closure,
    Condition,
    Item,
    Parameter,
    Source,
    ViewSpec,
)

_NOTHING = Expr("NULL", "NULL", Type("bool"))

Relations = Mapping[str, Sequence[Column]]
"""What a view may read: tables, and views without parameters, with their columns."""

_STRATEGIES = ("view-tree", "skew", "skew", "marks", "factorised", "classical", "recursive", "recompute")
_NUMBERS = ("int", "float", "decimal")
_FUNCTIONS = ("count", "sum", "min", "max", "count_distinct")


class QueryMaker:
    """Makes one view."""

    def __init__(self, random: Random, relations: Relations, name: str) -> None:
        self.random = random
        self.relations = relations
        self.name = name
        self.columns: dict[str, Sequence[Column]] = {}
        self.depth = random.choice([0, 1, 1, 2])
        self.guarded: dict[str, Expr] = {}

    def view(self) -> ViewSpec:
        if self.random.random() < 0.08:
            found = self._triangle()
            if found is not None:
                return found
        closure = self._closure() if self.random.random() < 0.12 else None
        sources, conditions = self._from(closure)
        if closure is not None and self.random.random() < 0.4:
            return self._plain_closure(closure)
        conditions += self._guards() if closure is None and self.random.random() < 0.25 else []
        conditions += self._filters()
        parameters = self._parameters() if self.random.random() < 0.3 else ()
        made = self._head(ViewSpec(self.name, sources, (), tuple(conditions), parameters, closure=closure))
        return replace(made, options=self._options(made))

    # FROM

    def _closure(self) -> Closure | None:
        found = []
        for name, columns in self.relations.items():
            for kind in ("int", "string"):
                named = [c.name for c in columns if c.type.kind == kind and c.exact]
                found += [(name, tuple(named[:2]))] if len(named) > 1 else []
        if not found:
            return None
        relation, ends = self.random.choice(found)
        union = "UNION ALL" if self.random.random() < 0.2 else "UNION"
        return Closure(relation, (ends[0], ends[1]), self.random.choice(["left", "right", "double"]), union)

    def _triangle(self) -> ViewSpec | None:
        """Counts and sums over triangles, which heavy and light parts are made for, in every way."""
        pairs = {
            name: (one, other)
            for name, columns in self.relations.items()
            for one in columns
            for other in columns
            if one != other and one.type == other.type and one.exact and other.exact and one.type.kind != "binary"
        }
        if not pairs:
            return None
        names = [self.random.choice(list(pairs)) for _ in range(3)]
        ends = [pairs[name] for name in names]
        if len({end[0].type for end in ends}) > 1:
            names, ends = [names[0]] * 3, [ends[0]] * 3
        self.columns = {f"t{number}": self.relations[name] for number, name in enumerate(names)}
        conditions = []
        for number in range(3):
            sides = [
                reference(f"t{number}", ends[number][1]),
                reference(f"t{(number + 1) % 3}", ends[(number + 1) % 3][0]),
            ]
            text = f"{sides[0].spark} = {sides[1].spark}"
            aliases = (f"t{number}", f"t{(number + 1) % 3}")
            conditions.append(Condition(Expr(text, text, Type("bool")), aliases))
        sources = tuple(Source(name, f"t{number}") for number, name in enumerate(names))
        item = Item("n0", "t0", None, "count")
        if self.random.random() < 0.3:
            item = self._aggregate("n0", bag=True) or item
        made = ViewSpec(self.name, sources, (item,), tuple(conditions))
        if self.random.random() < 0.3:
            return replace(made, options=self._options(made))
        return replace(made, options=(("strategy", "skew"), *self._skew().items()))

    def _plain_closure(self, closure: Closure) -> ViewSpec:
        """The closure and nothing else, which an engine of its own maintains."""
        ends = self._ends(closure)
        items = tuple(Item(end.name, "t0", reference("t0", end)) for end in ends)
        asked = self.random.choice([(), (), (Parameter("a", "t0", items[0].expression or _NOTHING),)])
        return ViewSpec(self.name, (Source("p", "t0"),), items, (), asked, closure=replace(closure, union="UNION"))

    def _ends(self, closure: Closure) -> list[Column]:
        types = {column.name: column for column in self.relations[closure.relation]}
        return [replace(types[end], name=name) for name, end in zip("xy", closure.ends, strict=True)]

    def _from(self, closure: Closure | None) -> tuple[tuple[Source, ...], list[Condition]]:
        wanted = self.random.choice([1, 1, 2, 2, 2, 3, 3, 4])
        names = [self.random.choice(list(self.relations)) for _ in range(wanted)]
        if self.random.random() < 0.25:
            names = [names[0]] * wanted
        if closure is not None:
            names = ["p", *names[: self.random.choice([0, 0, 1])]]
        style = self.random.choice([",", ",", "JOIN", "JOIN", "USING"])
        sources: list[Source] = []
        conditions: list[Condition] = []
        for number, name in enumerate(names):
            alias = f"t{number}"
            columns = self._ends(closure) if name == "p" and closure is not None else self.relations[name]
            using = self._using(columns) if style == "USING" and number and number == len(sources) else ()
            self.columns[alias] = columns
            sources.append(Source(name, alias, "," if style == "," else "JOIN", using))
            if number and not using and self.random.random() < 0.9:
                conditions += self._joins(alias, on=style != ",")
        if len(names) > 2 and self.random.random() < 0.35:
            conditions += self._equality("t0", f"t{len(names) - 1}", on=style != ",")
        return tuple(sources), conditions

    def _using(self, columns: Sequence[Column]) -> tuple[str, ...]:
        """The names of columns that exactly one table to the left has, too, in the same type."""
        before = [column for found in self.columns.values() for column in found]
        names = []
        for column in columns:
            same = [each for each in before if each.name == column.name]
            if len(same) == 1 and same[0].type == column.type and column.exact and same[0].exact:
                names.append(column.name)
        return tuple(names[: self.random.choice([1, 1, 2])])

    def _joins(self, alias: str, *, on: bool) -> list[Condition]:
        others = [other for other in self.columns if other != alias]
        chosen = [self.random.choice(others) for _ in range(self.random.choice([1, 1, 1, 2]))]
        return [condition for other in chosen for condition in self._equality(other, alias, on=on)]

    def _equality(self, left: str, right: str, *, on: bool) -> list[Condition]:
        pairs = [
            (one, other)
            for one in self.columns[left]
            for other in self.columns[right]
            if one.exact and other.exact and _joinable(one.type, other.type)
        ]
        same = [pair for pair in pairs if pair[0].type == pair[1].type]
        small = [pair for pair in same if pair[0].type.kind in ("int", "string")]
        chosen = self.random.choice([small, small, same, pairs]) or same or pairs
        if not chosen:
            return []
        one, other = self.random.choice(chosen)
        sides = [reference(left, one), reference(right, other)]
        if one.type == other.type and self.depth and self.random.random() < 0.2:
            grown = Grower(self.random, right, self.columns[right])._applied_to(one.type)
            sides[1] = grown or sides[1]
        kinds = " and ".join(sorted({str(side.type.kind) for side in sides}))
        features = (f"join:{kinds}", *(name for side in sides for name in side.features))
        text, duck = f"{sides[0].spark} = {sides[1].spark}", f"{sides[0].duck} = {sides[1].duck}"
        return [Condition(Expr(text, duck, Type("bool"), features=features), (left, right), on)]

    # WHERE

    def _guards(self) -> list[Condition]:
        """Makes a divisor that is zero only in rows which another table keeps out of the view."""
        aliases = [(one, other) for one in self.columns for other in self.columns if one != other]
        found = [
            (left, number, divisor, right, guard)
            for left, right in aliases
            for number in self.columns[left]
            for divisor in self.columns[left]
            for guard in self.columns[right]
            if all(c.type.kind == "int" and c.exact for c in (number, divisor, guard)) and number.bound is not None
        ]
        if not found:
            return []
        left, number, divisor, right, guard = self.random.choice(found)
        above, below, other = reference(left, number), reference(left, divisor), reference(right, guard)
        self.guarded[left] = self._quotient(above, below)
        text = f"{below.spark} = {other.spark} AND {other.spark} <> 0"
        made = [Condition(Expr(text, text, Type("bool"), features=(GUARD,)), (left, right))]
        if self.random.random() < 0.4:
            spark, duck = f"{self.guarded[left].spark} > 0", f"{self.guarded[left].duck} > 0"
            made.append(Condition(Expr(spark, duck, Type("bool"), features=(GUARDED,)), (left,)))
        return made

    def _quotient(self, above: Expr, below: Expr) -> Expr:
        """A quotient or remainder; DuckDB gets a CASE that computes it only where the divisor is not zero."""
        duck, type_, sign = f"CAST({above.duck} AS DOUBLE) / CAST({below.duck} AS DOUBLE)", Type("float"), "/"
        if self.random.random() < 0.5:
            duck, type_, sign = f"{above.duck} % {below.duck}", Type("int"), "%"
        case = f"(CASE WHEN {below.duck} <> 0 THEN {duck} END)"
        return Expr(f"({above.spark} {sign} {below.spark})", case, type_, above.bound, features=(GUARDED,))

    def _filters(self) -> list[Condition]:
        found = []
        for _ in range(self.random.choice([0, 0, 1, 1, 2])):
            alias = self.random.choice(list(self.columns))
            condition = Grower(self.random, alias, self.columns[alias]).condition(self.depth)
            if condition is not None:
                found.append(Condition(condition, (alias,)))
        return found

    def _parameters(self) -> tuple[Parameter, ...]:
        found = []
        for name in ("a", "z")[: self.random.choice([1, 1, 2])]:
            alias = self.random.choice(list(self.columns))
            asked = self._plain(alias)
            if asked is not None and not _is_unordered(asked):
                found.append(Parameter(name, alias, asked))
        return tuple(found)

    # SELECT

    def _plain(self, alias: str | None = None) -> Expr | None:
        chosen = alias or self.random.choice(list(self.columns))
        if chosen in self.guarded and self.random.random() < 0.6:
            return self.guarded[chosen]
        depth = 0 if self.columns[chosen][0].name == "x" else self.depth
        return Grower(self.random, chosen, self.columns[chosen]).any(depth)

    def _head(self, view: ViewSpec) -> ViewSpec:
        starred = self._star(view)
        if starred is not None and self.random.random() < 0.15:
            return starred
        aggregates = self.random.random() < 0.55
        keys = [(f"t{n}", expression) for n in range(len(self.columns)) for expression in self._some(f"t{n}")]
        self.random.shuffle(keys)
        keys = keys[: self.random.choice([0, 1, 1, 2, 3] if aggregates else [1, 2, 3])]
        items = self._items(keys)
        if aggregates or not items:
            return self._aggregated(view, items, keys)
        distinct = self.random.random() < 0.35 or (view.closure is not None and view.closure.union != "UNION")
        if distinct and self.random.random() < 0.3:
            return replace(view, items=items, group=tuple(keys), grouping=self._grouping(items, keys))
        return replace(view, items=items, distinct=distinct)

    def _some(self, alias: str) -> list[Expr]:
        return [found for found in (self._plain(alias), self._plain(alias)) if found is not None]

    def _star(self, view: ViewSpec) -> ViewSpec | None:
        """SELECT *, where no two columns have one name, but for those that USING merges."""
        merged = [name for source in view.sources for name in source.using]
        shown: list[tuple[str, Column]] = []
        names: set[str] = set()
        for source, (alias, columns) in zip(view.sources, self.columns.items(), strict=True):
            for column in columns:
                if column.name in names and column.name not in source.using:
                    return None
                if column.name not in names:
                    shown.append((alias, column))
                names.add(column.name)
        if sum(bool(source.using) for source in view.sources) > 1 or view.parameters or view.closure is not None:
            return None
        shown.sort(key=lambda each: merged.index(each[1].name) if each[1].name in merged else len(merged))
        items = tuple(Item(column.name, alias, reference(alias, column)) for alias, column in shown)
        return replace(view, items=items, star=True) if all(c.exact for _, c in shown) else None

    def _items(self, keys: Sequence[tuple[str, Expr]]) -> tuple[Item, ...]:
        items: list[Item] = []
        for alias, expression in keys:
            bare = expression.spark.rpartition(".")[2]
            used = {item.name for item in items}
            fresh = next(f"c{number}" for number in range(len(items), 99) if f"c{number}" not in used)
            name = bare if expression.plain and bare not in used and self.random.random() < 0.7 else fresh
            items.append(Item(name, alias, expression))
        return tuple(items)

    def _aggregated(self, view: ViewSpec, items: tuple[Item, ...], keys: list[tuple[str, Expr]]) -> ViewSpec:
        found = list(items)
        if len(found) > 1 and self.random.random() < 0.15:
            found.pop(self.random.randrange(len(found)))
        bag = view.closure is None or view.closure.union == "UNION"
        for number in range(self.random.choice([1, 1, 2, 3])):
            used = {each.name for each in found}
            fresh = (name for name in (f"n{index}" for index in range(number, 99)) if name not in used)
            item = self._aggregate(next(fresh), bag=bag)
            if item is not None:
                found.append(item)
        if not any(item.function for item in found):
            found.append(Item("rows", "t0", None, "count"))
        if self.random.random() < 0.2:
            self.random.shuffle(found)
        return replace(
            view, items=tuple(found), group=tuple(keys) if keys else None, grouping=self._grouping(found, keys)
        )

    def _aggregate(self, name: str, *, bag: bool) -> Item | None:
        function = self.random.choice([*_FUNCTIONS, *_FUNCTIONS, "count", "avg", *DEVIATIONS])
        if self.random.random() < 0.2:
            function = self.random.choice([*FOLDS, "count_if", "sum_distinct", "avg_distinct"])
        if not bag:
            function = self.random.choice(["min", "max", "count_distinct", "any_value", "max_by"])
        alias = self.random.choice(list(self.columns))
        if function == "count" and self.random.random() < 0.6:
            return Item(name, alias, None, "count")
        for _ in range(12 if function in FOLDS or function == "count_if" else 4):
            argument = self._plain(alias)
            if argument is not None and _fits(function, argument):
                return Item(name, alias, argument, function)
        return Item(name, alias, None, "count") if bag else None

    def _grouping(self, items: Sequence[Item] = (), keys: Sequence[Any] = ()) -> str:
        shown = {item.expression.spark for item in items if item.expression is not None and not item.function}
        whole = all(expression.spark in shown for _, expression in keys)
        known = {column.name for columns in self.columns.values() for column in columns}
        named = known.isdisjoint(item.name for item in items)
        return self.random.choice(["expressions", "positions", *["aliases"] * named, *["all"] * whole])

    # Options

    def _options(self, view: ViewSpec) -> tuple[tuple[str, Any], ...]:
        options: dict[str, Any] = {}
        if self.random.random() < 0.6 and view.closure is None:
            options["strategy"] = strategy = self.random.choice(_STRATEGIES)
            if strategy == "skew":
                options |= self._skew()
        if self.random.random() < 0.1 and not view.aggregates:
            options["semantics"] = "set"
        return tuple(options.items())

    def _skew(self) -> dict[str, Any]:
        chosen: dict[str, Any] = {}
        if self.random.random() < 0.8:
            chosen["epsilon"] = self.random.choice([0, 0.25, 0.5, 0.5, 0.75, 1, "auto"])
        if self.random.random() < 0.5:
            chosen["rebalance"] = self.random.choice(["amortised", "deamortised", "deamortised"])
        if self.random.random() < 0.3:
            chosen["space"] = self.random.choice(["linear", "source"])
        if chosen.get("epsilon") == "auto" and self.random.random() < 0.5:
            chosen["workload"] = {"updates": self.random.choice([1, 1000]), "requests": 3}
        return chosen


def _joinable(left: Type, right: Type) -> bool:
    """Whether an equality is accepted: one type, or two whose values compare as they are."""
    if left == right:
        return True
    kinds = {left.kind, right.kind}
    mixed = kinds in ({"int", "float"}, {"int", "decimal"}, {"decimal"}, {"date", "timestamp"})
    return mixed and not is_avoided("mixed equality")


def _fits(function: str, argument: Expr) -> bool:
    if function in FOLDS or function == "count_if":
        takes = FOLDS[function].takes if function in FOLDS else ("bool",)
        return not takes or argument.type.kind in takes
    if function.removesuffix("_distinct") not in ("sum", "avg", *DEVIATIONS):
        return True
    wide = function in DEVIATIONS and (argument.type.precision or 0) > MOST_SQUARED_DIGITS
    return _can_be_summed(argument) and not wide


def _can_be_summed(argument: Expr) -> bool:
    small = argument.type.kind != "float" or argument.bound is not None
    return argument.type.kind in _NUMBERS and (small or not is_avoided("float sums"))


def _is_unordered(asked: Expr) -> bool:
    return not asked.exact
