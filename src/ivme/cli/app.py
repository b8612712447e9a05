"""The command line: it reads arguments, calls the public functions, and prints."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

import ivme
from ivme.cli.directory import (
    explain_directory,
    is_directory,
    recover_directory,
    restore_directory,
    serve_directory,
    serve_settings,
    show_directory,
)
from ivme.cli.errors import errors_shown
from ivme.cli.pipeline import (
    MASTER,
    MEMORY_LIMIT,
    REMOTE,
    add_pipeline_commands,
    explain_pipeline,
    is_pipeline,
    serve_pipeline,
)
from ivme.cli.statements import add_statement_commands
from ivme.errors import IvmeError, PlanError, shown
from ivme.plan.strategy.numbers import read_unit
from ivme.tables import load_tables

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


bench = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Measure a view on your own or on generated data."
)
app.add_typer(bench, name="bench")

_LIKE_A_PATH = re.compile(r"[^\s()]*[/\\][^\s()]*|[^\s()]+\.(sql|txt|ya?ml|json)", re.IGNORECASE)
"""A word with a separator, or with the ending of a file: no query is one word."""


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ivme {ivme.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Keeps the results of SQL queries up to date while the data changes, and says beforehand what a change costs.

    \b
    Start with
      ivme demo           a view over a million orders, while they change
      ivme shell shop/    SQL at a prompt, on a database in the directory shop
      ivme serve shop/    the same database in a browser, and over HTTP
    """


@app.command()
def explain(
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY|FILE|DIR",
            help="SQL, a rule, a file with either, - for stdin, a pipeline file, or the directory of a database.",
        ),
    ],
    tables: Annotated[
        Path | None,
        typer.Option(help="Tables: .sql with CREATE TABLE, or .yml/.json with name -> columns, primary_key, ..."),
    ] = None,
    strategy: Annotated[str | None, typer.Option(help="Force a strategy, such as classical.")] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="A number from 0 to 1 (also 1/3), auto, or R=0.5,S=1 for each relation.")
    ] = None,
    append_only: Annotated[str, typer.Option(metavar="R,S", help="Tables without deletes.")] = "",
    static: Annotated[str, typer.Option(metavar="R,S", help="Tables that never change.")] = "",
    favour: Annotated[str, typer.Option(help="What should be cheap: balanced, updates or reads.")] = "balanced",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_mermaid: Annotated[bool, typer.Option("--mermaid", help="Print the view trees as Mermaid text.")] = False,
    as_program: Annotated[bool, typer.Option("--program", help="Print the program that maintains the view.")] = False,
    svg: Annotated[Path | None, typer.Option(metavar="OUT", help="Write a picture of the view trees too.")] = None,
) -> None:
    """Explain what a view costs, how it is maintained, and why.

    \b
    A rule lists outputs, a bar, and inputs:
      ivme explain "Q(C | A, B) = R(A, B), S(B, C), T(C, A)"
      ivme explain "Q(A, SUM(B)) = R(A, B), S(A)"
    In SQL, inputs are parameters:
      ivme explain "SELECT o.item FROM orders o WHERE o.customer = :customer"
      ivme explain view.sql --tables schema.sql --svg view.svg
    Compare strategies, or look at the program:
      ivme explain "Q(.) = R(A, B), S(B, C), T(C, A)" --strategy recursive
      ivme explain "Q(A, C) = R(A, B), S(B, C)" --program
    All views of a pipeline:
      ivme explain pipeline.yml
    """
    with errors_shown():
        if is_pipeline(query):
            explain_pipeline(Path(query), as_json=as_json)
            return
        if is_directory(query):
            print(explain_directory(Path(query), as_json=as_json))
            return
        found = ivme.explain(
            _text(query),
            None if tables is None else load_tables(tables),
            strategy=strategy,
            epsilon=None if epsilon is None else _epsilon(epsilon),
            append_only=_listed(append_only),
            static=_listed(static),
            favour=favour,
        )
        if svg is not None:
            _write(svg, found.svg())
        print(_chosen(found, as_json=as_json, as_mermaid=as_mermaid, as_program=as_program))


