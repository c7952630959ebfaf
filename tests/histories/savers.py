"""The savers that the clients use: Threadmark's, and LangGraph's own.

A maker's savers are opened by a separate module, so that a process imports no other maker's.
"""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

OURS = "Threadmark"
THEIRS = "LangGraph"


class Place(NamedTuple):
    """A saver and its database."""

    maker: str
    backend: str
    """memory, sqlite, postgres or redis."""
    address: str
    """For LangGraph's SQLite saver a path, for all others a URL."""

    @property
    def ours(self) -> bool:
        """Whether it is a saver of this project: it copies threads, and refuses to continue a deleted checkpoint."""
        return self.maker == OURS

    @property
    def in_memory(self) -> bool:
        """Whether all clients must be in one process."""
        return self.backend == "memory"

    def version(self) -> str:
        """The version of the saver's package."""
        if self.ours:
            return version("threadmark")
        package = "langgraph-checkpoint" if self.in_memory else f"langgraph-checkpoint-{self.backend}"
        return f"{package} {version(package)}"


def opened(place: Place) -> AbstractContextManager[Any]:
    """The saver for the blocking API."""
    found: AbstractContextManager[Any] = _maker(place).opened(place.backend, place.address)
    return found


def aopened(place: Place) -> AbstractAsyncContextManager[Any]:
    """The saver for asyncio."""
    found: AbstractAsyncContextManager[Any] = _maker(place).aopened(place.backend, place.address)
    return found


def set_up(place: Place) -> None:
    """Make the tables, so that the clients find them."""
    with opened(place) as saver:
        saver.setup()


def _maker(place: Place) -> Any:
    return import_module("histories.ours" if place.ours else "histories.theirs")
