"""Values that text formats are read as, so that Spark's readers neither round them nor drop their zones.

Spark's readers of CSV and JSON round a number to the scale of a column of decimals, and refuse a timestamp that has a
zone. So decimals and timestamps are read as something wider, and become what the layout says here: a number with too
many digits is refused, and a timestamp with a zone is converted to UTC. What is refused is told with column and value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivme.pipeline.model import RAW, REASON, Rows
from ivme.spark.pipeline.texts import (
    CORRUPT,
    MORE_DIGITS,
    has_more_digits,
    is_plain_number,
    literal,
    misfit,
    quoted,
    shown,
    type_name,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, DecimalType, StructType

_MOST = 38
_OWN_FORMATS = {"timestampformat", "timestampntzformat"}
_PLAIN_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?)?$"
_ZONED = r"^\\s*[0-9]+-[0-9]+-[0-9]+[ T][0-9:.]*\\s*[A-Za-z+-]"


def text_layout(layout: StructType, rows: Rows | None = None) -> StructType:
    """The layout in which files of text are read before `narrowed` gives their columns the types of `layout`.

    Without `rows` it is for lines of JSON.
    """
    from pyspark.sql import types as st

    return st.StructType([st.StructField(field.name, _read_as(field.dataType, rows)) for field in layout])


def narrowed_value(text: str, wanted: DataType) -> str:
    """A value of a line of JSON in a type of the layout; NULL if it does not fit."""
    return _narrow(text, wanted, _read_as(wanted, None), "")[0]


def _read_as(kind: DataType, rows: Rows | None) -> DataType:
    """The type that a value is read in, which has all that the text says."""
    from pyspark.sql import types as st

    options = set() if rows is None else {name.lower() for name, _ in rows.options}
    if isinstance(kind, st.DecimalType) and rows is not None and rows.format == "csv" and "locale" not in options:
        return st.StringType()
    if isinstance(kind, st.TimestampNTZType) and not options & _OWN_FORMATS:
        return st.StringType()
    return _widened(kind)


def _widened(kind: DataType) -> DataType:
    """The type with as many digits after the point as decimals can have beside those before it."""
    from pyspark.sql import types as st

    if isinstance(kind, st.DecimalType):
        return st.DecimalType(_MOST, _MOST - (kind.precision - kind.scale))
    if isinstance(kind, st.ArrayType):
        return st.ArrayType(_widened(kind.elementType))
    if isinstance(kind, st.StructType):
        return st.StructType([st.StructField(each.name, _widened(each.dataType)) for each in kind])
    return kind


def narrowed(frame: DataFrame, layout: StructType, rows: Rows | None = None, *, permissive: bool) -> DataFrame:
    """The frame with its columns in the types of the layout; the first row that does not fit ends the job.

    If `permissive`, such a row has a reason and its text instead.
    """
    given = {field.name.lower(): field.dataType for field in frame.schema}
    values, reasons = [], []
    for field in layout:
        value, reason = _narrow(quoted(field.name), field.dataType, given[field.name.lower()], field.name)
        if reason is not None and not permissive:
            name, kind = quoted(field.name), field.dataType
            other = f"CASE WHEN {reason} IS NULL THEN {value} ELSE raise_error(concat('malformed: ', {reason})) END"
            value = f"CASE {_quickly(name, kind, given[field.name.lower()])} ELSE {other} END"
        values.append(f"{value} AS {quoted(field.name)}")
        reasons += [] if reason is None else [reason]
    if not permissive:
        return frame.selectExpr(*values, *_others(frame, layout))
    return frame.selectExpr(*values, *_judged(frame, layout, rows, reasons), *_others(frame, layout, (REASON, RAW)))


def _others(frame: DataFrame, layout: StructType, without: tuple[str, ...] = ()) -> list[str]:
    """The columns of the frame that are not in the layout."""
    own = {name.lower() for name in (*layout.names, *without)}
    return [quoted(name) for name in frame.columns if name.lower() not in own]


def _judged(frame: DataFrame, layout: StructType, rows: Rows | None, reasons: list[str]) -> list[str]:
    """The reason for which a row cannot be taken, and its text."""
    told = f"concat_ws(', ', {', '.join(reasons)})" if reasons else "''"
    own = f"CASE WHEN length({told}) > 0 THEN concat('malformed: ', {told}) END"
    found = [quoted(REASON)] if REASON in frame.columns else []
    found += [_corrupt_reason(layout, rows)] if CORRUPT in frame.columns else []
    reason = f"coalesce({', '.join([*found, own])})"
    texts = [quoted(name) for name in (RAW, CORRUPT) if name in frame.columns]
    whole = f"CASE WHEN {reason} IS NOT NULL THEN to_json(struct({', '.join(map(quoted, layout.names))})) END"
    return [f"{reason} AS {quoted(REASON)}", f"coalesce({', '.join([*texts, whole])}) AS {quoted(RAW)}"]


def _corrupt_reason(layout: StructType, rows: Rows | None) -> str:
    """Why Spark's reader did not take a row: the columns whose values are of other types, else the row as it is."""
    if rows is not None and rows.format == "csv":
        schema = ", ".join(f"{quoted(name)} string" for name in layout.names)
        options = [literal(text) for name, value in rows.options for text in (name, str(value))]
        told = f", map({', '.join(options)})" if options else ""
        parsed = f"from_csv({CORRUPT}, {literal(schema)}{told})"
        texts = [f"{parsed}.{quoted(name)}" for name in layout.names]
    else:
        texts = [f"from_json({CORRUPT}, 'map<string,string>')[{literal(name)}]" for name in layout.names]
    wrong = [
        f"CASE WHEN {quoted(field.name)} IS NULL AND {text} IS NOT NULL "
        f"THEN {misfit(field.name, text, type_name(field.dataType))} END"
        for field, text in zip(layout, texts, strict=True)
    ]
    columns = f"concat_ws(', ', {', '.join(wrong)})"
    needed = literal(f"the row does not fit the columns {', '.join(layout.names)}: ")
    whole = f"concat({needed}, {shown(CORRUPT)})"
    return (
        f"CASE WHEN {CORRUPT} IS NOT NULL THEN concat('malformed: ', "
        f"CASE WHEN length({columns}) > 0 THEN {columns} ELSE {whole} END) END"
    )


