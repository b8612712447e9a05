"""The page's files: what is there, who may have them, and what a browser may do with them."""

from __future__ import annotations

import re
from importlib.resources import files

import httpx
import pytest

from ivme.database import Database
from ivme.serve.files import page_files
from ivme.serve.settings import Settings
from tests.serve.running import serving

TOKEN = "a token of some length"
REFERENCE = re.compile(r'(?:src|href)="page/([^"]+)"|from "\./([^"]+)"')


def referred() -> set[str]:
    """All files that the page and its modules name."""
    texts = [file.content.decode() for name, file in page_files().items() if name.endswith((".html", ".js"))]
    return {a or b for text in texts for a, b in REFERENCE.findall(text)}


def test_every_file_that_the_page_names_is_in_the_package_and_no_other() -> None:
    there = {entry.name for entry in files("ivme.serve").joinpath("page").iterdir()}
    assert referred() | {"index.html"} == there
    assert there == set(page_files())


def test_the_page_and_its_files_come_with_their_types(steady: httpx.Client) -> None:
    page = steady.get("/")
    assert (200, "text/html; charset=utf-8") == (page.status_code, page.headers["content-type"])
    kinds = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
    for name in referred():
        found = steady.get(f"/page/{name}")
        assert (200, kinds[name[name.rfind(".") :]]) == (found.status_code, found.headers["content-type"])


@pytest.mark.parametrize(
    "path", ["/page/nothing.js", "/page/..%2Ffiles.py", "/page/%2e%2e/files.py", "/page/", "/page"]
)
def test_what_is_no_file_of_the_page_is_not_found(steady: httpx.Client, path: str) -> None:
    assert 404 == steady.get(path).status_code


def test_a_browser_may_run_and_fetch_only_what_comes_from_the_server(steady: httpx.Client) -> None:
    for path in ("/", "/page/main.js"):
        headers = steady.get(path).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert ("'none'", "'self'", "'self'") == (policy["default-src"], policy["script-src"], policy["connect-src"])
        assert ("'none'", "'script'") == (policy["frame-ancestors"], policy["require-trusted-types-for"])
        assert "unsafe" not in headers["content-security-policy"]
        assert "nosniff" == headers["x-content-type-options"]


def test_the_page_has_no_inline_code_and_names_no_other_host() -> None:
    page = page_files()["index.html"].content.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)
    for name, file in page_files().items():
        text = file.content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|@import|url\(", text), name


def test_no_module_makes_markup_from_text() -> None:
    made = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|srcdoc")
    for name, file in page_files().items():
        assert not made.search(file.content.decode()), name


def test_the_page_needs_no_token_and_all_that_it_shows_does(db: Database) -> None:
    with serving(db, Settings(token=TOKEN)) as address, httpx.Client(base_url=address, timeout=30) as client:
        assert [200, 200] == [client.get(path).status_code for path in ("/", "/page/main.js")]
        for path in ("/stats", "/activity", "/views/search/stats", "/views/search/explain", "/page", "/pages"):
            assert 401 == client.get(path).status_code
        assert 401 == client.post("/explain", json={"query": "Q(A) = airports(A, B)"}).status_code


def test_without_a_token_the_page_too_is_only_for_this_machine(steady: httpx.Client) -> None:
    assert 403 == steady.get("/", headers={"Host": "evil.example"}).status_code
