"""A real browser, headless: Debian's chromium or any other, through Playwright.

Without one, or without Playwright, these tests are skipped with the reason; `make test-browser` installs what it can.
Screenshots are left in build/screenshots.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ivme.database import Database
from tests.browser.shop import make_shop
from tests.serve.running import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HERE = Path(__file__).parent
SCREENSHOTS = HERE.parents[1] / "build" / "screenshots"
NAMES = ("chromium", "chromium-browser", "google-chrome")

MOST_MILLISECONDS = 30_000
"""How long to wait for what is to be seen: far more than it takes, unless the machine is busy."""

Open = Callable[..., "Page"]


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))


def find_browser() -> str:
    """The browser's path: that of IVME_CHROMIUM, or the first that is installed."""
    found = os.environ.get("IVME_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no chromium to run the page in: `make test-browser` installs Debian's, or set IVME_CHROMIUM")
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = find_browser()
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is missing: pip install playwright")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def shop() -> Iterator[Database]:
    with Database() as made:
        yield make_shop(made)


@pytest.fixture(scope="module")
def address(shop: Database) -> Iterator[str]:
    with serving(shop) as found:
        yield found


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens an address in a context of its own; afterwards nothing may have gone wrong, or gone elsewhere."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def open_one(address: str, screen: str = "", **options: Any) -> Page:
        context = browser.new_context(viewport=options.pop("viewport", {"width": 1280, "height": 900}), **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(MOST_MILLISECONDS)
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("console", lambda said: wrong.append(said.text) if is_wrong(said) else None)
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith(address) else None)
        page.goto(f"{address}/{screen}")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert [] == wrong


def expect(shown: Any) -> Any:
    """What is to be seen soon; Playwright waits for it. Imported late: collecting these tests needs no Playwright."""
    from playwright.sync_api import expect as expect_soon

    expect_soon.set_options(timeout=MOST_MILLISECONDS)
    return expect_soon(shown)


def is_wrong(said: Any) -> bool:
    """Whether a message of the browser is one to worry about: refusals of the server are none, it logs these itself."""
    return said.type in ("error", "warning") and "Failed to load resource" not in said.text


def keep(page: Page, name: str, *, whole: bool = True) -> None:
    """Leaves a screenshot."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=whole)
