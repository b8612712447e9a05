"""Rules that are more than one join, as SQL: negation, conditions, aggregates of expressions, several rules.

    Q(x, SUM(y * z) | a) = R(a, x, y), S(x, z), y < z, not T(x, _)

    SELECT t1.x AS x, SUM(t1.y * t2.z) AS `SUM(y * z)` FROM R AS t1, S AS t2
    WHERE t2.x = t1.x AND (t1.y < t2.z) AND NOT EXISTS (SELECT 1 FROM T AS n1 WHERE n1.x = t1.x) AND t1.a = :a
    GROUP BY t1.x

Rows count as in SQL: several rules are joined by UNION ALL, and aggregates are over the rows of all of them. Each piece
of the SQL remembers the place in the rule that it was made of, so that every refusal points into the user's own text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import sqlglot
from sqlglot.tokenizer_core import TokenType

from ivme.errors import QueryError, UnsupportedError
from ivme.query.model import Aggregate, Query, Table
from ivme.query.rule import Resolver, read_program
from ivme.query.rule_body import RuleBody, named, quoted
from ivme.query.rule_expression import Pieces, joined
from ivme.query.rule_syntax import OutputSyntax, RuleSyntax
from ivme.query.rule_tokens import Token
from ivme.query.sql_text import DIALECT, Origin

_NOTHING = "#none"
"""What the column is called that a SELECT has in the place of a head without outputs."""

_BODY = "body"
_ONE: Pieces = (("1 AS one", None),)


@dataclass(frozen=True, slots=True)
class RuleSql:
    """Rules as SQL: `sql` is the whole, and `select` the same without its closures, which are tables there.

    `inputs` are the names of its parameters; a head that `is_bare` has no outputs.
    """

    select: str
    closures: tuple[tuple[str, Table], ...]
    origin: Origin
    inputs: tuple[str, ...]
    is_bare: bool

    @property
    def sql(self) -> str:
        return _with_closures(self.closures) + self.select

    def query(self, read: Query) -> Query:
        """The query of the rules, of what was read from the SQL."""
        read = replace(read, parameters=self.inputs)
        return replace(read, output=(), head=()) if self.is_bare else read


def rule_sql(text: str, tables: Iterable[Table]) -> RuleSql:
    """The SQL that the rules of a text stand for, over declared tables."""
    known = tuple(tables)
    rules = read_program(text, known)
    if not known:
        message = "a rule that is more than one join of its atoms needs tables whose columns have types"
        raise UnsupportedError(message, text=text, position=rules[0].name.position, instead="declare the tables")
    return _Translation(text, known).translate(rules)


class _Translation:
    """The rules of one text on their way to SQL."""

    def __init__(self, text: str, known: tuple[Table, ...]) -> None:
        self.text = text
        self.resolver = Resolver(text, known)
        self.closures: dict[str, str] = {}

    def translate(self, rules: tuple[RuleSyntax, ...]) -> RuleSql:
        first = rules[0]
        for rule in rules:
            self.resolver.check_head(rule)
            self._check_same_head(first, rule)
        bodies = [self._body(rule) for rule in rules]
        constants = any(not _reads(bodies[0].value_of(output.token)) for output in first.outputs if _is_key(output))
        if len(rules) > 1 or (constants and _aggregates(first)):
            pieces = self._over_rows(rules, bodies)
        else:
            values = [self._values(bodies[0], output) for output in first.outputs]
            inputs = [bodies[0].value_of(token) for token in first.inputs]
            pieces = _select(first, values, inputs, _from(bodies[0]), bodies[0].tests, _any_column(bodies[0]))
        select, origin = joined(pieces, self.text)
        closures = tuple((name, self.resolver.tables[edges]) for edges, name in self.closures.items())
        offset = len(_with_closures(closures))
        marks = tuple((start + offset, position) for start, position in origin.marks)
        inputs_ = tuple(token.value for token in first.inputs)
        return RuleSql(select, closures, Origin(self.text, marks), inputs_, not first.outputs)

    def _body(self, rule: RuleSyntax) -> RuleBody:
        body = RuleBody(self.resolver, self.closures)
        body.read(rule)
        self.resolver.check_variables(rule, set(named(body.columns)))
        return body

    def _values(self, body: RuleBody, output: OutputSyntax) -> list[Pieces]:
        """What a column of the head is computed from: its variable, or the arguments of its aggregate."""
        if isinstance(output.source, Aggregate):
            return [body.value(words) for words in output.arguments]
        return [body.value_of(output.token)]

    def _over_rows(self, rules: tuple[RuleSyntax, ...], bodies: list[RuleBody]) -> Pieces:
        """The head over the rows of all bodies: outputs, arguments of aggregates and inputs are their columns."""
        names = _names(rules[0])
        made: list[tuple[str, int | None]] = [(" FROM (", None)]
        for number, (rule, body) in enumerate(zip(rules, bodies, strict=True)):
            values = [value for output in rule.outputs for value in self._values(body, output)]
            values += [body.value_of(token) for token in rule.inputs]
            items = [(*value, (f" AS {quoted(name)}", None)) for value, name in zip(values, names, strict=True)]
            start = (" UNION ALL SELECT " if number else "SELECT ", rule.name.position)
            made += [start, *_listed(items or [_ONE]), *_from(body), *_where(body.tests)]
        made.append((f") AS {_BODY}", None))
        first, waiting = rules[0], iter(names)
        outputs = [[_column(next(waiting), output.token) for _ in range(_width(output))] for output in first.outputs]
        inputs = [_column(next(waiting), token) for token in first.inputs]
        return _select(first, outputs, inputs, tuple(made), [], _column(names[0] if names else "one", first.name))

    def _check_same_head(self, first: RuleSyntax, rule: RuleSyntax) -> None:
        """The rules of a text are for one head, in which only the names of outputs may differ."""
        name = first.name.value
        if rule.name.value.lower() != name.lower():
            instead = f"make {rule.name.value} a separate view, and read that view"
            raise self._error(f"rules for {name} and for {rule.name.value} in one text", rule.name, instead)
        if len(rule.outputs) != len(first.outputs):
            message = f"{name} has {len(first.outputs)} outputs in its first rule, and {len(rule.outputs)} here"
            raise self._error(message, rule.name, "list as many in each rule")
        for one, other in zip(first.outputs, rule.outputs, strict=True):
            if _kind(one) != _kind(other):
                message = f"{other.source} stands where the first rule has {one.source}"
                raise self._error(message, other.token, "list the same aggregates at the same places in each rule")
        if [token.value for token in rule.inputs] != [token.value for token in first.inputs]:
            place = rule.inputs[0] if rule.inputs else rule.name
            raise self._error("the inputs differ from those of the first rule", place, "give them the same names")
        if (rule.distinct is None) != (first.distinct is None):
            raise self._error("DISTINCT in some of the rules only", rule.name, "write it in all of them, or in none")

    def _error(self, message: str, at: Token, instead: str) -> QueryError:
        return UnsupportedError(message, text=self.text, position=at.position, instead=instead)


def _select(
    rule: RuleSyntax,
    values: list[list[Pieces]],
    inputs: list[Pieces],
    tables: Pieces,
    tests: list[Pieces],
    any_column: Pieces,
) -> Pieces:
    """The SELECT of a head over tables, and under tests."""
    items = [
        (*_item(output, columns), (f" AS {quoted(str(output.source))}", output.token.position))
        for output, columns in zip(rule.outputs, values, strict=True)
    ]
    start = "SELECT DISTINCT " if rule.distinct is not None else "SELECT "
    given = [
        (*column, (f" = :{_parameter(token.value, number)}", token.position))
        for number, (token, column) in enumerate(zip(rule.inputs, inputs, strict=True), 1)
    ]
    keys = [columns[0] for output, columns in zip(rule.outputs, values, strict=True) if _is_key(output)]
    group = [(" GROUP BY ", None), *_listed(keys)] if keys and _aggregates(rule) else []
    shown = _listed(items or [(*any_column, (f" AS {quoted(_NOTHING)}", None))])
    return ((start, rule.name.position), *shown, *tables, *_where([*tests, *given]), *group)


def _item(output: OutputSyntax, columns: list[Pieces]) -> Pieces:
    if not isinstance(output.source, Aggregate):
        return columns[0]
    word = output.token.text.upper()
    arguments = _listed(columns) if columns else (("*", None),)
    distinct = "DISTINCT " if output.is_distinct else ""
    return ((f"{word}({distinct}", output.token.position), *arguments, (")", None))


def _from(body: RuleBody) -> Pieces:
    return ((" FROM ", None), *_listed(body.tables))


def _where(tests: list[Pieces]) -> Pieces:
    made: list[tuple[str, int | None]] = []
    for number, test in enumerate(tests):
        made += [(" AND " if number else " WHERE ", None), *test]
    return tuple(made)


def _listed(items: Iterable[Pieces]) -> Pieces:
    made: list[tuple[str, int | None]] = []
    for number, item in enumerate(items):
        made += [*([(", ", None)] if number else []), *item]
    return tuple(made)


def _column(name: str, token: Token) -> Pieces:
    return ((f"{_BODY}.{quoted(name)}", token.position),)


def _width(output: OutputSyntax) -> int:
    """How many columns of the body's rows an output is computed from."""
    return len(output.arguments) if isinstance(output.source, Aggregate) else 1


