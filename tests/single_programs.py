"""The strategies whose programs run on their own, one map after the other, as `Interpreter` and `NativeProgram` do.

Programs with partitions need rebalancing between changes, and read unions of branches: these are run through a
`Database` on both backends (tests/skew_checks.py). So are those that are evaluated when they are asked.
"""

from __future__ import annotations

from ivme.plan.strategy.strategies import STRATEGIES

SINGLE = tuple(name for name in STRATEGIES if name not in ("skew", "request"))
