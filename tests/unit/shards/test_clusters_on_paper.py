"""What docs/spark_shards.md says of clusters that cannot be had here: manifest and settings, as far as paper goes."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from ivme.spark.shards.tasks import can_reserve, cpus_of_a_task
from tests.test_docs import ROOT, blocks_of

PAGE = (ROOT / "docs" / "spark_shards.md").read_text()


class Session:
    """A classic session with these settings."""

    def __init__(self, **conf: str) -> None:
        self.conf = {name.replace("_", "."): value for name, value in conf.items()}


def manifest() -> dict[str, Any]:
    (found,) = (block.text for block in blocks_of(PAGE, "yaml") if "kind: Job" in block.text)
    read: dict[str, Any] = yaml.safe_load(found)
    return read


def settings(arguments: list[str]) -> dict[str, str]:
    pairs = (each.removeprefix("--conf=").partition("=") for each in arguments if each.startswith("--conf="))
    return {name: value for name, _, value in pairs}


def gigabytes(size: str) -> int:
    found = re.fullmatch(r"(\d+)(?:g|Gi)", size)
    assert found is not None, size
    return int(found[1])


def test_the_manifest_is_a_job_whose_driver_is_started_again_and_reached() -> None:
    job = manifest()
    assert ("batch/v1", "Job") == (job["apiVersion"], job["kind"])
    assert job["spec"]["backoffLimit"] > 0
    pod = job["spec"]["template"]["spec"]
    assert "Never" == pod["restartPolicy"], "a Job takes Never or OnFailure"
    assert pod["serviceAccountName"]
    (driver,) = pod["containers"]
    known = {each["name"] for each in driver["env"]}
    used = {name for argument in driver["args"] for name in re.findall(r"\$\((\w+)\)", argument)}
    assert used <= known
    found = settings(driver["args"])
    assert "$(POD_IP)" == found["spark.driver.host"], "executors reach the driver at the address of its pod"
    assert "--deploy-mode=client" in driver["args"]
    assert all(re.fullmatch(r"spark\.[\w.]+", name) for name in found)


def test_the_memory_of_the_manifest_is_what_the_page_computes() -> None:
    """Shards of 4 GB, half as much again, and a tenth of the heap: the overhead; with the heap what a pod may have."""
    found = settings(manifest()["spec"]["template"]["spec"]["containers"][0]["args"])
    heap, overhead = gigabytes(found["spark.executor.memory"]), gigabytes(found["spark.executor.memoryOverhead"])
    assert 4 * 1.5 + heap * 0.1 <= overhead
    assert f"the sum of heap and overhead ({heap + overhead} GB here)" in PAGE
    assert "spark.executor.pyspark.memory" not in found, "it limits address space"
    assert "false" == found["spark.dynamicAllocation.enabled"]


@pytest.mark.parametrize(("cores", "reserved"), [("1", 1), ("2", 2), ("3", 2), ("4", 3)])
def test_a_host_reserves_more_than_half_of_an_executor(cores: str, reserved: int) -> None:
    session: Any = Session(spark_master="k8s://https://kubernetes.default.svc", spark_executor_cores=cores)
    assert can_reserve(session)
    assert reserved == cpus_of_a_task(session)


@pytest.mark.parametrize(
    ("master", "reserves", "cpus"),
    [("local[4]", False, 1), ("local", False, 1), ("local-cluster[2,3,1024]", True, 2), ("yarn", True, 1)],
)
def test_sessions_with_executors_have_tasks_as_hosts(master: str, reserves: bool, cpus: int) -> None:
    session: Any = Session(spark_master=master)
    assert reserves is can_reserve(session)
    assert cpus == cpus_of_a_task(session)
