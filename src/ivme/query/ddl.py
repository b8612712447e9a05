"""CREATE TABLE statements, in Spark's dialect, to tables.

Read are columns with their types, PRIMARY KEY, UNIQUE, NOT NULL, REFERENCES and FOREIGN KEY, DEFAULT, COMMENT
(which says nothing here), IF NOT EXISTS, and TBLPROPERTIES ('append_only' = 'true', 'static' = 'true', 'keep_rows' =
'false'), or WITH (append_only = true). Everything else is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from sqlglot import exp

from ivme.errors import SchemaError
from ivme.query.column_defaults import read_default
from ivme.query.ddl_constraints import Constraints, constraints_of
from ivme.query.model import Column, Table, check_table
from ivme.query.names import check_text
from ivme.query.sql_strictness import refuse_gaps, refuse_odd_names
from ivme.query.sql_text import DIALECT, SqlText, is_set, read_statements, refuse_other_arguments
from ivme.query.sql_types import read_type
from ivme.query.table import Default

_CREATE = "write CREATE TABLE name (column TYPE, ..., PRIMARY KEY (column)) [TBLPROPERTIES ('append_only' = 'true')]"
_OPTIONS = ("append_only", "static", "keep_rows")


def parse_create_tables(text: str) -> tuple[Table, ...]:
    """The tables that the statements of a text declare, in order.

    >>> print(parse_create_tables("CREATE TABLE edge (src BIGINT, dst BIGINT, PRIMARY KEY (src, dst))")[0].primary_key)
    ('src', 'dst')
    """
    check_text(text)
    source, statements = read_statements(text, ("CREATE",), _CREATE)
    refuse_odd_names(source, statements)
    try:
        tables = tuple(_only_table(source, statement) for statement in statements)
    except RecursionError:
        raise source.broken("the SQL is nested too deeply", None, _CREATE) from None
    refuse_gaps(source, statements)
    seen: set[str] = set()
    for table, statement in zip(tables, statements, strict=True):
        if table.name.lower() in seen:
            raise source.unsupported(f"the table {table.name} is created twice", statement.this, "rename one")
        seen.add(table.name.lower())
    return tables


def _only_table(source: SqlText, statement: exp.Expr) -> Table:
    if is_set(statement.args.get("replace")):
        raise source.unsupported("OR REPLACE is not supported here", statement, _CREATE)
    return read_table(source, statement)


def read_table(source: SqlText, statement: exp.Expr) -> Table:
    """The table that a CREATE TABLE declares; whether it may exist already is for the caller."""
    if not isinstance(statement, exp.Create) or statement.args.get("kind") != "TABLE":
        raise source.unsupported("the statement does not create a table", statement, _CREATE)
    if statement.args.get("expression") is not None:
        raise source.unsupported("CREATE TABLE ... AS is not supported", statement.args["expression"], _CREATE)
    refuse_other_arguments(source, statement, ("this", "kind", "exists", "replace", "properties"), _CREATE)
    schema = statement.this
    if not isinstance(schema, exp.Schema) or not isinstance(schema.this, exp.Table):
        raise source.unsupported("the table has no columns", statement, _CREATE)
    refuse_other_arguments(source, schema.this, ("this", "db", "catalog"), _CREATE)
    columns = [part for part in schema.expressions if isinstance(part, exp.ColumnDef)]
    options = read_options(source, statement.args.get("properties"))
    said: Constraints = constraints_of(source, schema, _CREATE)
    try:
        made = Table(
            name=".".join(part.name for part in schema.this.parts),
            columns=tuple(_column(source, column) for column in columns),
            primary_key=said.primary_key,
            append_only=options.get("append_only", not options.get("keep_rows", True)),
            static=options.get("static", False),
            keep_rows=options.get("keep_rows", True),
            unique=tuple(said.unique),
            not_null=tuple(said.not_null),
            references=tuple(said.references),
            defaults=tuple(_defaults(source, columns)),
        )
        check_table(made)
    except SchemaError as error:
        raise source.unsupported(str(error), schema.this, "correct the definition") from error
    return made


def _defaults(source: SqlText, columns: Iterable[exp.ColumnDef]) -> Iterator[tuple[str, Default]]:
    """The columns that have a DEFAULT, with it."""
    for column in columns:
        for node in column.find_all(exp.DefaultColumnConstraint):
            default = read_default(source, node.this, read_type(source, column.args["kind"]))
            if default is not None:
                yield column.name, default


def _column(source: SqlText, node: exp.ColumnDef) -> Column:
    refuse_other_arguments(source, node, ("this", "kind", "constraints"), _CREATE)
    kind = node.args.get("kind")
    if not isinstance(kind, exp.DataType):
        raise source.unsupported(f"the column {node.name} has no type that is known", node, _CREATE)
    return Column(node.name, read_type(source, kind))


def read_options(source: SqlText, properties: exp.Expr | None) -> dict[str, bool]:
    """What WITH (append_only = true) says, or TBLPROPERTIES."""
    options: dict[str, bool] = {}
    for part in [] if properties is None else properties.expressions:
        name = part.name.lower() if type(part) is exp.Property else ""
        value = str(part.args["value"].this).lower() if name in _OPTIONS else ""
        if value not in ("true", "false"):
            told = f"write {name} = true or {name} = false" if name in _OPTIONS else _other_option(part)
            raise source.unsupported(f"{part.sql(dialect=DIALECT)} is not supported", part, told)
        options[name] = value == "true"
    return options


def _other_option(part: exp.Expr) -> str:
    """What to do about an option that tables do not have."""
    near = get_close_matches(part.name.lower(), _OPTIONS, n=1) if type(part) is exp.Property else []
    return f"did you mean {near[0]}?" if near else f"leave it out; the options of a table are {', '.join(_OPTIONS)}"
