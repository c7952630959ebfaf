"""The entry in the metadata of a thread that says which interface began it.

What goes over many threads looks at those only, so that no graph's thread in the same database is ever touched by it.
"""

from collections.abc import Mapping
from typing import Any, Final

from threadmark.metadata import matches
from threadmark.model import ThreadSort
from threadmark.program import Program
from threadmark.saver.context import SaverContext
from threadmark.saver.proving.thread_rows import metadata_of, sound_row
from threadmark.saver.thread_arguments import ThreadQuery, given_query

Mark = Mapping[str, Any]

SESSION: Final[Mark] = {"kind": "session"}
STATE: Final[Mark] = {"kind": "state"}


def marked(mark: Mark, sort: ThreadSort = "id") -> ThreadQuery:
    """The threads with this mark."""
    return given_query(metadata=mark, sort=sort)


def is_marked(context: SaverContext, thread_id: str, mark: Mark) -> Program[bool]:
    """Whether a thread is there and has this mark."""
    outline = yield from context.store.thread(thread_id)
    return outline is not None and matches(metadata_of(sound_row(outline)), mark)
