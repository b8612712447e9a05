"""The strategies that have a plan for a query whatever it asks for; `marks` keeps no multiplicities of its own."""

from ivme.plan.strategies import STRATEGIES

COUNTING = tuple(name for name in STRATEGIES if name != "marks")
