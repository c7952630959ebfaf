"""Encrypting everything stored with the newest key."""

from collections.abc import Sequence
from typing import Literal

from threadmark.encryption.store import SealedStore
from threadmark.errors import ConfigError, CorruptDataError, located
from threadmark.model import OnProgress
from threadmark.program import Operation, write
from threadmark.saver.kit import SaverContext, check_word, reporter_of_threads, some_threads

PlainRows = Literal["refuse", "seal"]
"""The modes of `reencrypt` for rows that were stored without a keyring."""

_MOST_LISTED = 10
"""How many threads an error names."""


def reencrypt(
    context: SaverContext, thread_id: object | None, plain: PlainRows, progress: OnProgress | None
) -> Operation[int]:
    """Encrypt rows again with the newest key, one transaction for each thread. Returns how many rows changed.

    A thread with a row that does not open stays as it is, and is named in an error when all others are done.
    """
    check_word(plain, PlainRows, "plain")
    context.expect_no_view()
    store = context.store
    if not isinstance(store, SealedStore):
        raise ConfigError("this saver has no keyring: give it one that has the keys of the stored rows")
    reporter = yield from reporter_of_threads(context, thread_id, progress)
    count = 0
    failed: list[CorruptDataError] = []
    after: str | None = ""
    while after is not None:
        names, after = yield from some_threads(context, thread_id, after)
        for name in names:
            try:
                with located(f"thread {name!r}"):
                    count += yield from write(store.reseal, name, plain=plain == "seal")
            except CorruptDataError as error:
                failed.append(error)
            reporter.done([name])
    if failed:
        raise _left_as_they_are(failed)
    return count


def _left_as_they_are(failed: Sequence[CorruptDataError]) -> CorruptDataError:
    """The error for threads that could not be encrypted again; that of a single one is its own."""
    if len(failed) == 1:
        return failed[0]
    listed = "; ".join(map(str, failed[:_MOST_LISTED]))
    more = f"; and {len(failed) - _MOST_LISTED} more" if len(failed) > _MOST_LISTED else ""
    return CorruptDataError(f"{len(failed)} threads stay as they are: {listed}{more}")
