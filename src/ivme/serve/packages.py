"""Imported before FastAPI and uvicorn, so that an error says what to install if they are missing."""

from __future__ import annotations

from ivme.extras import require

for _package in ("fastapi", "uvicorn", "httptools"):
    require(_package, "serving")
