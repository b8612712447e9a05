"""Scalar SQL expressions over one occurrence of a table, translated into `Expression`s.

Only the nodes named here are accepted, with only the arguments named here: everything else is refused, so that no
expression is computed differently from what its author wrote.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from ivme.errors import DataError, SchemaError, UnsupportedError
from ivme.query.expression import Call, Expression, Literal, evaluate
from ivme.query.functions import FUNCTIONS
from ivme.query.functions.definition import TEXT
from ivme.query.inference import FLOAT, type_of
from ivme.query.model import Column, Table
from ivme.query.one_type import as_float, with_one_type
from ivme.query.sql_arrays import nested_null, read_array
from ivme.query.sql_calls import Calls
from ivme.query.sql_deep_access import deep_access
from ivme.query.sql_intervals import Interval, counted, is_interval, read_interval
from ivme.query.sql_literals import read_bytes, read_number, side_by_side
from ivme.query.sql_scope import Scope
from ivme.query.sql_text import SqlText, parameter_refusal, refuse_other_arguments
from ivme.query.sql_types import NARROW, read_type, refuse_without_zone
from ivme.query.sql_unsteady import unsteady_refusal
from ivme.query.sql_user_calls import user_call
from ivme.query.sql_windows import window_refusal
from ivme.query.types import Type, is_nested_kind
from ivme.query.union import NO_COLUMNS
from ivme.query.unsupported_functions import FOREIGN, SUPPORTED
from ivme.query.written import in_words, spelled

MAXIMUM_DEPTH = 100
"""How deeply expressions may nest: far below what would exhaust the stack of the code that walks them."""

_SINGLE = "ivme's floats have 64 bits"


@dataclass(frozen=True, slots=True)
class Scalars:
    """Translates the expressions of one clause: `visible` are the occurrences that its names may mean."""

    scope: Scope
    visible: tuple[int, ...]

    @property
    def source(self) -> SqlText:
        return self.scope.source

    def occurrences(self, node: exp.Expr) -> list[int]:
        """The occurrences whose columns an expression reads."""
        found = {self.scope.resolve(column, self.visible).occurrence for column in node.find_all(exp.Column)}
        return sorted(found)

    def translate(self, node: exp.Expr, depth: int = 0) -> Expression:
        """The expression for a node; its columns are taken to be all of one occurrence."""
        if depth > MAXIMUM_DEPTH:
            raise self.source.unsupported(
                f"the expression nests deeper than {MAXIMUM_DEPTH}", node, "store part of it as a column"
            )
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
            return read_number(self.source, node.this, "-")
        special = _SPECIAL.get(type(node))
        if special is not None:
            return special(self, node, depth)
        if isinstance(node, exp.Anonymous) and node.name.lower() in self.source.functions:
            given = self.translate_all(node.expressions, depth)
            kinds = [self._kind(each, node) for each in given]
            return user_call(self.source, node, self.source.functions[node.name.lower()], given, kinds)
        found = Calls(self.source).read(node)
        if found is None:
            raise self._refusal(node)
        made = self._with_texts(node, self._call(*found, depth, node))
        return self._folded(self._in_one_type(node, made), node)

    def translate_all(self, nodes: Iterable[exp.Expr | None], depth: int) -> tuple[Expression, ...]:
        return tuple(self.translate(node, depth + 1) for node in nodes if node is not None)

    def _only(self, node: exp.Expr, *handled: str) -> None:
        refuse_other_arguments(self.source, node, handled, SUPPORTED)

    def _call(
        self, function: str, nodes: list[exp.Expr | None], depth: int, written: exp.Expr | None = None
    ) -> Expression:
        arguments = self.translate_all(nodes, depth)
        known = FUNCTIONS[function]
        if written is not None and not known.minimum <= len(arguments) <= known.maximum:
            message = f"{self._name(written)} does not take {len(arguments)} arguments"
            raise self.source.unsupported(message, written, f"write {known.sql}")
        return Call(function, arguments)

    def _with_texts(self, node: exp.Expr, made: Expression) -> Expression:
        """A call each of whose arguments is a text where only texts are taken: Spark converts numbers and dates."""
        assert isinstance(made, Call)
        function, arguments = made.definition, list(made.arguments)
        for place, argument in enumerate(arguments):
            kind = self._kind(argument, node) if function.kinds(place) == TEXT else None
            if kind not in (None, "string", "binary") and not is_nested_kind(kind):
                arguments[place] = Call("cast_string", (argument,))
        return replace(made, arguments=tuple(arguments))

    def _folded(self, made: Expression, node: exp.Expr) -> Expression:
        """A date or timestamp that is computed from constants, as a constant; an invalid one is refused here."""
        if not isinstance(made, Call) or made.definition.gives not in ("date", "timestamp"):
            return made
        if not all(isinstance(argument, Literal) and argument.value is not None for argument in made.arguments):
            return made
        try:
            return Literal(evaluate(made, {}))
        except DataError as error:
            raise self.source.unsupported(str(error), node, "write a value of that type") from error

    def _refusal(self, node: exp.Expr) -> Exception:
        if isinstance(node, exp.Placeholder | exp.Parameter):
            return parameter_refusal(self.source, node)
        known = deep_access(self.source, node) or unsteady_refusal(self.source, node)
        if known is not None:
            return known
        if isinstance(node, exp.Window):
            return window_refusal(self.source, node)
        if isinstance(node, exp.AggFunc):
            instead = "select COUNT, SUM, AVG, MIN or MAX, each as a whole column; compare aggregates in HAVING"
            return self.source.unsupported(f"{self._name(node)} is not allowed here", node, instead)
        name = self._name(node)
        return self.source.unsupported(f"{name} is not supported", node, FOREIGN.get(name.split()[-1], SUPPORTED))

    def refuse_queries(self, node: exp.Expr) -> None:
        """Refuses subqueries, before any of their names is looked up in the wrong place."""
        query = node.find(exp.Query)
        if query is not None:
            instead = "join the tables, or make the subquery a separate view"
            raise self.source.unsupported("a subquery is not supported", self.source.query(query), instead)

    def _arithmetic(self, node: exp.Expr, depth: int) -> Expression:
        """+ and -, also between dates and days, and between moments and INTERVALs."""
        self._only(node, "this", "expression")
        left, right = node.this, node.expression
        if is_interval(left) and isinstance(node, exp.Add):
            left, right = right, left
        if is_interval(right):
            return self._later(node, left, right, depth)
        name = "add" if isinstance(node, exp.Add) else "subtract"
        made = self._call(name, [left, right], depth)
        assert isinstance(made, Call)
        kinds = [self._kind(argument, node) for argument in made.arguments]
        if name == "add" and kinds == ["int", "date"]:
            return self._folded(Call("date_add", made.arguments[::-1]), node)
        if kinds == ["date", "int"]:
            return self._folded(Call("date_add" if name == "add" else "date_sub", made.arguments), node)
        if name == "subtract" and set(kinds) <= {"date", "timestamp"}:
            instead = "write DATEDIFF(end, start) for days, or TIMESTAMPDIFF(SECOND, start, end)"
            raise self.source.unsupported("a difference of dates or timestamps is not supported", node, instead)
        return made

    def _later(self, node: exp.Expr, left: exp.Expr, right: exp.Expr, depth: int) -> Expression:
        """A moment and an INTERVAL."""
        interval = read_interval(self.source, right)
        return self._moved(node, self.translate(left, depth + 1), -interval if isinstance(node, exp.Sub) else interval)

    def _moved(self, node: exp.Expr, start: Expression, interval: Interval) -> Expression:
        kind = self._kind(start, node)
        if kind not in ("date", "timestamp"):
            message = f"an INTERVAL is added to {start}, which is {f'of type {kind}' if kind else 'of no known type'}"
            raise self.source.unsupported(message, node, f"write CAST({start} AS DATE) or CAST({start} AS TIMESTAMP)")
        made = interval.after(start, kind)
        try:
            return Literal(evaluate(made, {})) if isinstance(start, Literal) else made
        except DataError as error:
            raise self.source.unsupported(str(error), node, "write another constant") from error

    def _alias(self, node: exp.Expr, depth: int) -> Expression:
        """(date + 30 days): sqlglot takes the unit for a name."""
        this = node.this
        number = this.expression if isinstance(this, exp.Add | exp.Sub) else None
        if not isinstance(number, exp.Literal) or number.is_string or not isinstance(node.parent, exp.Paren):
            raise self._refusal(node)
        try:
            interval = counted(number.name, node.alias)
        except ValueError:
            raise self._refusal(node) from None
        start = self.translate(this.this, depth + 1)
        return self._moved(this, start, -interval if isinstance(this, exp.Sub) else interval)

    def _kind(self, expression: Expression, node: exp.Expr) -> str | None:
        """The kind of a part of a node, as far as it is known."""
        occurrences = self.occurrences(node)
        if len(occurrences) > 1:
            return None
        found = self._type(expression, node, occurrences)
        return None if found is None else found.name

    def _type(self, expression: Expression, node: exp.Expr, occurrences: list[int]) -> Type | None:
        """The type of a part of a node over one table or none; refuses what has none."""
        table = self.scope.table(occurrences[0]) if occurrences else NO_COLUMNS
        try:
            return type_of(expression, table)
        except SchemaError as error:
            raise self._no_common_type(error, expression, node, table) from None

    def _name(self, node: exp.Expr) -> str:
        """What to call a node in a message: a function as its author wrote it."""
        start, end = node.meta.get("start"), node.meta.get("end")
        if isinstance(node, exp.Func) and start is not None and end is not None:
            return f"the function {self.source.text[start : end + 1].upper()}"
        return f"the expression {spelled(node)}"

    def _column(self, node: exp.Expr, _: int) -> Expression:
        assert isinstance(node, exp.Column)
        return self.scope.resolve(node, self.visible).expression

    def _paren(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this")
        return self.translate(node.this, depth + 1)

    def _connective(self, node: exp.Expr, depth: int) -> Expression:
        assert isinstance(node, exp.Connector)
        return self._call("and" if isinstance(node, exp.And) else "or", list(node.flatten()), depth)

    def _literal(self, node: exp.Expr, _: int) -> Expression:
        assert isinstance(node, exp.Literal)
        return Literal(node.this) if node.is_string else read_number(self.source, node)

    def _constant(self, node: exp.Expr, _: int) -> Expression:
        return Literal(None if isinstance(node, exp.Null) else bool(node.this))

    def _distinct_from(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "expression")
        return Call("not", (self._call("null_safe_eq", [node.this, node.expression], depth + 1),))

    def _is(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "expression")
        if isinstance(node.expression, exp.Null):
            return self._call("is_null", [node.this], depth)
        if isinstance(node.expression, exp.Boolean):
            return self._call("null_safe_eq", [node.this, node.expression], depth)
        raise self._refusal(node)

    def _in(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "expressions")
        if not node.expressions:
            raise self.source.unsupported("IN needs a list of values", node, "write IN (1, 2, 3)")
        arguments = [self.translate(each, depth + 1) for each in (node.this, *node.expressions)]
        return Call("in", self._as_floats(node, arguments))

    def _as_floats(self, node: exp.Expr, arguments: list[Expression]) -> tuple[Expression, ...]:
        """The value and the list of an IN; with a float among numbers all are floats, as in Spark."""
        occurrences = self.occurrences(node)
        if len(occurrences) > 1:
            return tuple(arguments)
        types = [self._type(argument, node, occurrences) for argument in arguments]
        if FLOAT not in types or not all(type_ is not None and type_.is_numeric for type_ in types):
            return tuple(arguments)
        return tuple(as_float(argument, type_) for argument, type_ in zip(arguments, types, strict=True))

    def _between(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "low", "high")
        bounds = [
            self._call(name, [node.this, node.args[end]], depth + 1) for name, end in (("ge", "low"), ("le", "high"))
        ]
        return Call("and", tuple(bounds))

    def _like(self, node: exp.Expr, depth: int) -> Expression:
        escape = node.expression if isinstance(node, exp.Escape) else None
        inner = node.this if escape is not None else node
        if not isinstance(inner, exp.Like | exp.ILike):
            raise self._refusal(inner)
        self._only(node, "this", "expression", "negate")
        self._only(inner, "this", "expression", "negate")
        name, patterns = "ilike" if isinstance(inner, exp.ILike) else "like", inner.expression
        if isinstance(patterns, exp.Any | exp.All) and isinstance(patterns.this, exp.Tuple):
            matched = self._like_some(inner, name, patterns, depth)
        else:
            matched = self._with_texts(inner, self._call(name, [inner.this, patterns, escape], depth + 1))
        return Call("not", (matched,)) if inner.args.get("negate") or node.args.get("negate") else matched

    def _like_some(self, node: exp.Expr, name: str, patterns: exp.Expr, depth: int) -> Expression:
        """LIKE ANY (...) and LIKE ALL (...)."""
        calls = (self._call(name, [node.this, pattern], depth + 2) for pattern in patterns.this.expressions)
        found = [self._with_texts(node, each) for each in calls]
        if len(found) == 1:
            return found[0]
        return Call("or" if isinstance(patterns, exp.Any) else "and", tuple(found))

    def _case(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "ifs", "default")
        arguments: list[Expression] = []
        for branch in node.args["ifs"]:
            self._only(branch, "this", "true")
            chosen = self.translate(branch.this, depth + 1)
            if node.this is not None:
                chosen = Call("eq", (self.translate(node.this, depth + 1), chosen))
            arguments += [chosen, self.translate(branch.args["true"], depth + 1)]
        default = node.args.get("default")
        made = Call("case", (*arguments, *([] if default is None else [self.translate(default, depth + 1)])))
        return self._in_one_type(node, made)

    def _in_one_type(self, node: exp.Expr, made: Expression) -> Expression:
        """A choice each of whose values is cast to the type of the whole, as far as types are declared."""
        if not isinstance(made, Call) or made.definition.gives != "branches":
            return made
        occurrences = self.occurrences(node)
        if len(occurrences) > 1:
            return made
        read = self.scope.table(occurrences[0]) if occurrences else NO_COLUMNS
        try:
            return with_one_type(made, read)
        except SchemaError as error:
            raise self._no_common_type(error, made, node, read) from None

    def _no_common_type(
        self, error: SchemaError, expression: Expression, node: exp.Expr, table: Table
    ) -> UnsupportedError:
        """The error of `inference`, whose text ends with what to do, at the place of a node and in its words."""
        words, inside = in_words(expression, node)
        columns = {word: table.column(name) for word, name in inside.items()}
        try:
            type_of(
                words, Table(table.name, tuple(Column(w, None if c is None else c.type) for w, c in columns.items()))
            )
        except SchemaError as said:
            error = said
        message, _, instead = str(error).partition("; ")
        return self.source.unsupported(message, node, instead or "CAST one of them")

    def _concat(self, node: exp.Expr, depth: int) -> Expression:
        """CONCAT, or literals side by side: touching ones are one literal with a doubled quote, as in Spark 4."""
        self._only(node, "expressions", "safe")
        parts = node.expressions
        if not node.args.get("safe") and all(isinstance(part, exp.Literal) and part.is_string for part in parts):
            return Literal(side_by_side(self.source, node))
        return self._call("concat", list(parts), depth)

    def _pi(self, _node: exp.Expr, _depth: int) -> Expression:
        return Literal(math.pi)

    def _hex_string(self, node: exp.Expr, _depth: int) -> Expression:
        return read_bytes(self.source, node)

    def _cast(self, node: exp.Expr, depth: int) -> Expression:
        """A cast; one of a literal is done here and now, so that a bad date is refused with its place.

        One of NULL stays, since it says the type.
        """
        self._only(node, "this", "to", "safe")
        kind = node.args["to"].this
        if kind == exp.DType.FLOAT:
            raise self.source.unsupported(_SINGLE, node, "write CAST(x AS DOUBLE)")
        target = read_type(self.source, node.args["to"])
        value = self.translate(node.this, depth + 1)
        if target.is_nested:
            return nested_null(self.source, node, value, target)
        details: tuple[int | None, ...] = (target.precision, target.scale) if target.kind == "decimal" else ()
        details = (NARROW[kind],) if kind in NARROW else details
        name = target.kind
        if name == "timestamp" and self._kind(value, node) in ("string", None):
            refuse_without_zone(self.source, node)
            name = "timestamp_ntz" if kind == exp.DType.TIMESTAMPNTZ else name  # it drops a zone that the text has
        tried = "try_" if node.args.get("safe") and f"try_cast_{name}" in FUNCTIONS else ""
        call = Call(f"{tried}cast_{name}", (value, *map(Literal, details)))
        if not isinstance(value, Literal) or value.value is None:
            return call
        try:
            return Literal(evaluate(call, {}))
        except DataError as error:
            raise self.source.unsupported(str(error), node, "write a value of that type") from error


_SPECIAL: dict[type[exp.Expr], Callable[[Scalars, exp.Expr, int], Expression]] = {
    exp.Column: Scalars._column,
    exp.Paren: Scalars._paren,
    exp.And: Scalars._connective,
    exp.Or: Scalars._connective,
    exp.Literal: Scalars._literal,
    exp.Null: Scalars._constant,
    exp.Boolean: Scalars._constant,
    exp.Array: lambda made, node, depth: read_array(made.source, node, made.translate_all(node.expressions, depth)),
    exp.NullSafeNEQ: Scalars._distinct_from,
    exp.Is: Scalars._is,
    exp.In: Scalars._in,
    exp.Between: Scalars._between,
    exp.Add: Scalars._arithmetic,
    exp.Sub: Scalars._arithmetic,
    exp.Alias: Scalars._alias,
    exp.Pi: Scalars._pi,
    exp.HexString: Scalars._hex_string,
    exp.Like: Scalars._like,
    exp.ILike: Scalars._like,
    exp.Escape: Scalars._like,
    exp.Case: Scalars._case,
    exp.Concat: Scalars._concat,
    exp.Cast: Scalars._cast,
    exp.TryCast: Scalars._cast,
}
