"""SQLAlchemy over ivme: `create_engine("ivme:///shop")` for a directory, `create_engine("ivme://")` for memory.

A database that is open already: `create_engine("ivme://", creator=lambda: ivme.client.dbapi.connect(database))`. A
server is reached by its PostgreSQL protocol (`ivme serve --pg`), with SQLAlchemy's dialect for that.

All connections of one engine share one database, which is closed with the last of them: a directory can be open once
only. Views are reflected as views, their keys as nothing. Nothing here draws numbers for keys: rows come with them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from sqlalchemy import URL, Pool, QueuePool, StaticPool, types
from sqlalchemy.engine import default, reflection
from sqlalchemy.exc import NoSuchTableError
from sqlalchemy.sql import compiler

from ivme.client import dbapi
from ivme.database import Database
from ivme.query.model import Table
from ivme.query.types import Type

_TYPES: dict[str, type[types.TypeEngine[Any]]] = {
    "int": types.BIGINT,
    "float": types.DOUBLE,
    "string": types.TEXT,
    "bool": types.BOOLEAN,
    "date": types.DATE,
    "timestamp": types.TIMESTAMP,
    "binary": types.LargeBinary,
}


class _SharedDatabase:
    """A database that is open while a connection uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._database: Database | None = None

    def connect(self, path: str, **options: Any) -> dbapi.Connection:
        with self._lock:
            if self._database is None:
                self._database = dbapi.open_database(path, **options)
            self._users += 1
            return _SharedConnection(self, self._database)

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._database is not None:
                self._database.close()
                self._database = None


class _SharedConnection(dbapi.Connection):
    def __init__(self, shared: _SharedDatabase, database: Database) -> None:
        super().__init__(database, is_owner=False, autocommit=False)
        self._shared: _SharedDatabase | None = shared

    def close(self) -> None:
        super().close()
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.leave()


class _TypeCompiler(compiler.GenericTypeCompiler):
    """SQLAlchemy's types by the names that CREATE TABLE takes; integers and floats have 64 bits."""

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        return "DOUBLE"

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP"

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP"

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:
        return f"DECIMAL({type_.precision or 38}, {10 if type_.scale is None else type_.scale})"

    visit_DECIMAL = visit_NUMERIC

    def visit_VARCHAR(self, type_: Any, **kw: Any) -> str:
        return "VARCHAR"

    visit_TEXT = visit_NVARCHAR = visit_NCHAR = visit_CHAR = visit_CLOB = visit_VARCHAR

    def visit_BLOB(self, type_: Any, **kw: Any) -> str:
        return "BINARY"

    visit_BINARY = visit_VARBINARY = visit_BLOB


class _Compiler(compiler.SQLCompiler):
    def limit_clause(self, select: Any, **kw: Any) -> str:
        """Without a LIMIT, OFFSET stands alone."""
        made = super().limit_clause(select, **kw)  # type: ignore[no-untyped-call]
        return str(made).replace("LIMIT -1 OFFSET", "OFFSET")


class IvmeDialect(default.DefaultDialect):
    """ivme's dialect of SQLAlchemy."""

    name = "ivme"
    driver = "ivme"
    statement_compiler = _Compiler
    type_compiler_cls = _TypeCompiler
    default_paramstyle = "named"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_sane_rowcount = False  # a transaction knows it when it ends
    supports_sane_multi_rowcount = False
    supports_multivalues_insert = True
    supports_sequences = False
    supports_comments = False
    use_insertmanyvalues = True  # for RETURNING of many rows only
    postfetch_lastrowid = False
    insert_null_pk_still_autoincrements = False
    insert_returning = update_returning = delete_returning = True
    default_schema_name = None

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._shared = _SharedDatabase()

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[Pool]:
        return QueuePool if url.database else StaticPool

    def create_connect_args(self, url: URL) -> tuple[Sequence[str], dict[str, Any]]:
        if url.host is not None:
            message = f"a directory is written with three slashes: ivme:///{url.host}; a server is reached with --pg"
            raise dbapi.InterfaceError(message)
        return [url.database or ":memory:"], dict(url.query)

    def connect(self, *cargs: Any, **cparams: Any) -> Any:
        return self._shared.connect(*cargs, **cparams)

    def do_ping(self, dbapi_connection: Any) -> bool:
        return not dbapi_connection.is_closed

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        database = _database(connection)
        return table_name.lower() in {name.lower() for name in (*database.tables, *database.views)}

    @reflection.cache  # type: ignore[untyped-decorator, no-untyped-call, unused-ignore]
    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return list(_database(connection).tables)

    @reflection.cache  # type: ignore[untyped-decorator, no-untyped-call, unused-ignore]
    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return list(_database(connection).views)

    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        return []

    def get_view_definition(self, connection: Any, view_name: str, schema: str | None = None, **kw: Any) -> str:
        table = connection.exec_driver_sql("SHOW VIEWS").fetchall()
        for name, text, _ in table:
            if name.lower() == view_name.lower():
                return str(text)
        raise NoSuchTableError(view_name)

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        table = _relation(connection, table_name)
        defaults = {name: str(default) for name, default in table.defaults}
        required = {name.lower() for name in (*(table.primary_key or ()), *table.not_null)}
        return [
            {
                "name": column.name,
                "type": _alchemy_type(column.type),
                "nullable": column.name.lower() not in required,
                "default": defaults.get(column.name),
            }
            for column in table.columns
        ]

    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        return {"constrained_columns": list(_relation(connection, table_name).primary_key or ()), "name": None}

    def get_foreign_keys(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        return [
            {
                "name": None,
                "constrained_columns": list(key.columns),
                "referred_schema": None,
                "referred_table": key.table,
                "referred_columns": list(key.target or _relation(connection, key.table).primary_key or ()),
            }
            for key in _relation(connection, table_name).references
        ]

    def get_indexes(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        _relation(connection, table_name)
        return []

    def get_unique_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        return [{"name": None, "column_names": list(each)} for each in _relation(connection, table_name).unique]


def _database(connection: Any) -> Database:
    found = connection.connection.dbapi_connection.database
    assert isinstance(found, Database)
    return found


def _relation(connection: Any, name: str) -> Table:
    database = _database(connection)
    known = {each.lower(): each for each in (*database.tables, *database.views)}
    if name.lower() not in known:
        raise NoSuchTableError(name)
    return database.relation(known[name.lower()])


def _alchemy_type(type_: Type | None) -> types.TypeEngine[Any]:
    if type_ is None:
        return types.NullType()
    if type_.kind == "decimal":
        return types.DECIMAL(type_.precision, type_.scale)
    if type_.element is not None:
        return types.ARRAY(_alchemy_type(type_.element))
    return _TYPES.get(type_.kind, types.JSON)()
