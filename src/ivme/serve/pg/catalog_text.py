"""Which statements ask for PostgreSQL's catalog, and how they are asked of the tables that stand for it in DuckDB."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from ivme.serve.pg.text import DATABASE, SCHEMA, Piece

VERSION = "15.0 (ivme)"

_CONSTANTS = {
    "version": f"PostgreSQL {VERSION}",
    "current_schema": SCHEMA,
    "current_database": DATABASE,
    "current_catalog": DATABASE,
    "current_user": "ivme",
    "session_user": "ivme",
    "current_role": "ivme",
}
"""What stands for functions, with or without parentheses."""

_RENAMED = {"json_build_object": "json_object", "current_setting": "setting_of"}
_FUNCTIONS = {"current_schemas", "current_setting", "set_config", "obj_description", "col_description", "to_regclass"}
_OBJECT_TYPES = {"regclass", "regtype", "regproc", "regnamespace", "regrole", "regprocedure"}
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


def asks_catalog(piece: Piece, tables: frozenset[str]) -> bool:
    """Whether a SELECT reads the catalog, or only asks what the server is."""
    if piece.words[0] not in ("SELECT", "WITH", "TABLE"):
        return False
    tokens = piece.tokens
    lowered = [token.text.lower() for token in tokens]
    names = {text for text, token in zip(lowered, tokens, strict=True) if token.token_type != TokenType.STRING}
    if names & {"pg_catalog", "information_schema"} or names & tables:
        return True
    asked = names & _FUNCTIONS or names & _CONSTANTS.keys() or any(name.startswith("pg_") for name in names)
    return bool(asked) and "from" not in names


def catalog_query(piece: Piece, tables: frozenset[str]) -> str:
    """The statement over the tables of the schemas `pg` and `info`, in DuckDB's SQL."""
    parts: list[str] = []
    tokens, place = _unqualified(piece.tokens), 0
    while place < len(tokens):
        text, used = _translated(tokens, place, tables)
        parts.append(text)
        place += used
    return " ".join(part for part in parts if part)


def _unqualified(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """The tokens without `pg_catalog.`, which is where names are looked for anyway."""
    kept: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.DOT and kept and kept[-1].text.lower() == "pg_catalog":
            kept.pop()
        else:
            kept.append(token)
    return tuple(kept)


def _translated(tokens: tuple[Token, ...], place: int, tables: frozenset[str]) -> tuple[str, int]:
    """What stands for the tokens at a place, and how many they are."""
    token, word = tokens[place], tokens[place].text.lower()
    following = [each.text.lower() for each in tokens[place + 1 : place + 4]]
    if token.token_type == TokenType.STRING and following[:2] == ["::", "regclass"]:
        return f"to_regclass({_quoted(token.text)})", 3
    if token.token_type in (TokenType.STRING, TokenType.BYTE_STRING, TokenType.HEREDOC_STRING):
        return _quoted(_whole_pattern(tokens, place)), 1
    if token.token_type == TokenType.IDENTIFIER:
        return '"' + token.text.replace('"', '""') + '"', 1
    if token.token_type == TokenType.PARAMETER and following and following[0].isdigit():
        return f"${following[0]}", 2
    if word == "operator" and following[:1] == ["("] and len(following) == 3:
        return following[1], 4
    if word == "!" and following[:1] == ["~"]:
        return "!~", 2
    if word == "collate":
        return "", 2
    if word == "information_schema" and following[:1] == ["."]:
        return "info.", 2
    is_part = place > 0 and tokens[place - 1].token_type == TokenType.DOT
    if word in tables and token.token_type in _NAMES and not is_part and following[:1] not in (["."], ["("]):
        return f"pg.{word}", 1
    return _keyword(tokens, place, word, following)


def _keyword(tokens: tuple[Token, ...], place: int, word: str, following: list[str]) -> tuple[str, int]:
    is_part = place > 0 and tokens[place - 1].token_type == TokenType.DOT
    if word in _CONSTANTS and not is_part and following[:1] != ["."]:
        used = 3 if following[:2] == ["(", ")"] else 1
        name = f" AS {word}" if _is_item(tokens, place, used) else ""
        return _quoted(_CONSTANTS[word]) + name, used
    if word in _OBJECT_TYPES:
        return "BIGINT", 1
    if word in _RENAMED:
        return _RENAMED[word], 1
    return tokens[place].text, 1


def _is_item(tokens: tuple[Token, ...], place: int, used: int) -> bool:
    """Whether some tokens are a whole item of the outermost SELECT, which has no name of its own."""
    before = tokens[:place]
    depth = sum((token.text == "(") - (token.text == ")") for token in before)
    after = tokens[place + used].text.lower() if place + used < len(tokens) else ","
    return not depth and before[-1].text.lower() in ("select", ",") and after in (",", "from")


def _whole_pattern(tokens: tuple[Token, ...], place: int) -> str:
    """A regular expression of PostgreSQL is found anywhere in a text, one of DuckDB's `~` is all of it."""
    text = tokens[place].text
    nearest = [token for token in tokens[max(place - 2, 0) : place] if token.text not in ("(", ")")]
    if not nearest or nearest[-1].token_type != TokenType.RLIKE:
        return text
    return ("" if text.startswith("^") else ".*") + text + ("" if text.endswith("$") else ".*")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
