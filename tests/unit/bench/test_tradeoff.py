"""The trade-off over ε, on rows that are made and on the user's own."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from ivme import extras
from ivme.bench.data import ivme_types, made_for, read_folder
from ivme.bench.tradeoff import tradeoff
from ivme.cli import app
from ivme.errors import PlanError, SchemaError

PAIRS = "Q(B, C) = R(A, B), S(A, C)"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bench", "tradeoff", *arguments])


def hub_and_leaves(leaves: int) -> dict[str, pa.Table]:
    """One A with all B and C: the join has leaves² rows."""
    values = list(range(leaves))
    return {"R": pa.table({"a": [0] * leaves, "b": values}), "S": pa.table({"a": [0] * leaves, "c": values})}


def test_a_light_hub_makes_updates_dear_and_a_heavy_one_makes_them_cheap() -> None:
    lazy, eager = tradeoff(PAIRS, hub_and_leaves(40), [Fraction(0), Fraction(1)])
    # an update of the light hub meets its 40 partners; the heavy hub's rows are joined when they are read
    assert lazy.update_operations < 40 <= eager.update_operations
    assert lazy.entries < 40 * 40 < eager.entries
    assert eager.row_operations < lazy.row_operations


def test_operations_are_the_same_in_each_run() -> None:
    tables = made_for(PAIRS, 300)
    first, second = (tradeoff(PAIRS, tables, [Fraction(1, 2)])[0] for _ in range(2))
    assert (first.update_operations, first.row_operations) == (second.update_operations, second.row_operations)


def test_parameters_are_drawn_from_the_rows() -> None:
    query = "Q(C | A, B) = R(A, B), S(B, C), T(C, A)"
    (point,) = tradeoff(query, made_for(query, 300), [Fraction(1, 2)], requests=5)
    assert point.row_operations > 0


def test_made_rows_are_skewed_and_distinct() -> None:
    (rows,) = made_for("Q(COUNT) = E(A, B), E(B, C)", 1000).values()
    degrees = sorted((entry["counts"] for entry in rows[0].value_counts().to_pylist()), reverse=True)
    assert rows.num_rows == len({tuple(row.values()) for row in rows.to_pylist()})
    assert degrees[0] > 20 > degrees[len(degrees) // 2]


def test_a_view_without_parts_is_refused() -> None:
    with pytest.raises(PlanError, match="no heavy and light parts"):
        tradeoff("Q(A, B) = R(A, B)", {"R": pa.table({"a": [1], "b": [2]})}, [Fraction(1, 2)])


def test_tables_without_rows_are_refused() -> None:
    empty = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())})
    with pytest.raises(PlanError, match="no rows to update"):
        tradeoff(PAIRS, {"R": empty, "S": empty}, [Fraction(1, 2)])


def test_files_of_a_folder_become_tables(tmp_path: Path) -> None:
    tables = hub_and_leaves(3)
    pyarrow.csv.write_csv(tables["R"], tmp_path / "R.csv")
    pyarrow.parquet.write_table(tables["S"], tmp_path / "S.parquet")
    (tmp_path / "notes.txt").write_text("not a table", "utf-8")
    assert tables == read_folder(tmp_path)


def test_a_folder_without_tables_and_a_broken_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="has no tables"):
        read_folder(tmp_path)
    (tmp_path / "R.parquet").write_bytes(b"no parquet")
    with pytest.raises(SchemaError, match=r"R\.parquet cannot be read"):
        read_folder(tmp_path)


def test_a_type_that_tables_cannot_hold_is_refused_by_its_column() -> None:
    schema = pa.schema([("a", pa.int32()), ("x", pa.list_(pa.int64()))])
    with pytest.raises(SchemaError, match="column x has the type list"):
        ivme_types(schema)


def test_the_command_prints_a_line_for_each_epsilon_and_draws(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")
    result = run(PAIRS, "--n", "200", "--epsilons", "0, 2/3", "--out", str(tmp_path / "new"))
    assert result.exit_code == 0, result.output
    assert [line.split("│")[1].strip() for line in result.stdout.splitlines() if line.startswith("│")] == ["0", "2/3"]
    assert (tmp_path / "new" / "tradeoff.png").read_bytes().startswith(b"\x89PNG")
    root = ElementTree.parse(tmp_path / "new" / "tradeoff.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_the_command_takes_sql_over_files(tmp_path: Path) -> None:
    for name, rows in hub_and_leaves(5).items():
        pyarrow.csv.write_csv(rows, tmp_path / f"{name}.csv")
    result = run("SELECT R.b, S.c FROM R JOIN S ON R.a = S.a", "--data", str(tmp_path), "--epsilons", "1/2")
    assert (0, True) == (result.exit_code, "10 rows" in result.stdout), result.output


def test_an_epsilon_that_is_no_number_is_refused() -> None:
    result = run(PAIRS, "--epsilons", "0,half")
    assert (2, True) == (result.exit_code, "--epsilons takes a number" in result.stderr)


def test_without_matplotlib_a_picture_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _name: None)
    result = run(PAIRS, "--n", "50", "--out", str(tmp_path))
    assert (2, "") == (result.exit_code, result.stdout)
    assert "pip install 'ivme[plot]'" in result.stderr
