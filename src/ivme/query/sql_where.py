"""ON and WHERE: a conjunction of equalities, which merge variables, and predicates over one table each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from ivme.errors import DataError, SchemaError
from ivme.query.expression import ColumnRef, Expression, Literal, evaluate, is_predicate
from ivme.query.inference import common_type, end_type, type_of
from ivme.query.one_type import cast_to
from ivme.query.sql_constants import failing_constant
from ivme.query.sql_expression import Scalars
from ivme.query.sql_from import Condition, From
from ivme.query.sql_kinds import are_equatable, cast_hint, compared, kind_of, mismatch
from ivme.query.sql_scope import Key, Scope
from ivme.query.sql_text import refuse_other_arguments
from ivme.query.sql_variables import Classes
from ivme.query.types import Type
from ivme.query.written import in_words, spelled

_CONJUNCTION = "WHERE takes equalities between tables and predicates over one table each, joined by AND"


@dataclass(slots=True)
class Body:
    """What FROM and WHERE say: the classes of equal columns, and the predicates of each occurrence."""

    scope: Scope
    classes: Classes = field(default_factory=Classes)
    predicates: dict[int, list[Expression]] = field(default_factory=dict)

    def kind(self, key: Key) -> str | None:
        """The kind of a key's values, where the tables are declared."""
        return kind_of(key.expression, self._column_kinds(key.occurrence))

    def type(self, key: Key) -> Type | None:
        """The type of a key's values, where the tables are declared."""
        return type_of(key.expression, self.scope.table(key.occurrence))

    def check_kinds(self, key: Key, node: exp.Expr) -> None:
        """Refuses a computation that would fail on every row."""
        kinds = self._column_kinds(key.occurrence)
        expression, inside = in_words(key.expression, node)
        wrong = mismatch(expression, lambda word: kinds(inside[word]))
        if wrong is not None:
            raise self.scope.source.unsupported(wrong.message, node, wrong.instead)
        fails = failing_constant(expression, lambda word: kinds(inside[word]))
        if fails is not None:
            raise self.scope.source.unsupported(fails, node, "write another constant")

    def _column_kinds(self, occurrence: int) -> Callable[[str], str | None]:
        relation = self.scope.occurrences[occurrence].relation

        def column_kind(name: str) -> str | None:
            found = self.scope.catalog.type_of(relation, name)
            return None if found is None else found.name

        return column_kind


def read_conditions(read: From, select: exp.Select) -> Body:
    """The body of the query, from its FROM and its WHERE."""
    body = Body(read.scope)
    for left, right, name in read.equalities:
        _equate(body, left, right, name)
    conditions = list(read.conditions)
    where = select.args.get("where")
    if where is not None:
        refuse_other_arguments(read.scope.source, where, ("this",), _CONJUNCTION)
        conditions.append(Condition(where.this, tuple(range(len(read.scope.occurrences)))))
    for condition in conditions:
        scalars = Scalars(read.scope, condition.visible)
        for conjunct in conjuncts([condition.node]):
            _read_conjunct(body, scalars, conjunct)
    return body


