"""Connections by Arrow Flight: a token on every call, and TLS with a certificate of the database's own if requested."""

from __future__ import annotations

import hmac
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import flight

from ivme.errors import SparkError

_HEADER = "authorization"
_TLS_NAME = "ivme"


@dataclass(frozen=True, slots=True)
class Access:
    """What is needed to reach the driver and the hosts of a database: the token, and a certificate if there is one."""

    token: str
    certificate: str = ""

    def to_json(self) -> dict[str, str]:
        return {"token": self.token, "certificate": self.certificate}

    def connect(self, address: str) -> flight.FlightClient:
        """A client of the server at an address such as 10.0.0.1:4000."""
        if not self.certificate:
            return flight.FlightClient(f"grpc://{address}")
        secured = {"tls_root_certs": self.certificate.encode(), "override_hostname": _TLS_NAME}
        return flight.FlightClient(f"grpc+tls://{address}", **secured)

    def options(self, timeout: float | None = None) -> flight.FlightCallOptions:
        headers = [(_HEADER.encode(), f"Bearer {self.token}".encode())]
        return flight.FlightCallOptions(timeout=timeout, headers=headers)


@dataclass(frozen=True, slots=True)
class Identity:
    """What a server shows: the access to it, and the key of its certificate."""

    access: Access
    key: str = ""

    def to_json(self) -> dict[str, str]:
        return {**self.access.to_json(), "key": self.key}

    @staticmethod
    def from_json(found: Mapping[str, str]) -> Identity:
        return Identity(Access(found["token"], found["certificate"]), found["key"])

    def server_arguments(self, listen: str) -> dict[str, Any]:
        """The arguments of a Flight server that listens at a free port."""
        middleware = {"token": TokenCheck(self.access.token)}
        if not self.access.certificate:
            return {"location": f"grpc://{listen}:0", "middleware": middleware}
        pair = [(self.access.certificate.encode(), self.key.encode())]
        return {"location": f"grpc+tls://{listen}:0", "tls_certificates": pair, "middleware": middleware}


class TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Refuses calls without the token, with these words."""

    def __init__(self, token: str, refusal: str = "the token is missing or wrong") -> None:
        super().__init__()
        self._wanted = f"Bearer {token}".encode()
        self._refusal = refusal

    def start_call(self, _info: Any, headers: Mapping[str, list[str]]) -> None:
        given = str(headers.get(_HEADER, [""])[0])
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._wanted):
            raise flight.FlightUnauthenticatedError(self._refusal)


def self_signed() -> tuple[str, str]:
    """A new certificate, signed by itself, and its key, made by the command openssl."""
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = Path(folder) / "key.pem", Path(folder) / "certificate.pem"
        subject = ["-subj", f"/CN={_TLS_NAME}", "-addext", f"subjectAltName=DNS:{_TLS_NAME}"]
        made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3650"]
        command = ["openssl", "req", "-x509", *made, *subject, "-keyout", str(key), "-out", str(certificate)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", "") or error
            raise SparkError(f"tls=True needs the command openssl, to make a certificate: {said}") from error
        return certificate.read_text(), key.read_text()
