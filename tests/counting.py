"""The strategies that have a plan for a query whatever it asks for; `marks` keeps no multiplicities of its own."""

from tests.single_programs import SINGLE

COUNTING = tuple(name for name in SINGLE if name != "marks")
