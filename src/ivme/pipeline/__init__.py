"""Pipelines: what a YAML file says about tables, views and sinks, read and checked without Spark."""

from ivme.pipeline.model import Pipeline
from ivme.pipeline.read import read_pipeline

__all__ = ["Pipeline", "read_pipeline"]
