"""The grammar of rule notation, by recursive descent: text in, a syntax tree with positions out.

    program   = rule {("." | ";") rule} ["." | ";"]
    rule      = name "(" ["DISTINCT"] outputs ["|" inputs] ")" ("=" | ":-") body
    outputs   = "" | "." | output {"," output}
    inputs    = "" | "." | variable {"," variable}
    output    = variable | aggregate
    aggregate = COUNT | COUNT(*) | word "(" ["DISTINCT"] expression ["," expression] ")"
    body      = literal {"," literal} | closure(relation)
    literal   = atom | "not" atom | condition
    atom      = (relation | closure(relation)) "(" [term {"," term}] ")"
    relation  = name {"." name}
    term      = variable | "_" | integer | decimal | 'string' | TRUE | FALSE

`word` is one of `spellings.WORDS`. An expression or condition is SQL over the variables; here it is a list of words,
which `rule_expression` reads. No name is looked up: that is the part of `rule` and `rule_sql`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

from ivme.errors import ParseError, UnsupportedError
from ivme.query.aggregates import LISTED
from ivme.query.model import Aggregate, Constant, Term
from ivme.query.rule_literals import DOTS, ENDS, NEGATIONS, OPERATORS, is_atom, is_condition, is_sign
from ivme.query.rule_tokens import Token, number, tokens
from ivme.query.spellings import DISTINCT, WORDS, Spelling

_UNIONS = ("|", "∪", "∨", "or", "union")
_HEAD = "write the head as in Q(B | A) = R(A, B)"
_RULES = "write a rule for each alternative, as in Q(A) = R(A); Q(A) = S(A)"
_IN_SQL = "write the view in SQL, "

_Item = TypeVar("_Item")


Words = tuple[Token, ...]
"""An expression or a condition, as the words that it is made of."""


@dataclass(frozen=True, slots=True)
class OutputSyntax:
    """What the head lists before the bar; an aggregate has its variables, COUNT(*) none, and how it is spelled.

    The `arguments` of an aggregate are variables, or expressions, which `has_expressions` tells.
    """

    token: Token
    source: str | Aggregate
    variables: tuple[Token, ...] = ()
    spelling: Spelling | None = None
    arguments: tuple[Words, ...] = ()
    is_distinct: bool = False

    @property
    def has_expressions(self) -> bool:
        return any(len(words) > 1 for words in self.arguments)


@dataclass(frozen=True, slots=True)
class AtomSyntax:
    """An atom as written; `terms` is None for the short form of a closure."""

    token: Token
    relation: str
    terms: tuple[tuple[Token, Term], ...] | None
    closure: bool = False


@dataclass(frozen=True, slots=True)
class RuleSyntax:
    """A rule as written; `distinct` is that word, if it is there. The `atoms` are those that are not negated."""

    name: Token
    distinct: Token | None
    outputs: tuple[OutputSyntax, ...]
    inputs: tuple[Token, ...]
    atoms: tuple[AtomSyntax, ...]
    negated: tuple[AtomSyntax, ...] = ()
    conditions: tuple[Words, ...] = ()


def read_rules(text: str) -> tuple[RuleSyntax, ...]:
    """The syntax trees of the rules of a text; each `_` has become a variable of its own.

    Time is linear in the length of the text, but for parentheses around parentheses.
    """
    return _Parser(text).program()


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

    def program(self) -> tuple[RuleSyntax, ...]:
        rules = [self.rule()]
        while self.accept(*ENDS) and self.next.kind != "end":
            rules.append(self.rule())
        if self.next.word in _UNIONS:
            message = f"{self.next} between atoms; a rule is one conjunction of atoms and conditions"
            raise self.unsupported(message, _RULES)
        if self.next.kind != "end":
            message = f"expected `,` or the end of the rule after an atom, not {self.next}"
            raise self.error(message, "separate atoms with commas, as in R(A, B), S(B, C)")
        return tuple(rules)

    def rule(self) -> RuleSyntax:
        if not self.next.is_name:
            raise self.error(f"expected the name of the query, not {self.next}", _HEAD)
        name = self.take()
        self.expect("(", "`(` after the name of the query", _meant(name) or _HEAD)
        distinct = self.accept("distinct")
        outputs = self.listed(self.output, "|", ")")
        bar = self.accept("|")
        inputs = self.listed(self.input, ")") if bar else ()
        self.expect(")", "`,` or `)` in the head" if bar else "`,`, `|` or `)` in the head", _HEAD)
        if self.accept("=", ":-") is None:
            raise self.error(f"expected `=` or `:-` after the head, not {self.next}", _HEAD)
        return self.body(RuleSyntax(name, distinct, outputs, inputs, ()))

    def listed(self, item: Callable[[], _Item], *closing: str) -> tuple[_Item, ...]:
        """Items between commas; none at all where there is a dot, or already one of the closing symbols."""
        if self.next.word in closing or self.accept(*DOTS):
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
                f"a constant, {token}, in {place}", "name a variable there, and bind it in the body, as in Z = 3"
            )
        if not token.is_name:
            raise self.error(f"expected a variable in {place}, not {token}", _HEAD)
        return self.take()

    def aggregate(self) -> OutputSyntax:
        token = self.take()
        spelling = WORDS.get(token.word)
        if spelling is None or not spelling.is_in_rules:
            known = spelling is not None
            message = f"{token} with constants" if known else f"{token} is not an aggregate that ivme maintains"
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
        arguments = [self.argument(name)]
        while len(arguments) < spelling.arguments:
            self.expect(",", f"`,` and another variable in {name}", f"{name}(X, Y)")
            arguments.append(self.argument(name))
        function = DISTINCT[spelling.function] if distinct else spelling.function
        shown = [self.written(words) for words in arguments]
        text = f"{name}({'DISTINCT ' if distinct else ''}{', '.join(shown)})"
        has_words = any(len(words) > 1 for words in arguments)
        is_plain = token.word in (function, "count") and not spelling.options and len(arguments) == 1 and not has_words
        source = Aggregate(function, shown[0], None, spelling.options, "" if is_plain else text)
        variables = () if has_words else tuple(words[0] for words in arguments)
        return OutputSyntax(token, source, variables, spelling, tuple(arguments), distinct is not None)

    def argument(self, name: str) -> Words:
        """A variable, or the words of an expression."""
        start = self.index
        words = self.words(",", ")")
        if len(words) != 1:
            return words
        self.index = start
        return (self.variable(f"{name}(...)"),)

    def words(self, *ends: str) -> Words:
        """What comes before one of these words or the end of the text, outside of parentheses."""
        depth, words = 0, list[Token]()
        while self.next.kind != "end" and (depth or self.next.word not in ends):
            depth += (self.next.word == "(") - (self.next.word == ")")
            if depth < 0:
                raise self.error("a parenthesis that nothing opens", "leave it out, or open it")
            words.append(self.take())
        if depth:
            opened = next(word for word in words if word.word == "(")
            raise self.error("a parenthesis that is never closed", "close it", opened)
        return tuple(words)

    def written(self, words: Words) -> str:
        """Words as they stand in the text, on one line; a variable without quotes."""
        if len(words) == 1:
            return words[0].value
        return " ".join(self.text[words[0].position : words[-1].position + len(words[-1].text)].split())

    def body(self, rule: RuleSyntax) -> RuleSyntax:
        """The rule with its body: atoms, negated ones, and conditions."""
        atoms, negated, conditions = list[AtomSyntax](), list[AtomSyntax](), list[Words]()
        while True:
            if self.next.word in NEGATIONS and is_atom(self.tokens, self.index + 1):
                self.take()
                negated.append(self.atom())
            elif is_condition(self.tokens, self.index):
                conditions.append(self.words(",", *ENDS))
            else:
                atoms.append(self.atom())
            if not self.accept(","):
                return replace(rule, atoms=tuple(atoms), negated=tuple(negated), conditions=tuple(conditions))

    def atom(self) -> AtomSyntax:
        token = self.next
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
        if self.next.word in OPERATORS or is_sign(self.next):
            instead = "name a variable in the atom, and bind it beside it, as in R(A, C), C = B + 1"
            raise self.unsupported("an expression in an atom", instead)
        return token, term

    def constant(self) -> Constant | None:
        """The constant that comes next, not taken yet, or None if something else does."""
        token = self.next
        if token.word == "null":
            message = "NULL in an atom equals nothing, so no row would match"
            raise self.unsupported(message, "name a variable there, and test it beside it, as in R(A, B), B IS NULL")
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


def _meant(name: Token) -> str:
    """Advice for a text that starts almost as SQL does."""
    from difflib import get_close_matches

    found = get_close_matches(name.word, ("select", "with"), n=1)
    return f"did you mean {found[0].upper()}?" if found else ""


def _instead_of_term(token: Token) -> str:
    if token.word in (":", "?", "$", "@"):
        return "name the variable, and list it among the inputs: Q(B | A) = R(A, B)"
    return "write terms as in R(A, 3, 'text', _)"
