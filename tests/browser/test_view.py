"""The screen of a view: its guarantee, its trees, its parts, and access requests."""

from __future__ import annotations

import re

from ivme.database import Database
from ivme.serve.sizes import view_stats
from tests.browser.conftest import Open, expect
from tests.browser.shop import STRANGE


def test_the_views_are_listed_with_class_and_guarantee(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address)
    links = page.locator("#views a")
    expect(links).to_have_count(len(shop.views))
    for name, link in zip(shop.views, links.all(), strict=True):
        found = shop.view(name).explain()
        text = (link.text_content() or "").replace("\u200b", "")
        assert text.startswith(name)
        assert found.query_class in text
        assert f"update {found.update}".replace("^(", "^").split("^")[0] in text
    expect(page.locator("#screen h1")).to_have_text(shop.views[0])
    expect(page.locator("#views a[aria-current]")).to_have_count(1)


def test_each_node_of_a_tree_has_the_size_of_its_map(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/view/search")
    sizes = view_stats(shop.definitions.map_view("search"))["maps"]
    expect(page.locator("svg .node")).to_have_count(9)
    stored = page.locator("svg .node:not(.passed)")
    expect(stored).to_have_count(5)
    for node in stored.all():
        name = node.locator(".name").text_content() or ""
        entries = sizes[name.split("#")[0]]
        expect(node.locator(".size")).to_have_text(f"{entries:,} entries")


def test_sizes_follow_the_data(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/view/search")
    leaf = page.locator("svg .node", has_text=re.compile("^flights")).locator(".size")
    before = shop.contents("flights")[0].num_rows
    expect(leaf).to_have_text(f"{before:,} entries")
    shop.insert("flights", [("NEW 1", 1, 2), ("NEW 2", 1, 2)])
    expect(leaf).to_have_text(f"{before + 2:,} entries")
    expect(page.locator("#tables li", has_text="flights").locator(".rows-count")).to_have_text(f"{before + 2:,}")
    shop.delete("flights", [("NEW 1", 1, 2), ("NEW 2", 1, 2)])


def test_heavy_and_light_parts_are_shown_with_the_line_between_them(open_page: Open, address: str) -> None:
    page = open_page(address, "#/view/bought_and_returned")
    parts = page.locator(".parts")
    expect(parts.locator(".divided")).to_have_count(2)
    expect(parts.locator(".divided").first).to_contain_text("customer→H 120")
    expect(parts.locator(".divided").first).to_contain_text("customer→L 398")
    expect(parts.locator(".figures tbody tr")).to_have_count(1)
    expect(page.locator("svg .node .heavy").first).to_be_visible()


def test_the_curve_has_the_current_point(open_page: Open, address: str) -> None:
    page = open_page(address, "#/view/bought_and_returned")
    expect(page.locator(".here-text")).to_have_text("now at ε = 0.5")
    expect(page.locator(".tradeoff .point")).to_have_count(3)
    middle = [page.locator(f".tradeoff .point.{name}").get_attribute("cy") for name in ("update", "delay")]
    assert middle[0] == middle[1]
    page.goto(f"{address}/#/view/search")
    expect(page.locator(".trade")).to_contain_text("nothing to trade")


def test_a_closure_and_a_count_without_trees_are_drawn_too(open_page: Open, address: str) -> None:
    page = open_page(address, "#/view/reach")
    expect(page.locator(".kept")).to_contain_text("pairs")
    page.goto(f"{address}/#/view/triangles")
    expect(page.locator("svg .node.keys")).to_have_count(1)
    expect(page.locator("svg .node.leaf").first).to_be_visible()


def test_an_access_request_gives_its_rows_in_pages(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/view/search")
    page.get_by_role("textbox", name="origin string").fill("London")
    page.get_by_role("textbox", name="dest string").fill("Zurich")
    page.get_by_role("textbox", name="dest string").press("Enter")
    cells = page.locator("table.rows tbody td")
    wanted = shop.view("search").to_arrow(origin="London", dest="Zurich")["no"].to_pylist()
    assert len(wanted) > 10
    expect(cells).to_have_text(wanted[:10])
    expect(page.get_by_role("button", name="Previous")).to_be_disabled()
    seen = wanted[:10]
    while len(seen) < len(wanted):
        page.get_by_role("button", name="Next").click()
        following = wanted[len(seen) : len(seen) + 10]
        expect(cells).to_have_text(following)
        seen += following
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    page.get_by_role("button", name="Previous").click()
    expect(page.locator(".message")).to_contain_text("answered in")


def test_fields_have_the_types_of_parameters_and_values_stay_exact_and_text(open_page: Open, address: str) -> None:
    page = open_page(address, "#/view/by_day")
    day = page.get_by_role("textbox", name="day date")
    assert "date" == day.get_attribute("type")
    day.fill("2024-02-29")
    page.get_by_role("combobox", name="ok bool").select_option("true")
    page.get_by_role("button", name="Ask", exact=True).click()
    rows = page.locator("table.rows tbody tr")
    expect(rows).to_have_count(2)
    found = sorted(tuple(row.locator("td").all_text_contents()) for row in rows.all())
    assert [(str(2**62 + 1), STRANGE, "12.50"), ("7", "NULL", "NULL")] == found
    assert 0 == page.locator("table.rows img").count()


def test_what_is_no_value_is_not_sent_and_what_the_server_refuses_is_said(open_page: Open, address: str) -> None:
    page = open_page(address, "#/view/friends")
    given = page.get_by_role("textbox", name="A int")
    given.fill("seven")
    page.get_by_role("button", name="Ask", exact=True).click()
    assert page.evaluate("document.querySelector('#p-A').validity.patternMismatch")
    expect(page.locator("table.rows")).to_have_count(0)
    given.fill("9" * 60)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".message.wrong")).to_contain_text("parameter A")


def test_rows_that_are_asked_for_again_follow_the_data(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/view/per_city")
    page.get_by_label("again every second").check()
    oslo = page.locator("table.rows tbody tr", has_text="Oslo").locator("td").nth(1)
    before = next(n for city, n in shop.view("per_city") if city == "Oslo")
    expect(oslo).to_have_text(str(before))
    shop.insert("flights", [("NEW 3", 2, 3)])
    expect(oslo).to_have_text(str(before + 1))
    shop.delete("flights", [("NEW 3", 2, 3)])
