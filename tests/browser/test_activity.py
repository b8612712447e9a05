"""The screen of what happens: figures over time, and the graph of tables, views and subscribers."""

from __future__ import annotations

import re

import httpx

from ivme.database import Database
from tests.browser.conftest import Open, expect
from tests.serve.running import flights, following, serving


def test_the_graph_leads_from_tables_over_views_to_subscribers(open_page: Open) -> None:
    with Database() as db:
        flights(db)
        db.create_view("busy", "SELECT city FROM per_city WHERE n > 1")
        with serving(db) as address, httpx.Client(base_url=address, timeout=30) as client:
            page = open_page(address, "#/activity")
            expect(page.locator(".flow-node.table")).to_have_count(2)
            expect(page.locator(".flow-node.view")).to_have_count(5)
            expect(page.locator(".flow .edge")).to_have_count(2 + 2 + 1 + 1 + 1)
            expect(page.locator(".flow-node.view", has_text="busy")).to_contain_text("no subscribers")
            with following(client, "busy") as events:
                next(events)
                expect(page.locator(".flow-node.subscribers")).to_contain_text("1 subscriber")
                expect(page.locator(".flow-node.view", has_text="busy")).to_contain_text("0 changes/s")
                db.insert("flights", [("B 1", 2, 3), ("B 2", 2, 3)])
                rate = page.locator(".flow-node.view", has_text="busy").locator(".rate")
                expect(rate).not_to_have_text("0 changes/s")
                db.insert("flights", [("B 3", 2, 3)])
                db.delete("flights", [("B 3", 2, 3)])
                expect(page.locator(".flow-node.table", has_text="flights")).to_contain_text("changes/s")
            expect(page.locator(".flow-node.subscribers")).to_have_count(0)
            page.locator(".flow-node.view", has_text="busy").focus()
            page.keyboard.press("Enter")
            expect(page.locator("#screen h1")).to_have_text("busy")


def test_memory_and_errors_are_plotted_and_an_hour_can_be_chosen(open_page: Open, address: str) -> None:
    page = open_page(address, "#/activity")
    expect(page.locator(".tile", has_text="Memory").locator(".figure")).to_have_text(re.compile("B$"))
    page.evaluate("fetch('views/nobody')")
    expect(page.locator(".tile", has_text="Errors").locator(".top-value")).to_contain_text("max ")
    page.get_by_label("show").select_option("hour")
    expect(page.get_by_role("img", name=re.compile("^Memory: .* in the last hour"))).to_be_visible()
