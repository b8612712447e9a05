"""How sqlglot reads statements: in Spark's dialect, all of it or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from ivme.query.sql_text import SqlText
from ivme.query.sql_text import parse_tokens as parse_by


class _StrictParser(SparkParser):
    def _warn_unsupported(self) -> None:
        self.raise_error("Not supported")


class StatementDialect(Spark):
    """Spark's. sqlglot's own tokenizer takes what follows SHOW and EXPLAIN for one string, up to a semicolon, and its
    parser what it does not understand for a command, with a warning.
    """

    class Tokenizer(Spark.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()

    Parser = _StrictParser


def parse_tokens(source: SqlText, tokens: Sequence[Token], instead: str) -> exp.Expr:
    """The one statement that some tokens are."""
    return parse_by(source, tokens, instead, StatementDialect)
