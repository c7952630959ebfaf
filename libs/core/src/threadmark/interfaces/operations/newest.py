"""The newest checkpoints of threads, none of which may be missing."""

from collections.abc import Sequence

from threadmark.config import ParsedConfig
from threadmark.program import Program
from threadmark.saver.context import SaverContext
from threadmark.saver.proving.completeness import proven_row
from threadmark.store import CheckpointRow


def newest_rows(context: SaverContext, thread_ids: Sequence[str]) -> Program[dict[str, CheckpointRow]]:
    """Return the newest checkpoint of each of these threads that has one, in one question.

    Raises CorruptDataError where a newer one was recorded than is found.
    """
    found = yield from context.store.newest(thread_ids, "")
    return {thread_id: proven_row(ParsedConfig(thread_id, "", None), each) for thread_id, each in found.items()}
