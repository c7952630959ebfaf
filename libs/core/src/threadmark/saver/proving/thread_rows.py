"""Whether the row of a thread is what was written, and the metadata in it."""

from threadmark.metadata import from_json
from threadmark.model import Metadata
from threadmark.thread_store import ThreadOutline, ThreadRow, expect_sound_thread


def sound_row(outline: ThreadOutline) -> ThreadRow:
    """Return a thread's row. Raises CorruptDataError if it is not what was written."""
    expect_sound_thread(outline.row)
    return outline.row


def metadata_of(row: ThreadRow) -> Metadata:
    """Return what was set as a thread's metadata, an empty dictionary if nothing was."""
    return from_json(row.metadata) if row.metadata else {}