def conjuncts(nodes: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    """The conditions that an AND is of, without their parentheses, from left to right."""
    waiting = list(nodes)[::-1]
    while waiting:
        node = waiting.pop().unnest()
        if isinstance(node, exp.And):
            waiting += list(node.flatten())[::-1]
        else:
            yield node


def _read_conjunct(body: Body, scalars: Scalars, node: exp.Expr) -> None:
    scalars.refuse_queries(node)
    if isinstance(node, exp.EQ | exp.NullSafeEQ):
        sides = [node.this.unnest(), node.expression.unnest()]
        named = [isinstance(side, exp.Placeholder) for side in sides]
        null_safe = isinstance(node, exp.NullSafeEQ)
        if any(named) and (not null_safe or sides[1 - named.index(True)].name.startswith("#")):
            refuse_other_arguments(scalars.source, node, ("this", "expression"), _CONJUNCTION)
            _bind(body, scalars, sides[named.index(True)], sides[1 - named.index(True)], null_safe=null_safe)
            return
        keys = [_key(scalars, side) for side in sides]
        if keys[0] is not None and keys[1] is not None and _joins(body, keys[0], keys[1], null_safe=null_safe):
            refuse_other_arguments(scalars.source, node, ("this", "expression"), _CONJUNCTION)
            _equate(body, keys[0], keys[1], node, null_safe=null_safe)
            return
    _add_predicate(body, scalars, node)


def _key(scalars: Scalars, node: exp.Expr) -> Key | None:
    """The key of an expression over exactly one occurrence; None if it is not one."""
    occurrences = scalars.occurrences(node)
    return Key(occurrences[0], scalars.translate(node)) if len(occurrences) == 1 else None


def _joins(body: Body, left: Key, right: Key, *, null_safe: bool) -> bool:
    """Whether an equality is one between variables: across tables, or between two columns of one table and type."""
    if left.occurrence != right.occurrence or null_safe:
        return left.occurrence != right.occurrence
    plain = isinstance(left.expression, ColumnRef) and isinstance(right.expression, ColumnRef)
    return plain and left != right and body.type(left) == body.type(right)


def _equate(body: Body, left: Key, right: Key, node: exp.Expr, *, null_safe: bool = False) -> None:
    source = body.scope.source
    for key in (left, right):
        body.check_kinds(key, node)
        refuse_computed_closure(body.scope, key, node)
    kinds = body.kind(left), body.kind(right)
    if not are_equatable(*kinds):
        message = f"an equality between {kinds[0]} and {kinds[1]} would need a conversion"
        hint = cast_hint(*kinds, instead="CAST one side to the type of the other")
        raise source.unsupported(message, node, hint)
    body.classes.merge(*_comparable(body, left, right, node), null_safe=null_safe)
    second = body.classes.conflict()
    if second is not None:
        raise _two_parameters(body, second, node)


def _comparable(body: Body, left: Key, right: Key, node: exp.Expr) -> tuple[Key, Key]:
    """Both sides of an equality in one type: where theirs differ, the join is on keys, and the columns stay.

    A closure has no computed columns, so that a column of another type cannot be compared with one of its.
    """
    if any(body.scope.occurrences[key.occurrence].closure is not None for key in (left, right)):
        _check_closure_types(body, left, right, node)
        return left, right
    try:
        types = body.type(left), body.type(right)
        wanted = common_type(types)
    except SchemaError as error:
        raise body.scope.source.unsupported(str(error), node, "CAST one side to the type of the other") from None
    if None in types or wanted is None:
        return left, right
    one, other = (
        Key(key.occurrence, cast_to(key.expression, type_, wanted))
        for key, type_ in zip((left, right), types, strict=True)
    )
    return one, other


def _check_closure_types(body: Body, left: Key, right: Key, node: exp.Expr) -> None:
    types = _type_of_end(body, left), _type_of_end(body, right)
    if None not in types and types[0] != types[1]:
        message = f"an equality between {types[0]} and {types[1]} over a column of a recursive query is not supported"
        raise body.scope.source.unsupported(message, node, "make the recursive query a view, and join that view")


def _type_of_end(body: Body, key: Key) -> Type | None:
    """The type of a column, which of a closure is that of both its ends."""
    closure = body.scope.occurrences[key.occurrence].closure
    if closure is None:
        return body.type(key)
    first, last = (body.type(Key(key.occurrence, ColumnRef(name))) for name in closure.columns)
    return end_type((first, last), closure.relation)


def _two_parameters(body: Body, parameter: str, node: exp.Expr | None) -> Exception:
    root = body.classes.root(body.classes.parameters[parameter])
    first = next(name for name, key in body.classes.parameters.items() if body.classes.root(key) == root)
    return body.scope.source.unsupported(
        f"the parameters :{first} and :{parameter} are compared with the same column",
        node,
        "use one parameter for both",
    )


def _bind(body: Body, scalars: Scalars, parameter: exp.Expr, other: exp.Expr, *, null_safe: bool) -> None:
    source = scalars.source
    if not isinstance(parameter.this, str) or parameter.args.get("widget"):
        raise source.unsupported("a parameter needs a name", parameter.parent, "write it as :name")
    occurrences = [] if isinstance(other, exp.Placeholder) else scalars.occurrences(other)
    if len(occurrences) != 1:
        instead = "compare it with a column, or with an expression over the columns of one table"
        raise source.unsupported(f"the parameter :{parameter.name} is not compared with one table", parameter, instead)
    key = Key(occurrences[0], scalars.translate(other))
    body.check_kinds(key, other)
    refuse_computed_closure(body.scope, key, other)
    first = body.classes.parameters.get(parameter.name)
    if first is not None and first != key:
        _equate(body, first, key, other, null_safe=null_safe)
        return
    second = body.classes.bind(parameter.name, key, null_safe=null_safe)
    if second is not None:
        raise _two_parameters(body, second, parameter.parent)


def refuse_computed_closure(scope: Scope, key: Key, node: exp.Expr | None) -> None:
    """A closure has its two columns and no computed ones."""
    if scope.occurrences[key.occurrence].closure is not None and not isinstance(key.expression, ColumnRef):
        message = "an expression over the columns of a recursive query is not supported"
        raise scope.source.unsupported(message, node, "use its two columns as they are")


def _add_predicate(body: Body, scalars: Scalars, node: exp.Expr) -> None:
    occurrences = scalars.occurrences(node)
    if len(occurrences) > 1:
        raise _across_tables(body, node, occurrences)
    expression = read_condition(body, scalars, node)
    if occurrences:
        body.predicates.setdefault(occurrences[0], []).append(expression)
    elif not _holds(scalars, node, expression):
        body.predicates.setdefault(0, []).append(Literal(False))


def read_condition(body: Body, scalars: Scalars, node: exp.Expr) -> Expression:
    """The predicate of a condition over one table or none; refuses what has no truth value."""
    source, occurrences = scalars.source, scalars.occurrences(node)
    expression = scalars.translate(node)
    if is_predicate(expression) is False:
        written = spelled(node)
        kind = body.kind(Key(occurrences[0], expression)) if occurrences else kind_of(expression, lambda _: None)
        raise source.unsupported(f"{written} is not a condition", node, compared(written, kind))
    if occurrences:
        key = Key(occurrences[0], expression)
        body.check_kinds(key, node)
        kind = body.kind(key)
        if kind not in (None, "bool"):
            written = spelled(node)
            message = f"{written} is of type {kind}; a condition is needed here"
            raise source.unsupported(message, node, compared(written, kind))
    return expression


def _holds(scalars: Scalars, node: exp.Expr, expression: Expression) -> bool:
    """Whether a condition over no column holds: then it says nothing, and else there are no rows."""
    try:
        return evaluate(expression, {}) is True
    except DataError as error:
        raise scalars.source.unsupported(str(error), node, "remove the condition") from error


def _across_tables(body: Body, node: exp.Expr, occurrences: list[int]) -> Exception:
    names = " and ".join(body.scope.occurrences[occurrence].alias for occurrence in occurrences)
    if isinstance(node, exp.Or):
        return body.scope.source.unsupported(
            f"OR between conditions on {names} is not supported", node, "make each alternative a separate view"
        )
    return body.scope.source.unsupported(
        f"a condition that mixes {names} must be an equality between an expression of each",
        node,
        "join by equality (a.x = b.y), and filter each table by itself; the other comparison can be made when reading",
    )
