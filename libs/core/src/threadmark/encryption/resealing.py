"""Encrypting everything stored with the newest key."""

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Any, Literal

from threadmark.encryption.store import SealedStore
from threadmark.errors import ConfigError, CorruptDataError
from threadmark.model import OnProgress, count_text
from threadmark.program import Operation, write
from threadmark.saver.kit import HOW_TO_OPEN, SaverContext, check_word, reporter_of_threads, some_threads

PlainRows = Literal["refuse", "seal"]
"""The modes of `reencrypt` for rows that were stored without a keyring."""

GROUP = "threadmark.encryption"
"""The group of entry points under which a package announces the rows that a saver's keyring seals, by a name."""

Resealing = Callable[[Any, bool], Operation[int]]
"""Seals a package's rows in a saver's database again, also plain ones if so asked. Returns how many."""

_MOST_LISTED = 10
"""How many threads an error names."""

_registered: dict[str, Resealing] = {}


def register(name: str, resealing: Resealing) -> None:
    """Have the rows of a package sealed again. It does so when it is used, and announces the same as an entry point."""
    _registered[name] = resealing


def reencrypt(
    saver: object, context: SaverContext, thread_id: object | None, plain: PlainRows, progress: OnProgress | None
) -> Operation[int]:
    """Encrypt rows again with the newest key, one transaction for each thread. Returns how many rows changed.

    A thread with a row that does not open stays as it is, and is named in an error when all others are done.
    """
    check_word(plain, PlainRows, "plain")
    context.expect_no_view()
    store = context.store
    if not isinstance(store, SealedStore):
        raise ConfigError(f"this saver has no keyring: {HOW_TO_OPEN}, with the keys of the stored rows")
    reporter = yield from reporter_of_threads(context, thread_id, progress)
    count = 0
    failed: list[CorruptDataError] = []
    of_others: list[CorruptDataError] = []
    after: str | None = ""
    while after is not None:
        names, after = yield from some_threads(context, thread_id, after)
        for name in names:
            where = f"thread {name!r}"
            try:
                count += yield from write(store.reseal, name, plain=plain == "seal")
            except CorruptDataError as error:
                failed.append(error if error.location.startswith(where) else error.at(where))
            reporter.done([name])
    for others in _all_others() if thread_id is None else ():
        try:
            count += yield from others(saver, plain == "seal")
        except CorruptDataError as error:
            of_others.append(error)
    if failed or of_others:
        raise _left_as_they_are(failed, of_others)
    return count


def _all_others() -> list[Resealing]:
    for entry in entry_points(group=GROUP):
        if entry.name not in _registered:
            register(entry.name, entry.load())
    return list(_registered.values())


def _left_as_they_are(
    of_threads: Sequence[CorruptDataError], of_others: Sequence[CorruptDataError]
) -> CorruptDataError:
    """The error for threads that could not be encrypted again, or items; that of a single one is its own."""
    failed = [*of_threads, *of_others]
    if len(failed) == 1:
        return failed[0]
    what = [count_text(len(of_threads), "thread")] if of_threads else []
    listed = list(map(str, of_threads[:_MOST_LISTED]))
    if len(of_threads) > _MOST_LISTED:
        listed.append(f"{len(of_threads) - _MOST_LISTED} more threads")
    if of_others:  # named even if there are many threads: their errors tell how many more there are
        what.append("items")
        listed += map(str, of_others)
    return CorruptDataError(f"{' and '.join(what)} stay as they are: {'; '.join(listed)}")
