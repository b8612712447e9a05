"""How a database shows itself: in one line, and in notebooks as tables and as a picture."""

from __future__ import annotations

from abc import abstractmethod
from html import escape
from typing import TYPE_CHECKING, Any, Never

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions
    from ivme.statements.result import Result


class ShownDatabase:
    """The part of a database that shows it."""

    definitions: Definitions

    @property
    @abstractmethod
    def tables(self) -> tuple[str, ...]: ...

    @property
    @abstractmethod
    def views(self) -> tuple[str, ...]: ...

    @abstractmethod
    def sql(self, text: str, /, *unnamed: Never, engine: str = "ivme", **parameters: Any) -> Result: ...

    def __repr__(self) -> str:
        if self.definitions.is_closed:
            return f"<Database {self._where}, closed>"
        listed = f"tables {', '.join(self.tables) or 'none'}; views {', '.join(self.views) or 'none'}"
        return f"<Database {self._where}: {listed}>"

    @property
    def _where(self) -> str:
        return "in memory" if self.definitions.store is None else f"in {self.definitions.store.path}"

    def _repr_html_(self) -> str:
        """The tables and the views, with what is known of each."""
        tables = self.sql("SHOW TABLES")._repr_html_()
        return f"<p>{escape(repr(self))}</p>{tables}{self.sql('SHOW VIEWS')._repr_html_()}"

    def _repr_svg_(self) -> str:
        """A picture of the tables and of the views that read them."""
        from ivme.definitions.lineage import lineage_svg, reads

        self.definitions.check_open()
        with self.definitions.runtime.lock:
            views = {name: reads(self.definitions, name) for name in self.views}
            return lineage_svg(f"Database {self._where}", self.tables, views)
