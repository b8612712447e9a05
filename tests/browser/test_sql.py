"""The screen for SQL: results, charts, errors at their place, and queries that become views."""

from __future__ import annotations

from ivme.database import Database
from ivme.serve.settings import Settings
from tests.browser.conftest import Open, expect
from tests.browser.shop import make_shop
from tests.serve.running import flights, serving

TOKEN, READER = "a token of some length", "a token to read with"


def test_a_query_is_run_by_the_keyboard_and_shown_in_its_order(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/sql")
    page.get_by_label("SQL", exact=True).fill("SELECT city, n FROM per_city\nORDER BY n DESC, city LIMIT 3")
    page.keyboard.press("Control+Enter")
    wanted = sorted(shop.view("per_city"), key=lambda row: (-row[1], row[0]))[:3]
    expect(page.locator(".answer .message")).to_contain_text("3 rows, in ")
    expect(page.locator(".answer tbody td")).to_have_text([str(value) for row in wanted for value in row])
    page.get_by_role("button", name="city", exact=True).click()
    cities = sorted(city for city, _ in wanted)
    expect(page.locator(".answer tbody td:first-child")).to_have_text(cities)


def test_a_result_is_drawn_as_bars_or_as_a_line(open_page: Open, address: str, shop: Database) -> None:
    page = open_page(address, "#/sql")
    page.get_by_label("SQL", exact=True).fill("SELECT city, n, n + 1 AS more FROM per_city")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".chart-bar")).to_have_count(len(list(shop.view("per_city"))))
    expect(page.get_by_role("img", name="more over city")).to_be_visible()
    page.locator("#chart-y").select_option("n")
    expect(page.get_by_role("img", name="n over city")).to_be_visible()
    page.locator("#chart-kind").select_option("line")
    expect(page.locator(".chart-line")).to_have_count(1)
    page.get_by_label("SQL", exact=True).fill("SELECT city FROM airports")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".answer .message")).to_contain_text("24 rows")
    expect(page.locator(".chart")).to_be_hidden()


def test_an_error_is_said_and_the_cursor_stands_at_its_place(open_page: Open, address: str) -> None:
    page = open_page(address, "#/sql")
    text = "SELECT no\nFROM flights\nWHERE nothing = 3"
    page.get_by_label("SQL", exact=True).fill(text)
    page.keyboard.press("Control+Enter")
    wrong = page.locator(".answer pre.wrong")
    expect(wrong).to_contain_text("there is no column 'nothing'")
    expect(wrong).to_contain_text("(line 3, column 7)")
    chosen = page.evaluate("[document.activeElement.selectionStart, document.activeElement.selectionEnd]")
    assert "nothing" == text[chosen[0] : chosen[1]]
    expect(page.locator(".answer table.rows")).to_be_hidden()


def test_parameters_have_fields_and_statements_are_remembered(open_page: Open, address: str) -> None:
    page = open_page(address, "#/sql")
    box = page.get_by_label("SQL", exact=True)
    box.fill("SELECT no FROM flights WHERE src = :src AND no <> ':other'")
    page.get_by_label(":src").fill("3")
    box.press("Control+Enter")
    expect(page.locator(".answer .message")).to_contain_text("50 rows")
    box.fill("SHOW TABLES")
    box.press("Control+Enter")
    expect(page.locator(".answer .message")).to_contain_text("6 rows")
    page.get_by_text("Statements of this session").click()
    kept = page.locator(".statements button")
    expect(kept).to_have_count(2)
    expect(page.locator(".editor .field")).to_have_count(0)
    kept.nth(1).click()
    expect(box).to_have_value("SELECT no FROM flights WHERE src = :src AND no <> ':other'")
    expect(page.locator(".editor .field")).to_have_count(1)


def test_parameters_that_are_dates_are_picked(open_page: Open, address: str) -> None:
    page = open_page(address, "#/sql")
    box = page.get_by_label("SQL", exact=True)
    box.fill("SELECT id FROM odd WHERE day = :day AND price = :price")
    expect(page.get_by_label(":day")).to_have_attribute("type", "date")
    expect(page.get_by_label(":price")).to_have_attribute("type", "text")
    page.get_by_label(":day").fill("2024-02-29")
    page.get_by_label(":price").fill("12.50")
    box.press("Control+Enter")
    expect(page.locator(".answer .message")).to_contain_text("1 row")
    box.fill("SELECT id FROM odd WHERE text = :day")
    expect(page.get_by_label(":day")).to_have_attribute("type", "text")


