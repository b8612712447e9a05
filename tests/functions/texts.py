"""Cases of the functions of text."""

from __future__ import annotations

from tests.functions.cases import TEXTS as SAMPLES
from tests.functions.cases import Case, rows

TEXTS: dict[str, list[Case]] = {
    "lower": [Case("LOWER({})", ("string",), rows(*SAMPLES, "ÀÉ"))],
    "upper": [Case("UPPER({})", ("string",), rows(*SAMPLES))],
    "length": [
        Case("LENGTH({})", ("string",), rows(*SAMPLES)),
        Case("CHAR_LENGTH({})", ("string",), rows(*SAMPLES[:5])),
        Case("LENGTH({})", ("binary",), rows(b"", b"ab")),
    ],
    "octet_length": [
        Case("OCTET_LENGTH({})", ("string",), rows(*SAMPLES)),
        Case("OCTET_LENGTH({})", ("binary",), rows(b"", b"ab")),
    ],
    "bit_length": [Case("BIT_LENGTH({})", ("string",), rows(*SAMPLES))],
    "replace": [
        Case(
            "REPLACE({}, {}, {})",
            ("string", "string", "string"),
            rows(
                ("aXbXc", "X", "--"), ("abc", "", "z"), ("aaa", "aa", "b"), ("aXbXc", "X", ""), ("abab", "ab", "ab ab")
            ),
        ),
        Case("REPLACE({}, 'X')", ("string",), rows("aXbXc", "", "abc")),
    ],
    "concat": [
        Case("CONCAT({}, {})", ("string", "string"), rows(("a", "b"), ("", "x"))),
        Case("{} || {} || {}", ("string", "string", "string"), rows(("a", "b", "c"), ("", "x", "日"))),
        Case("CONCAT({}, '-', {})", ("string", "int"), rows(("a", 1), ("b", -2))),
    ],
    "concat_ws": [
        Case(
            "CONCAT_WS({}, {}, {})",
            ("string", "string", "string"),
            rows((",", "a", "b"), (",", "", "b"), ("", "a", "b")),
        ),
        Case("CONCAT_WS(', ', {}, NULL, {})", ("string", "string"), rows(("a", "b"), ("", ""))),
    ],
    "split_part": [
        Case(
            "SPLIT_PART({}, {}, {})",
            ("string", "string", "int"),
            rows(
                *(
                    (text, mark, n)
                    for text in ("x,y,,z", "", "abc", ",")
                    for mark in (",", "", "bc")
                    for n in (1, 2, 3, 9, -1, -2, 0)
                )
            ),
        )
    ],
    "substring_index": [
        Case(
            "SUBSTRING_INDEX({}, {}, {})",
            ("string", "string", "int"),
            rows(
                *(
                    (text, mark, n)
                    for text in ("x,y,,z", "", "abc", "a.b.c")
                    for mark in (",", "", ".")
                    for n in (1, 2, -1, -2, 0, 9)
                )
            ),
        )
    ],
    "left": [
        Case(
            "LEFT({}, {})",
            ("string", "int"),
            rows(*((text, n) for text in ("abc", "", "日本語") for n in (0, 1, 2, 9, -1))),
        )
    ],
    "right": [
        Case(
            "RIGHT({}, {})",
            ("string", "int"),
            rows(*((text, n) for text in ("abc", "", "日本語") for n in (0, 1, 2, 9, -1))),
        )
    ],
    "lpad": [
        Case(
            "LPAD({}, {}, {})",
            ("string", "int", "string"),
            rows(
                *((text, n, pad) for text in ("abc", "", "日本語") for n in (0, 2, 5, 8, -1) for pad in ("xy", "", " "))
            ),
        ),
        Case("LPAD({}, {})", ("string", "int"), rows(("abc", 5), ("abc", 2))),
    ],
    "rpad": [
        Case(
            "RPAD({}, {}, {})",
            ("string", "int", "string"),
            rows(
                *((text, n, pad) for text in ("abc", "", "日本語") for n in (0, 2, 5, 8, -1) for pad in ("xy", "", " "))
            ),
        ),
        Case("RPAD({}, {})", ("string", "int"), rows(("abc", 5), ("abc", 2))),
    ],
    "locate": [
        Case(
            "LOCATE({}, {}, {})",
            ("string", "string", "int"),
            rows(*((part, "abcabc", n) for part in ("bc", "", "z", "a") for n in (1, 2, 3, 0, -1, 6, 7, 9))),
        ),
        Case("LOCATE({}, {})", ("string", "string"), rows(("b", "abc"), ("", "abc"), ("", ""), ("語", "日本語"))),
        Case("INSTR({1}, {0})", ("string", "string"), rows(("b", "abc"), ("", "abc"), ("z", "abc"))),
        Case("POSITION({} IN {})", ("string", "string"), rows(("b", "abc"), ("", "abc"), ("z", "abc"))),
    ],
    "substring": [
        Case(
            "SUBSTRING({}, {}, {})",
            ("string", "int", "int"),
            rows(*(("abcdef", a, n) for a in (1, 2, 0, -2, -9, 7, 9) for n in (0, 1, 3, 9, -1))),
        ),
        Case("SUBSTR({}, {})", ("string", "int"), rows(*(("日本語", a) for a in (1, 2, 0, -2, -9, 7)))),
        Case("SUBSTRING({} FROM {} FOR {})", ("string", "int", "int"), rows(("abcdef", 2, 3), ("abcdef", -3, 2))),
        Case("SUBSTRING({} FROM {})", ("string", "int"), rows(("abcdef", 2), ("abcdef", -3))),
    ],
    "like": [
        Case(
            "{} LIKE {}",
            ("string", "string"),
            rows(
                ("abc", "a%"),
                ("abc", "_b_"),
                ("a%c", "a\\%c"),
                ("abc", "B%"),
                ("", "%"),
                ("", "_"),
                ("a\nb", "a_b"),
                ("a\nb", "a%"),
            ),
        )
    ],
    "ilike": [
        Case(
            "{} ILIKE {}",
            ("string", "string"),
            rows(("abc", "A%"), ("ABC", "_b_"), ("a%c", "A\\%C"), ("É", "é"), ("ß", "SS"), ("x", "y")),
        ),
        Case("{} NOT ILIKE '%B%'", ("string",), rows("abc", "xyz")),
    ],
    "rlike": [
        *(
            Case(
                f"{{}} RLIKE '{pattern}'",
                ("string",),
                rows(*SAMPLES, "a1b22", "2024-01-02", "aa\n", "a\r\n", "tel: 555-1234"),
            )
            for pattern in (
                "a",
                "^a",
                "c$",
                "^[a-c]+$",
                "\\\\d{{2,}}",
                "(?i)HELLO",
                "a.b",
                "x|y",
                "[^a-z]",
                "^(ab|a)?$",
                "\\\\w+\\\\s",
                "a$",
                "^\\\\S*$",
            )
        ),
        Case("REGEXP_LIKE({}, '[0-9]+')", ("string",), rows("a1", "b", "")),
    ],
    "regexp_extract": [
        Case("REGEXP_EXTRACT({}, '([a-z]+)-([0-9]+)', 2)", ("string",), rows("ab-12", "x", "ab-12 cd-34", "")),
        Case("REGEXP_EXTRACT({}, '([a-z]+)-([0-9]+)')", ("string",), rows("ab-12", "x")),
        Case("REGEXP_EXTRACT({}, '[0-9]+', 0)", ("string",), rows("ab-12", "x")),
        Case("REGEXP_EXTRACT({}, '(a)|(b)', 1)", ("string",), rows("b", "a")),
    ],
    "regexp_replace": [
        Case("REGEXP_REPLACE({}, '[0-9]+', '#')", ("string",), rows("a1b22", "x", "")),
        Case("REGEXP_REPLACE({}, '([a-z])([0-9])', '$2$1')", ("string",), rows("a1b22", "x", "")),
        Case("REGEXP_REPLACE({}, 'a*', 'X')", ("string",), rows("baac", "", "b", "a")),
        Case(
            "REGEXP_REPLACE({}, '^https?://(?:www\\\\.)?([^/]+)/.*$', '$1')",
            ("string",),
            rows("https://www.x.org/a/b", "http://y.org/", "z"),
        ),
        Case("REGEXP_REPLACE({}, 'b', '\\\\$')", ("string",), rows("abc")),
    ],
    "regexp_count": [Case("REGEXP_COUNT({}, '[a-z]')", ("string",), rows("a1b", "", "1"))],
    "regexp_substr": [Case("REGEXP_SUBSTR({}, '[0-9]+')", ("string",), rows("a1b22", "x", ""))],
    "repeat": [Case("REPEAT({}, {})", ("string", "int"), rows(("ab", 3), ("ab", 0), ("ab", -1), ("", 5)))],
    "space": [Case("SPACE({})", ("int",), rows(0, 3, -1))],
    "reverse": [Case("REVERSE({})", ("string",), rows(*SAMPLES))],
    "initcap": [Case("INITCAP({})", ("string",), rows(*SAMPLES, "hELLO wORLD-x o'neil", "a\tb", "éa ßb"))],
    "ascii": [Case("ASCII({})", ("string",), rows(*SAMPLES))],
    "chr": [Case("CHR({})", ("int",), rows(65, 0, 256, 321, -1, 127, 233))],
    "trim": [
        Case("TRIM({})", ("string",), rows(*SAMPLES, "\t a ")),
        Case(
            "TRIM(BOTH {} FROM {})",
            ("string", "string"),
            rows(("x", "xxaxx"), ("xy", "yxayx"), ("", "a"), (" ", " a ")),
        ),
        Case("BTRIM({}, {})", ("string", "string"), rows(("xxaxx", "x"), ("日a日", "日"))),
    ],
    "ltrim": [
        Case("LTRIM({})", ("string",), rows(*SAMPLES)),
        Case("TRIM(LEADING {} FROM {})", ("string", "string"), rows(("x", "xxaxx"), ("xy", "yxayx"))),
    ],
    "rtrim": [
        Case("RTRIM({})", ("string",), rows(*SAMPLES)),
        Case("TRIM(TRAILING {} FROM {})", ("string", "string"), rows(("x", "xxaxx"), ("xy", "yxayx"))),
    ],
    "startswith": [
        Case("STARTSWITH({}, {})", ("string", "string"), rows(("abc", "ab"), ("abc", ""), ("abc", "bc"), ("", "a")))
    ],
    "endswith": [
        Case("ENDSWITH({}, {})", ("string", "string"), rows(("abc", "bc"), ("abc", ""), ("abc", "ab"), ("", "a")))
    ],
    "contains": [
        Case("CONTAINS({}, {})", ("string", "string"), rows(("abc", "bc"), ("abc", ""), ("abc", "x"), ("", "a")))
    ],
    "translate": [
        Case(
            "TRANSLATE({}, {}, {})",
            ("string", "string", "string"),
            rows(
                ("abcabc", "ab", "xy"), ("abc", "abc", "x"), ("abc", "", "x"), ("aab", "aa", "xy"), ("日本", "日", "x")
            ),
        )
    ],
    "overlay": [
        Case(
            "OVERLAY({} PLACING {} FROM {})",
            ("string", "string", "int"),
            rows(("abcdef", "XY", 2), ("abc", "XYZW", 3), ("abc", "X", 1)),
        )
    ],
    "levenshtein": [
        Case(
            "LEVENSHTEIN({}, {})",
            ("string", "string"),
            rows(("kitten", "sitting"), ("", "abc"), ("a", "a"), ("日本", "日")),
        )
    ],
    "md5": [Case("MD5({})", ("string",), rows("", "abc", "日本"))],
    "sha1": [Case("SHA1({})", ("string",), rows("", "abc"))],
    "sha2": [Case("SHA2({}, 256)", ("string",), rows("", "abc")), Case("SHA2({}, 512)", ("string",), rows("abc"))],
    "crc32": [Case("CRC32({})", ("string",), rows("", "abc"))],
    "hex": [Case("HEX({})", ("int",), rows(0, 255, -1)), Case("HEX({})", ("string",), rows("", "abc", "é"))],
    "find_in_set": [
        Case(
            "FIND_IN_SET({}, {})",
            ("string", "string"),
            rows(("b", "a,b,c"), ("", "a,,c"), ("a,b", "a,b"), ("x", "a"), ("", "")),
        )
    ],
}
