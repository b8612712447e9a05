"""CREATE, DROP and ALTER."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ivme.query.ddl import read_options, read_table
from ivme.query.sql_strictness import refuse_gaps, refuse_odd_names
from ivme.query.sql_text import SqlText, refuse_other_arguments
from ivme.query.sql_types import read_type
from ivme.statements.dialect import parse_tokens
from ivme.statements.model import (
    AddColumn,
    CreateTable,
    CreateTableAs,
    CreateView,
    Drop,
    DropColumn,
    File,
    RenameColumn,
    RenameTable,
    Select,
    SetDefault,
    Statement,
)

_VIEW = "write CREATE [OR REPLACE] [MATERIALIZED] VIEW [IF NOT EXISTS] name [WITH (strategy = '...')] AS SELECT ..."
_TABLE = "write CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name (column TYPE, ...), or name AS SELECT ..."
_DROP = "write DROP TABLE [IF EXISTS] name, or DROP VIEW [IF EXISTS] name"
_ALTER = (
    "write ALTER TABLE name ADD COLUMN column TYPE [DEFAULT value], DROP COLUMN column, RENAME COLUMN a TO b, "
    "ALTER COLUMN column SET DEFAULT value or DROP DEFAULT, or RENAME TO name"
)
_NEW_KEY = (
    "create another table with the key, INSERT INTO another SELECT * FROM name, drop the views that read the table and "
    "the table itself, ALTER TABLE another RENAME TO name, and create the views again (SHOW VIEWS has their SQL)"
)
_VIEW_ANEW = "write CREATE OR REPLACE VIEW name AS SELECT ...; another name is a new view, and DROP VIEW of the old one"
_NEW_TYPE = (
    "drop the views that read it, ADD COLUMN another of the new type, UPDATE name SET another = CAST(column AS type), "
    "DROP COLUMN column, RENAME COLUMN another TO column, and make the views again"
)
_FORMATS = ("parquet", "csv", "json")


def select_of(source: SqlText, first: Token) -> Select:
    """The query from a token to the end of the statement."""
    tokens = source.tokens[source.tokens.index(first) :]
    return Select(replace(source, tokens=tokens), first.start, tokens[-1].end + 1)


_OTHERS = {
    "INDEX": "leave it out: ivme makes the indexes that views need; to read a view by a key, write WHERE key = :key",
    "SCHEMA": "leave it out: there is one namespace, without schemas",
    "DATABASE": "leave it out: ivme.Database(path) makes one",
    "FUNCTION": "write db.create_function(name, function, arguments=[...], returns=...) in Python",
    "TRIGGER": "follow a view from Python: view.subscribe(function) is called with each of its changes",
    "SEQUENCE": "leave it out, and give the values in INSERT",
}
"""What other systems create, and what to do instead."""


def read_create(source: SqlText) -> Statement:
    """CREATE TABLE and CREATE VIEW; what follows AS is a query, which is read when it is compiled."""
    words = [token.text.upper() for token in source.tokens[:6]]
    kind = next((word for word in words if word in ("VIEW", "TABLE")), None)
    if kind is None:
        instead = next((_OTHERS[word] for word in words if word in _OTHERS), f"{_TABLE}; {_VIEW}")
        raise source.unsupported("only tables and views can be created", source.tokens[0].start, instead)
    instead = _VIEW if kind == "VIEW" else _TABLE
    head, query = _parts(source, instead)
    node = parse_tokens(source, head, instead)
    if not isinstance(node, exp.Create) or node.args.get("kind") != kind or node.args.get("expression") is not None:
        raise source.unsupported("this is not supported here", source.tokens[0].start, instead)
    refuse_odd_names(source, [node])
    if kind == "VIEW":
        return _view(source, node, query)
    if query is None:
        refuse_gaps(replace(source, tokens=head), [node])
        _refuse_both(source, node)
        table = read_table(source, node)
        return CreateTable(source, node.this.this, table, bool(node.args.get("exists")), bool(node.args.get("replace")))
    return _table_as(source, node, query)


def _parts(source: SqlText, instead: str) -> tuple[tuple[Token, ...], Select | None]:
    """What stands before AS, and the query after it; AS within parentheses is another one."""
    depth = 0
    for place, token in enumerate(source.tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if token.token_type == TokenType.ALIAS and not depth:
            if place + 1 == len(source.tokens):
                raise source.broken("the query is missing", token.start, instead)
            return source.tokens[:place], select_of(source, source.tokens[place + 1])
    return source.tokens, None


def _view(source: SqlText, node: exp.Create, query: Select | None) -> CreateView:
    if query is None:
        raise source.broken("a view needs a query", node.this, _VIEW)
    if not isinstance(node.this, exp.Table):
        raise source.unsupported("a list of columns is not supported", node.this, "name them in the SELECT, by AS")
    refuse_other_arguments(source, node, ("this", "kind", "exists", "replace", "properties"), _VIEW)
    refuse_other_arguments(source, node.this, ("this", "db", "catalog"), _VIEW)
    _refuse_both(source, node)
    options: dict[str, object] = {}
    properties = node.args.get("properties")
    for part in [] if properties is None else properties.expressions:
        if isinstance(part, exp.MaterializedProperty):
            continue
        if type(part) is not exp.Property:
            raise source.unsupported("this is not supported here", part, _VIEW)
        options[part.name.lower()] = _option(source, part.args["value"])
    return CreateView(source, node.this, query, options, bool(node.args.get("exists")), bool(node.args.get("replace")))


def _option(source: SqlText, node: exp.Expr) -> object:
    """A string, a number or a truth value."""
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Literal):
        text = str(node.this)
        return text if node.is_string else int(text) if text.isdigit() else float(text)
    if isinstance(node, exp.Var | exp.Column | exp.Identifier):
        return node.name
    raise source.unsupported("an option has a plain value", node, "write strategy = 'name'")


def _refuse_both(source: SqlText, node: exp.Create) -> None:
    if node.args.get("exists") and node.args.get("replace"):
        instead = "write either OR REPLACE or IF NOT EXISTS"
        raise source.unsupported("it can either be replaced, or left as it is", source.tokens[0].start, instead)


def _table_as(source: SqlText, node: exp.Create, query: Select) -> CreateTableAs:
    if not isinstance(node.this, exp.Table):
        raise source.unsupported("the columns are those of the query", node.this, "leave the list of columns out")
    if node.args.get("replace"):
        raise source.unsupported("OR REPLACE is not supported here", node.this, "write DROP TABLE IF EXISTS before it")
    refuse_other_arguments(source, node, ("this", "kind", "exists", "properties"), _TABLE)
    refuse_other_arguments(source, node.this, ("this", "db", "catalog"), _TABLE)
    options = read_options(source, node.args.get("properties"))
    if not options.get("keep_rows", True):
        instead = "create the table with its columns, then the views on it, and insert the rows"
        raise source.unsupported("a table that keeps no rows has none of a query", node.this, instead)
    return CreateTableAs(
        source,
        node.this,
        file_of(query) or query,
        bool(node.args.get("exists")),
        options.get("append_only", False),
        options.get("static", False),
    )


def file_of(query: Select) -> File | None:
    """The file that all columns are read from: SELECT * FROM 'trips.parquet', or FROM parquet.`trips`; else None."""
    match query.source.tokens:
        case [select, star, from_, file] if (select.token_type, star.token_type, from_.token_type) == (
            TokenType.SELECT,
            TokenType.STAR,
            TokenType.FROM,
        ) and file.token_type == TokenType.STRING:
            return File(exp.Literal.string(file.text))
        case [select, star, from_, format_, dot, file] if (
            (select.token_type, star.token_type, from_.token_type) == (TokenType.SELECT, TokenType.STAR, TokenType.FROM)
            and dot.token_type == TokenType.DOT
            and format_.text.lower() in _FORMATS
            and file.token_type == TokenType.IDENTIFIER
        ):
            return File(exp.Literal.string(file.text), format_.text.lower())
    return None


def read_drop(source: SqlText, node: exp.Expr) -> Drop:
    """DROP TABLE and DROP VIEW."""
    kinds: dict[str, Literal["table", "view"]] = {"TABLE": "table", "VIEW": "view"}
    kind = kinds.get(str(node.args.get("kind"))) if isinstance(node, exp.Drop) else None
    named = node.args.get("tables") or []
    if kind is None or len(named) != 1 or not isinstance(named[0], exp.Table):
        raise source.unsupported("one table or view is dropped at a time", source.tokens[0].start, _DROP)
    if node.args.get("cascade"):
        raise source.unsupported(
            "CASCADE is not supported", named[0], "drop the views that read it first, by DROP VIEW"
        )
    refuse_other_arguments(source, node, ("exists", "tables", "kind", "materialized"), _DROP)
    return Drop(source, kind, named[0], bool(node.args.get("exists")))


def read_alter(source: SqlText, node: exp.Expr) -> Statement:
    """ALTER TABLE ... ADD COLUMN, DROP COLUMN, RENAME COLUMN, ALTER COLUMN and RENAME TO."""
    if node.args.get("kind") == "VIEW":
        raise source.unsupported("a view is not altered", source.tokens[0].start, _VIEW_ANEW)
    actions = node.args.get("actions") or []
    if not isinstance(node, exp.Alter) or node.args.get("kind") != "TABLE" or len(actions) != 1:
        raise source.unsupported("one thing of a table is changed at a time", source.tokens[0].start, _ALTER)
    refuse_other_arguments(source, node, ("this", "kind", "actions"), _ALTER)
    action = actions[0]
    if isinstance(action, exp.Schema) and len(action.expressions) == 1:
        action = action.expressions[0]
    if isinstance(action, exp.Drop) and action.args.get("kind") == "COLUMN" and len(action.args["tables"]) == 1:
        refuse_other_arguments(source, action, ("tables", "kind"), _ALTER)
        return DropColumn(source, node.this, action.args["tables"][0].name)
    if isinstance(action, exp.RenameColumn):
        refuse_other_arguments(source, action, ("this", "to"), _ALTER)
        return RenameColumn(source, node.this, action.this.name, action.args["to"].name)
    if isinstance(action, exp.AlterRename) and isinstance(action.this, exp.Table):
        refuse_other_arguments(source, action.this, ("this", "db", "catalog"), _ALTER)
        return RenameTable(source, node.this, action.this)
    if isinstance(action, exp.AlterColumn) and (action.args.get("drop") or action.args.get("default") is not None):
        refuse_other_arguments(source, action, ("this", "drop", "default"), _ALTER)
        return SetDefault(source, node.this, action.this, action.args.get("default"))
    if isinstance(action, exp.AlterColumn) and action.args.get("dtype") is not None:
        raise source.unsupported("the type of a column does not change", action, _NEW_TYPE)
    if isinstance(action, exp.AddConstraint):
        raise source.unsupported("keys and references are declared by CREATE TABLE", action, _NEW_KEY)
    if not isinstance(action, exp.ColumnDef):
        raise source.unsupported("this is not supported here", action, _ALTER)
    return _added(source, node.this, action)


def _added(source: SqlText, table: exp.Table, action: exp.ColumnDef) -> AddColumn:
    refuse_other_arguments(source, action, ("this", "kind", "constraints"), _ALTER)
    kind, default = action.args.get("kind"), None
    if not isinstance(kind, exp.DataType):
        raise source.unsupported(f"the column {action.name} has no type that is known", action, _ALTER)
    for constraint in action.args.get("constraints") or ():
        told = constraint.args.get("kind")
        if not isinstance(told, exp.DefaultColumnConstraint):
            raise source.unsupported("a new column has a type and a DEFAULT only", action, _ALTER)
        default = told.this
    return AddColumn(source, table, action.name, read_type(source, kind), default)
