"""Rotation of keys: everything stored is sealed with the newest one."""

from typing import get_args

from threadmark.errors import ConfigError, located, shown
from threadmark.model import OnProgress, PlainRows
from threadmark.program import Operation, write
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.inspecting import reporter_of_threads, some_threads
from threadmark.sealed import SealedStore


def reencrypt(
    context: SaverContext, thread_id: str | None, plain: PlainRows, progress: OnProgress | None
) -> Operation[int]:
    """Encrypt rows again with the newest key, one transaction for each thread. Returns how many rows changed."""
    if not isinstance(plain, str) or plain not in get_args(PlainRows):
        raise ConfigError(f"plain must be 'refuse' or 'seal', not {shown(plain)}")
    context.expect_no_view()
    store = context.store
    if not isinstance(store, SealedStore):
        raise ConfigError("this saver has no keyring: give it one that has the keys of the stored rows")
    reporter = yield from reporter_of_threads(context, thread_id, progress)
    count = 0
    after: str | None = ""
    while after is not None:
        names, after = yield from some_threads(context, thread_id, after)
        for name in names:
            with located(f"thread {name!r}"):
                count += yield from write(store.reseal, name, plain=plain == "seal")
            reporter.done([name])
    return count
