"""Results in pages."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from ivme.serve import pages
from ivme.serve.asking import JSON
from ivme.serve.pages import Page, Results, encoded
from ivme.serve.problem import Problem


def numbers(count: int) -> pa.Table:
    return pa.table({"n": range(count)})


def test_pages_hold_each_row_once() -> None:
    results = Results()
    page = results.first("v", numbers(10), 4)
    found = page.rows.column(0).to_pylist()
    while page.next is not None:
        page = results.further("v", page.next, 4)
        found += page.rows.column(0).to_pylist()
    assert list(range(10)) == found


def test_a_result_of_one_page_is_not_kept() -> None:
    assert Results().first("v", numbers(4), 4).next is None


def test_results_are_forgotten_after_some_minutes() -> None:
    now = [0.0]
    results = Results(lambda: now[0])
    cursor = results.first("v", numbers(10), 4).next
    assert cursor is not None
    now[0] = 299.0
    results.further("v", cursor, 4)
    now[0] = 301.0
    with pytest.raises(Problem, match="has expired"):
        results.further("v", cursor, 4)


def test_the_oldest_results_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_MOST_RESULTS", 2)
    results = Results()
    cursors = [results.first("v", numbers(10), 4).next for _ in range(3)]
    for cursor, kept in zip(cursors, (False, True, True), strict=True):
        assert cursor is not None
        if kept:
            results.further("v", cursor, 4)
        else:
            with pytest.raises(Problem):
                results.further("v", cursor, 4)


def test_the_newest_result_is_kept_however_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_MOST_ROWS", 5)
    results = Results()
    cursor = results.first("v", numbers(10), 4).next
    assert cursor is not None
    assert 4 == results.further("v", cursor, 4).rows.num_rows


@pytest.mark.parametrize("rows", [0, 1, 4096, 4097, 9000])
def test_a_page_in_json_is_one_document(rows: int) -> None:
    found = json.loads(b"".join(encoded(Page(numbers(rows), None), JSON)))
    assert {"columns": ["n"], "rows": [[n] for n in range(rows)], "next": None} == found


def test_a_page_without_columns_has_its_rows() -> None:
    rows = pa.table({"n": [1, 2]}).select([])
    assert 2 == rows.num_rows
    assert [[], []] == json.loads(b"".join(encoded(Page(rows, None), JSON)))["rows"]
