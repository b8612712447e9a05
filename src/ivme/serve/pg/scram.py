"""SCRAM-SHA-256 (RFC 5802, 7677), the server's side: a client proves that it has the token, and never sends it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

MECHANISM = "SCRAM-SHA-256"
_ITERATIONS = 4096


class ScramError(Exception):
    """The client does not have the token, or does not speak SCRAM."""


class Verifier:
    """What is stored of a token: keys that are derived from it once, with a salt of this server."""

    def __init__(self, token: str) -> None:
        self.salt = secrets.token_bytes(16)
        salted = hashlib.pbkdf2_hmac("sha256", token.encode(), self.salt, _ITERATIONS)
        self.stored_key = hashlib.sha256(_sign(salted, b"Client Key")).digest()
        self.server_key = _sign(salted, b"Server Key")


class Exchange:
    """One authentication: `challenge` answers the client's first message, `finish` its second."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._nonce = ""
        self._said = ""
        self._header = ""

    def challenge(self, first: bytes) -> bytes:
        """The client's nonce with ours behind it, and the salt."""
        words = _decoded(first).split(",")
        if len(words) < 4 or words[0] not in ("n", "y") or not words[3].startswith("r="):
            raise ScramError("the client requests an authentication method that this server does not support")
        self._header = f"{words[0]},{words[1]},"
        self._nonce = words[3][2:] + secrets.token_urlsafe(18)
        salt = base64.b64encode(self._verifier.salt).decode()
        answer = f"r={self._nonce},s={salt},i={_ITERATIONS}"
        self._said = f"{','.join(words[2:])},{answer}"
        return answer.encode()

    def finish(self, last: bytes) -> bytes:
        """The proof that this server knows the token, too; `ScramError` if the client's is wrong."""
        told, _, proof = _decoded(last).rpartition(",p=")
        expected = f"c={base64.b64encode(self._header.encode()).decode()},r={self._nonce}"
        if not self._nonce or not hmac.compare_digest(told.encode(), expected.encode()):
            raise ScramError("the authentication does not go on from its beginning")
        signed = f"{self._said},{told}".encode()
        signature = _sign(self._verifier.stored_key, signed)
        try:
            given = base64.b64decode(proof, validate=True)
        except ValueError:
            given = b""
        key = bytes(a ^ b for a, b in zip(given, signature, strict=False))
        if len(given) != len(signature) or not hmac.compare_digest(
            hashlib.sha256(key).digest(), self._verifier.stored_key
        ):
            raise ScramError("the password is wrong: it is the token of the server")
        return b"v=" + base64.b64encode(_sign(self._verifier.server_key, signed))


def _sign(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, "sha256").digest()


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ScramError("the authentication is not in UTF-8") from None
