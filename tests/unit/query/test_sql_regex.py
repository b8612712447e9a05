"""Regular expressions mean what Java's do, or are refused."""

from __future__ import annotations

import pytest

from ivme.query.sql_regex import regular_expression, replacement

ENDS = ["\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("end", ENDS)
def test_a_dot_matches_no_end_of_a_line_and_a_dollar_is_before_the_last(end: str) -> None:
    assert regular_expression("^a.$").search(f"a{end[0]}") is None
    assert regular_expression("a$").search(f"a{end}") is not None
    assert regular_expression("a$").search(f"a{end}{end}") is None
    assert regular_expression("a$").search(f"a{end}b") is None


def test_a_dollar_is_not_within_an_end_of_a_line() -> None:
    found = [match.start() for match in regular_expression("$").finditer("a\r\n")]
    assert [1, 3] == found


def test_classes_and_cases_are_those_of_ascii() -> None:
    assert regular_expression(r"\d").search("\u0663") is None
    assert regular_expression(r"\w").search("é") is None
    assert regular_expression("(?i)É").search("é") is None
    assert regular_expression("(?i)AB").search("xab") is not None


WRITTEN = ["a+?", "[a-c.$]", r"[\d\-]", r"\.\$\[", "(?:ab|c)*", "(?=a)a", "(?!b)a", "a{2}", "a{2,}", "a{2,3}?", ""]


@pytest.mark.parametrize("pattern", WRITTEN)
def test_what_both_have_is_read(pattern: str) -> None:
    regular_expression(pattern)


REFUSED = {
    r"(a)\1": r"\\1",
    r"\bword": r"\\b",
    r"\p{Lu}": r"\\p",
    r"\Qa.b\E": r"\\Q",
    "[a[bc]]": "classes in classes",
    "[a&&b]": "classes in classes",
    "[]a]": "front of a class",
    "(?<name>a)": "groups with names",
    "(?<=a)b": "look-behinds",
    "(?s)a": "flags",
    "a++": "possessive",
    "a{x}": "not part of a quantifier",
    "a\\": "backslash at the end",
    "(a": "is not a regular expression",
    "*a": "is not a regular expression",
    "[a": "is not a regular expression",
}


@pytest.mark.parametrize(("pattern", "message"), REFUSED.items())
def test_what_may_differ_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        regular_expression(pattern)


def test_a_replacement_names_groups_and_escapes() -> None:
    expression = regular_expression("(a)(b)?")
    for text, expected in {"$2$1": "ba", "$12": "a2", r"\$1": "$1", r"\\": "\\", "$0!": "ab!"}.items():
        assert expected == expression.sub(replacement(text, expression.groups), "ab")
    assert "<>" == expression.sub(replacement("<$2>", 2), "a")


@pytest.mark.parametrize("text", ["$", "$x", "$3", "a\\"])
def test_a_replacement_without_a_group_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="group"):
        replacement(text, 2)
