"""Writes a corpus into a folder: its queries as JSON, its tables as Parquet. Runs in the environment of `material.py`.

python generate.py tpch 0.01 FOLDER
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import duckdb

_MAKE = {"tpch": "CALL dbgen(sf = {})", "tpcds": "CALL dsdgen(sf = {})"}


def generate(corpus: str, scale: str, folder: Path) -> None:
    package = importlib.import_module(f"duckdb_extension_{corpus}").__file__
    assert package is not None
    (extension,) = Path(package).parent.rglob("*.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension}'")
    connection.execute(_MAKE[corpus].format(scale))
    tables = [name for (name,) in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()]
    for name in tables:
        connection.execute(f"COPY {name} TO '{folder / name}.parquet' (FORMAT parquet)")
    texts = connection.execute(f"SELECT query_nr, query FROM {corpus}_queries()").fetchall()
    (folder / "queries.json").write_text(json.dumps({str(number): text for number, text in texts}))


if __name__ == "__main__":
    generate(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
