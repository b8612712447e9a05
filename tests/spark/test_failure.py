"""Who is to blame for a failure: the data, or Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from ivme.errors import DataError
from ivme.spark.session.failure import is_data_failure, is_gone, reason_of


class Gone:
    """A session whose JVM is gone."""

    _jvm = None

    @property
    def sparkContext(self) -> Any:
        return SimpleNamespace(_jsc=self)

    def sc(self) -> None:
        raise Py4JNetworkError("Error while sending or receiving")


@pytest.mark.parametrize(
    "text",
    [
        "[CANNOT_PARSE_DATATYPE] Unable to parse datatype. Error while sending or receiving.",
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file",
    ],
)
def test_a_jvm_that_was_killed_never_puts_the_blame_on_the_data(text: str) -> None:
    """A kill while a batch was read once put its file into quarantine, and with it all that came after."""
    gone: Any = Gone()
    assert is_gone(gone, ValueError(text))
    assert not is_data_failure(gone, ValueError(text))
    assert not is_data_failure(gone, DataError(text))


def test_a_malformed_record_is_the_datas_fault_and_its_innermost_cause_the_reason(spark: SparkSession) -> None:
    error = ValueError(
        "[FAILED_READ_FILE.NO_HINT] Encountered error\n"
        "Caused by: org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] "
        "Malformed records are detected in record parsing: [E,null].\nParse Mode: FAILFAST.\n"
        'Caused by: java.lang.NumberFormatException: For input string: "x"\n'
    )
    assert is_data_failure(spark, error)
    assert 'the record [E,null] does not fit: For input string: "x"' == reason_of(error)


def test_what_nobody_knows_is_not_the_datas_fault(spark: SparkSession) -> None:
    assert not is_data_failure(spark, OSError("No space left on device"))
