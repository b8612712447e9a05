"""Which test shows that each numbered defect of issue 21 ("Pipelines that a data team would adopt") is mended.

A defect without a test, or with one that is no longer there, fails here.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]

DEFECTS: dict[int, tuple[str, tuple[str, ...]]] = {
    1: (
        "a table added to a pipeline that has run is loaded",
        ("spark/test_changed_pipelines.py::a_table_that_is_added_is_loaded_and_its_views_and_sinks_with_it",),
    ),
    2: (
        "a view whose definition changes brings its sinks along",
        (
            "spark/test_changed_pipelines.py::a_view_that_is_written_otherwise_brings_its_sinks_along",
            "spark/test_changed_pipelines.py::a_crash_while_sinks_are_brought_along_loses_nothing",
        ),
    ),
    3: (
        "a bad row goes alone, and can be taken again",
        (
            "spark/test_changed_pipelines.py::a_redelivered_key_is_set_aside_alone",
            "spark/test_changed_pipelines.py::one_bad_row_stops_no_other",
            "spark/test_changed_pipelines.py::rows_are_taken_again_once_they_can_be",
        ),
    ),
    4: (
        "files of any name are taken in any order",
        ("spark/test_pipeline.py::files_are_applied_in_any_order_and_with_equal_content",),
    ),
    5: (
        "folders of partitionBy give their values to rows",
        ("spark/test_changed_pipelines.py::folders_of_partitions_give_their_values_to_rows",),
    ),
    6: (
        "a second file with equal content is applied",
        ("spark/test_pipeline.py::files_are_applied_in_any_order_and_with_equal_content",),
    ),
    7: (
        "temporary views of a view, and names, outlive changes",
        (
            "spark/test_names.py::a_name_has_the_rows_of_the_last_batch_whenever_it_is_asked",
            "spark/test_spark_database.py::names_in_spark_sql_show_every_later_change",
        ),
    ),
    8: (
        "Parquet directories and Delta feeds work over Spark Connect",
        ("spark/test_connect.py::parquet_directories_delta_feeds_frames_and_names_work_over_connect",),
    ),
    9: (
        "with Delta's jar a batch is an application transaction of one table",
        (
            "unit/pipeline/test_delta_jar.py::a_batch_is_an_application_transaction_of_one_table",
            "unit/pipeline/test_delta_jar.py::a_merge_is_one_statement_under_the_number_of_its_batch",
        ),
    ),
    10: (
        "loads are not limited by what Spark's driver takes as a result",
        (
            "spark/test_changed_pipelines.py::a_load_goes_past_the_limit_of_results",
            "spark/test_gathering.py::rows_are_the_same_by_files_by_a_store_and_by_partitions",
            "spark/test_gathering.py::a_load_by_partitions_goes_past_the_limit_of_results",
        ),
    ),
    11: (
        "a new column of a Delta source stops nothing",
        (
            "spark/test_pipeline_sources.py::a_feed_with_a_new_column_goes_on_and_the_column_comes_when_it_is_declared",
            "spark/test_changed_pipelines.py::a_column_is_added_and_another_gets_wider",
        ),
    ),
    12: (
        "verify goes on after an applied file is archived",
        ("spark/test_changed_pipelines.py::an_applied_file_may_be_archived",),
    ),
    13: (
        "a memory sink is refused by the check, and restarts do not read applied files again",
        (
            "unit/pipeline/test_read.py::a_message_points_at_the_line_and_column",
            "spark/test_changed_pipelines.py::files_that_were_applied_are_not_read_again_at_a_start",
        ),
    ),
}


def test_every_numbered_defect_has_its_tests() -> None:
    assert list(range(1, 14)) == list(DEFECTS)


@pytest.mark.parametrize("number", DEFECTS)
def test_the_tests_of_a_defect_are_there(number: int) -> None:
    told, tests = DEFECTS[number]
    for test in tests:
        path, name = test.split("::")
        tree = ast.parse((_TESTS / path).read_text("utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert f"test_{name}" in functions, told
