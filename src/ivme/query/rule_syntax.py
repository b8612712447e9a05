"""The grammar of rule notation, by recursive descent: text in, a syntax tree with positions out.

    rule      = name "(" ["DISTINCT"] outputs ["|" inputs] ")" ("=" | ":-") body ["." | ";"]
    outputs   = "" | "." | output {"," output}
    inputs    = "" | "." | variable {"," variable}
    output    = variable | aggregate
    aggregate = COUNT | COUNT(*) | word "(" ["DISTINCT"] variable ["," variable] ")"
    body      = atom {"," atom} | closure(relation)
    atom      = (relation | closure(relation)) "(" [term {"," term}] ")"
    relation  = name {"." name}
    term      = variable | "_" | integer | decimal | 'string' | TRUE | FALSE

`word` is one of `spellings.WORDS`. What is a query but none that ivme maintains (negation, inequalities, unions) is
recognised here, and refused with what to write instead. No name is looked up: that is `rule`'s part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from ivme.errors import ParseError, UnsupportedError
from ivme.query.aggregates import LISTED
from ivme.query.model import Aggregate, Constant, Term
from ivme.query.rule_tokens import Token, number, tokens
from ivme.query.spellings import DISTINCT, WORDS, Spelling

_DOTS = (".", "·", "⋅")
_COMPARISONS = ("<", ">", "<=", ">=", "!=", "<>", "=", "==", "≤", "≥", "≠")
_OPERATORS = ("+", "-", "*", "/", "%")
_UNIONS = ("|", "∪", "∨", "or", "union")
_NEGATIONS = ("not", "!", "¬", "~")
_HEAD = "write the head as in Q(B | A) = R(A, B)"
_IN_SQL = "write the view in SQL, "

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class OutputSyntax:
    """What the head lists before the bar; an aggregate has its variables, COUNT(*) none, and how it is spelled."""

    token: Token
    source: str | Aggregate
    variables: tuple[Token, ...] = ()
    spelling: Spelling | None = None


@dataclass(frozen=True, slots=True)
class AtomSyntax:
    """An atom as written; `terms` is None for the short form of a closure."""

    token: Token
    relation: str
    terms: tuple[tuple[Token, Term], ...] | None
    closure: bool = False


@dataclass(frozen=True, slots=True)
class RuleSyntax:
    """A rule as written; `distinct` is that word, if it is there."""

    name: Token
    distinct: Token | None
    outputs: tuple[OutputSyntax, ...]
    inputs: tuple[Token, ...]
    atoms: tuple[AtomSyntax, ...]


def read_rule(text: str) -> RuleSyntax:
    """The syntax tree of a rule, in time linear in its length; each `_` has become a variable of its own."""
    return _Parser(text).rule()


class _Parser:
    """A cursor over the words of one text, with a method for each part of the grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(tokens(text))
        self.index = 0
        taken = {token.value for token in self.tokens}
        self.fresh = (name for name in map("_{}".format, count(1)) if name not in taken)

    @property
    def next(self) -> Token:
        return self.tokens[self.index]

    @property
    def following(self) -> Token:
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.next
        self.index += token.kind != "end"
        return token

    def accept(self, *words: str) -> Token | None:
        return self.take() if self.next.word in words else None

    def expect(self, word: str, what: str, instead: str = "") -> None:
        if self.accept(word) is None:
            raise self.error(f"expected {what}, not {self.next}", instead)

    def error(self, message: str, instead: str = "", at: Token | None = None) -> ParseError:
        return ParseError(message, text=self.text, position=(at or self.next).position, instead=instead)

    def unsupported(self, message: str, instead: str, at: Token | None = None) -> UnsupportedError:
        return UnsupportedError(message, text=self.text, position=(at or self.next).position, instead=instead)

    def rule(self) -> RuleSyntax:
        if not self.next.is_name:
            raise self.error(f"expected the name of the query, not {self.next}", _HEAD)
        name = self.take()
        self.expect("(", "`(` after the name of the query", _HEAD)
        distinct = self.accept("distinct")
        outputs = self.listed(self.output, "|", ")")
        bar = self.accept("|")
        inputs = self.listed(self.input, ")") if bar else ()
        self.expect(")", "`,` or `)` in the head" if bar else "`,`, `|` or `)` in the head", _HEAD)
        if self.accept("=", ":-") is None:
            raise self.error(f"expected `=` or `:-` after the head, not {self.next}", _HEAD)
        return RuleSyntax(name, distinct, outputs, inputs, self.body())

    def listed(self, item: Callable[[], _Item], *closing: str) -> tuple[_Item, ...]:
        """Items between commas; none at all where there is a dot, or already one of the closing symbols."""
        if self.next.word in closing or self.accept(*_DOTS):
            return ()
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    def output(self) -> OutputSyntax:
        token = self.next
        if token.kind == "name" and (self.following.word == "(" or token.word == "count"):
            return self.aggregate()
        variable = self.variable("the head")
        return OutputSyntax(token, variable.value, (variable,))

    def input(self) -> Token:
        if self.next.kind == "name" and self.following.word == "(":
            raise self.error("an aggregate among the inputs", "list aggregates before the bar `|`")
        return self.variable("the inputs")

    def variable(self, place: str) -> Token:
        token = self.next
        if token.text == "_":
            raise self.error(f"`_` in {place}", "give the variable a name, in its atom too")
        if token.kind in ("number", "string") or token.word in ("true", "false", "null"):
            raise self.unsupported(
                f"a constant, {token}, in {place}", "name variables there; constants go into atoms, as in R(A, 3)"
            )
        if not token.is_name:
            raise self.error(f"expected a variable in {place}, not {token}", _HEAD)
        return self.take()

    def aggregate(self) -> OutputSyntax:
        token = self.take()
        spelling = WORDS.get(token.word)
        if spelling is None or not spelling.is_in_rules:
            known = spelling is not None
            message = f"{token} with constants" if known else f"{token} is no aggregate that ivme maintains"
            instead = f"{_IN_SQL}where it is {spelling.sql}" if spelling else f"use {LISTED}"
            raise self.unsupported(message, instead, token)
        if not self.accept("("):
            return OutputSyntax(token, Aggregate("count"))
        if token.word == "count" and self.accept("*"):
            output = OutputSyntax(token, Aggregate("count"))
        else:
            output = self.aggregate_of_variables(token, spelling)
        name, form = token.text.upper(), ", ".join("XY"[: spelling.arguments])
        number = "one variable" if spelling.arguments == 1 else "two variables"
        self.expect(")", f"`)` after the argument of {name}", f"{name} takes {number}, as in {name}({form})")
        return output

    def aggregate_of_variables(self, token: Token, spelling: Spelling) -> OutputSyntax:
        name = token.text.upper()
        distinct = self.accept("distinct")
        if distinct and (spelling.function not in DISTINCT or spelling.arguments > 1):
            instead = f"write {name} without DISTINCT, or count distinct values with COUNT(DISTINCT X)"
            raise self.unsupported(f"{name} of distinct values", instead, distinct)
        if self.next.word in (")", "*"):
            instead = "COUNT(*)" if token.word == "count" else f"{name}(X), where X is a variable of the body"
            raise self.error(f"{name} needs a variable, not {self.next}", instead)
        variables = [self.variable(f"{name}(...)")]
        self.refuse_arithmetic(f"{name} of an expression")
        while len(variables) < spelling.arguments:
            self.expect(",", f"`,` and another variable in {name}", f"{name}(X, Y)")
            variables.append(self.variable(f"{name}(...)"))
            self.refuse_arithmetic(f"{name} of an expression")
        function = DISTINCT[spelling.function] if distinct else spelling.function
        text = f"{name}({'DISTINCT ' if distinct else ''}{', '.join(each.value for each in variables)})"
        is_plain = token.word in (function, "count") and not spelling.options and len(variables) == 1
        source = Aggregate(function, variables[0].value, None, spelling.options, "" if is_plain else text)
        return OutputSyntax(token, source, tuple(variables), spelling)

    def refuse_arithmetic(self, what: str) -> None:
        if self.next.word in _OPERATORS or (self.next.kind == "number" and self.next.text[0] in "+-"):
            raise self.unsupported(what, f"{_IN_SQL}which may compute a column from those of one table")

    def body(self) -> tuple[AtomSyntax, ...]:
        atoms = [self.atom()]
        while self.accept(","):
            atoms.append(self.atom())
        stop = self.accept(*_DOTS, ";") or self.next
        if stop.word in _UNIONS or (stop is not self.next and self.next.kind != "end"):
            message = f"{stop} and what follows it make a union; a rule is one conjunction of atoms"
            raise self.unsupported(message, "make each part a view of its own, and read their rows together", stop)
        if self.next.word in _COMPARISONS:
            raise self.comparison(self.next)
        if self.next.kind != "end":
            message = f"expected `,` or the end of the rule after an atom, not {self.next}"
            raise self.error(message, "separate atoms with commas, as in R(A, B), S(B, C)")
        return tuple(atoms)

    def comparison(self, at: Token) -> UnsupportedError:
        if at.word in ("=", "=="):
            instead = "write one name for both variables, or the constant in the variable's place: R(A, 3)"
            return self.unsupported("an equation among the atoms", instead, at)
        instead = f"{_IN_SQL}with the condition in its WHERE clause"
        return self.unsupported("an inequality among the atoms", instead, at)

    def atom(self) -> AtomSyntax:
        token = self.next
        if token.word in _NEGATIONS and (token.kind == "symbol" or self.following.is_name):
            instead = "keep the rows that are to match in a table of their own, and join with that"
            raise self.unsupported("a negated atom", instead)
        if self.following.word in _COMPARISONS:
            raise self.comparison(self.following)
        if not token.is_name:
            raise self.error(f"expected an atom, not {token}", "write atoms as in R(A, B)")
        closure = token.word == "closure" and self.following.word == "("
        relation = self.closure_of() if closure else self.relation()
        if closure and self.next.word != "(":
            return AtomSyntax(token, relation, None, closure)
        self.expect("(", f"`(` after the relation {relation}", f"list its variables, as in {relation}(A, B)")
        terms = self.listed(self.term, ")")
        self.expect(")", f"`,` or `)` after a term of {relation}", "list terms between commas, as in R(A, B)")
        return AtomSyntax(token, relation, terms, closure)

    def relation(self) -> str:
        if not self.next.is_name:
            raise self.error(
                f"expected the name of a relation, not {self.next}", "name a table of edges, as in closure(edge)"
            )
        names = [self.take().value]
        while self.next.word == "." and self.following.is_name:
            self.take()
            names.append(self.take().value)
        return ".".join(names)

    def closure_of(self) -> str:
        self.take()
        self.take()
        relation = self.relation()
        instead = 'closure(edge)(X, Y); a table whose own name is closure is written "closure"(X, Y)'
        self.expect(")", "`)` after the one relation that closure takes", instead)
        return relation

    def term(self) -> tuple[Token, Term]:
        token = self.next
        term: Term | None = self.constant()
        if term is None:
            if not token.is_name:
                raise self.error(f"expected a variable or a constant, not {token}", _instead_of_term(token))
            term = next(self.fresh) if token.text == "_" else token.value
        self.take()
        self.refuse_arithmetic("an expression in an atom")
        return token, term

    def constant(self) -> Constant | None:
        """The constant that comes next, not taken yet, or None if something else does."""
        token = self.next
        if token.word == "null":
            message = "NULL in an atom equals nothing, so that no row would match"
            raise self.unsupported(message, f"{_IN_SQL}with IS NULL in its WHERE clause")
        if token.word in ("true", "false"):
            return Constant(token.word == "true")
        if token.kind == "string":
            return Constant(token.value)
        if token.kind != "number":
            return None
        value = number(token.text)
        if value is None:
            instead = "an integer has up to 64 bits, a decimal up to 38 digits, a float up to 1.8e308"
            raise self.error("a number that no column type holds", instead)
        return Constant(value)


def _instead_of_term(token: Token) -> str:
    if token.word in (":", "?", "$", "@"):
        return "name the variable, and list it among the inputs: Q(B | A) = R(A, B)"
    return "write terms as in R(A, 3, 'text', _)"
