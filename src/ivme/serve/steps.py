"""The steps of a batch that comes through HTTP: `{"table": "sales", "change": "insert", "rows": [...]}` and the like.

Each is a method of `Batch`, with the values that JSON does not have as texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from ivme.database import Database
from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.ingest.rows import rounded
from ivme.engine.runtime.batch import Batch
from ivme.query.model import Table
from ivme.query.types import Type
from ivme.serve.grants import Grant
from ivme.serve.problem import Problem
from ivme.serve.tagged_values import untagged
from ivme.serve.values import json_reader
from ivme.shown_table import counted

Step = Mapping[str, Any]

_ROWS = ("insert", "delete", "upsert", "replace")
"""The changes that the short form of a batch has: `{"sales": {"insert": rows, "delete": rows}}`."""

_NEEDED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_ROWS, ("rows",)),
    "apply": ("rows", "weights"),
    "delete_keys": ("keys",),
    "truncate": (),
    "update": ("set",),
    "delete_where": ("where",),
}
CHANGES = tuple(_NEEDED)
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("insert", "upsert", "replace", "apply"), ("round_floats",)),
    **dict.fromkeys(("delete", "delete_keys"), ("strict",)),
    "update": ("where", "parameters", "round_floats"),
    "delete_where": ("parameters",),
}
_KINDS: Mapping[str, type] = {
    **dict.fromkeys(("rows", "keys", "weights"), list),
    **dict.fromkeys(("set", "parameters"), dict),
    **dict.fromkeys(("strict", "round_floats"), bool),
    "where": str,
}
_WORDS = {list: "a list", dict: "an object", bool: "true or false", str: "a string"}
_DEPENDS = ("update", "delete_where")
"""Changes that depend on the rows that are there, and so tell something of them."""


def read_steps(changes: Any) -> list[Step]:
    """The steps of a batch, in either form."""
    if isinstance(changes, list):
        for step in changes:
            _check(step)
        return changes
    steps: list[Step] = []
    for table, kinds in changes.items():
        if not isinstance(kinds, dict) or not kinds.keys() <= set(_ROWS):
            raise Problem(
                422,
                f'the changes of table {table} are {{"insert": [row, ...], "delete": [row, ...]}}; '
                "other kinds are upsert and replace",
            )
        for kind, rows in kinds.items():
            if not isinstance(rows, list):
                raise Problem(422, f"table {table}: {kind} has a list of rows")
            steps.append({"table": table, "change": kind, "rows": rows})
    return steps


def _check(step: Any) -> None:
    names = [step.get("table"), step.get("change")] if isinstance(step, dict) else []
    if not names or not all(isinstance(name, str) for name in names) or names[1] not in _NEEDED:
        raise Problem(422, f'a step is {{"table": ..., "change": ..., ...}}; the changes are {", ".join(CHANGES)}')
    change, given = step["change"], step.keys() - {"table", "change"}
    needed, known = set(_NEEDED[change]), {*_NEEDED[change], *_OPTIONS.get(change, ())}
    wrong = sorted((needed - given) | (given - known))
    if wrong:
        verb = "needs" if wrong[0] in needed else "has no"
        raise Problem(422, f"table {step['table']}: {change} {verb} {wrong[0]}")
    for name in given:
        if not isinstance(step[name], _KINDS[name]) and not (name == "where" and step[name] is None):
            raise Problem(422, f"table {step['table']}: {name} of {change} is {_WORDS[_KINDS[name]]}")


def check_grant(steps: Iterable[Step], grant: Grant) -> None:
    """Raises `RefusedError` for steps that a token does not allow."""
    for step in steps:
        grant.require("write", step["table"])
        if step["change"] in _DEPENDS:
            grant.require("read", step["table"])


def counts(steps: Iterable[Step]) -> dict[str, dict[str, int]]:
    """How many rows or keys were given for each table, by the kind of change."""
    found: dict[str, dict[str, int]] = {}
    for step in steps:
        kinds = found.setdefault(step["table"], {})
        kinds[step["change"]] = kinds.get(step["change"], 0) + len(step.get("rows", step.get("keys", ())))
    return found


def take(database: Database, batch: Batch, step: Step) -> None:
    """Adds a step to a batch."""
    table = _table(database, step["table"])
    options = {name: step[name] for name in ("strict", "round_floats") if name in step}
    name, change = table.name, step["change"]
    if change == "truncate":
        batch.truncate(name)
    elif change == "update":
        given = {column: untagged(f"column {column}", value) for column, value in step["set"].items()}
        batch.update(name, set=given, where=step.get("where"), **options, **_parameters(step))
    elif change == "delete_where":
        batch.delete_where(name, step["where"], **_parameters(step))
    elif change == "delete_keys":
        batch.delete_keys(name, _read_keys(step["keys"], table), **options)
    else:
        rows = read_rows(step["rows"], table, round_floats=options.pop("round_floats", False))
        add: dict[str, Callable[..., None]] = {each: getattr(batch, each) for each in (*_ROWS, "apply")}
        add[change](name, rows, *([step["weights"]] if change == "apply" else []), **options)


def _table(database: Database, name: str) -> Table:
    known = {table.lower(): table for table in database.tables}
    if name.lower() in {view.lower() for view in database.views}:
        raise Problem(404, f"{name} is a view; change the tables that it reads")
    if name.lower() not in known:
        raise Problem(404, f"there is no table {name}; there are: {', '.join(known.values()) or 'none'}")
    return database.relation(known[name.lower()])


def _parameters(step: Step) -> dict[str, Any]:
    return {name: untagged(f"parameter {name}", value) for name, value in step.get("parameters", {}).items()}


# Rows


def _read_keys(keys: list[Any], table: Table) -> list[Any]:
    if not table.key_positions:
        return keys  # the batch says what is wrong
    part = Table(table.name, table.declared_key)
    return read_rows([key if isinstance(key, list | dict) else [key] for key in keys], part)


def read_rows(rows: list[Any], table: Table, *, round_floats: bool = False) -> list[Any]:
    """Rows of JSON, which are lists or objects, with values of the columns' types."""
    types = [declared_type(table, column) for column in table.columns]
    if _is_plain(rows, types):
        return list(map(tuple, rows))
    readers = [_rounding(type_) if round_floats and type_.kind == "decimal" else json_reader(type_) for type_ in types]
    by_name = {column.name.lower(): reader for column, reader in zip(table.columns, readers, strict=True)}
    found: list[Any] = []
    for number, row in enumerate(rows):
        try:
            found.append(_read_row(row, readers, by_name))
        except Problem as problem:
            column = _misread(row, table, readers)
            place = f"row {number}" if column is None else f"row {number}, column {column}"
            raise Problem(problem.status, f"table {table.name}, {place}: {problem.message}") from None
    return found


