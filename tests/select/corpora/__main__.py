"""`python -m tests.select.corpora`: writes refused.py anew, after ivme has learnt to take more. Read the difference."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ivme.errors import PlanError, UnsupportedError
from tests.select.corpora.test_corpora import NAMES, database_for, title

_LONGEST = 60


def refusals() -> dict[str, str]:
    """For each query that is refused the beginning of the message."""
    found = {}
    for corpus, name in NAMES:
        text = corpus.queries[name]
        try:
            database_for(corpus, text).create_view("q", text)
        except (UnsupportedError, PlanError) as error:
            found[title(corpus, name)] = str(error).splitlines()[0].partition(" (line")[0][:_LONGEST]
    return found


def main() -> None:
    found = refusals()
    path = Path(__file__).with_name("refused.py")
    head, _, _ = path.read_text().partition("REFUSED: ")
    lines = "".join(f"    {name!r}: {reason!r},\n" for name, reason in found.items())
    path.write_text(f"{head}REFUSED: dict[str, str] = {{\n{lines}}}\n".replace("'", '"'))
    print(f"{len(NAMES) - len(found)} queries are accepted, {len(found)} refused")
    for reason, count in Counter(found.values()).most_common():
        print(f"{count:4} {reason}")


if __name__ == "__main__":
    main()
