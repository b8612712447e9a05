"""Modules of the engine imported the compiled kernel, so that nothing worked where it is missing."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys, warnings
sys.modules["ivme._kernel"] = None
warnings.simplefilter("ignore")
import ivme
db = ivme.Database()
db.create_table("edge", {"a": "string", "b": "string"})
reach = db.create_view("reach", "Q(X, Y) = closure(edge)")
fan = db.create_view("fan", "SELECT X, COUNT(*) AS n FROM reach GROUP BY X")
db.insert("edge", [("x", "y"), ("y", "z")])
loud = db.create_view("loud", "SELECT UPPER(a) || '!' AS a FROM edge WHERE b <> 'y'")
print(sorted(reach), sorted(fan), list(loud))
"""


def test_a_database_works_without_the_compiled_kernel() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    expected = [("x", "y"), ("x", "z"), ("y", "z")], [("x", 2), ("y", 1)], [("Y!",)]
    assert (f"{expected[0]} {expected[1]} {expected[2]}\n", "") == (done.stdout, done.stderr)
