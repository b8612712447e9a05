"""Numbers and bounds as the page writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.browser.conftest import Open

if TYPE_CHECKING:
    from playwright.sync_api import Page


def called(page: Page, module: str, function: str, *arguments: Any) -> Any:
    """What a function of a module gives; nodes as [name, text]."""
    text = """async ([module, name, given]) => {
      const found = (await import(module))[name](...given);
      const plain = (each) => (each instanceof Node ? [each.nodeName.toLowerCase(), each.textContent] : each);
      return Array.isArray(found) ? found.map(plain) : plain(found);
    }"""
    return page.evaluate(text, [f"/page/{module}.js", function, list(arguments)])


def test_numbers_are_short_and_keep_their_size(open_page: Open, address: str) -> None:
    page = open_page(address)
    shown = {0: "0", 7: "7", 999: "999", 12345: "12.3k", 999_999: "1M", 2_500_000: "2.5M", 3e9: "3G"}
    assert shown == {number: called(page, "format", "short", number) for number in shown}
    times = {0.0000123: "12.3 µs", 0.00123: "1.23 ms", 0.5: "500 ms", 12.3: "12.3 s"}
    assert times == {seconds: called(page, "format", "time", seconds) for seconds in times}
    assert ["0 B", "1 kB", "34.5 MB"] == [called(page, "format", "bytes", number) for number in (0, 1000, 34_500_000)]
    assert ["1 row", "2,000 rows"] == [called(page, "format", "many", number, "row") for number in (1, 2000)]


BOUNDS = {
    "O(1)": [],
    "O(N^2)": ["2"],
    "O(N^(1-ε)) amortised": ["1-ε"],
    "O(N^max(min(1+ε, 2-2ε), 1)), then O(N^ε log N)": ["max(min(1+ε, 2-2ε), 1)", "ε"],
    "O(log^2 N)": ["2"],
    "N^1/2 here, N^3/2 there": ["1/2", "3/2"],
    "no end N^(1+": ["(1+"],
    "^": [""],
}


def test_exponents_are_raised_and_the_text_stays_whole(open_page: Open, address: str) -> None:
    page = open_page(address)
    for text, exponents in BOUNDS.items():
        found = called(page, "power", "raised", text)
        assert exponents == [part[1] for part in found if isinstance(part, list) and part[0] == "sup"]
        whole = "".join(part if isinstance(part, str) else part[1] for part in found)
        assert without_parentheses(text) == without_parentheses(whole)


def without_parentheses(text: str) -> str:
    return "".join(character for character in text if character not in "()")


def test_fractions_are_numbers(open_page: Open, address: str) -> None:
    page = open_page(address)
    values = {"1/2": 0.5, "1": 1, "3/2": 1.5, "max(ε, 1-ε)": None, "": None}
    assert values == {text: called(page, "tradeoff", "fraction", text) for text in values}
