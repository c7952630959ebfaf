"""The engine's question whether a thread has moved past a checkpoint, which is answered without reading the state.

A run that names a checkpoint asks for the newest one as well, to find out if it begins a fork, and compares only the
ids. LangGraph's interface has no method for this question: its function `checkpoint_superseded` calls `get_tuple`. A
call that comes directly from this function is recognised by the function's code. If a release of LangGraph looks at
more than the id, or asks in another way, the answer is the whole checkpoint, as for any other call.
"""

import sys
from functools import lru_cache
from types import CodeType
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from threadmark.config import config_of
from threadmark.types import CheckpointRef

_MODULE = "langgraph.pregel._checkpoint"
_FUNCTIONS = {"checkpoint_superseded": "get_tuple", "acheckpoint_superseded": "aget_tuple"}
"""The functions that ask, and the method that each of them calls."""

_ON_THE_WAY = "aget_tuple"
"""The method that may call `get_tuple` for the engine: a saver in memory does."""

_OTHER_NAMES = {"CONF", "CONFIG_KEY_CHECKPOINT_ID", "patch_configurable", "get", "checkpoint"}


def is_asked_by_engine() -> bool:
    """Return whether the caller of the calling method is the engine, and looks at nothing but the id of the answer."""
    # No frame of ours is kept in a variable: that would be a cycle, and the answer would live until it is collected.
    asking = sys._getframe(1).f_back  # noqa: SLF001 - `inspect.currentframe` is the frame of this function itself
    if asking and asking.f_code.co_name == _ON_THE_WAY:
        asking = asking.f_back
    return (
        asking is not None
        and asking.f_code.co_name in _FUNCTIONS
        and asking.f_globals.get("__name__") == _MODULE
        and _looks_only_at_the_id(asking.f_code)
    )


def only_ids(ref: CheckpointRef | None) -> CheckpointTuple | None:
    """Return a checkpoint that has its ids and nothing else."""
    if ref is None:
        return None
    config: Any = config_of(ref.thread_id, ref.ns, ref.id)
    checkpoint: Any = {"id": ref.id}
    return CheckpointTuple(config, checkpoint, {})


@lru_cache
def _looks_only_at_the_id(code: CodeType) -> bool:
    """Return whether a function names no attribute and no key of the answer but `checkpoint["id"]`."""
    keys = {each for each in code.co_consts if isinstance(each, str) and each.isidentifier()}
    return keys == {"id"} and set(code.co_names) <= {_FUNCTIONS[code.co_name], *_OTHER_NAMES}