@app.command()
def show(directory: Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a database.")]) -> None:
    """List the tables, views and sources of a database."""
    from rich.console import Console

    with errors_shown():
        for part in show_directory(directory):
            Console().print(part)


@app.command()
def recover(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a damaged database.")],
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Open what is left, and set the rest aside.")
    ] = False,
) -> None:
    """Report what a damaged database has lost; --accept-loss opens it."""
    with errors_shown():
        for line in recover_directory(directory, accept_loss=accept_loss):
            print(line)


@app.command()
def restore(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="A directory that db.backup has written.")],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty directory for the database.")],
) -> None:
    """Restore a backup into a directory, after checking it."""
    with errors_shown():
        print(restore_directory(backup, directory))


@app.command()
def demo(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[first|gallery|flights]",
            help="A view over a million orders; what views of each class cost; a pipeline on local Spark.",
        ),
    ] = None,
    folder: Annotated[Path, typer.Option(help="The folder for the files of flights.")] = Path("demo"),
) -> None:
    """Show a view at work, what views cost, or a pipeline."""
    with errors_shown():
        from ivme.demo import show_demo

        show_demo(what or "first", folder)
    if what is None:
        print("More: `ivme demo gallery` explains what views cost, `ivme demo flights` runs a pipeline on local Spark")


@app.command()
def serve(
    target: Annotated[Path, typer.Argument(metavar="PIPELINE|DIR", help="A pipeline file, or a database's directory.")],
    host: Annotated[str, typer.Option(help="The address; any but this machine's own needs IVME_TOKEN.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port.")] = 8321,
    per_address: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="The most connections from one address; 0 for no limit, as behind a proxy."
        ),
    ] = 500,
    pg: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="Speak PostgreSQL's protocol on this port, too."),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(metavar="PEM", help="A certificate: speak TLS only.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="PEM", help="Its key, if that is another file.")] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A YAML file with more tokens, for certain views and tables."),
    ] = None,
    durability: Annotated[str, typer.Option(help="sync or async, for a directory.")] = "sync",
    create: Annotated[bool, typer.Option("--create", help="Make a database if there is none.")] = False,
    memory_limit: Annotated[str | None, MEMORY_LIMIT] = None,
    master: Annotated[str | None, MASTER] = None,
    remote: Annotated[str | None, REMOTE] = None,
) -> None:
    """Serve a database over HTTP, with a console in the browser.

    Stop it with Ctrl-C. A pipeline runs while its views are served; only the pipeline can change its tables.

    \b
    Clients must send the token of the environment variable IVME_TOKEN, if it is set:
      IVME_TOKEN=$(openssl rand -hex 16) ivme serve shop/ --host 0.0.0.0
    Clients of PostgreSQL give it as their password:
      ivme serve shop/ --pg 5433
      psql -h localhost -p 5433 ivme
    """
    with errors_shown():
        settings = serve_settings(host, port, per_address, pg, tls_cert, tls_key, tokens)
        if is_pipeline(str(target)):
            serve_pipeline(target, settings, durability, master, remote, memory_limit)
            return
        if master is not None or remote is not None:
            raise IvmeError("--master and --remote are for a pipeline; a directory is served without Spark")
        serve_directory(target, settings, durability, memory_limit, create=create)


@bench.command()
def tradeoff(
    query: Annotated[str, typer.Argument(metavar="QUERY|FILE", help="SQL, a rule, or a file with either.")],
    epsilons: Annotated[str, typer.Option(metavar="E,E", help="The ε to measure.")] = "0,1/4,1/2,3/4,1",
    n: Annotated[int, typer.Option(min=1, help="How many rows to generate, over all tables.")] = 20_000,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Take rows from R.csv, S.parquet, ... here.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw tradeoff.png and tradeoff.svg there.")] = None,
) -> None:
    """Measure updates and reads of a view for several ε.

    \b
      ivme bench tradeoff "Q(B, C) = R(A, B), S(A, C)"
      ivme bench tradeoff view.sql --data tables --epsilons 0.3,0.5,0.7 --out pictures
    """
    from ivme.bench import picture
    from ivme.bench.data import made_for, read_folder
    from ivme.bench.tradeoff import tradeoff as measure

    with errors_shown():
        if out is not None:
            picture.figure_module()
        text = _text(query)
        tables = made_for(text, n) if data is None else read_folder(data)
        points = measure(text, tables, [_number(each, "--epsilons") for each in _listed(epsilons)])
        picture.show(points, sum(rows.num_rows for rows in tables.values()))
        for path in [] if out is None else picture.draw(points, " ".join(text.split()), out):
            print(f"wrote {path}")


