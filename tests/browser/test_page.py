"""The page as a whole: light and dark, small and large, by keyboard, with a token, and when the server goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivme.database import Database
from ivme.serve.settings import Settings
from tests.browser.conftest import Open, expect, keep
from tests.browser.shop import make_shop
from tests.serve.running import serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

TOKEN = "a token of some length"
SCREENS = (
    "view/search",
    "view/bought_and_returned",
    "view/friends",
    "view/triangles",
    "view/reach",
    "table/flights",
    "sql",
    "activity",
)


def ready(page: Page, screen: str) -> None:
    """Waits until a screen is there, with something on it."""
    if screen == "sql":
        page.get_by_label("SQL", exact=True).fill("SELECT city, n FROM per_city")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".chart-picture")).to_be_visible()
        expect(page.get_by_text("Why this cost")).to_be_visible()
    elif screen == "activity":
        expect(page.locator(".tile")).to_have_count(6)
        expect(page.locator(".flow-node.view")).to_have_count(7)
    else:
        expect(page.locator("#screen h1")).to_have_text(screen.split("/")[1])
    if screen == "table/flights":
        expect(page.locator("table.rows")).to_be_visible()
    if screen == "view/bought_and_returned":
        open_why(page)
        expect(page.locator(".tradeoff")).to_be_visible()
    if screen == "view/search":
        page.locator("#p-origin").fill("London")
        page.locator("#p-dest").fill("Zurich")
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.locator("table.rows")).to_be_visible()


def open_why(page: Page) -> None:
    """Opens the theory of a view, which stays open for the next one."""
    if page.locator("details.why[open]").count() == 0:
        page.get_by_text("Why this cost").click()


def background(page: Page) -> int:
    """How bright the page is, from 0 to 765."""
    return int(
        page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).reduce((a, b) => a + +b, 0)")
    )


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_no_screen_is_wider_than_the_window(open_page: Open, address: str, width: int, scheme: str) -> None:
    page = open_page(address, viewport={"width": width, "height": 800}, color_scheme=scheme)
    for screen in SCREENS:
        page.goto(f"{address}/#/{screen}")
        ready(page, screen)
        keep(page, f"{screen.replace('/', '-')}-{scheme}-{width}")
        assert width >= page.evaluate("document.documentElement.scrollWidth"), screen
        assert [] == page.evaluate(BEYOND), screen
        assert [] == page.evaluate(OVERFLOWING), screen


def test_on_a_phone_the_lists_are_whole_behind_a_line(open_page: Open, address: str) -> None:
    page = open_page(address, "#/table/odd", viewport={"width": 390, "height": 800})
    line = page.locator("#lists > summary")
    expect(line).to_have_text("Views and tables 7 views, 6 tables")
    expect(page.locator("#views")).to_be_hidden()
    line.click()
    keep(page, "lists-light-390")
    for one in ("#views", "#tables"):
        expect(page.locator(f"{one} li").last).to_be_visible()
        assert page.evaluate(f"(e => e.scrollHeight <= e.clientHeight)(document.querySelector('{one}'))")
    page.locator("#views a").last.click()
    expect(page.locator("h1")).to_have_text("by_day")
    expect(page.locator("#views")).to_be_hidden()
    expect(page.get_by_role("link", name="HTTP")).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(page.locator("#views")).to_be_visible()
    expect(line).to_be_hidden()


OVERFLOWING = """
[...document.querySelectorAll(".figure, .bounds dd b, .rows-count, .flow-node text, .node .size")]
  .filter((each) => {
    const inner = each.getBoundingClientRect();
    const outer = each.closest(".tile, .bounds > div, .views a, .flow-node, .node").getBoundingClientRect();
    return inner.width && (inner.right > outer.right + 1 || inner.left < outer.left - 1);
  })
  .map((each) => each.textContent)
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_large_numbers_stay_within_their_cards(open_page: Open, address: str, width: int) -> None:
    page = open_page(address, "#/activity", viewport={"width": width, "height": 800})
    expect(page.locator(".flow-node.view")).to_have_count(7)
    figures = page.evaluate("[...document.querySelectorAll('.figure')].map((e) => (e.textContent = '1000G'))")
    assert 6 == len(figures)
    page.evaluate("for (const e of document.querySelectorAll('.rate')) e.textContent = '1000G rows, +1000G/s'")
    page.evaluate("for (const e of document.querySelectorAll('.rows-count')) e.textContent = '1000G rows'")
    assert [] == page.evaluate(OVERFLOWING)


