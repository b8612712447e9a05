"""The screen with all requests of the server, each of which can be sent."""

from __future__ import annotations

from tests.browser.conftest import Open, expect


def test_requests_are_described_and_sent(open_page: Open, address: str) -> None:
    page = open_page(address, "docs")
    expect(page.locator("#screen h1")).to_have_text("HTTP")
    rows = page.locator("details.request", has_text="Rows of search")
    rows.locator("summary").click()
    rows.get_by_label("origin").fill("London")
    rows.get_by_label("dest").fill("Zurich")
    rows.get_by_label("_limit").fill("1")
    rows.get_by_role("button", name="Send").click()
    expect(rows.locator("pre")).to_contain_text("LX")
    sql = page.locator("details.request", has_text="Run SQL statements")
    sql.locator("summary").click()
    sql.get_by_label("body").fill('{"sql": "SELECT COUNT(*) AS n FROM airports"}')
    sql.get_by_role("button", name="Send").click()
    expect(sql.locator("pre")).to_contain_text("24")
    sql.get_by_label("body").fill('{"sql": "SELEC"}')
    sql.get_by_role("button", name="Send").click()
    expect(sql.locator("pre.wrong")).to_contain_text("SELEC")
