"""Reading checkpoints page by page: the one loop of everything that goes through a thread or a whole store.

pages = Pages(Scope(thread_id), size)
while pages.more:
for outline in pages.read((yield from store.page(*pages.request))):
...
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import NamedTuple

from threadmark.errors import CorruptDataError
from threadmark.saver.proving.checks import checkpoint_location
from threadmark.store import Outline, Scope

_ORDER: Callable[[Outline], tuple[str, str, str]] = attrgetter("rank", "thread_id", "ns")
"""Returns what `Outline.order` does, without a call of a function in Python for each."""


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
        """What to ask the store for next."""

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
                    "it is found twice, or out of order: `verify` names what is damaged", checkpoint_location(outline)
                )
            before = order
        if page:
            self.request = self.request._replace(after=page[-1])
        return page
