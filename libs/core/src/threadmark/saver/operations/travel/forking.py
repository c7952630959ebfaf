"""A new branch or a new thread from any checkpoint, and an old checkpoint made the newest again."""

from typing import Any

from threadmark.model import Config
from threadmark.program import Operation
from threadmark.saver.context import SaverContext
from threadmark.travel import Values


def fork(
    context: SaverContext, config: Config, values: Values | None, as_thread: str | None
) -> Operation[dict[str, Any]]:
    """Begin a branch at a checkpoint, or a thread of its own."""
    raise NotImplementedError


def restore(context: SaverContext, config: Config) -> Operation[dict[str, Any]]:
    """Make a checkpoint the newest again."""
    raise NotImplementedError
