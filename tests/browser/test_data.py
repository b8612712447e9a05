"""Rows: of views as they change, of access requests, and of tables."""

from __future__ import annotations

import pytest

from ivme.database import Database
from tests.browser.conftest import Open, expect
from tests.browser.shop import DAY, STRANGE
from tests.serve.running import serving


def test_a_view_shows_its_rows_at_once_and_changes_flash(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/view/per_city")
    wanted = sorted(shop.view("per_city"))
    expect(page.locator("table.rows tbody tr")).to_have_count(len(wanted))
    expect(page.locator("table.rows tbody td:first-child")).to_have_text([city for city, _ in wanted])
    expect(page.locator("table.rows .changed")).to_have_count(0)
    expect(page.locator(".data .message")).to_contain_text("8 rows · changes are shown as they come")
    before = next(n for city, n in wanted if city == "Oslo")
    shop.insert("flights", [("NEW 3", 2, 3)])
    changed = page.locator("table.rows tr.changed")
    expect(changed).to_have_count(1)
    expect(changed.locator("td")).to_have_text(["Oslo", str(before + 1)])
    expect(changed).to_have_count(0)
    shop.delete("flights", [("NEW 3", 2, 3)])
    expect(page.locator("table.rows tr", has_text="Oslo").locator("td").nth(1)).to_have_text(str(before))


def test_rows_are_sorted_by_a_column_and_stay_so(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/view/per_city")
    numbers = page.locator("table.rows tbody td:nth-child(2)")
    expect(numbers).to_have_count(8)
    page.get_by_role("button", name="n int").click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("n")
    page.get_by_role("button", name="n int").press("Enter")
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("n")
    expect(page.get_by_role("button", name="n int")).to_be_focused()
    shop.insert("flights", [(f"MORE {i}", 5, 3) for i in range(30)])
    wanted = sorted((n for _, n in shop.view("per_city")), reverse=True)
    expect(numbers).to_have_text([str(n) for n in wanted])
    expect(page.locator("table.rows tbody td").first).to_have_text("Madrid")
    shop.delete("flights", [(f"MORE {i}", 5, 3) for i in range(30)])


def test_a_view_that_is_paused_stays_as_it_is(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/view/triangles")
    cell = page.locator("table.rows td")
    before = shop.view("triangles").scalar()
    expect(cell).to_have_text(str(before))
    page.get_by_label("live").uncheck()
    expect(page.locator(".data .message")).to_contain_text("paused")
    shop.insert("follows", [(101, 102), (102, 103), (103, 101)])
    page.get_by_label("live").check()
    expect(cell).to_have_text(str(before + 3))
    shop.delete("follows", [(101, 102), (102, 103), (103, 101)])


def test_of_many_rows_a_part_is_shown_in_pages_and_all_are_counted(open_page: Open) -> None:
    with Database() as db:
        db.create_table("R", {"a": "int"})
        db.create_view("every", "SELECT a FROM R")
        db.insert("R", [(i % 6000,) for i in range(6500)])
        with serving(db) as address:
            page = open_page(address, "#/view/every")
            message = page.locator(".data .message")
            expect(message).to_contain_text("6,500 rows; 5,000 of them are here, and sorted")
            expect(page.locator("table.rows tbody tr")).to_have_count(100)
            expect(page.locator(".paging")).to_contain_text("rows 1 to 100 of 5,000")
            expect(page.get_by_role("button", name="Previous")).to_be_disabled()
            page.get_by_role("button", name="Next").click()
            expect(page.locator(".paging")).to_contain_text("rows 101 to 200 of 5,000")
            db.insert("R", [(-1,)])
            expect(message).to_contain_text("6,501 rows; 5,001 of them")
            db.delete("R", [(i,) for i in range(1000, 6000)])
            page.get_by_role("button", name="Previous").click()
            expect(page.locator("table.rows tbody td").first).to_have_text("-1")


def test_rows_that_are_there_several_times_are_said_to_be(open_page: Open) -> None:
    with Database() as db:
        db.create_table("R", {"a": "int"})
        db.create_view("every", "SELECT a FROM R")
        db.insert("R", [(1,), (1,), (1,), (2,)])
        with serving(db) as address:
            page = open_page(address, "#/view/every")
            expect(page.locator(".data .message")).to_contain_text("4 rows, 2 of them distinct")
            expect(page.locator("table.rows tbody tr").first.locator("td")).to_have_text(["1", "3"])
            page.goto(f"{address}/#/table/R")
            expect(page.locator(".data .message")).to_have_text("4 rows")
            expect(page.locator("table.rows tbody td")).to_have_text(["1", "1", "1", "2"])


def test_an_access_request_is_followed(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/view/search")
    expect(page.locator(".data .message")).to_have_text("Enter origin, dest to see rows.")
    page.get_by_role("textbox", name="origin string").fill("London")
    page.get_by_role("textbox", name="dest string").fill("Zurich")
    page.get_by_role("textbox", name="dest string").press("Enter")
    cells = page.locator("table.rows tbody td")
    wanted = sorted(shop.view("search").to_arrow(origin="London", dest="Zurich")["no"].to_pylist())
    expect(cells).to_have_text(wanted)
    shop.insert("flights", [("A 1", 0, 1), ("A 2", 1, 0)])
    expect(cells).to_have_text(["A 1", *wanted])
    shop.delete("flights", [("A 1", 0, 1), ("A 2", 1, 0)])
    expect(cells).to_have_text(wanted)


def test_a_view_that_is_evaluated_when_it_is_asked_is_not_followed_but_asked_again(
    open_page: Open, address: str, shop: Database
) -> None:
    page = open_page(address, "#/view/friends")
    page.get_by_role("textbox", name="A int").fill("201")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".data .message")).to_contain_text("0 rows · read again every second")
    assert "request" == shop.view("friends").explain().strategy
    shop.insert("follows", [(201, 202), (202, 203), (203, 201)])
    expect(page.locator("table.rows tbody td")).to_have_text(["202", "203"])
    expect(page.locator("table.rows tr.changed")).to_have_count(0)
    shop.delete("follows", [(201, 202), (202, 203), (203, 201)])


@pytest.mark.parametrize("screen", ["view/by_day", "table/odd"])
def test_values_stay_exact_and_text(open_page: Open, address: str, screen: str) -> None:
    page = open_page(address, f"#/{screen}")
    if screen == "view/by_day":
        day = page.get_by_role("textbox", name="day date")
        assert "date" == day.get_attribute("type")
        day.fill(str(DAY))
        page.get_by_role("combobox", name="ok bool").select_option("true")
        page.get_by_role("button", name="Ask", exact=True).click()
    rows = page.locator("table.rows tbody tr")
    expect(rows).to_have_count(2)
    found = [tuple(row.locator("td").all_text_contents())[:3] for row in rows.all()]
    assert [("7", "NULL", "NULL"), (str(2**62 + 1), STRANGE, "12.50")] == found
    assert 0 == page.locator("table.rows img").count()


def test_what_is_no_value_is_not_sent_and_what_the_server_refuses_is_said(open_page: Open, address: str) -> None:
    page = open_page(address, "#/view/friends")
    given = page.get_by_role("textbox", name="A int")
    given.fill("seven")
    page.get_by_role("button", name="Ask", exact=True).click()
    assert page.evaluate("document.querySelector('#p-A').validity.patternMismatch")
    expect(page.locator("table.rows")).to_be_hidden()
    given.fill("9" * 60)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".message.wrong")).to_contain_text("parameter A")


def test_a_table_shows_its_first_rows_and_its_columns(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/table/airports")
    expect(page.locator("table.rows tbody tr")).to_have_count(24)
    expect(page.locator(".data .message")).to_have_text("24 rows")
    expect(page.locator(".schema tbody tr").first).to_contain_text("primary key")
    expect(page.locator(".schema")).to_contain_text("static")
    page.locator("#tables a", has_text="flights").click()
    expect(page.locator("#screen h1")).to_have_text("flights")
    count = shop.contents("flights")[0].num_rows
    expect(page.locator(".data .message")).to_have_text(f"{count:,} stored rows; the first 500 are here")
    page.goto(f"{address}/#/table/nothing")
    expect(page.locator("#screen")).to_contain_text("There is no table nothing.")
