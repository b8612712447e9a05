"""INSERT, UPDATE, DELETE, TRUNCATE and COPY."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ivme.query.sql_text import SqlText, refuse_other_arguments
from ivme.statements.model import Delete, File, Insert, OnConflict, Select, Update, Values
from ivme.statements.parse_definition import file_of, select_of

_INSERT = "write INSERT INTO table [(column, ...)] VALUES (value, ...), ..., or SELECT ... [RETURNING column, ...]"
_CONFLICT = "write ON CONFLICT [(key, ...)] DO NOTHING, or DO UPDATE SET column = value, ... [WHERE condition]"
_UPDATE = "write UPDATE table SET column = value, ... [WHERE condition]"
_DELETE = "write DELETE FROM table [WHERE condition]"
_COPY = "write COPY table FROM 'file.parquet' [(FORMAT csv, HEADER true, DELIMITER ';')]"
_ONE = "use MERGE INTO ... USING ... for a change that depends on other tables, or a subquery in WHERE"
_NO_LIMIT = "leave it out: rows have no order, so say which ones in WHERE"
_QUERIES = (TokenType.SELECT, TokenType.WITH)
_RETURNING = TokenType.RETURNING


def gap_tokens(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """The tokens with SELECT in the place of RETURNING, behind which items stand as they do there."""
    return tuple(
        Token(TokenType.SELECT, token.text, token.line, token.col, token.start, token.end)
        if token.token_type == _RETURNING
        else token
        for token in tokens
    )


def read_returning(source: SqlText, node: exp.Expr | None) -> tuple[exp.Expr, ...]:
    """The expressions behind RETURNING; none if there is none."""
    if node is None:
        return ()
    refuse_other_arguments(source, node, ("expressions",), "write RETURNING * or RETURNING expression [AS name], ...")
    return tuple(node.expressions)


def plain_table(source: SqlText, node: object, instead: str, handled: tuple[str, ...] = ()) -> exp.Table:
    """The table that is changed, which must be a name."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise source.unsupported("the name of a table is expected here", source.tokens[0].start, instead)
    refuse_other_arguments(source, node, ("this", "db", "catalog", *handled), instead)
    return node


def read_insert(source: SqlText, node: exp.Expr) -> Insert:
    """INSERT [OR REPLACE] INTO, and INSERT OVERWRITE."""
    if not isinstance(node, exp.Insert):
        raise source.unsupported("this is not an INSERT", source.tokens[0].start, _INSERT)
    handled = ("this", "expression", "overwrite", "alternative", "conflict", "returning", "default")
    refuse_other_arguments(source, node, handled, _INSERT)
    alternative = node.args.get("alternative")
    if alternative not in (None, "REPLACE"):
        raise source.unsupported(
            f"OR {alternative} is not supported", source.tokens[0].start, "write INSERT OR REPLACE"
        )
    how: Literal["insert", "upsert", "replace"] = "insert"
    if node.args.get("overwrite"):
        how = "replace"
    elif alternative:
        how = "upsert"
    schema = node.this
    columns: tuple[exp.Identifier, ...] = ()
    if isinstance(schema, exp.Schema):
        columns = tuple(each for each in schema.expressions if isinstance(each, exp.Identifier))
        if len(columns) != len(schema.expressions):
            raise source.unsupported("names of columns are expected here", schema, _INSERT)
        schema = schema.this
    table = plain_table(source, schema, _INSERT)
    conflict = _conflict(source, node.args.get("conflict"), table)
    has_default = bool(node.args.get("default"))
    if has_default and columns:
        raise source.unsupported("DEFAULT VALUES has no columns", schema, "leave them out")
    rows = ((),) if has_default else _rows(_before_returning(source), node.expression)
    returning = read_returning(source, node.args.get("returning"))
    return Insert(source, table, columns, rows, how, conflict=conflict, returning=returning)


def _before_returning(source: SqlText) -> SqlText:
    """The statement up to RETURNING, which is not a part of the query that is inserted."""
    words = [token.token_type for token in source.tokens]
    return replace(source, tokens=source.tokens[: words.index(_RETURNING)]) if _RETURNING in words else source


def _conflict(source: SqlText, node: exp.Expr | None, table: exp.Table) -> OnConflict | None:
    """ON CONFLICT [(key, ...)] DO NOTHING, or DO UPDATE SET."""
    if node is None:
        return None
    refuse_other_arguments(source, node, ("expressions", "action", "conflict_keys", "where"), _CONFLICT)
    keys = [each.this if isinstance(each, exp.Ordered) else each for each in node.args.get("conflict_keys") or ()]
    action = node.args.get("action")
    if not isinstance(action, exp.Var) or not all(isinstance(each, exp.Column) for each in keys):
        raise source.unsupported("this is not supported after ON CONFLICT", source.tokens[0].start, _CONFLICT)
    named = tuple(each.name for each in keys)
    if action.name.upper() == "DO NOTHING":
        return OnConflict(named, None, None)
    where = node.args.get("where")
    return OnConflict(named, assignments(source, node.expressions, table), None if where is None else where.this)


