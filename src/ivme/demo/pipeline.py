"""The pipeline file of the demonstration, and what is requested of its views."""

from __future__ import annotations

from dataclasses import dataclass

FLIGHTS = """\
# A flight network, kept fresh.   ivme run flights.yml    ivme verify flights.yml    ivme explain flights.yml
tables:
  routes:
    columns: {no: string, src: int, dst: int, night: bool}
    load: {format: parquet, path: data/routes.parquet}
    changes:
      directory: data/changes        # drop more files here while `ivme run flights.yml` runs
      format: csv
      operation: op                  # a column with insert or delete
      files_per_batch: 1
  airports:
    columns: {id: int, city: string}
    primary_key: id
    static: true
    load: {format: csv, path: data/airports.csv}
  fares:
    columns: {no: string, price: int}
    primary_key: no
    load: {format: parquet, path: data/fares.parquet}
    changes:
      directory: data/fares          # what a fare is from now on: u sets it, d takes it away
      format: csv
      operation: op
      upsert: true
      sequence_by: at                # some come late, some twice: the newest counts
      files_per_batch: 5

views:
"""

SINKS = """
sinks:
  triangle_changes: {view: triangles, format: delta, path: output/triangle_changes}
  fares_now: {view: fares_by_city, mode: merge, format: delta, path: output/fares_now}    # a table that equals the view
  flight_changes: {view: flights, format: parquet, path: output/flight_changes}
"""


@dataclass(frozen=True, slots=True)
class DemoView:
    """A view of the demonstration: what it is for, its text in the file, and access requests to show.

    One that is not `shown` is there for the next one to read.
    """

    name: str
    title: str
    sql: str
    requests: tuple[dict[str, str], ...] = ({},)
    shown: bool = True

    def text(self) -> str:
        body = "\n".join(f"      {line}" for line in self.sql.split("\n"))
        return f"  {self.name}:                            # {self.title}\n    sql: |\n{body}\n"


VIEWS: tuple[DemoView, ...] = (
    DemoView(
        "flights",
        "flights between two cities: a view with parameters",
        "SELECT r.no FROM routes r\n"
        "JOIN airports a ON r.src = a.id\n"
        "JOIN airports b ON r.dst = b.id\n"
        "WHERE a.city = :origin AND b.city = :dest",
        ({"origin": "London", "dest": "Zurich"}, {"origin": "Oslo", "dest": "Lima"}),
    ),
    DemoView(
        "triangles",
        "triangles of airports: a count over a cyclic join",
        "SELECT COUNT(*) AS triangles\n"
        "FROM routes r JOIN routes s ON r.dst = s.src\n"
        "JOIN routes t ON s.dst = t.src AND t.dst = r.src",
    ),
    DemoView(
        "fares_by_city",
        "fares by city: fares arrive as upserts, and the result is merged into a table",
        "SELECT a.city, COUNT(*) AS flights, SUM(f.price) AS total\n"
        "FROM routes r JOIN fares f ON r.no = f.no\n"
        "JOIN airports a ON r.src = a.id\n"
        "GROUP BY a.city",
    ),
    DemoView("night", "the night flights, for the next view", "SELECT src, dst FROM routes WHERE night", shown=False),
    DemoView(
        "reachable",
        "airports that can be reached from a city by night: recursion",
        "WITH RECURSIVE reach(src, dst) AS (\n"
        "  SELECT src, dst FROM night\n"
        "  UNION\n"
        "  SELECT r.src, n.dst FROM reach r JOIN night n ON r.dst = n.src\n"
        ")\n"
        "SELECT DISTINCT b.id, b.city FROM airports a\n"
        "JOIN reach r ON a.id = r.src\n"
        "JOIN airports b ON r.dst = b.id\n"
        "WHERE a.city = :city",
        ({"city": "London"}, {"city": "Fort Nairobi"}, {"city": "Fort Hobart"}),
    ),
)
"""The views in the order of the file."""

SHOWN = tuple(view for view in VIEWS if view.shown)


def pipeline_text() -> str:
    """The whole file."""
    return FLIGHTS + "\n".join(view.text() for view in VIEWS) + SINKS
