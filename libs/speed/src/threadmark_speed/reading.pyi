from collections.abc import Callable, Mapping
from typing import Any

from threadmark.format.header import Header
from threadmark.format.stored import Stored
from threadmark.model import Checkpoint, CheckpointTuple, Metadata, PendingWrite
from threadmark.saver.batches import Write
from threadmark.saver.context import SaverContext
from threadmark.saver.loading import LoadedCheckpoint
from threadmark.store.contract import Outline

def decoded(
    made: type[CheckpointTuple],
    read_fields: Callable[[SaverContext, Outline, Header], Checkpoint],
    read_channel: Callable[[SaverContext, Outline, str, Stored, Mapping[bytes, bytes]], Any],
    read_metadata: Callable[[Outline], Metadata],
    read_write: Callable[[SaverContext, str, Write, Mapping[bytes, bytes]], PendingWrite],
    context: SaverContext,
    loaded: LoadedCheckpoint,
    short: bool,
) -> CheckpointTuple: ...
