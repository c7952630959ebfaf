"""Reading page by page: the loop over everything in a thread or a whole store, and cursors for callers.

    pages = Pages(Scope(thread_id), size)
    while pages.more:
        for outline in pages.read((yield from store.page(*pages.request))):
            ...

A cursor says where the next page of a listing begins, as text that fits into a URL.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from json import dumps, loads
from operator import attrgetter
from typing import Any, NamedTuple

from threadmark.errors import ConfigError, CorruptDataError, short_repr
from threadmark.names import as_text
from threadmark.saver.proving import checkpoint_location
from threadmark.store.contract import Outline, Scope

_ORDER: Callable[[Outline], tuple[str, str, str]] = attrgetter("rank", "thread_id", "ns")
"""Like `Outline.order`, without a call of a function in Python for each."""


class PageRequest(NamedTuple):
    """The arguments of `Store.page`."""

    scope: Scope
    after: Outline | None
    limit: int


class Pages:
    """The position of a reader that goes through a scope, newest first."""

    def __init__(self, scope: Scope, size: int) -> None:
        self.more = True
        self.request = PageRequest(scope, None, size)
        """The next request to the store."""

    def read(self, page: Sequence[Outline] | None) -> Sequence[Outline]:
        """Move on behind a page. Returns the page. None, the answer of a store without tables, counts as an empty page.

        Raises CorruptDataError if an outline is repeated or out of order, which may hide another one.
        """
        page = page or ()
        after = self.request.after
        before = after and _ORDER(after)
        self.more = len(page) == self.request.limit
        for outline, order in zip(page, map(_ORDER, page), strict=True):
            if before is not None and order >= before:
                self.more = False
                raise CorruptDataError(
                    "it is found twice, or out of order: `verify` names the damaged rows", checkpoint_location(outline)
                )
            before = order
        if page:
            self.request = self.request._replace(after=page[-1])
        return page


_BITS = 63
"""The bits of a number in a database, without its sign."""


def new_cursor(*parts: str | int) -> str:
    """Return the cursor that has these parts."""
    return urlsafe_b64encode(dumps(parts, ensure_ascii=True).encode()).decode()


def parts_of_cursor(cursor: object, kinds: Sequence[type]) -> Sequence[Any]:
    """Return the parts of a cursor, one of each kind. Raises ConfigError for any other cursor."""
    try:
        parts = loads(urlsafe_b64decode(as_text(cursor, "cursor")))
    except (ValueError, RecursionError) as error:
        raise _error(cursor) from error
    if type(parts) is not list or [*map(type, parts)] != [*kinds]:
        raise _error(cursor)
    if any(type(part) is int and part.bit_length() > _BITS for part in parts):
        raise _error(cursor)
    return parts


def _error(cursor: object) -> ConfigError:
    return ConfigError(f"{short_repr(cursor)} is no cursor: give the one of the page before")