BEYOND = """
[...document.querySelectorAll("main button, main input, main select, main textarea, header a, header button")]
  .filter((each) => each.offsetParent && each.getBoundingClientRect().right > innerWidth + 1)
  .map((each) => each.outerHTML)
"""


def test_the_page_is_dark_where_the_system_is_and_as_one_chooses(open_page: Open, address: str) -> None:
    page = open_page(address, color_scheme="dark")
    assert background(page) < 150
    page.get_by_role("button", name="Theme: system").click()
    page.get_by_role("button", name="Theme: light").wait_for()
    assert background(page) > 650
    page.reload()
    page.get_by_role("button", name="Theme: light").click()
    page.get_by_role("button", name="Theme: dark").click()
    page.get_by_role("button", name="Theme: system").wait_for()
    assert background(page) < 150
    light = open_page(address, color_scheme="light")
    assert background(light) > 650


def test_everything_is_reached_by_keyboard_and_shows_the_focus(open_page: Open, address: str) -> None:
    page = open_page(address)
    expect(page.locator("#screen h1")).to_have_text("search")
    expect(page.locator("#views a[aria-current]")).to_have_count(1)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "p-dest":
            break
    expect(page.locator("#p-dest")).to_be_focused()
    assert "solid" == page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    link = page.locator("#views a", has_text="per_city")
    link.focus()
    assert "solid" == page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    page.keyboard.press("Enter")
    expect(page.locator("#screen h1")).to_have_text("per_city")
    expect(page.locator("#screen h1")).to_be_focused()


CONTROLS = {
    "sql": {"sql", "view-name", "strategy", "epsilon", "chart-x", "chart-y", "chart-kind", "Run", "city", "n"},
    "activity": {"span", "flights", "per_city"},
    "view/per_city": {"is-live", "city", "n", "Query it", "Drop view", "Why this cost"},
}
FOCUSED = """(() => {
  const node = document.activeElement;
  const name = node.querySelector?.(".name") ?? node;
  const style = getComputedStyle(node);
  const frame = node.querySelector?.(".frame");
  const isSeen = style.outlineStyle === "solid" || (frame && parseFloat(getComputedStyle(frame).strokeWidth) > 3);
  return [node.id || name.textContent.trim().split(/\\s*(string|int|▲)/)[0].trim(), isSeen];
})()"""


@pytest.mark.parametrize("screen", list(CONTROLS))
def test_every_control_of_a_screen_is_reached_by_the_tab_key_and_seen(
    open_page: Open, address: str, screen: str
) -> None:
    page = open_page(address, f"#/{screen}")
    ready(page, screen)
    if screen == "view/per_city":
        expect(page.locator("table.rows")).to_be_visible()
    page.locator("#main").focus()
    seen: dict[str, bool] = {}
    for _ in range(60):
        page.keyboard.press("Tab")
        name, is_seen = page.evaluate(FOCUSED)
        seen[name] = seen.get(name, False) or is_seen
    assert CONTROLS[screen] <= seen.keys()
    assert [] == [name for name in CONTROLS[screen] if not seen[name]]