@bench.command()
def peers(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: does it all run?")] = False,
    only: Annotated[str, typer.Option(metavar="W,W", help="Only these workloads.")] = "",
    against: Annotated[str, typer.Option("--peers", metavar="P,P", help="Only these peers.")] = "",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the report goes.")] = Path("bench-peers"),
) -> None:
    """Measure ivme against other systems, in a clone of ivme.

    \b
    Workloads: join-count, tpch, triangles, hubs, access, reachability, spark-refresh, spark-stream.
      ivme bench peers --quick --peers duckdb,sqlite --only join-count,hubs
    """
    from ivme.bench.peers import measure_peers

    with errors_shown():
        measure_peers(quick=quick, only=_listed(only), peers=_listed(against), out=out)


@bench.command()
def shards(
    simulate: Annotated[int, typer.Option(min=1, max=1024, help="Up to how many hosts to compute.")] = 100,
    rows: Annotated[str, typer.Option(metavar="N,N", help="The rows of a step.")] = "1,1000,10000,100000,1000000",
    copies: Annotated[float, typer.Option(min=1, help="How many shards get a row for a view, on average.")] = 1.0,
    repeat: Annotated[int, typer.Option(min=1, help="How many steps to measure of each size.")] = 15,
) -> None:
    """Measure a step over two shards, and model many hosts.

    \b
      ivme bench shards --simulate 100
    """
    from ivme.shards.step_costs import measure, told

    with errors_shown():
        sizes = [_count(each, "--rows") for each in _listed(rows)]
        print(*told(*measure(repeat), simulate, sizes, copies), sep="\n")


def _chosen(found: ivme.Explanation, *, as_json: bool, as_mermaid: bool, as_program: bool) -> str:
    """The one form of the explanation that was requested."""
    if as_json + as_mermaid + as_program > 1:
        raise PlanError("--json, --mermaid and --program exclude each other; --json has the program too")
    if as_program and found.program is None:
        raise PlanError(f"there is no program to print: {found.reason}")
    forms: tuple[tuple[bool, Callable[[], str]], ...] = (
        (as_json, lambda: json.dumps(found.to_dict(), ensure_ascii=False, indent=2)),
        (as_mermaid, found.mermaid),
        (as_program, lambda: str(found.program)),
    )
    return next((form() for wanted, form in forms if wanted), str(found))


def _text(query: str) -> str:
    """The text of the query: the argument itself, what the file of that name holds, or stdin."""
    if query == "-":
        return sys.stdin.read().removeprefix("\N{BYTE ORDER MARK}")
    try:
        path = Path(query)
        if path.is_file():
            return path.read_text("utf-8-sig")
        if _LIKE_A_PATH.fullmatch(query):
            raise IvmeError(f"no such file: {query}; give a query, or a file with one")
        return query
    except (OSError, ValueError) as error:
        if len(query) > 255 or "\n" in query or "(" in query:
            return query
        raise IvmeError(f"{query} cannot be read: {error}") from error


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise IvmeError(f"{path} cannot be written: {error}") from error


def _listed(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())


def _epsilon(text: str) -> object:
    if text == "auto":
        return text
    if "=" not in text:
        return _number(text)
    pairs = (pair.partition("=") for pair in text.split(","))
    return {relation.strip(): _number(value) for relation, _, value in pairs}


def _count(text: str, option: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise PlanError(f"{option} takes whole numbers from 1 on, such as 1,1000; one is {shown(text)}")
    return int(text)


def _number(text: str, option: str = "--epsilon") -> Fraction:
    number = read_unit(text)
    if number is None:
        forms = ", auto, or R=0.5,S=1" if option == "--epsilon" else ""
        raise PlanError(f"{option} takes a number from 0 to 1, such as 0.5 or 1/3{forms}; it is {shown(text)}")
    return number


add_statement_commands(app)
add_pipeline_commands(app)
