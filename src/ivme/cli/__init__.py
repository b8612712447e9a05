"""The command line. spark-submit takes this file."""

import io
import sys

from ivme.cli.app import app

__all__ = ["app"]

if sys.platform == "win32":  # plans have letters that the code pages of Windows lack
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")

if __name__ == "__main__":
    app()