def _names(rule: RuleSyntax) -> list[str]:
    """The names of these columns, and of those of the inputs; those of the head differ from each other."""
    names = [
        f"{output.source} {n}" if n else str(output.source) for output in rule.outputs for n in range(_width(output))
    ]
    return [*names, *(token.value for token in rule.inputs)]


def _any_column(body: RuleBody) -> Pieces:
    """Some column of the body's rows; 1 if no atom has a variable."""
    found = next((pieces for pieces in body.columns.values() if _reads(pieces)), None)
    return (("1", None),) if found is None else found


def _reads(pieces: Pieces) -> bool:
    """Whether a value is computed from columns, which are written `t1.name`."""
    return any(re.match(r"t\d+\.`", text) for text, _ in pieces)


def _is_key(output: OutputSyntax) -> bool:
    return isinstance(output.source, str)


def _aggregates(rule: RuleSyntax) -> bool:
    return any(isinstance(output.source, Aggregate) for output in rule.outputs)


def _kind(output: OutputSyntax) -> object:
    """What must be the same in the heads of all rules."""
    source = output.source
    return (source.function, source.options, output.is_distinct) if isinstance(source, Aggregate) else "variable"


def _parameter(name: str, number: int) -> str:
    """The name of a parameter in SQL: that of the variable, if it is not a word of SQL and needs no quotes."""
    is_plain = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None
    is_name = is_plain and [each.token_type for each in sqlglot.tokenize(name, read=DIALECT)] == [TokenType.VAR]
    return name if is_name else f"input{number}"


def _with_closures(closures: Iterable[tuple[str, Table]]) -> str:
    """The closures of tables of edges, as WITH RECURSIVE defines them."""
    made = [_closure(name, edges) for name, edges in closures]
    return f"WITH RECURSIVE {', '.join(made)} " if made else ""


def _closure(name: str, table: Table) -> str:
    source, target = map(quoted, table.column_names)
    edges = quoted(table.name)
    step = f"SELECT r.{source}, e.{target} FROM {name} AS r JOIN {edges} AS e ON r.{target} = e.{source}"
    return f"{name}({source}, {target}) AS (SELECT {source}, {target} FROM {edges} UNION {step})"
