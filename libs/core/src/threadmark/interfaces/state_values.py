"""A state as channels, and channels as a state.

A plain dictionary whose keys are plain strings is stored with a channel for each key: then only the keys that change
cost anything. Whatever else a state may be stands in one channel. Either comes back as what it was.
"""

from collections.abc import Mapping
from typing import Any

_ROOT = "__root__"
"""LangGraph's name for the one channel of a graph whose state is a single value."""


def channels_of(state: Any) -> dict[str, Any]:
    """Return the channels of a state."""
    if type(state) is dict and state and all(type(key) is str and not key.startswith("__") for key in state):
        return state
    return {_ROOT: state}


def state_of(channels: Mapping[str, Any]) -> Any:
    """Return the state that has these channels: of a graph's checkpoint, a dictionary of them."""
    return channels[_ROOT] if channels.keys() == {_ROOT} else dict(channels)
