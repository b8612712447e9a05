"""UNION, EXCEPT and INTERSECT, with and without ALL: by how often a row is on each side.

SELECT a FROM R EXCEPT SELECT b FROM S
block#1: R.a AS a, 1 AS l, 0 AS r UNION ALL S.b, 0, 1
block#2: SELECT a, SUM(l) AS l, SUM(r) AS r FROM block#1 GROUP BY a
         SELECT a FROM block#2 WHERE l > 0 AND r = 0

BY NAME puts the columns of one name together, and NULL where a side has no column of a name.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from ivme.query.rewrite.absent import as_branch
from ivme.query.rewrite.clauses import condition_of, set_where
from ivme.query.rewrite.parameters import Parameter, shown, without_parameters
from ivme.query.rewrite.script import Script, aliased, column, select_from
from ivme.query.sql_union import WEIGHT, union_of

_LEFT, _RIGHT = "#l", "#r"


def combined(node: exp.SetOperation, left: exp.Select, right: exp.Select, script: Script) -> exp.Select:
    """The set operation of two SELECTs in the language of blocks."""
    names = [item.alias for item in left.expressions]
    if node.args.get("by_name"):
        names += [item.alias for item in right.expressions if _named(left, item.alias) is None]
    elif len(names) != len(right.expressions):
        message = f"the sides of {node.key.upper()} have {len(names)} and {len(right.expressions)} columns"
        raise script.source.unsupported(message, node, "select as many columns on both sides")
    (left, right), given = _without_parameters([left, right], script)
    rows = _rows(node, [left, right], [*names, *given], script)
    if given:
        items = {item.alias: item for item in rows.expressions}
        rows.set("expressions", [items[name] for name in names])
        tests = [
            comparison(this=items[name].unalias().copy(), expression=parameter.copy())
            for name, (parameter, comparison) in given.items()
        ]
        set_where(rows, [*condition_of(rows), *tests])
    return rows


def _rows(node: exp.SetOperation, parts: list[exp.Select], names: list[str], script: Script) -> exp.Select:
    renamed = _by_name if node.args.get("by_name") else _renamed
    sides = [renamed(as_branch(side, script), names) for side in parts]
    is_set = bool(node.args.get("distinct"))
    if isinstance(node, exp.Union):
        rows = script.rows_of(script.add(union_of(sides)))
        rows.set("distinct", exp.Distinct() if is_set else None)
        return rows
    counts = _counts(sides, names, script)
    if not is_set:
        return script.rows_of(script.add(union_of([_repeated(node, counts, names, script)])))
    rows = select_from(script.reference(counts, "c"), [aliased(column("c", name), name) for name in names])
    right_test = exp.EQ if isinstance(node, exp.Except) else exp.GT
    set_where(rows, [_compared(exp.GT, _LEFT), _compared(right_test, _RIGHT)])
    return rows


def _without_parameters(
    sides: list[exp.Select], script: Script
) -> tuple[list[exp.Select], dict[str, tuple[exp.Expr, type[exp.Binary]]]]:
    """The sides with what they compare with each parameter as a further column; these, with how it is compared.

    Where one side has rows for all values of a parameter, NULL is one of them; the other has none for NULL then.
    """
    found = [without_parameters(side, script) for side in sides]
    for select, _ in found:
        script.refuse_parameters(select)
    comparisons: dict[str, type[exp.Binary]] = {}
    nodes: dict[str, exp.Expr] = {}
    for _, parameters in found:
        for _, node, comparison in parameters:
            nodes.setdefault(node.name, node)
            if comparison is exp.NullSafeEQ or node.name not in comparisons:
                comparisons[node.name] = comparison
    made = [_showing(select, parameters, comparisons) for select, parameters in found]
    return made, {f"#:{name}": (nodes[name], comparisons[name]) for name in comparisons}


def _showing(
    select: exp.Select, parameters: list[Parameter], comparisons: Mapping[str, type[exp.Binary]]
) -> exp.Select:
    made = select.copy()
    by_name: dict[str, list[Parameter]] = {}
    for each in parameters:
        by_name.setdefault(each[1].name, []).append(each)
    for name in comparisons:
        first, *others = by_name[name]
        null_safe = all(each[2] is exp.NullSafeEQ for each in by_name[name])
        equal = exp.NullSafeEQ if null_safe else exp.EQ
        tests: list[exp.Expr] = [equal(this=first[0].copy(), expression=other.copy()) for other, *_ in others]
        if comparisons[name] is exp.NullSafeEQ and not null_safe:
            tests.append(exp.Not(this=exp.Is(this=first[0].copy(), expression=exp.Null())))
        set_where(made, [*condition_of(made), *tests])
        shown(made, first[0], f"#:{name}")
    return made


def _renamed(branch: exp.Select, names: list[str]) -> exp.Select:
    made = branch.copy()
    items = [aliased(item.unalias().copy(), name) for item, name in zip(branch.expressions, names, strict=True)]
    made.set("expressions", items)
    return made


def _by_name(branch: exp.Select, names: list[str]) -> exp.Select:
    """The branch with the columns of these names, in their order; NULL for those that it has not."""
    made = branch.copy()
    found = [_named(branch, name) for name in names]
    items = [
        aliased(exp.Null() if item is None else item.unalias().copy(), name)
        for item, name in zip(found, names, strict=True)
    ]
    made.set("expressions", items)
    return made


def _named(select: exp.Select, name: str) -> exp.Expr | None:
    """The item of SELECT that has a name, in whatever case."""
    return next((item for item in select.expressions if item.alias.lower() == name.lower()), None)


def _counts(sides: list[exp.Select], names: list[str], script: Script) -> str:
    """The block of all rows, with how often each side has them."""
    branches = []
    for number, side in enumerate(sides):
        marks = [aliased(exp.Literal.number(int(number == n)), mark) for n, mark in enumerate((_LEFT, _RIGHT))]
        branch = side.copy()
        branch.set("expressions", [*branch.expressions, *marks])
        branches.append(branch)
    union = script.add(union_of(branches))
    counts = select_from(script.reference(union, "u"), [column("u", name) for name in names])
    for mark in (_LEFT, _RIGHT):
        counts.append("expressions", aliased(exp.Sum(this=column("u", mark)), mark))
    counts.set("group", exp.Group(expressions=[column("u", name) for name in names]))
    return script.add(counts)


def _repeated(node: exp.SetOperation, counts: str, names: list[str], script: Script) -> exp.Select:
    """Each row, repeated: by the difference of the counts for EXCEPT ALL, by the smaller one for INTERSECT ALL."""
    left, right = column("c", _LEFT), column("c", _RIGHT)
    larger = exp.GT(this=left.copy(), expression=right.copy())
    if isinstance(node, exp.Except):
        difference = exp.Sub(this=left.copy(), expression=right.copy())
        weight = exp.Case(ifs=[exp.If(this=larger, true=difference)], default=exp.Literal.number(0))
    else:
        weight = exp.Case(ifs=[exp.If(this=larger, true=right)], default=left)
    items = [aliased(column("c", name), name) for name in names]
    return select_from(script.reference(counts, "c"), [*items, aliased(weight, WEIGHT)])


def _compared(test: type[exp.Binary], mark: str) -> exp.Expr:
    return test(this=column("c", mark), expression=exp.Literal.number(0))


def rows_of_values(node: exp.Values, script: Script) -> exp.Select:
    """VALUES is a union of its rows, whose columns have Spark's names."""
    rows = [each.expressions if isinstance(each, exp.Tuple) else [each] for each in node.expressions]
    names = [f"col{number}" for number in range(1, len(rows[0]) + 1)]
    short = next((row for row in rows if len(row) != len(names)), None)
    if short is not None:
        message = f"a row of VALUES has {len(short)} columns, and the first one {len(names)}"
        raise script.source.unsupported(message, short[0], "give every row the same columns")
    branches = [exp.Select(expressions=[aliased(v.copy(), n) for v, n in zip(r, names, strict=True)]) for r in rows]
    return script.rows_of(script.add(union_of(branches)))
