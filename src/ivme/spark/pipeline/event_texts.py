"""The columns of a frame of changes as texts of Spark SQL.

A frame is made for every batch. Spelled out by functions of PySpark it takes some five hundred calls to the JVM, which
cost more than reading a thousand rows; as texts it takes one for each column.
"""

from __future__ import annotations

from collections.abc import Collection

from ivme.pipeline.model import DELETES, INSERTS, ORIGIN, RAW, REASON, TRUNCATES, UPSERTS, WEIGHT, Changes
from ivme.query.model import Table
from ivme.query.types import Type
from ivme.spark.pipeline.envelope import NUMBER, TRANSACTION
from ivme.spark.pipeline.schema import column_type, spark_type
from ivme.spark.pipeline.texts import CORRUPT, MORE_DIGITS, has_more_digits, literal, misfit, quoted


def event_texts(
    given: Collection[str], changes: Changes, table: Table, *, permissive: bool, exact: Collection[str] = ()
) -> list[str]:
    """The columns of the table, the weight, the sequences, the transaction and the origin, for a frame with the columns
    `given`; if `permissive` also the reason for which a row cannot be taken, and its text. The columns `exact` of the
    frame (in lower case) are of types that fit those of the table without loss."""
    computed = {name.lower(): f"(\n{text}\n)" for name, text in changes.rows.select}
    values = [computed.get(column.name.lower(), quoted(column.name)) for column in table.columns]
    is_exact = [name not in computed and name in exact for name in map(str.lower, table.column_names)]
    columns = list(zip(values, table.columns, is_exact, strict=True))
    casts = [
        _cast(value, column_type(column), permissive=True)
        if permissive
        else exact_cast(value, column.name, column_type(column), is_exact=exact)
        for value, column, exact in columns
    ]
    weight = quoted(WEIGHT) if changes.envelope is not None else weight_text(changes, strict=not permissive)
    named = [(cast, column.name) for cast, column in zip(casts, table.columns, strict=True)]
    named += [(weight, WEIGHT), *_sequences(given, changes, permissive=permissive), *_transaction(given, changes)]
    named += [(quoted(ORIGIN), ORIGIN)] if ORIGIN in given else []
    if permissive:
        misfits = [_misfit(value, column.name, column_type(column), is_exact=exact) for value, column, exact in columns]
        reason = _reason(given, weight, changes, misfits)
        named += [(reason, REASON), (f"CASE WHEN {reason} IS NOT NULL THEN {_raw(given, values)} END", RAW)]
    return [f"{text} AS {quoted(name)}" for text, name in named]


def weight_text(changes: Changes, *, strict: bool) -> str:
    """The weight of a change: that of its column, or plus or minus one by its operation.

    What is neither is an error of the job if `strict`, else NULL.
    """
    if changes.weight is not None:
        weight = f"CAST({quoted(changes.weight)} AS bigint)"
        return f"coalesce({weight}, CAST(raise_error('a weight is missing') AS bigint))" if strict else weight
    if changes.operation is None:
        return "CAST(1 AS bigint)"
    operation = f"lower(trim({quoted(changes.operation)}))"
    kinds = _operations(changes).items()
    cases = "".join(f" WHEN {operation} IN ({', '.join(map(literal, words))}) THEN {sign}" for sign, words in kinds)
    bad = f"raise_error({_unknown_operation(changes)})" if strict else "NULL"
    return f"CAST(CASE{cases} ELSE CAST({bad} AS bigint) END AS bigint)"


def _operations(changes: Changes) -> dict[int, tuple[str, ...]]:
    """The names of operations by the sign of the weight they stand for."""
    return {1: UPSERTS, -1: DELETES, 0: TRUNCATES} if changes.is_keyed else {1: INSERTS, -1: DELETES}


def _unknown_operation(changes: Changes) -> str:
    """What is said of an operation that is not one: its name, those that are, and how to have updates."""
    assert changes.operation is not None
    known = ", ".join(name for names in _operations(changes).values() for name in names)
    updates = "" if changes.is_keyed else "; updates and upserts need `upsert: true`"
    told = f"coalesce({quoted(changes.operation)}, 'missing')"
    return f"concat('the operation ', {told}, {literal(f' is unknown; use one of {known}{updates}')})"


def exact_cast(value: str, name: str, type_: Type, *, is_exact: bool) -> str:
    """A value in the type of its column; what Spark would round to it is an error of the job."""
    cast = _cast(value, type_, permissive=False)
    if is_exact or type_.kind != "decimal":
        return cast
    message = f"concat('malformed: ', {_rounded(value, name, type_)})"
    bad = f"CAST(raise_error({message}) AS {spark_type(type_).simpleString()})"
    return f"CASE WHEN {_loses(value, type_)} THEN {bad} ELSE {cast} END"


def _misfit(value: str, name: str, type_: Type, *, is_exact: bool) -> str:
    """Why a value is not one of its column; NULL if it is."""
    cast = _cast(value, type_, permissive=True)
    told = f"WHEN {value} IS NOT NULL AND {cast} IS NULL THEN {misfit(name, value, str(type_))} END"
    if is_exact or type_.kind != "decimal":
        return f"CASE {told}"
    return f"CASE WHEN {cast} IS NOT NULL AND {_loses(value, type_)} THEN {_rounded(value, name, type_)} {told}"


def _loses(value: str, type_: Type) -> str:
    return has_more_digits(f"CAST({value} AS string)", type_.precision or 38, type_.scale or 0)


def _rounded(value: str, name: str, type_: Type) -> str:
    return misfit(name, value, str(type_), MORE_DIGITS)


def _cast(value: str, type_: Type, *, permissive: bool) -> str:
    return f"{'try_cast' if permissive else 'CAST'}({value} AS {spark_type(type_).simpleString()})"


def _sequences(given: Collection[str], changes: Changes, *, permissive: bool) -> list[tuple[str, str]]:
    found = []
    for number, (text, type_) in enumerate(zip(changes.sequence_by, changes.sequence_types, strict=True)):
        name = f"ivme_s{number}"
        value = quoted(name) if name in given else f"(\n{text}\n)"
        found.append((_cast(value, type_, permissive=permissive), name))
    return found


def _transaction(given: Collection[str], changes: Changes) -> list[tuple[str, str]]:
    """The transaction of a row, and the number of its event there, where the source has them."""
    if changes.transaction_by is None:
        return []
    texts = ((TRANSACTION, changes.transaction_by, "string"), (NUMBER, changes.transaction_number, "bigint"))
    values = ((quoted(name) if name in given else f"(\n{text or 'NULL'}\n)", kind, name) for name, text, kind in texts)
    return [(f"CAST({value} AS {kind})", name) for value, kind, name in values]


def _reason(given: Collection[str], weight: str, changes: Changes, misfits: list[str]) -> str:
    """Why a row cannot be taken; NULL if it can."""
    columns = f"concat_ws(', ', {', '.join(misfits)})"
    unknown = literal("malformed: the weight is missing")
    if changes.operation is not None:
        unknown = f"concat('malformed: ', {_unknown_operation(changes)})"
    found = (
        f"CASE WHEN length({columns}) > 0 THEN concat('malformed: ', {columns})"
        f" WHEN {weight} IS NULL THEN {unknown} END"
    )
    first = [quoted(REASON)] if REASON in given else []
    return f"coalesce({', '.join([*first, found])})"


def _raw(given: Collection[str], values: list[str]) -> str:
    own = [quoted(name) for name in (RAW, CORRUPT) if name in given]
    whole = f"to_json(struct({', '.join(values)}))"
    return f"coalesce({', '.join([*own, whole])})"
