"""TPC-H's and TPC-DS's queries as they are written, through ivme and beside DuckDB.

    python -m benchmarks.corpora [tpch] [tpcds] [--sf 0.01] [--query 3 17] [--seconds 300] [--cpu] [--table FILE]

Texts and data come from DuckDB's extensions, which have an environment of their own (`material.py`): nothing of TPC's
is part of this repository. For each query: whether it is accepted, or why not; whether its rows are DuckDB's after the
load, after inserts, deletes and updates of 1 % each, emptied and filled again; the blocks that it has become; the time
for a batch of 1,000 changes, and DuckDB's for computing the query anew.
"""
