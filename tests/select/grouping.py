"""GROUP BY in all its forms, HAVING, and expressions over aggregates."""

from __future__ import annotations

from tests.select.sources import From, Sources
from tests.select.words import Atom, Output, Query, Scope


class Grouping(Sources):
    """Draws SELECTs that aggregate. Of no rows DuckDB's ROLLUP has a total, and Spark's has none: HAVING drops it."""

    def item(self, text: str, kind: str, taken: set[str]) -> tuple[str, Output]:
        """An item of SELECT with its name: that of a column stays now and then."""
        bare = text.rpartition(".")[2]
        if bare.isidentifier() and bare.islower() and bare not in taken and self.chance(0.4):
            taken.add(bare)
            return text, Output(bare, kind)
        name = self.fresh("c")
        return f"{text} AS {name}", Output(name, kind)

    def grouped(
        self, source: From, scope: Scope, where: str, kinds: tuple[str, ...] | None, *, has_keys: bool
    ) -> Query:
        keys = self._keys(source) if has_keys else ()
        form = self._form(keys, kinds) if keys else "none"
        grouping_sets = form in ("rollup", "cube", "sets", "key and rollup")
        grouping = self._groupings(keys) if grouping_sets else ()
        totals = tuple(self.aggregate(scope) for _ in range(self.random.randint(1, 3)))
        whole = Scope((*keys, *grouping, *totals), scope.outer)
        listed = [] if kinds is None else [(self.scalar(kind, whole, 1), kind) for kind in kinds]
        taken: set[str] = set()
        items = [self.item(*pair, taken) for pair in listed]
        if kinds is None:
            items = [self.item(atom.text, atom.kind, taken) for atom in self._shown(keys, form)]
            over = Scope(totals) if form in ("all", "position") else whole
            items += [self._total_item(total, over, taken) for total in totals]
        tests = ["COUNT(*) > 0"] if grouping_sets else []
        if self.pick("having", none=4, condition=1.5) == "condition":
            if form == "all":  # DuckDB also groups by the columns that an expression here reads
                whole = Scope((*(key for key in keys if key.qualified), *totals), scope.outer)
            tests.append(f"({self.condition(whole, 2)})" if tests else self.condition(whole, 2))
        having = f" HAVING {' AND '.join(tests)}" if tests else ""
        group = self._group_by(keys, form)
        text = f"SELECT {', '.join(t for t, _ in items)} FROM {source.text}{where}{group}{having}"
        return Query(text, tuple(column for _, column in items))

    def _keys(self, source: From) -> tuple[Atom, ...]:
        """Columns and expressions to group by; only columns can be named by subqueries."""
        keys = {}
        for atom in self.some_of(source.atoms, 3):
            if self.pick("key", column=4, expression=1) == "column":
                keys[atom.text] = atom
            else:
                text, kind = self.computed(atom)
                keys[text] = Atom(text, kind)
        return tuple(keys.values())

    def _form(self, keys: tuple[Atom, ...], kinds: tuple[str, ...] | None) -> str:
        listed = kinds is None
        columns = all(atom.qualified for atom in keys)
        return self.pick(
            "group by",
            keys=8,
            position=1 if listed else 0,
            all=1 if listed else 0,
            rollup=1 if columns else 0,
            cube=0.6 if columns else 0,
            sets=0.8 if columns else 0,
            key_and_rollup=0.4 if columns and len(keys) > 1 else 0,
        )

    def _groupings(self, keys: tuple[Atom, ...]) -> tuple[Atom, ...]:
        if self.pick("grouping function", none=2, grouping=1) == "none":
            return ()
        return (Atom(f"GROUPING({keys[-1].text})", "int"),)

    def _shown(self, keys: tuple[Atom, ...], form: str) -> tuple[Atom, ...]:
        if form in ("all", "position") or not keys:
            return keys
        drawn = self.pick("keys are", shown=5, hidden=1)
        return keys if drawn == "shown" else tuple(keys[1:])

    def _total_item(self, total: Atom, over: Scope, taken: set[str]) -> tuple[str, Output]:
        drawn = self.pick("total", whole=4, expression=2, constant=0.2)
        if drawn == "whole":
            return self.item(total.text, total.kind, taken)
        kind = total.kind
        text = self.literal(kind) if drawn == "constant" else self.scalar(kind, over, 2)
        return self.item(text, kind, taken)

    def _group_by(self, keys: tuple[Atom, ...], form: str) -> str:
        texts = [atom.text for atom in keys]
        listed = ", ".join(texts)
        match form:
            case "none":
                return ""
            case "position":
                return f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}"
            case "all":
                return " GROUP BY ALL"
            case "rollup" | "cube":
                return f" GROUP BY {form.upper()}({listed})"
            case "sets":
                sets = ["()", f"({texts[0]})", f"({', '.join(texts[1:])})", f"({listed})"]
                return f" GROUP BY GROUPING SETS (({listed}), {', '.join(self.some_of(sets, 2))})"
            case "key and rollup":
                return f" GROUP BY {texts[0]}, ROLLUP({', '.join(texts[1:])})"
        return f" GROUP BY {listed}"
