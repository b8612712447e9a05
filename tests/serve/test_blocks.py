"""Views of several blocks, made, written to, read and followed over HTTP: nobody sees the blocks."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from ivme.database import Database
from tests.serve.running import Events

VIEWS: dict[str, tuple[str, list[Any], list[Any]]] = {
    "outer": (
        "SELECT a.city, COUNT(f.no) AS n FROM airports a LEFT JOIN flights f ON f.src = a.id GROUP BY a.city",
        [["London", 3], ["Oslo", 0], ["Zurich", 0]],
        [["London", 2], ["Oslo", 1], ["Zurich", 0]],
    ),
    "anti": (
        "SELECT a.city FROM airports a WHERE NOT EXISTS (SELECT 1 FROM flights f WHERE f.src = a.id)",
        [["Oslo"], ["Zurich"]],
        [["Zurich"]],
    ),
    "union": (
        "SELECT src AS id FROM flights UNION SELECT dst FROM flights",
        [[1], [2], [3]],
        [[1], [2], [3]],
    ),
    "first": ("SELECT no FROM flights ORDER BY no DESC LIMIT 1", [["SK 806"]], [["LX 317"]]),
    "rule": ("Q(city) = airports(id, city), not flights(_, id, _)", [["Oslo"], ["Zurich"]], [["Zurich"]]),
    "product": (
        "SELECT SUM(f.dst * a.id) AS s FROM flights f JOIN airports a ON a.id = f.src",
        [[7]],
        [[7]],
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_several_blocks_is_one_view(client: httpx.Client, name: str) -> None:
    query, before, after = VIEWS[name]
    assert 201 == client.post("/views", json={"name": name, "query": query}).status_code
    assert before == sorted(client.get(f"/views/{name}").json()["rows"])
    with client.stream("GET", f"/views/{name}/changes") as response:
        events = Events(response)
        total = {tuple(row): weight for row, weight in next(events)[2]["rows"]}
        changes = {"insert": [["DY 1", 3, 1]], "delete": [["SK 806", 1, 3]]}
        assert 200 == client.post("/batch", json={"changes": {"flights": changes}}).status_code
        if before != after:
            for row, weight in next(events)[2]["changes"]:
                total[tuple(row)] = total.get(tuple(row), 0) + weight
    assert after == sorted(client.get(f"/views/{name}").json()["rows"])
    assert after == sorted(list(row) for row, weight in total.items() if weight)
    assert "#" not in str([view["name"] for view in client.get("/views").json()])


def test_all_refusals_of_a_text_are_told(client: httpx.Client, db: Database) -> None:
    answer = client.post("/views", json={"name": "w", "query": "SELECT FOO(no) AS f, BAR(src) AS g FROM flights"})
    assert 422 == answer.status_code
    assert "FOO" in answer.text
    assert "BAR" in answer.text
    assert "w" not in db.views
