"""The values that a parameter is compared with: a block that a SELECT is joined with where it has rows for all others.

SELECT COUNT(*) + 1 AS n FROM R WHERE a = :a
block#1: SELECT a AS "#v" FROM R UNION ALL SELECT NULL
block#2: SELECT DISTINCT "#v" FROM block#1
         SELECT ... FROM block#2 AS d, ... WHERE d."#v" <=> :a

NULL stands for every value that the block has not: an equality with it holds for no row either. A request for such a
value is one for NULL (`Query.known`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from ivme.errors import UnsupportedError
from ivme.query.exact_text import exact_text
from ivme.query.sql_text import SqlText
from ivme.query.sql_union import union_of

VALUE = "#v"
"""The only column of such a block."""

_PREFIX = "block#:"
_OTHER = "compare it with columns by =, joined to the other conditions by AND"


class Refused(Exception):  # noqa: N818
    """A refusal that another way to write the same may spare; `error` is the one that users see if none does."""

    def __init__(self, error: UnsupportedError) -> None:
        super().__init__(error.message)
        self.error = error


class Tied(Refused):
    """A query with LIMIT or a set operation that reads the query around it."""


class Undecided(Refused):
    """A SELECT that has rows for values of a parameter that no row has.

    With `is_whole` it is one of aggregates of all rows.
    """

    def __init__(self, parameter: str, error: UnsupportedError, *, is_whole: bool = False) -> None:
        super().__init__(error)
        self.parameter = parameter
        self.is_whole = is_whole


@dataclass(slots=True)
class Domains:
    """What parameters are compared with, by their names; `used` are those for which a block is needed."""

    source: SqlText
    compared: dict[str, dict[str, exp.Select]] = field(default_factory=dict)
    blurred: dict[str, exp.Expr] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)

    def compare(self, parameter: str, expression: exp.Expr, table: exp.Expr) -> None:
        """A parameter is compared with an expression over one table."""
        item = exp.Alias(this=expression.copy(), alias=exp.Identifier(this=VALUE, quoted=True))
        branch = exp.Select(expressions=[item], from_=exp.From(this=table.copy()))
        self.compared.setdefault(parameter, {})[exact_text(branch)] = branch

    def blur(self, parameter: exp.Expr) -> None:
        """A parameter is used in another way than by an equality, so that its values are not known."""
        self.blurred.setdefault(parameter.name, parameter)

    def use(self, parameter: str) -> str:
        """The name of the block of a parameter's values."""
        if parameter not in self.used:
            self.used.append(parameter)
        return f"{_PREFIX}{parameter}"

    def selects(self) -> dict[str, exp.Expr]:
        """The blocks that are needed, two for each parameter."""
        made: dict[str, exp.Expr] = {}
        for parameter in self.used:
            if parameter in self.blurred:
                message = f"the parameter :{parameter} is not compared by = alone, so its values are not known"
                raise self.source.unsupported(message, self.blurred[parameter], _OTHER)
            name, union = self.use(parameter), f"{_PREFIX}{parameter} values"
            nothing = exp.Alias(this=exp.Null(), alias=exp.Identifier(this=VALUE, quoted=True))
            branches = [*self.compared[parameter].values(), exp.Select(expressions=[nothing])]
            made[union] = union_of(branches)
            alias = exp.TableAlias(this=exp.Identifier(this="u"))
            table = exp.Table(this=exp.Identifier(this=union, quoted=True), alias=alias)
            value = exp.Column(this=exp.Identifier(this=VALUE, quoted=True), table=exp.Identifier(this="u"))
            item = exp.Alias(this=value, alias=exp.Identifier(this=VALUE, quoted=True))
            made[name] = exp.Select(expressions=[item], from_=exp.From(this=table), distinct=exp.Distinct())
        return made


def parameter_of(block: str) -> str | None:
    """The parameter whose values a block has; None for other blocks."""
    is_domain = block.startswith(_PREFIX) and not block.endswith(" values")
    return block.removeprefix(_PREFIX) if is_domain else None


def in_order(source: SqlText, blocks: Mapping[str, exp.Expr], reads: Mapping[str, str]) -> dict[str, exp.Expr]:
    """The blocks, each behind those that it reads; `reads` are those of blocks that show the rows of another."""
    made: dict[str, exp.Expr] = {}
    open_blocks: list[str] = []

    def visit(name: str) -> None:
        if name in made or name not in blocks:
            return
        if name in open_blocks:
            cause = next(each for each in open_blocks if each.startswith(_PREFIX))
            parameter = cause.removeprefix(_PREFIX).split(" ")[0]
            message = f"the parameter :{parameter} is compared with rows that depend on it"
            raise source.unsupported(message, None, "compare it with columns of tables")
        open_blocks.append(name)
        for table in blocks[name].find_all(exp.Table):
            visit(table.name)
        if name in reads:
            visit(reads[name])
        open_blocks.pop()
        made[name] = blocks[name]

    for name in blocks:
        visit(name)
    return made
