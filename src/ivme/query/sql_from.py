"""The FROM clause: occurrences of tables, and the conditions that its joins add to those of WHERE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ivme.query.sql_deep_access import deep_access
from ivme.query.sql_scope import Closure, Key, KnownTables, Occurrence, Scope
from ivme.query.sql_text import SqlText, refuse_other_arguments

_JOINS = "join with [INNER] JOIN ... ON or USING, CROSS JOIN, or commas and WHERE"
_FROM = "list plain tables in FROM; make a subquery a separate view and join that"


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate of ON or WHERE, and the occurrences that its names may mean."""

    node: exp.Expr
    visible: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class From:
    """The scope that FROM opens, its ON conditions, and the equalities that USING says, with their names."""

    scope: Scope
    conditions: tuple[Condition, ...]
    equalities: tuple[tuple[Key, Key, exp.Identifier], ...]


def read_from(source: SqlText, select: exp.Select, catalog: KnownTables, closures: Mapping[str, Closure]) -> From:
    """Reads FROM and its joins; `closures` are the recursive queries by lower-cased name."""
    start = select.args.get("from_")
    if start is None:
        raise source.unsupported("a SELECT without FROM reads no table", select, "add FROM and a table")
    refuse_other_arguments(source, start, ("this",), _FROM)
    scope = Scope(source, catalog)
    conditions: list[Condition] = []
    equalities: list[tuple[Key, Key, exp.Identifier]] = []
    _add(scope, start.this, closures)
    for join in select.args.get("joins") or ():
        _check_join(source, join)
        _add(scope, join.this, closures)
        segment = _segment(scope, len(scope.occurrences) - 1)
        if join.args.get("on") is not None:
            conditions.append(Condition(join.args["on"], segment))
        if join.args.get("using"):
            pairs = _merge(scope, join.args["using"], segment)
            equalities += [(*pair, name) for pair, name in zip(pairs, join.args["using"], strict=True)]
    return From(scope, tuple(conditions), tuple(equalities))


def _segment(scope: Scope, occurrence: int) -> tuple[int, ...]:
    return tuple(i for i, part in enumerate(scope.segments) if part == scope.segments[occurrence])


def _check_join(source: SqlText, join: exp.Join) -> None:
    kind = " ".join(str(join.args[part]) for part in ("method", "side", "kind") if join.args.get(part))
    if kind not in ("", "INNER", "CROSS"):
        position = source.keyword(kind.split()[:1], before=source.at(join.this))
        raise source.unsupported(f"{kind.removesuffix(' JOIN')} JOIN is not supported", position, _JOINS)
    refuse_other_arguments(source, join, ("this", "on", "using", "method", "side", "kind"), _JOINS)


def _start(source: SqlText, node: exp.Expr) -> int | None:
    """Where a part of FROM starts; what LATERAL has inside is refused in its own place."""
    start = source.at(node)
    return source.keyword(["LATERAL"], before=start) if isinstance(node, exp.Lateral) else start


def _add(scope: Scope, node: exp.Expr, closures: Mapping[str, Closure]) -> None:
    """Appends an occurrence; a comma before it starts a new segment."""
    source = scope.source
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        names = {"subquery": "a subquery", "table": "a table function"}
        name = names.get(node.key, node.key.upper())
        position = source.query(node) if isinstance(node, exp.Subquery) else _start(source, node)
        deep = deep_access(source, node)
        if deep is not None:
            raise deep
        raise source.unsupported(f"{name} in FROM is not supported", position, _FROM)
    refuse_other_arguments(source, node, ("this", "db", "catalog", "alias"), _FROM)
    follower = source.next(node.this.meta.get("end", len(source.text)))
    if follower is not None and follower.token_type == TokenType.STAR:
        raise source.broken("'*' is not expected here", follower.start, _FROM)
    occurrence = _occurrence(scope, node, closures)
    if any(occurrence.alias.lower() == other.alias.lower() for other in scope.occurrences):
        raise source.unsupported(
            f"two tables of FROM are called {occurrence.alias!r}", node, "give one of them an alias with AS"
        )
    position = source.at(node)
    previous = source.previous(position) if position is not None else None
    comma = previous is not None and previous.token_type == TokenType.COMMA
    scope.segments.append(scope.segments[-1] + int(comma) if scope.segments else 0)
    scope.occurrences.append(occurrence)
    scope.layout += scope.keys_of(len(scope.occurrences) - 1)


def _occurrence(scope: Scope, node: exp.Table, closures: Mapping[str, Closure]) -> Occurrence:
    alias = node.args.get("alias")
    if alias is not None:
        refuse_other_arguments(scope.source, alias, ("this",), "rename columns in SELECT with AS")
    closure = None if node.args.get("db") else closures.get(node.name.lower())
    relation = scope.catalog.relation(node) if closure is None else closure.relation
    default = relation.rpartition(".")[2] if closure is None else node.name
    return Occurrence(node.alias or default, relation, closure)


def _merge(scope: Scope, identifiers: list[exp.Identifier], segment: tuple[int, ...]) -> list[tuple[Key, Key]]:
    """USING: each column of the joined table equals the only one of that name to its left.

    `SELECT *` shows each pair once, and before the other columns.
    """
    *left, right = segment
    pairs = []
    for identifier in identifiers:
        first = scope.resolve(exp.Column(this=identifier), tuple(left))
        second = scope.resolve(exp.Column(this=identifier), (right,))
        scope.merged.setdefault((scope.segments[right], identifier.name.lower()), [first]).append(second)
        pairs.append((first, second))
    shown = [key for key in scope.layout if all(key not in pair for pair in pairs)]
    before = [key for key in shown if key.occurrence not in segment]
    after = [key for key in shown if key.occurrence in segment]
    scope.layout = before + [first for first, _ in pairs] + after
    return pairs