def _misread(row: Any, table: Table, readers: list[Any]) -> str | None:
    """The first column whose value in a row cannot be read; None if the row itself is wrong."""
    values = dict(zip(table.column_names, row, strict=False)) if isinstance(row, list) else row
    if not isinstance(values, dict) or (isinstance(row, list) and len(row) != len(readers)):
        return None
    given = {name.lower(): value for name, value in values.items()}
    for name, reader in zip(table.column_names, readers, strict=True):
        try:
            reader(given.get(name.lower()))
        except Problem:
            return name
    return None


def _rounding(type_: Type) -> Callable[[Any], Any]:
    """A reader of decimals that rounds numbers; decimals are texts in JSON, and have to fit."""
    read = json_reader(type_)

    def read_rounded(value: Any) -> Any:
        found = read(value)
        return rounded(found, type_) if isinstance(value, Decimal) else found

    return read_rounded


def _is_plain(rows: list[Any], types: list[Type]) -> bool:
    """Whether rows are lists of values that JSON has as such, with nothing to read: found column by column, quickly."""
    if set(map(type, rows)) != {list} or set(map(len, rows)) != {len(types)}:
        return False
    columns = zip(*rows, strict=True)
    given = [set(map(type, column)) for column in columns]
    return not any(
        type_.is_nested or Decimal in kinds or (str in kinds and type_.kind != "string")
        for kinds, type_ in zip(given, types, strict=True)
    )


def _read_row(row: Any, readers: list[Any], by_name: Mapping[str, Any]) -> Any:
    if isinstance(row, list):
        if len(row) != len(readers):
            raise Problem(422, f"it has {counted(len(row), 'value')}; there are {len(readers)} columns")
        return tuple(read(value) for read, value in zip(readers, row, strict=True))
    if isinstance(row, dict):
        return {name: by_name.get(name.lower(), _same)(value) for name, value in row.items()}
    raise Problem(422, "a row is a list of values, or an object")


def _same(value: Any) -> Any:
    return value