def _narrow(value: str, wanted: DataType, given: DataType, name: str) -> tuple[str, str | None]:
    """A value in a type of the layout, and the text that says why it has none."""
    from pyspark.sql import types as st

    if given == wanted:
        return value, None
    type_ = type_name(wanted)
    if isinstance(wanted, st.TimestampNTZType):
        cast = _timestamp(value)
    elif isinstance(given, st.StringType):
        assert isinstance(wanted, st.DecimalType)
        plain = f"replace({value}, ',', '')"
        return _decimal(value, plain, f"try_cast({plain} AS {wanted.simpleString()})", wanted, name)
    else:
        cast = f"try_cast({value} AS {wanted.simpleString()})"
        back = f"CAST({cast} AS {given.simpleString()})"
        more = misfit(name, value, type_, MORE_DIGITS)
        lost = f"CASE WHEN {cast} IS NOT NULL AND NOT ({value} <=> {back}) THEN {more}"
        return cast, f"{lost} WHEN {value} IS NOT NULL AND {cast} IS NULL THEN {misfit(name, value, type_)} END"
    return cast, f"CASE WHEN {value} IS NOT NULL AND {cast} IS NULL THEN {misfit(name, value, type_)} END"


def _decimal(value: str, plain: str, cast: str, wanted: DecimalType, name: str) -> tuple[str, str]:
    """A decimal of a text, and why there is none; the cast alone would round it."""
    type_ = type_name(wanted)
    more = misfit(name, value, type_, MORE_DIGITS)
    lost = f"{cast} IS NOT NULL AND {has_more_digits(plain, wanted.precision, wanted.scale)}"
    reason = f"CASE WHEN {lost} THEN {more} WHEN {value} IS NOT NULL AND {cast} IS NULL THEN"
    return cast, f"{reason} {misfit(name, value, type_)} END"


def _quickly(value: str, wanted: DataType, given: DataType) -> str:
    """The cases of CASE for values that most columns have all of: what else there is takes ten times as long."""
    from pyspark.sql import types as st

    told = f"WHEN {value} IS NULL THEN NULL"
    cast = f"CAST({value} AS {wanted.simpleString()})"
    if isinstance(given, st.StringType) and isinstance(wanted, st.DecimalType):
        return f"{told} WHEN {is_plain_number(value, wanted.scale)} THEN {cast}"
    return f"{told} WHEN {value} RLIKE '{_PLAIN_TIME}' THEN {cast}" if isinstance(given, st.StringType) else told


def _timestamp(text: str) -> str:
    """A timestamp of a text; one with a zone is converted to UTC, whatever zone the session has."""
    plain = f"try_cast({text} AS timestamp_ntz)"
    elapsed = f"(try_cast({text} AS timestamp) - TIMESTAMP '1970-01-01T00:00:00Z')"
    zoned = f"TIMESTAMP_NTZ '1970-01-01T00:00:00' + {elapsed}"
    return f"CASE WHEN {plain} IS NOT NULL AND {text} RLIKE '{_ZONED}' THEN {zoned} ELSE {plain} END"
