"""Functions of text, which counts in characters, and of bytes."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

from ivme.query import sql_values as values
from ivme.query.functions.definition import ANY_NUMBER, BYTES, INTEGERS, TEXT, Function
from ivme.query.functions.patterns import PATTERNS
from ivme.query.order_key import order_key
from ivme.query.sql_values import text

LONGEST = 2**24
"""The longest text that REPEAT, SPACE, LPAD and RPAD make: a constant must not take all memory."""

_TOO_LONG = f"the text would be longer than {LONGEST:,} characters"


def concatenated(*parts: Any) -> str:
    return "".join(map(values.to_string, parts))


def _concat_ws(separator: Any, *parts: Any) -> str | None:
    """The parts that are not NULL with a separator between them."""
    if separator is None:
        return None
    return text(separator).join(values.to_string(part) for part in parts if part is not None)


def _replace(value: str, old: str, new: str = "") -> str:
    return value.replace(old, new) if old else value


def _split_part(value: str, mark: str, number: int) -> str:
    """The part with a number, which counts from the end if it is negative; without a mark there is one part."""
    if number == 0:
        raise ValueError("the parts of a text are numbered from 1, or from -1 at the end")
    parts = value.split(mark) if mark else [value]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _substring_index(value: str, mark: str, count: int) -> str:
    """What is before so many marks, or behind so many from the end."""
    if not mark or count == 0:
        return ""
    parts = value.split(mark)
    return mark.join(parts[:count] if count > 0 else parts[count:])


def _left(value: str, count: int) -> str:
    return text(value)[: max(count, 0)]


def _right(value: str, count: int) -> str:
    return text(value)[max(len(value) - count, 0) :] if count > 0 else ""


def _padding(value: str, length: int, fill: str) -> str:
    if length > LONGEST:
        raise OverflowError(_TOO_LONG)
    missing = max(length - len(value), 0) if fill else 0
    return (text(fill) * (missing // len(fill) + 1))[:missing] if missing else ""


def _lpad(value: str, length: int, fill: str = " ") -> str:
    return _padding(value, length, fill) + text(value)[: max(length, 0)]


def _rpad(value: str, length: int, fill: str = " ") -> str:
    return text(value)[: max(length, 0)] + _padding(value, length, fill)


def _locate(part: str | None, value: str | None, start: int | None = 1) -> int | None:
    """The place of a part at or behind a start, counted from 1; 0 if there is none. An empty part is at 1."""
    if start is None or start < 1:
        return None if start is not None and None in (part, value) else 0
    if part is None or value is None:
        return None
    return text(value).find(text(part), start - 1) + 1 if part else 1


def _repeat(value: str, count: int) -> str:
    if len(text(value)) * count > LONGEST:
        raise OverflowError(_TOO_LONG)
    return value * max(count, 0)


def _initcap(value: str) -> str:
    """Words, which spaces part, with a capital at their front and small letters behind it."""
    return " ".join(word[:1].title() + word[1:] for word in text(value).lower().split(" "))


def _chr(number: int) -> str:
    return "" if number < 0 else chr(number % 256)


def _trim(sides: str) -> Callable[..., str]:
    """Takes characters away, spaces without others, at the left ("l"), the right ("r") or both sides."""

    def apply(value: str, characters: str = " ") -> str:
        found = text(value)
        found = found.lstrip(text(characters)) if "l" in sides else found
        return found.rstrip(characters) if "r" in sides else found

    return apply


def _translate(value: str, old: str, new: str) -> str:
    """Each character of `old` becomes the one at its place in `new`, or nothing."""
    table = {ord(character): new[place : place + 1] for place, character in reversed(list(enumerate(text(old))))}
    return text(value).translate(table)


def _overlay(value: str, part: str, start: int, length: int | None = None) -> str:
    placed = text(part)
    behind = start + (len(placed) if length is None or length < 0 else length)
    return values.substring(value, 1, max(start - 1, -_FAR)) + placed + values.substring(value, min(behind, _FAR))


_FAR = 2**62
"""No text is so long."""


def _levenshtein(left: str, right: str) -> int:
    """The least number of characters to insert, delete or replace; its time is the product of the lengths."""
    row = list(range(len(text(right)) + 1))
    for i, character in enumerate(text(left), 1):
        previous, row = row, [i]
        for j, other in enumerate(right, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (character != other)))
    return row[-1]


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else text(value).encode()


def _sha2(value: Any, bits: int) -> str | None:
    names = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}
    return hashlib.new(names[bits], _bytes(value)).hexdigest() if bits in names else None


def _hex(value: Any) -> str:
    return f"{value % 2**64:X}" if isinstance(value, int) else _bytes(value).hex().upper()


def _find_in_set(value: str, listed: str) -> int:
    """The place of a text among those that commas part, counted from 1; 0 if it is not there."""
    parts = text(listed).split(",")
    return parts.index(value) + 1 if "," not in value and value in parts else 0


def _of_text(
    count: tuple[int, int],
    apply: Callable[..., Any],
    sql: str,
    gives: str = "string",
    others: tuple[tuple[str, ...], ...] = (TEXT,),
    fails: str = "never",
) -> Function:
    return Function(*count, apply, sql, gives, TEXT, others, runs="by code", fails=fails)


def _of_bytes(apply: Callable[..., Any], sql: str, gives: str = "string") -> Function:
    return Function(1, 1, apply, sql, gives, BYTES, runs="by code", fails="never")


_NUMBERED = (INTEGERS,)
_PADDED = (INTEGERS, TEXT)

TEXTS: dict[str, Function] = {
    **PATTERNS,
    "lower": _of_text((1, 1), lambda value: text(value).lower(), "LOWER(a), LCASE(a)"),
    "upper": _of_text((1, 1), lambda value: text(value).upper(), "UPPER(a), UCASE(a)"),
    "length": _of_bytes(values.length, "LENGTH(a), LEN(a), CHAR_LENGTH(a)", "int"),
    "octet_length": _of_bytes(lambda value: len(_bytes(value)), "OCTET_LENGTH(a)", "int"),
    "bit_length": _of_bytes(lambda value: 8 * len(_bytes(value)), "BIT_LENGTH(a)", "int"),
    "substring": _of_text(
        *((2, 3), values.substring, "SUBSTRING(a, start), SUBSTRING(a, start, length), SUBSTRING(a FROM b FOR c)"),
        others=_NUMBERED,
    ),
    "substring_index": _of_text((3, 3), _substring_index, "SUBSTRING_INDEX(a, mark, count)", others=(TEXT, INTEGERS)),
    "split_part": _of_text((3, 3), _split_part, "SPLIT_PART(a, mark, n)", "string", (TEXT, INTEGERS), "may"),
    "left": _of_text((2, 2), _left, "LEFT(a, n)", others=_NUMBERED),
    "right": _of_text((2, 2), _right, "RIGHT(a, n)", others=_NUMBERED),
    "lpad": _of_text((2, 3), _lpad, "LPAD(a, length), LPAD(a, length, fill)", others=_PADDED, fails="may"),
    "rpad": _of_text((2, 3), _rpad, "RPAD(a, length), RPAD(a, length, fill)", others=_PADDED, fails="may"),
    "order_key": Function(2, ANY_NUMBER, order_key, "", "binary", nulls="seen", runs="by code", fails="never"),
    "concat": Function(
        *(1, ANY_NUMBER, concatenated, "a || b, CONCAT(a, b, ...)", "string"), runs="by code", symbol="||"
    ),
    "concat_ws": Function(
        *(2, ANY_NUMBER, _concat_ws, "CONCAT_WS(separator, a, b, ...)", "string", TEXT), nulls="seen", runs="by code"
    ),
    "replace": _of_text((2, 3), _replace, "REPLACE(a, old), REPLACE(a, old, new)"),
    "translate": _of_text((3, 3), _translate, "TRANSLATE(a, old, new)"),
    "overlay": _of_text(
        (3, 4), _overlay, "OVERLAY(a PLACING part FROM start FOR length)", others=(TEXT, INTEGERS, INTEGERS)
    ),
    "repeat": _of_text((2, 2), _repeat, "REPEAT(a, n)", others=_NUMBERED, fails="may"),
    "space": Function(1, 1, partial(_repeat, " "), "SPACE(n)", "string", INTEGERS, runs="by row"),
    "reverse": _of_text((1, 1), lambda value: text(value)[::-1], "REVERSE(a)"),
    "initcap": _of_text((1, 1), _initcap, "INITCAP(a)"),
    "trim": _of_text((1, 2), _trim("lr"), "TRIM(a), TRIM(BOTH characters FROM a), BTRIM(a, characters)"),
    "ltrim": _of_text((1, 2), _trim("l"), "LTRIM(a), TRIM(LEADING characters FROM a)"),
    "rtrim": _of_text((1, 2), _trim("r"), "RTRIM(a), TRIM(TRAILING characters FROM a)"),
    "locate": Function(
        *(2, 3, _locate, "LOCATE(part, a), LOCATE(part, a, start), POSITION(part IN a), INSTR(a, part)", "int", TEXT),
        others=(TEXT, INTEGERS),
        nulls="seen",
        runs="by code",
        fails="never",
    ),
    "startswith": _of_text((2, 2), lambda value, part: text(value).startswith(part), "STARTSWITH(a, part)", "bool"),
    "endswith": _of_text((2, 2), lambda value, part: text(value).endswith(part), "ENDSWITH(a, part)", "bool"),
    "contains": _of_text((2, 2), lambda value, part: text(part) in text(value), "CONTAINS(a, part)", "bool"),
    "find_in_set": _of_text((2, 2), _find_in_set, "FIND_IN_SET(a, texts)", "int"),
    "levenshtein": _of_text((2, 2), _levenshtein, "LEVENSHTEIN(a, b)", "int"),
    "ascii": _of_text((1, 1), lambda value: ord(value[0]) if text(value) else 0, "ASCII(a)", "int"),
    "chr": Function(1, 1, _chr, "CHR(n), CHAR(n)", "string", INTEGERS, runs="by row", fails="never"),
    "hex": Function(1, 1, _hex, "HEX(a)", "string", (*BYTES, "int"), runs="by code", fails="never"),
    "md5": _of_bytes(lambda value: hashlib.md5(_bytes(value), usedforsecurity=False).hexdigest(), "MD5(a)"),
    "sha1": _of_bytes(lambda value: hashlib.sha1(_bytes(value), usedforsecurity=False).hexdigest(), "SHA1(a), SHA(a)"),
    "sha2": Function(2, 2, _sha2, "SHA2(a, bits)", "string", BYTES, (INTEGERS,), runs="by code", fails="never"),
    "crc32": _of_bytes(lambda value: zlib.crc32(_bytes(value)), "CRC32(a)", "int"),
}
