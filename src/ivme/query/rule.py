"""Rule notation, the source's own: `Q(B, C | A) = R(A, B), S(B, C), T(C, A)` (source 003, section 2.2).

A rule that is one join of its atoms is a `Query` as it stands; one that says more, and several rules for one head, are
written in SQL first (`rule_sql`), and taken apart into blocks as any SELECT.

`rule_syntax` holds the grammar. A dot or a middle dot stands for an empty list, `:-` for `=`. Names are letters,
digits and underscores, or anything in double quotes or backquotes; a quoted name is never a keyword. Relations
match tables whatever their case; variables are told apart by case. `_` is a new variable each time. A number with
an exponent is a float, one with only a decimal point an exact `Decimal`; both become the type of their column
where that is known. The short form `Q(X, Y) = closure(edge)` stands for `Q(X, Y) = closure(edge)(X, Y)`.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal

from ivme.errors import QueryError, UnknownNameError, UnsupportedError
from ivme.query.expression import Expression
from ivme.query.inference import type_of
from ivme.query.model import Aggregate, Atom, Column, Constant, HeadColumn, Query, Table, Term, Value, column_refs
from ivme.query.rule_recursion import as_closure
from ivme.query.rule_syntax import AtomSyntax, OutputSyntax, RuleSyntax, read_rules
from ivme.query.rule_tokens import Token


def parse_rule(text: str, tables: Mapping[str, Table] | Iterable[Table] = ()) -> Query:
    """The query that `text` writes in rule notation, over the given tables.

    The variables of an atom stand for its table's columns by position. Without any tables, each relation is taken
    to have as many columns as its atoms have terms, named `_1`, `_2`, ... The query's tables are those of its body,
    in the order of first occurrence.

    >>> query = parse_rule("Q(B, C | A) = R(A, B), S(B, C), T(C, A)")
    >>> query.output, query.input, str(query.atoms[2])
    (('B', 'C'), ('A',), 'T(C, A)')
    >>> print(parse_rule("Q(x, count, SUM(y)) :- R(x, y, 3)."))
    Q(x, COUNT, SUM(y) | .) = R(x, y, 3)
    """
    known = tuple(tables.values() if isinstance(tables, Mapping) else tables)
    rules = read_program(text, known)
    found = _more_than_a_join(rules)
    if found is not None:
        what, token = found
        message = f"{what}, which takes more than one block, is not supported here"
        instead = "make the rule a view over declared tables, and read that view"
        raise UnsupportedError(message, text=text, position=token.position, instead=instead)
    return Resolver(text, known).query(rules[0])


def is_join(text: str, tables: Iterable[Table] = ()) -> bool:
    """Whether a text is one rule without negation, conditions and the like, which `parse_rule` reads as a query.

    >>> is_join("Q(A) = R(A, B), S(B)"), is_join("Q(A) = R(A, B), not S(B)")
    (True, False)
    """
    return _more_than_a_join(read_program(text, tuple(tables))) is None


def read_program(text: str, known: tuple[Table, ...]) -> tuple[RuleSyntax, ...]:
    """The rules of a text; recursive ones, which must be reachability, as one rule over a closure."""
    rules = as_closure(read_rules(text), text, [table.name for table in known])
    return tuple(_with_closure_variables(rule, text) for rule in rules)


def _more_than_a_join(rules: tuple[RuleSyntax, ...]) -> tuple[str, Token] | None:
    """What in the rules is more than a join of atoms, and where it is."""
    if len(rules) > 1:
        return "a union of several rules", rules[1].name
    rule = rules[0]
    if rule.negated:
        return "a negated atom", rule.negated[0].token
    if rule.conditions:
        return "a condition", rule.conditions[0][0]
    mixed = next((output for output in rule.outputs if output.has_expressions or _mixes(output, rule)), None)
    return None if mixed is None else (f"{mixed.source}, of an expression or of several atoms,", mixed.token)


def _mixes(output: OutputSyntax, rule: RuleSyntax) -> bool:
    """Whether an aggregate is computed from variables that no atom has together."""
    if output.spelling is None or output.spelling.columns is tuple:
        return False
    names = {token.value for token in output.variables}
    known = {token.value for atom in rule.atoms for token, term in atom.terms or () if isinstance(term, str)}
    together = ({term for _, term in atom.terms or ()} for atom in rule.atoms if not atom.closure)
    return names <= known and not any(names <= variables for variables in together)


def _with_closure_variables(rule: RuleSyntax, text: str) -> RuleSyntax:
    """The rule with `closure(edge)` short for `closure(edge)(X, Y)`, X and Y being all that the head lists."""
    missing = next((atom for atom in (*rule.atoms, *rule.negated) if atom.terms is None), None)
    if missing is None:
        return rule
    variables = [output.token for output in rule.outputs if isinstance(output.source, str)]
    is_alone = len(rule.atoms) == 1 and not (rule.negated or rule.conditions or rule.inputs)
    if not is_alone or len(variables) != 2 or len(rule.outputs) != 2:
        message = f"closure({missing.relation}) without variables stands alone, under a head that lists just two"
        instead = f"name its source and its target: closure({missing.relation})(X, Y)"
        raise QueryError(message, text=text, position=missing.token.position, instead=instead)
    return replace(rule, atoms=(replace(missing, terms=tuple((token, token.value) for token in variables)),))


class Resolver:
    """Looks up the names of one rule; `tables` collects what its relations turned out to be."""

    def __init__(self, text: str, known: tuple[Table, ...]) -> None:
        self.text = text
        self.known = known
        self.tables: dict[str, Table] = {}

    def error(self, message: str, at: Token, instead: str = "") -> QueryError:
        return QueryError(message, text=self.text, position=at.position, instead=instead)

    def query(self, rule: RuleSyntax) -> Query:
        atoms = [self.atom(atom) for atom in rule.atoms]
        self.check_variables(rule, {variable for atom in atoms for variable in atom.variables})
        self.check_head(rule)
        head = tuple(HeadColumn(str(output.source), self.source(output, atoms)) for output in rule.outputs)
        return Query(
            name=rule.name.value,
            output=tuple(output.source for output in rule.outputs if isinstance(output.source, str)),
            input=tuple(token.value for token in rule.inputs),
            atoms=tuple(atoms),
            tables=tuple(self.tables.values()),
            head=head,
            distinct=rule.distinct is not None,
            text=self.text,
        )

    def source(self, output: OutputSyntax, atoms: list[Atom]) -> str | Aggregate:
        """What a column of the head shows; an aggregate over computed columns adds these to one of the atoms."""
        source, spelling = output.source, output.spelling
        if isinstance(source, str) or spelling is None or spelling.columns is tuple:
            return source
        names = [token.value for token in output.variables]
        place = next(i for i, a in enumerate(atoms) if not a.closure and {*names} <= {*a.variables})
        atom = atoms[place]
        arguments = [atom.columns[atom.terms.index(name)] for name in names]
        self.check_kinds(output, arguments, self.tables[atom.relation])
        columns = spelling.columns(arguments)
        taken = {variable for each in atoms for variable in each.variables}
        fresh = [f"{source} {i}" if i else str(source) for i in range(len(columns))]
        new = [(name, column) for name, column in zip(fresh, columns, strict=True) if name not in taken]
        terms, added = (*atom.terms, *(name for name, _ in new)), (*atom.columns, *(column for _, column in new))
        atoms[place] = replace(atom, terms=terms, columns=added)
        return replace(source, variable=fresh[0], partner=fresh[1] if len(fresh) > 1 else None)

    def check_kinds(self, output: OutputSyntax, arguments: Iterable[Expression], table: Table) -> None:
        assert output.spelling is not None
        takes = output.spelling.takes
        for token, argument in zip(output.variables, arguments, strict=True):
            type_ = type_of(argument, table)
            if takes and type_ is not None and type_.kind not in takes:
                message = f"{output.source} is over {token.value} of type {type_}, and takes {' or '.join(takes)}"
                raise self.error(message, token, f"aggregate a variable of type {takes[0]}")

    def check_variables(self, rule: RuleSyntax, variables: set[str]) -> None:
        named = [token for output in rule.outputs for token in output.variables] + list(rule.inputs)
        for token in named:
            if token.value not in variables:
                message = f"variable {token.value} of the head is in no atom of the body"
                raise self.unknown(message, token.value, sorted(variables), token)

    def check_head(self, rule: RuleSyntax) -> None:
        seen: set[str] = set()
        listed = [(str(output.source), output.token) for output in rule.outputs]
        for name, token in listed + [(token.value, token) for token in rule.inputs]:
            if name in seen:
                raise self.error(f"{name} is twice in the head", token, "list it once")
            seen.add(name)
        if rule.distinct and any(isinstance(output.source, Aggregate) for output in rule.outputs):
            instead = "leave DISTINCT out: each group is one row anyway"
            message, position = "DISTINCT together with aggregates", rule.distinct.position
            raise UnsupportedError(message, text=self.text, position=position, instead=instead)

    def unknown(self, message: str, name: str, names: list[str], at: Token) -> UnknownNameError:
        """The error for a name that is not among `names`; it proposes the nearest of them."""
        import difflib

        by_lower = {name.lower(): name for name in names}
        near = [by_lower[match] for match in difflib.get_close_matches(name.lower(), by_lower)]
        instead = f"did you mean {' or '.join(near)}?" if near else f"choose from: {', '.join(names) or 'none'}"
        return UnknownNameError(message, text=self.text, position=at.position, instead=instead)

    def atom(self, atom: AtomSyntax) -> Atom:
        terms = atom.terms or ()
        if atom.closure and len(terms) != 2:
            message = f"closure({atom.relation}) has two columns, source and target, not {len(terms)}"
            raise self.error(message, atom.token, f"closure({atom.relation})(X, Y)")
        table = self.table(atom, len(terms))
        if len(terms) != len(table.columns):
            raise self.wrong_arity(atom, table, len(terms))
        self.tables[table.name] = table
        typed = tuple(self.term(*term, column) for term, column in zip(terms, table.columns, strict=True))
        return Atom(table.name, typed, column_refs(table.column_names), closure=atom.closure)

    def table(self, atom: AtomSyntax, arity: int) -> Table:
        """The table of the atom's relation: the one known by that name, else one inferred from its first atom."""
        name = atom.relation
        table = _find(name, self.known or self.tables.values())
        if table is not None:
            return table
        if self.known:
            names = [table.name for table in self.known]
            raise self.unknown(f"there is no table {name}", name, names, atom.token)
        return Table(name, tuple(Column(f"_{i}") for i in range(1, arity + 1)), inferred=True)

    def wrong_arity(self, atom: AtomSyntax, table: Table, arity: int) -> QueryError:
        name, columns = table.name, len(table.columns)
        if atom.closure:
            message, instead = (
                f"{name} is not a table of edges",
                f"take the closure of a table with two columns; {name} has {columns}",
            )
        elif table.inferred:
            message = f"{name} has {_counted(columns, 'term')} in an earlier atom, and {arity} here"
            instead = "give every atom of a relation the same terms, `_` where any value will do"
        else:
            message = f"{name} has {_counted(columns, 'column')}, and this atom has {_counted(arity, 'term')}"
            instead = f"write a term for each of {name}({', '.join(table.column_names)}), `_` where any value will do"
        return self.error(message, atom.token, instead)

    def term(self, token: Token, term: Term, column: Column) -> Term:
        if isinstance(term, str) or column.type is None:
            return term
        try:
            return Constant(_in_kind(term.value, column.type.kind))
        except ValueError:
            message = f"column {column.name} has type {column.type}, and {token} is not a value of it"
            raise self.error(message, token, "write a constant of the column's type") from None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _find(name: str, tables: Iterable[Table]) -> Table | None:
    """The table of that name, whatever its case; the exact spelling goes first."""
    same = [table for table in tables if table.name.lower() == name.lower()]
    return next((table for table in same if table.name == name), same[0] if same else None)


def _in_kind(value: Value, kind: str) -> Value:
    """The constant as a value of that kind of column; ValueError if it is not one."""
    match value, kind:
        case (bool(), "bool") | (str(), "string"):
            return value
        case (bool(), _):
            raise ValueError(kind)
        case (int(), "int"):
            return value
        case (int() | Decimal() as exact, "decimal"):
            return Decimal(exact)
        case (int() | float() | Decimal() as number, "float"):
            return float(number)
        case (str(text), "date"):
            return datetime.date.fromisoformat(text)
        case (str(text), "timestamp"):
            return datetime.datetime.fromisoformat(text)
        case _:
            raise ValueError(kind)
