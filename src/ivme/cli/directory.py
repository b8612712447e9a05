"""What the command line says about a directory. Nothing heavy is imported before there is one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ivme.errors import BrokenViewError, DamagedError, StorageError

if TYPE_CHECKING:
    from rich.table import Table

    from ivme.database import Database
    from ivme.serve.settings import Settings


def is_directory(text: str) -> bool:
    """Whether an argument names a directory."""
    try:
        return Path(text).is_dir()
    except (OSError, ValueError):
        return False


def explain_directory(path: Path, *, as_json: bool) -> str:
    """The explanations of all views of a database; of a broken view, why it is broken."""
    with _opened(path) as db:
        found = {name: db.view(name).explain() for name in db.views}
        broken = db.broken_views
    if as_json:
        told = {name: each.to_dict() for name, each in found.items()}
        told |= {name: {"broken": reason} for name, reason in broken.items()}
        return json.dumps(told, ensure_ascii=False, indent=2)
    parts = {name: str(each) for name, each in found.items()}
    parts |= {name: f"broken: {reason}" for name, reason in broken.items()}
    return "\n\n".join(f"{name}\n{'─' * len(name)}\n{part}" for name, part in parts.items()) or "there are no views"


def show_directory(path: Path) -> Iterator[Table]:
    """Tables of the database's tables, views, broken views and sources."""
    from rich.table import Table

    with _opened(path) as db:
        tables = Table("table", "columns", "distinct rows", title=f"{path}", title_justify="left")
        for name in db.tables:
            state = db.definitions.runtime.catalog.tables[name]
            columns = ", ".join(f"{column.name} {column.type}" for column in state.table.columns)
            tables.add_row(name, columns, f"{db.definitions.runtime.backend.size(state.rows):,}")
        yield tables
        views = Table("view", "class", "strategy", "update", "delay")
        for name in db.views:
            found = db.view(name).explain()
            views.add_row(name, *map(str, (found.query_class, found.strategy, found.update, found.delay)))
        yield views
        broken = Table("broken view", "why it could not be built")
        for name, reason in db.broken_views.items():
            broken.add_row(name, reason)
        sources = Table("source", "position")
        for source, position in db.definitions.runtime.catalog.positions.all().items():
            sources.add_row(source, str(position))
        yield from (each for each in (broken, sources) if each.row_count)


def verify_directory(path: Path) -> Iterator[str]:
    """Opens a database, which checks every checksum, and recomputes its views; a line for each thing that is right.

    The file of the views' maps is read even if it was not needed. A broken view is an error, after all other lines.
    """
    from ivme.store.snapshot import read_manifest
    from ivme.store.view_file import read_image

    with _opened(path) as db:
        try:
            read_image(path, read_manifest(path), db.definitions.runtime.backend)
        except DamagedError:
            raise
        except StorageError as error:
            yield f"{path}: views were built, not loaded: {error}"
        store = db.definitions.store
        assert store is not None
        yield f"{path}: every file is as it was written; {store.found}"
        for name in db.views:
            db.view(name).verify()
            yield f"view {name} is what its query gives"
        if db.broken_views:
            reasons = "; ".join(f"view {name} is broken: {reason}" for name, reason in db.broken_views.items())
            raise BrokenViewError(reasons)


def recover_directory(path: Path, *, accept_loss: bool) -> Iterator[str]:
    """What is lost of a directory; accepts that, if it is to. Refused, with the losses, if it is not."""
    from ivme.database import Database
    from ivme.store.opening import find_losses

    _check_holds_database(path)
    losses = find_losses(path)
    if not losses:
        yield f"{path}: nothing is lost"
        return
    yield from losses
    if not accept_loss:
        raise DamagedError(f"nothing was changed; ivme recover {path} --accept-loss opens what is left")
    Database(path, accept_loss=True).close()
    yield f"{path} was opened without that; what could not be read is next to it, in files that end with .damaged"


def restore_directory(backup: Path, path: Path) -> str:
    """Copies a backup; what was done."""
    from ivme.store.backup import restore_backup

    restore_backup(backup, path)
    return f"{path} holds the database of {backup}; ivme show {path} lists what is in it"


def serve_settings(
    host: str,
    port: int,
    per_address: int,
    pg_port: int | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    tokens: Path | None = None,
) -> Settings:
    """What a server is to allow; refused if it cannot be, before anything is opened."""
    import ivme.serve.server  # noqa: F401 - so that missing packages are reported before anything is opened
    from ivme.serve.grants import read_grants
    from ivme.serve.settings import Settings

    token = os.environ.get("IVME_TOKEN") or None
    settings = Settings(
        host,
        port,
        token,
        read_token=os.environ.get("IVME_READ_TOKEN") or None,
        tokens=() if tokens is None else read_grants(tokens),
        connections_per_address=per_address,
        pg_port=pg_port,
        tls_certificate=None if certificate is None else str(certificate),
        tls_key=None if key is None else str(key),
    )
    settings.check()
    return settings


def serve_directory(
    path: Path, settings: Settings, durability: str, memory_limit: str | None = None, *, create: bool = False
) -> None:
    """Serves a database until it is interrupted; with `create`, a new one where there is none."""
    from ivme.database import Database
    from ivme.serve.server import serve
    from ivme.store.directory import holds_database

    if create and not path.is_file() and not holds_database(path):
        Database(path).close()
    with _opened(path, durability, memory_limit) as db:
        scheme = "http" if settings.tls_certificate is None else "https"
        postgres = "" if settings.pg_port is None else f", and PostgreSQL's protocol on port {settings.pg_port}"
        print(f"serving {path} on {scheme}://{settings.host}:{settings.port}{postgres}", flush=True)
        serve(db, settings)


def _opened(path: Path, durability: str = "sync", memory_limit: str | None = None) -> Database:
    from ivme.database import Database

    _check_holds_database(path)
    return Database(path, durability=durability, memory_limit=memory_limit)


def _check_holds_database(path: Path) -> None:
    from ivme.store.directory import holds_database

    if path.is_file():
        raise StorageError(f"{path} is a file; give the directory of a database")
    if not holds_database(path):
        raise StorageError(
            f"there is no ivme database in {path}; `ivme serve {path} --create` or `ivme shell {path}` makes one"
        )