@pytest.mark.parametrize("screen", ["view/by_day", "view/bought_and_returned", "table/odd", "activity", "sql"])
def test_every_control_and_picture_has_a_name(open_page: Open, address: str, screen: str) -> None:
    page = open_page(address, f"#/{screen}")
    ready(page, screen)
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, select, textarea, button, a, svg[role=img], [role=group]')].filter(e =>"
        " !(e.labels?.length || e.textContent.trim() || e.getAttribute('aria-label'))).map(e => e.outerHTML)"
    )
    assert [] == nameless
    doubled = page.evaluate(
        "(ids => ids.filter((id, i) => ids.indexOf(id) !== i))([...document.querySelectorAll('[id]')].map(e => e.id))"
    )
    assert [] == doubled
    assert ["H1"] == page.evaluate("[...document.querySelectorAll('h1')].map(e => e.tagName)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_told_from_what_is_behind_it(open_page: Open, address: str, scheme: str) -> None:
    """WCAG 2 asks for a contrast of 4.5 for text of this size."""
    page = open_page(address, "#/view/bought_and_returned", color_scheme=scheme)
    ready(page, "view/bought_and_returned")
    expect(page.locator("table.rows")).to_be_visible()
    for name in (
        ".message",
        ".chip.class",
        ".chip.strategy",
        ".given",
        ".view-columns",
        ".status",
        ".lower small",
        ".type",
    ):
        assert 4.5 <= page.evaluate(CONTRAST, name), name


CONTRAST = """
(name) => {
  const numbers = (color) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((each) => each / 255);
  };
  const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const bright = (color) => numbers(color).reduce((sum, c, i) => sum + linear(c) * [0.2126, 0.7152, 0.0722][i], 0.05);
  const node = document.querySelector(name);
  let behind = node;
  while (getComputedStyle(behind).backgroundColor.replace(/ /g, "").endsWith(",0)")) behind = behind.parentElement;
  const [text, back] = [bright(getComputedStyle(node).color), bright(getComputedStyle(behind).backgroundColor)];
  return Math.max(text, back) / Math.min(text, back);
}
"""


def test_updates_and_requests_are_plotted_as_they_come(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/activity")
    updates = page.locator(".tile", has_text="Updates")
    for i in range(40):
        shop.insert("flights", [(f"PLOT {i}", 1, 2)])
    expect(updates.locator(".top-value")).to_contain_text("max ")
    assert "L" in (updates.locator(".line").get_attribute("d") or "")
    expect(page.locator(".tile", has_text="Batch latency").locator(".top-value")).to_contain_text("s")
    page.evaluate("fetch('views/per_city')")
    expect(page.locator(".tile", has_text="Access requests").locator(".top-value")).to_contain_text("max ")
    for i in range(40):
        shop.delete("flights", [(f"PLOT {i}", 1, 2)])


def test_a_token_is_asked_for_and_kept_for_the_tab(open_page: Open) -> None:
    with Database() as db, serving(make_shop(db), Settings(token=TOKEN)) as address:
        page = open_page(address, "#/view/search")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        keep(page, "token", whole=False)
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(page.locator("#status")).to_contain_text("needs its token")
        page.get_by_role("button", name="Token").click()
        page.get_by_label("Token", exact=True).fill("not the token at all")
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("#token-wrong")).to_have_text("That is not the token.")
        page.get_by_label("Token", exact=True).fill(TOKEN)
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("#screen h1")).to_have_text("search")
        expect(dialog).to_be_hidden()
        page.reload()
        expect(page.locator("#screen h1")).to_have_text("search")
        expect(dialog).to_be_hidden()


def test_a_server_that_goes_is_told(open_page: Open) -> None:
    with Database() as db:
        make_shop(db)
        with serving(db) as address:
            page = open_page(address)
            expect(page.locator("#status")).to_contain_text("live")
        expect(page.locator("#status")).to_contain_text("the server does not answer")


def test_an_empty_database_and_a_view_that_is_not_there_say_so(open_page: Open) -> None:
    with Database() as db, serving(db) as address:
        page = open_page(address)
        expect(page.locator("#screen")).to_contain_text("There are no views yet")
        expect(page.locator("#views")).to_contain_text("There are no views yet")
        db.create_table("R", {"a": "int"})
        db.create_view("all of R, 100%", "Q(A) = R(A)")
        expect(page.locator("#screen h1")).to_have_text("all of R, 100%")
        page.goto(f"{address}/#/view/nobody")
        expect(page.locator("#screen")).to_contain_text("There is no view nobody")
