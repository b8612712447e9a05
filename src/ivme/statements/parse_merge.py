"""MERGE INTO target USING source ON condition WHEN ... THEN ..."""

from __future__ import annotations

from typing import Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ivme.query.sql_text import SqlText, refuse_other_arguments
from ivme.statements.model import Merge, When
from ivme.statements.parse_change import assignments, plain_table, read_returning

_MERGE = (
    "write MERGE INTO target USING source ON condition WHEN MATCHED [AND condition] THEN UPDATE SET ... or DELETE, "
    "WHEN NOT MATCHED THEN INSERT (column, ...) VALUES (value, ...), WHEN NOT MATCHED BY SOURCE THEN ..."
)


def merge_tokens(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """The tokens without those that only MERGE has: USING, AND behind MATCHED, THEN, and * for all columns."""
    using = next((token for token in tokens if token.token_type == TokenType.USING), None)
    return tuple(
        token
        for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False)
        if token is not using and not _is_of_merge(_word(before), token, _word(after))
    )


def _word(token: Token | None) -> str:
    return "" if token is None else token.text.upper()


def _is_of_merge(before: str, token: Token, after: str) -> bool:
    match token.token_type:
        case TokenType.AND:
            return before in ("MATCHED", "SOURCE", "TARGET")
        case TokenType.STAR:
            return before in ("SET", "INSERT")
        case TokenType.THEN:
            return after in ("UPDATE", "INSERT", "DELETE")
    return False


def read_merge(source: SqlText, node: exp.Expr) -> Merge:
    """MERGE with clauses of every kind, in their order."""
    if not isinstance(node, exp.Merge) or node.args.get("on") is None or node.args.get("whens") is None:
        raise source.unsupported("this is not a MERGE", source.tokens[0].start, _MERGE)
    refuse_other_arguments(source, node, ("this", "using", "on", "whens", "returning"), _MERGE)
    table = plain_table(source, node.this, _MERGE, ("alias",))
    using = node.args["using"]
    if not using.alias_or_name:
        raise source.unsupported("the source has no name", using, "write USING (SELECT ...) AS name")
    if using.alias_or_name.lower() == table.alias_or_name.lower():
        raise source.unsupported("the source and the target have the same name", using, "give one an alias")
    whens = tuple(_when(source, each, table) for each in node.args["whens"].expressions)
    return Merge(source, table, using, node.args["on"], whens, read_returning(source, node.args.get("returning")))


def _when(source: SqlText, node: exp.Expr, table: exp.Table) -> When:
    refuse_other_arguments(source, node, ("matched", "source", "condition", "then"), _MERGE)
    rows: Literal["both", "source", "target"] = "both"
    if not node.args.get("matched"):
        rows = "target" if node.args.get("source") else "source"
    condition, then = node.args.get("condition"), node.args["then"]
    if isinstance(then, exp.Insert) and rows == "source":
        return _insert(source, then, condition)
    if isinstance(then, exp.Update) and rows != "source" and isinstance(then.args.get("expressions"), list):
        if [type(each) for each in then.expressions] == [exp.Star] and rows == "both":
            return When(rows, condition, (), is_all=True)
        return When(rows, condition, assignments(source, then.expressions, table))
    if isinstance(then, exp.Var) and then.name.upper() == "DELETE" and rows != "source":
        return When(rows, condition, None)
    raise source.unsupported("these rows cannot be changed like that", then, _MERGE)


def _insert(source: SqlText, then: exp.Insert, condition: exp.Expr | None) -> When:
    if isinstance(then.this, exp.Star):
        return When("source", condition, (), is_all=True)
    if not isinstance(then.this, exp.Tuple):
        raise source.unsupported("the columns are missing", then, "write INSERT (column, ...) VALUES (value, ...)")
    named = [each.this if isinstance(each, exp.Column) else each for each in then.this.expressions]
    values = then.expression.expressions if isinstance(then.expression, exp.Tuple) else [then.expression]
    if not named or len(named) != len(values):
        message = f"there are {len(named)} columns and {len(values)} values"
        raise source.unsupported(message, then, "write INSERT (column, ...) VALUES (value, ...)")
    return When("source", condition, tuple(zip(named, values, strict=True)))
