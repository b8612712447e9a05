"""Spark: transport, bulk machine and checkpoint of pipelines and of sharded views.

Only this package imports pyspark, and only when Spark is used: `import ivme` needs neither Spark nor Java.
"""

from ivme.extras import refuse_windows, require

refuse_windows("ivme on Spark")
require("pyspark", "ivme on Spark")
