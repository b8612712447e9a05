"""The pages of docs/: every one is reached from the navigation or from a link, and every term that one of them
introduces (in *italics*, at its definition) is in the glossary."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
CONFIGURATION = (DOCS.parent / "mkdocs.yml").read_text("utf-8")
NOT_TERMS = {
    "Make it a view": "a button",
    "Why this cost": "a button",
    "To come": "a heading of a list",
    "Maintenance of Views": "a title",
    "HyperCube": "a name",
}
_ITALIC = re.compile(r"(?<![\w*`])\*(?![\s*])([^*\n]{4,40}?)(?<!\s)\*(?![\w*])")
"""Words of fewer than four letters (*is*, *new*) are stressed, not introduced."""


def _prose(page: Path) -> str:
    """A page without its blocks of code, and without code in a line."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE))


def reached() -> set[Path]:
    """The pages that a reader can come to, from the navigation on, by links."""
    found: set[Path] = set()
    waiting = [DOCS / name for name in re.findall(r"([\w/.-]+\.md)\s*$", CONFIGURATION, flags=re.MULTILINE)]
    while waiting:
        page = waiting.pop()
        if page not in found and page.exists():
            found.add(page)
            links = re.findall(r"\]\((?!https?:)([^)#\s]+\.md)", page.read_text("utf-8"))
            waiting += [(page.parent / link).resolve() for link in links]
    return found


def glossary_terms() -> set[str]:
    """The words of the first column of the glossary, and those that its meanings set in italics."""
    text = (DOCS / "glossary.md").read_text("utf-8")
    listed = re.findall(r"^\| ([^|]+) \|", text, flags=re.MULTILINE)
    return {word.strip().lower() for cell in [*listed, *_ITALIC.findall(text)] for word in re.split(r"[,()]", cell)}


def test_every_page_is_reached() -> None:
    pages = {page.resolve() for page in DOCS.rglob("*.md")}
    assert not {str(page.relative_to(DOCS)) for page in pages - reached()}


def test_every_term_that_a_page_introduces_is_in_the_glossary() -> None:
    terms = glossary_terms()
    introduced = {(term, page.name) for page in DOCS.glob("*.md") for term in _ITALIC.findall(_prose(page))}
    missing = {(term, page) for term, page in introduced if term not in NOT_TERMS and not _is_in(terms, term.lower())}
    assert not missing


def _is_in(terms: set[str], term: str) -> bool:
    """Whether a term is there, also in the singular, as a participle (fractured), or with its noun (good tuple)."""
    nouns = (f"{term} {noun}" for noun in ("part", "tuple", "view"))
    return any(form in terms for form in (term, term.removesuffix("s"), term.removesuffix("d"), *nouns))


def test_a_term_is_found_in_other_forms() -> None:
    assert _is_in({"template"}, "templates")
    assert _is_in({"fracture"}, "fractured")
    assert not _is_in({"template"}, "pattern")
