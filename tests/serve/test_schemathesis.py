"""Requests made up from the server's own OpenAPI document: none of them makes it fail."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from ivme.database import Database
from tests.serve.running import flights, serving

WRONG = (b"%00", b"%FF", b"..", b"%2F", b"a" * 5000)


def operations(address: str) -> list[Any]:
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    results: Any = schema.get_all_operations()
    found = [result.ok() for result in results]
    return [operation for operation in found if not operation.path.endswith("/changes") or operation.method == "post"]


@pytest.mark.parametrize(
    "examples",
    [int(os.environ.get("IVME_REQUESTS", "2")), pytest.param(500, marks=pytest.mark.long)],
)
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_makes_the_server_fail(examples: int, mode: GenerationMode) -> None:
    called: set[str] = set()
    with Database() as db:
        flights(db)
        with serving(db) as address:
            for operation in operations(address):

                @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
                @given(case=operation.as_strategy(generation_mode=mode))
                def check(case: Any) -> None:
                    assert case.call().status_code < 500
                    called.add(case.operation.path)

                with suppress(Unsatisfiable):  # an endpoint without parameters cannot be asked wrongly
                    check()
    assert {"/views/search", "/tables/{table}/changes", "/views", "/batch", "/explain"} <= called


@pytest.mark.parametrize("text", WRONG)
def test_strange_names_and_values_are_refused(steady: httpx.Client, text: bytes) -> None:
    shown = text.decode()
    for path in (f"/views/{shown}", f"/views/per_city?{shown}", f"/views/search?origin={shown}&dest={shown}"):
        assert steady.get(path).status_code < 500
    for path in (f"/views/{shown}/changes", f"/views/{shown}/explain"):
        assert 400 <= steady.get(path).status_code < 500
    body = {"insert": [["A", 1, 2]]}
    assert 400 <= steady.post(f"/tables/{shown}/changes", json=body).status_code < 500