def test_a_query_becomes_a_view_that_is_shown_and_dropped_after_a_confirmation(open_page: Open) -> None:
    with Database() as db, serving(flights(db)) as address:
        page = open_page(address, "#/view/per_city")
        page.get_by_role("button", name="Query it").click()
        expect(page.get_by_label("SQL", exact=True)).to_have_value("SELECT *\nFROM per_city\nLIMIT 100")
        page.get_by_label("SQL", exact=True).fill("SELECT src, COUNT(*) AS n FROM flights GROUP BY src;")
        expect(page.locator(".as-view .cost")).to_contain_text("An update costs a few look-ups")
        page.get_by_label("Name").fill("per_city")
        page.get_by_role("button", name="Make it a view").click()
        expect(page.locator(".as-view .wrong")).to_contain_text("per_city")
        page.get_by_label("Name").fill("per source")
        page.get_by_label("Name").press("Enter")
        expect(page.locator("#screen h1")).to_have_text("per source")
        expect(page.locator("table.rows tbody td")).to_have_text(["1", "3"])
        page.get_by_role("button", name="Drop view").click()
        page.get_by_role("button", name="Cancel").click()
        assert "per source" in db.views
        page.get_by_role("button", name="Drop view").click()
        page.get_by_role("button", name="Drop it").click()
        expect(page.locator("#screen")).to_contain_text("There is no view per source.")
        assert "per source" not in db.views


def test_a_statement_that_changes_something_says_so_and_tables_appear(open_page: Open) -> None:
    with Database() as db, serving(db) as address:
        page = open_page(address, "#/sql")
        box = page.get_by_label("SQL", exact=True)
        box.fill("CREATE TABLE notes (id INT PRIMARY KEY, text STRING)")
        box.press("Control+Enter")
        expect(page.locator("#tables a")).to_have_text(["notes 0 rows"])
        box.fill("INSERT INTO notes VALUES (1, '<b>one</b>'), (2, NULL)")
        box.press("Control+Enter")
        expect(page.locator(".answer .message")).to_contain_text("2 rows inserted")
        expect(page.locator("#tables a")).to_have_text(["notes 2 rows"])


def test_what_a_token_for_reading_may_not_do_is_refused_with_the_reason(open_page: Open) -> None:
    settings = Settings(token=TOKEN, read_token=READER)
    with Database() as db, serving(make_shop(db), settings) as address:
        page = open_page(address, "#/sql")
        page.get_by_label("Token", exact=True).fill(READER)
        page.get_by_role("button", name="Continue").click()
        box = page.get_by_label("SQL", exact=True)
        box.fill("DELETE FROM flights")
        box.press("Control+Enter")
        expect(page.locator(".answer pre.wrong")).to_contain_text("lacks the scope write:flights")
        page.goto(f"{address}/#/view/triangles")
        page.get_by_role("button", name="Drop view").click()
        page.get_by_role("button", name="Drop it").click()
        expect(page.get_by_role("dialog").locator(".wrong")).to_contain_text("the token 'reader' is for reading")


def test_a_query_is_explained_as_it_is_typed(open_page: Open, address: str) -> None:
    page = open_page(address, "#/sql")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/explain") else None)
    box = page.get_by_label("SQL", exact=True)
    box.press_sequentially("Q(A, C) = orders(A, B), returns(B, C)", delay=15)
    page.get_by_text("Why this cost").click()
    expect(page.locator(".chip.class")).to_contain_text("CQAP1")
    expect(page.locator(".chip.strategy")).to_contain_text("skew")
    assert len(asked) < 15
    expect(page.locator("svg .node").first).to_be_visible()
    expect(page.locator(".tradeoff")).to_be_visible()
    page.get_by_role("spinbutton", name="ε").fill("0.25")
    expect(page.locator(".here-text")).to_have_text("now at ε = 0.25")
    page.get_by_role("combobox", name="strategy").select_option("view-tree")
    expect(page.locator(".chip.strategy")).to_contain_text("view-tree")


def test_what_cannot_be_a_view_is_said_with_its_place_and_goes_when_it_is_mended(open_page: Open, address: str) -> None:
    page = open_page(address, "#/sql")
    box = page.get_by_label("SQL", exact=True)
    box.fill("SELECT no FROM trains")
    wrong = page.locator(".as-view pre.wrong")
    expect(wrong).to_contain_text("there is no table 'trains'")
    expect(wrong).to_contain_text("^")
    expect(page.get_by_role("button", name="Make it a view")).to_be_disabled()
    box.fill('SELECT no AS "<img src=x onerror=alert(1)>" FROM flights')
    expect(wrong).to_be_hidden()
    expect(page.locator(".chip.class")).to_have_count(1)
    assert 0 == page.locator("#screen img").count()
    box.fill("")
    expect(page.locator(".chip.class")).to_have_count(0)
