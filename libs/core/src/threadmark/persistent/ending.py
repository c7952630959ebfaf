"""Storing of objects that were never closed: when the interpreter ends, or when the object is no longer referenced."""

import logging
from typing import Any, Protocol
from weakref import ref

from threadmark.runtime.logs import log
from threadmark.runtime.processes import close_at_exit, was_closed


class _Closes(Protocol):
    def close(self) -> None: ...


class AtExit:
    """Closes an object when the interpreter ends, if it lives until then and was not closed.

    The object refers to this, and not the other way round, so an object that is dropped earlier is freed at once.
    """

    def __init__(self, owner: _Closes, path: str) -> None:
        self._owner: ref[Any] = ref(owner)
        self._path = path
        close_at_exit(self)

    def close(self) -> None:
        """Close the object. If it cannot be stored any more, log an error."""
        owner = self._owner()
        if owner is not None:
            try:
                owner.close()
            except Exception as error:
                # Its message may have a key in it, which belongs in no log.
                name = type(error).__name__
                log.write(
                    logging.ERROR, "%s: the program has ended, and the last changes are lost: %s", self._path, name
                )
                raise

    def forget(self) -> None:
        """Leave the object alone at exit: it was closed."""
        was_closed(self)