def _rows(source: SqlText, node: exp.Expr | None) -> Values | Select | File:
    if isinstance(node, exp.Values):
        refuse_other_arguments(source, node, ("expressions",), _INSERT)
        rows = [each.expressions if isinstance(each, exp.Tuple) else [each] for each in node.expressions]
        return tuple(map(tuple, rows))
    starts = [place for place, token in enumerate(source.tokens) if token.token_type in _QUERIES]
    if not isinstance(node, exp.Query) or not starts:
        raise source.unsupported("VALUES or SELECT is expected here", source.tokens[-1].start, _INSERT)
    start = starts[0]
    while source.tokens[start - 1].token_type == TokenType.L_PAREN:
        start -= 1
    query = select_of(source, source.tokens[start])
    return file_of(query) or query


def _beside(node: exp.Expr) -> str:
    """What to write in place of what an UPDATE or DELETE has beside its condition."""
    return _NO_LIMIT if node.args.get("limit") or node.args.get("order") else _ONE


def read_update(source: SqlText, node: exp.Expr) -> Update:
    """UPDATE of one table."""
    if not isinstance(node, exp.Update):
        raise source.unsupported("this is not an UPDATE", source.tokens[0].start, _UPDATE)
    refuse_other_arguments(source, node, ("this", "expressions", "where", "returning"), _beside(node))
    where = node.args.get("where")
    table = plain_table(source, node.this, _UPDATE, ("alias",))
    values, returning = assignments(source, node.expressions, table), read_returning(source, node.args.get("returning"))
    return Update(source, table, values, None if where is None else where.this, returning)


def assignments(
    source: SqlText, nodes: list[exp.Expr], table: exp.Table
) -> tuple[tuple[exp.Identifier, exp.Expr], ...]:
    """What SET says; a column may be qualified by the table that is changed."""
    found = []
    for node in nodes:
        if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
            raise source.unsupported("SET column = value is expected here", node, _UPDATE)
        qualifier = node.this.table
        if qualifier and qualifier.lower() not in (table.alias_or_name.lower(), table.name.lower()):
            raise source.unsupported(f"only columns of {table.name} can be set", node.this, _UPDATE)
        found.append((node.this.this, node.expression))
    return tuple(found)


def read_delete(source: SqlText, node: exp.Expr) -> Delete:
    """DELETE from one table."""
    if not isinstance(node, exp.Delete):
        raise source.unsupported("this is not a DELETE", source.tokens[0].start, _DELETE)
    if not node.args.get("this") and node.args.get("tables"):
        raise source.unsupported("FROM is missing behind DELETE", node.args["tables"][0], _DELETE)
    refuse_other_arguments(source, node, ("this", "where", "returning"), _beside(node))
    where, returning = node.args.get("where"), read_returning(source, node.args.get("returning"))
    table = plain_table(source, node.this, _DELETE, ("alias",))
    return Delete(source, table, None if where is None else where.this, returning)


def read_truncate(source: SqlText, node: exp.Expr) -> Delete:
    """TRUNCATE, which is a DELETE of all rows."""
    instead = "write TRUNCATE TABLE name"
    named = node.expressions if isinstance(node, exp.TruncateTable) else []
    if len(named) != 1:
        raise source.unsupported("one table is truncated at a time", source.tokens[0].start, instead)
    refuse_other_arguments(source, node, ("expressions",), instead)
    return Delete(source, plain_table(source, named[0], instead), None)


def read_copy(source: SqlText, node: exp.Expr) -> Insert:
    """COPY of a file into a table."""
    if not isinstance(node, exp.Copy) or not node.args.get("kind"):
        instead = "write COPY table FROM 'file'; to write a file, use db.sql('SELECT ...').to_arrow() and pyarrow"
        raise source.unsupported("only COPY ... FROM is supported", source.tokens[0].start, instead)
    files = node.args.get("files") or []
    if len(files) != 1 or not isinstance(files[0], exp.Literal | exp.Placeholder):
        if any(token.text.upper() == "STDIN" for token in source.tokens):
            instead = "send INSERT, or load a file where the database is: ivme sql shop -c \"COPY t FROM 'file.csv'\""
            raise source.unsupported("COPY FROM STDIN is not supported", source.tokens[0].start, instead)
        raise source.unsupported("one file is copied at a time", source.tokens[0].start, _COPY)
    refuse_other_arguments(source, node, ("this", "kind", "files", "params", "credentials"), _COPY)
    refuse_other_arguments(source, node.args["credentials"], (), _COPY)
    schema, columns = node.this, ()
    if isinstance(schema, exp.Schema):
        columns, schema = tuple(schema.expressions), schema.this
    options = {each.name.lower(): _option(source, each) for each in node.args.get("params") or ()}
    format_ = options.pop("format", None)
    file = File(files[0], None if format_ is None else str(format_).lower(), options)
    return Insert(source, plain_table(source, schema, _COPY), columns, file, is_copy=True)


def _option(source: SqlText, node: exp.Expr) -> object:
    value = node.args.get("expression")
    if value is None or (isinstance(value, exp.Boolean) and value.this):
        return True
    if isinstance(value, exp.Boolean):
        return False
    if isinstance(value, exp.Var | exp.Literal):
        return value.name
    raise source.unsupported(f"{node.name} has a plain value", node, _COPY)
