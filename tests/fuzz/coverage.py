"""What the fuzzer must have generated, and ivme accepted: otherwise it has gone blind somewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count

from tests.fuzz.aggregates import FOLDS
from tests.fuzz.cases import Case, make_case
from tests.fuzz.dialect import RULES
from tests.fuzz.fuzzing import Finding, shrunk
from tests.fuzz.reading import PATHS
from tests.fuzz.running import run_case
from tests.fuzz.steps import Change
from tests.fuzz.views import DEVIATIONS, GUARDED

_KINDS = ("int", "float", "decimal", "string", "bool", "date", "timestamp", "binary")
_DECIMALS = ("add", "subtract", "multiply", "divide", "negate", "floor", "ceil", "round")


def required() -> frozenset[str]:
    """Every feature that a default run must cover."""
    return frozenset(
        [
            *(f"function:{rule.name}" for rule in RULES),
            *(f"function:decimal {name}" for name in _DECIMALS),
            "function:cast decimal",
            "function:cast int of decimal",
            *(f"column:{kind}" for kind in _KINDS),
            *(f"output:{kind}" for kind in _KINDS),
            *(
                f"aggregate:{function} of {kind}"
                for function in ("min", "max", "count", "count_distinct")
                for kind in _KINDS
            ),
            *(f"aggregate:{function} of {kind}" for function in ("sum", "avg", *DEVIATIONS[:2]) for kind in _KINDS[:3]),
            *(f"aggregate:{name}" for name in (*FOLDS, *DEVIATIONS[2:], "sum_distinct", "avg_distinct", "count_if")),
            "aggregate:count of rows",
            *(f"join:{kind}" for kind in _KINDS),
            *_QUERIES,
            *(f"strategy:{name}" for name in (*_STRATEGIES, "closure")),
            *(f"forced:{name}" for name in _STRATEGIES),
            *_OPTIONS,
            *(f"engine:{name}" for name in ("native", "pure", "native on disk", "pure on disk")),
            *(f"read:{path}" for path in (*PATHS, "changes", "request_many")),
            *(
                f"step:{name}"
                for name in ("Change", "CreateView", "DropView", "Follow", "Unfollow", "Verify", "Reopen")
            ),
            *(
                f"change:{m} of {f}"
                for m in ("insert", "delete", "discard", "apply")
                for f in ("list", "dicts", "arrow")
            ),
            *(f"table:{promise}" for promise in ("primary_key", "append_only", "static")),
            *(f"refused:{reason}" for reason in _REFUSED),
            "change:batch of several tables",
            "reopened with a checkpoint",
            "reopened without a checkpoint",
            "request:rows there",
            "request:nothing there",
            "view:on views",
            "view:on views on views",
        ]
    )


_STRATEGIES = ("view-tree", "skew", "marks", "factorised", "classical", "recursive", "recompute")
_QUERIES = (
    *(f"query:{number} tables" for number in (1, 2, 3, 4)),
    *(f"query:GROUP BY {form}" for form in ("expressions", "positions", "aliases", "all")),
    *("query:self-join", "query:group that is not selected", "query:global aggregate", "query:DISTINCT", "query:*"),
    *("query:closure", "query:closure joined", "query:1 parameters", "query:2 parameters", "query:USING", "query:ON"),
    *("query:parameters and aggregates", "query:parameters and rows", "query:cross product", "query:cyclic join"),
    *(f"query:closure {step} UNION" for step in ("left", "right", "double")),
    *("query:filter", GUARDED),
)
_OPTIONS = (
    *("option:epsilon=int", "option:epsilon=float", "option:epsilon=auto", "option:workload=dict"),
    *("option:rebalance=amortised", "option:rebalance=deamortised", "option:space=linear", "option:space=source"),
    "option:semantics=set",
)
_REFUSED = (
    "a row has the wrong number of columns",
    "a value has the wrong type",
    "a primary key is NULL",
    "a static table does not change",
    "a row is deleted that is not there",
    "two rows have one primary key",
)


def promised(case: Case) -> Iterator[str]:
    """What a case can cover, as far as it shows before it runs."""
    for view in case.views:
        yield from view.features()
        strategy = dict(view.options).get("strategy")
        if strategy is not None:
            yield f"forced:{strategy}"
            yield f"strategy:{strategy}"
    for table in case.tables:
        yield from (f"column:{column.type.kind}" for column in table.columns)
        yield from (
            f"table:{promise}" for promise in ("primary_key", "append_only", "static") if getattr(table, promise)
        )
    yield from (f"engine:{engine}" for engine in case.engines)
    for step in case.steps:
        yield f"step:{type(step).__name__}"
        yield from (f"change:{op.method} of {op.form}" for op in (step.ops if isinstance(step, Change) else ()))


def cover(part: int, parts: int, least: int, most: int) -> tuple[list[str], list[Finding]]:
    """Runs cases until a part of the required features is covered; which are not, and what was found on the way.

    At least and at most so many cases are run. While features are missing, most cases are passed over that do not
    promise one of them.
    """
    covered: Counter[str] = Counter()
    found: list[Finding] = []
    missing = set(sorted(required())[part::parts])
    run = 0
    for seed in count(part * 1_000_000):
        if run >= (most if missing else least):
            break
        case = make_case(seed)
        if missing and missing.isdisjoint(promised(case)) and seed % 8:
            continue
        run += 1
        difference = run_case(case, covered)
        if difference is not None:
            found.append(shrunk(case, difference, 30.0))
        missing -= {name for name, number in covered.items() if number}
    return sorted(missing), found
