"""A pipeline's views in Spark: names of the catalog, functions for requests, DataFrames and streams of changes.

The database is in the pipeline's own process. `answers` is the port beside it that tasks ask, `source` the format of
Spark that asks it, and `names` what puts views into the catalog.
"""
