"""The screen of a view: its query, its cost, and why: its trees, its parts, its trade-off."""

from __future__ import annotations

import re

from ivme.database import Database
from ivme.plan.explain.verdict import verdict
from ivme.serve.sizes import view_stats
from tests.browser.conftest import Open, expect
from tests.browser.test_page import open_why


def test_the_views_are_listed_with_parameters_and_columns(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address)
    links = page.locator("#views a")
    expect(links).to_have_count(len(shop.views))
    for name, link in zip(shop.views, links.all(), strict=True):
        text = link.text_content() or ""
        assert text.startswith(name)
        assert text.endswith(", ".join(shop.view(name).columns))
    expect(links.first).to_contain_text("by origin, dest")
    expect(page.locator("#screen h1")).to_have_text(shop.views[0])
    expect(page.locator("#views a[aria-current]")).to_have_count(1)


def test_the_query_and_its_cost_stand_below_the_rows_and_the_theory_is_closed(
    open_page: Open, address: str, shop: Database
) -> None:
    page = open_page(address, "#/view/per_city")
    expect(page.locator("pre.query")).to_have_text(
        "SELECT a.city, COUNT(*) AS n FROM flights f JOIN airports a ON f.src = a.id GROUP BY a.city"
    )
    expect(page.locator(".cost")).to_have_text(verdict(shop.view("per_city").explain()))
    expect(page.locator(".chip")).to_have_count(0)
    open_why(page)
    expect(page.locator(".chip.class")).to_contain_text("CQAP1")
    page.goto(f"{address}/#/view/reach")
    expect(page.locator(".chip.class")).to_contain_text("closure")


def test_each_node_of_a_tree_has_the_size_of_its_map(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/view/search")
    open_why(page)
    sizes = view_stats(shop.definitions.map_view("search"))["maps"]
    expect(page.locator("svg .node")).to_have_count(9)
    stored = page.locator("svg .node:not(.passed)")
    expect(stored).to_have_count(5)
    for node in stored.all():
        name = node.locator(".name").text_content() or ""
        entries = sizes[name.split("#")[0]]
        expect(node.locator(".size")).to_have_text(f"{entries:,} keys")


def test_sizes_follow_the_data(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/view/search")
    open_why(page)
    leaf = page.locator("svg .node", has_text=re.compile("^flights")).locator(".size")
    before = shop.contents("flights")[0].num_rows
    expect(leaf).to_have_text(f"{before:,} keys")
    shop.insert("flights", [("NEW 1", 1, 2), ("NEW 2", 1, 2)])
    expect(leaf).to_have_text(f"{before + 2:,} keys")
    count = page.locator("#tables li", has_text="flights").locator(".rows-count")
    expect(count).to_have_attribute("title", f"{before + 2:,} stored rows")
    shop.delete("flights", [("NEW 1", 1, 2), ("NEW 2", 1, 2)])


def test_heavy_and_light_parts_are_shown_with_the_line_between_them(open_page: Open, address: str) -> None:
    page = open_page(address, "#/view/bought_and_returned")
    open_why(page)
    parts = page.locator(".parts")
    expect(parts.locator(".divided")).to_have_count(2)
    expect(parts.locator(".divided").first).to_contain_text("customer→H 120")
    expect(parts.locator(".divided").first).to_contain_text("customer→L 398")
    expect(parts.locator(".figures tbody tr")).to_have_count(1)
    expect(page.locator("svg .node .heavy").first).to_be_visible()


def test_the_curve_has_the_current_point(open_page: Open, address: str) -> None:
    page = open_page(address, "#/view/bought_and_returned")
    open_why(page)
    expect(page.locator(".here-text")).to_have_text("now at ε = 0.5")
    expect(page.locator(".tradeoff .point")).to_have_count(3)
    middle = [page.locator(f".tradeoff .point.{name}").get_attribute("cy") for name in ("update", "delay")]
    assert middle[0] == middle[1]
    page.goto(f"{address}/#/view/search")
    expect(page.locator(".trade")).to_contain_text("nothing to trade")


def test_a_closure_and_a_count_without_trees_are_drawn_too(open_page: Open, address: str) -> None:
    page = open_page(address, "#/view/reach")
    open_why(page)
    expect(page.locator(".kept")).to_contain_text("pairs")
    page.goto(f"{address}/#/view/triangles")
    expect(page.locator("svg .node.keys")).to_have_count(1)
    expect(page.locator("svg .node.leaf").first).to_be_visible()
