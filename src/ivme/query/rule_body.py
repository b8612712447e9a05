"""The body of a rule as SQL: FROM, the conditions of WHERE, and the column that each variable stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from ivme.errors import QueryError, UnsupportedError
from ivme.query.expression import Literal
from ivme.query.model import Atom, Term
from ivme.query.rule import Resolver
from ivme.query.rule_expression import Pieces, RuleExpression, read_expression
from ivme.query.rule_syntax import AtomSyntax, RuleSyntax, Words
from ivme.query.rule_tokens import Token

_MOST_PIECES = 10_000
"""How long an expression may become when variables are replaced by what they are bound to."""


def quoted(name: str) -> str:
    """A name as an identifier of SQL."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(slots=True)
class RuleBody:
    """What the body of one rule says, read atom by atom; closures are tables called `closures[their edges]`."""

    resolver: Resolver
    closures: dict[str, str]
    tables: list[Pieces] = field(default_factory=list)
    tests: list[Pieces] = field(default_factory=list)
    columns: dict[str, Pieces] = field(default_factory=dict)
    _read: dict[Words, RuleExpression] = field(default_factory=dict)

    def read(self, rule: RuleSyntax) -> None:
        """Reads the body of a rule: variables that atoms do not bind are bound by equations."""
        for number, atom in enumerate(rule.atoms, 1):
            self._atom(atom, f"t{number}")
        if not self.tables:
            raise self._unbound("a rule needs an atom that is not negated", rule.name, "add an atom, as in R(A, B)")
        self._conditions([self.expression(words, is_condition=True) for words in rule.conditions])
        for number, atom in enumerate(rule.negated, 1):
            self._negated(atom, f"n{number}")

    def expression(self, words: Words, *, is_condition: bool = False) -> RuleExpression:
        """An expression, which calls no table."""
        for word, follower in pairwise(words):
            if word.is_name and follower.word == "(" and self._is_table(word.value):
                message = f"{word.value} is a table, and stands among conditions"
                instead = "separate atoms and conditions with commas; write alternatives as several rules"
                raise UnsupportedError(message, text=self.resolver.text, position=word.position, instead=instead)
        if words not in self._read:
            self._read[words] = read_expression(words, self.resolver.text, is_condition=is_condition)
        return self._read[words]

    def value(self, words: Words) -> Pieces:
        """The SQL of an expression over variables of the body."""
        expression = self.expression(words)
        self._check_bound(expression)
        return self._over(expression)

    def value_of(self, token: Token) -> Pieces:
        """The column of a variable of the head."""
        return tuple((text, token.position) for text, _ in self.columns[token.value])

    def _is_table(self, name: str) -> bool:
        return name.lower() in (table.name.lower() for table in self.resolver.known)

    def _atom(self, syntax: AtomSyntax, alias: str) -> None:
        atom = self.resolver.atom(syntax)
        self.tables.append(self._table(atom, alias, syntax.token))
        for column, (token, _), term in self._terms(atom, syntax):
            here: Pieces = ((f"{alias}.{quoted(column)}", token.position),)
            if isinstance(term, str) and term not in self.columns:
                self.columns[term] = here
            else:
                other = self.columns[term] if isinstance(term, str) else ((str(Literal(term.value)), token.position),)
                self.tests.append((*here, (" = ", None), *other))

    def _negated(self, syntax: AtomSyntax, alias: str) -> None:
        """No row of the table has these values; `_` stands for any."""
        atom = self.resolver.atom(syntax)
        tests: list[Pieces] = []
        for column, (token, _), term in self._terms(atom, syntax):
            if isinstance(term, str) and token.text == "_":
                continue
            if isinstance(term, str) and term not in self.columns:
                message = f"variable {term} of a negated atom is in no atom that is not negated"
                raise self._unbound(message, token, f"write `_` where any value will do, or bind {term} in an atom")
            other = self.columns[term] if isinstance(term, str) else ((str(Literal(term.value)), None),)
            here = (f"{alias}.{quoted(column)} = ", token.position)
            tests.append((here, *((text, token.position) for text, _ in other)))
        where: list[tuple[str, int | None]] = []
        for number, test in enumerate(tests):
            where += [(" AND " if number else " WHERE ", None), *test]
        table = self._table(atom, alias, syntax.token)
        self.tests.append((("NOT EXISTS (SELECT 1 FROM ", syntax.token.position), *table, *where, (")", None)))

    def _terms(self, atom: Atom, syntax: AtomSyntax) -> Iterator[tuple[str, tuple[Token, Term], Term]]:
        names = self.resolver.tables[atom.relation].column_names
        assert syntax.terms is not None
        yield from zip(names, syntax.terms, atom.terms, strict=True)

    def _table(self, atom: Atom, alias: str, token: Token) -> Pieces:
        name = atom.relation
        if atom.closure:
            name = self.closures.setdefault(name, f"closure_{len(self.closures) + 1}")
        return ((f"{quoted(name)} AS {alias}", token.position),)

    def _conditions(self, waiting: list[RuleExpression]) -> None:
        """Tests what is bound and binds what equations say, until there is nothing left of either."""
        while waiting:
            later = []
            for condition in waiting:
                if all(token.value in self.columns for token in condition.variables.values()):
                    self.tests.append((("(", None), *self._over(condition), (")", None)))
                elif not self._bind(condition):
                    later.append(condition)
            if len(later) == len(waiting):
                self._check_bound(later[0])
            waiting = later

    def _bind(self, condition: RuleExpression) -> bool:
        """Binds the variable of an equation whose other side is bound."""
        if condition.equation is None:
            return False
        token, words = condition.equation
        expression = self.expression(words)
        names = {each.value for each in expression.variables.values()}
        if token.value in self.columns or not names <= self.columns.keys():
            return False
        self.columns[token.value] = (("(", token.position), *self._over(expression), (")", None))
        return True

    def _over(self, expression: RuleExpression) -> Pieces:
        made = expression.over(self.columns)
        if len(made) > _MOST_PIECES:
            message = "this expression becomes too long when its variables are replaced by what they are bound to"
            raise self._unbound(message, expression.words[0], "make the first part of the rule a separate view")
        return made

    def _check_bound(self, expression: RuleExpression) -> None:
        for token in expression.variables.values():
            if token.value not in self.columns:
                message = f"variable {token.value} of an expression is in no atom of the body, and no equation binds it"
                raise self.resolver.unknown(message, token.value, sorted(named(self.columns)), token)

    def _unbound(self, message: str, at: Token, instead: str) -> QueryError:
        return QueryError(message, text=self.resolver.text, position=at.position, instead=instead)


def named(columns: Mapping[str, Pieces]) -> list[str]:
    """The variables that have names; those of `_` are `_1`, `_2`, ..."""
    return [name for name in columns if not (name[0] == "_" and name[1:].isdecimal())]
