"""Runs the Python code of pages against the ivme that is installed, outside of the checkout: `run_pages.py PAGE...`."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path


def main(pages: list[str]) -> None:
    texts = {page: Path(page).read_text(encoding="utf-8") for page in pages}
    os.chdir(tempfile.mkdtemp())
    for page, text in texts.items():
        code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        exec(compile(code, page, "exec"), {"__name__": "__main__"})
        print(f"{page}: runs with {sys.executable}")


if __name__ == "__main__":
    main(sys.argv[1:])
