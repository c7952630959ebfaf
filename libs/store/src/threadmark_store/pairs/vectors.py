"""The vectors of a replicated saver's items. They are not copied: `Store.reindex` computes them on the other side."""

from threadmark.backends import Program
from threadmark.replication.side_store import SideStore, on_side
from threadmark_store.backends import over
from threadmark_store.pairs.tables import PairTable, ask_side
from threadmark_store.shapes import Cursor, Scope
from threadmark_store.vectors.contract import Nearest, Scanned


def rows_over(rows: object) -> "PairVectors":
    """Return the vectors of a pair."""
    return PairVectors("vectors")


class PairVectors(PairTable):
    """The vectors of the active side, or of the other one while it is away."""

    def page(self, scope: Scope, model: str, cursor: Cursor | None) -> Program[tuple[list[Scanned], Cursor | None]]:
        """Return the next vectors of a model, with texts instead of columns: only a side knows its columns."""
        return on_side(_page, scope, model, cursor)

    def nearest(self, scope: Scope, model: str, query: bytes, limit: int | None) -> Program[Nearest]:
        """Return the best of the vectors that the side's database compares, also with texts."""
        return on_side(_nearest, scope, model, query, limit)

    def text(self, column: str) -> str:
        """Return the text, which is that of the page."""
        return column


def _page(
    store: SideStore, scope: Scope, model: str, cursor: Cursor | None
) -> Program[tuple[list[Scanned], Cursor | None]]:
    rows, cursor = yield from ask_side(store.side, "vectors", "page", scope, model, cursor)
    text = over(store.side.store, "vectors").text
    return [(*map(text, row[:3]), *row[3:]) for row in rows], cursor


def _nearest(store: SideStore, scope: Scope, model: str, query: bytes, limit: int | None) -> Program[Nearest]:
    rows, has_others = yield from ask_side(store.side, "vectors", "nearest", scope, model, query, limit)
    text = over(store.side.store, "vectors").text
    return Nearest([(text(namespace), text(key), *rest) for namespace, key, *rest in rows], has_others)
