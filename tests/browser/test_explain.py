"""The box that explains a query while it is being typed."""

from __future__ import annotations

from tests.browser.conftest import Open, expect


def test_a_query_is_explained_as_it_is_typed(open_page: Open, address: str) -> None:
    page = open_page(address, "#/explain")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/explain") else None)
    box = page.get_by_label("Query")
    box.press_sequentially("Q(A, C) = orders(A, B), returns(B, C)", delay=15)
    expect(page.locator(".chip.class")).to_contain_text("CQAP1")
    expect(page.locator(".chip.strategy")).to_contain_text("skew")
    assert len(asked) < 15
    expect(page.locator("svg .node").first).to_be_visible()
    expect(page.locator(".tradeoff")).to_be_visible()
    page.get_by_role("spinbutton", name="ε").fill("0.25")
    expect(page.locator(".here-text")).to_have_text("now at ε = 0.25")
    page.get_by_role("combobox", name="strategy").select_option("view-tree")
    expect(page.locator(".chip.strategy")).to_contain_text("view-tree")


def test_what_is_wrong_is_said_with_its_place_and_goes_when_it_is_mended(open_page: Open, address: str) -> None:
    page = open_page(address, "#/explain")
    box = page.get_by_label("Query")
    box.fill("SELECT no FROM trains")
    wrong = page.locator("pre.wrong")
    expect(wrong).to_contain_text("there is no table 'trains'")
    expect(wrong).to_contain_text("^")
    box.fill("SELECT no FROM flights")
    expect(wrong).to_be_hidden()
    expect(page.locator(".chip.class")).to_contain_text("CQAP0")
    box.fill("")
    expect(page.locator(".chip.class")).to_have_count(0)


def test_names_of_the_query_stay_text(open_page: Open, address: str) -> None:
    page = open_page(address, "#/explain")
    page.get_by_label("Query").fill('SELECT no AS "<img src=x onerror=alert(1)>" FROM flights')
    expect(page.locator(".chip.class")).to_have_count(1)
    assert 0 == page.locator("#screen img").count()
