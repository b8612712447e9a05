"""Spark: transport, bulk machine and checkpoint of pipelines and of sharded views.

Only this package imports pyspark, and only when Spark is used: `import ivme` needs neither Spark nor Java.
"""

from ivme.extras import require

require("pyspark", "ivme on Spark")
