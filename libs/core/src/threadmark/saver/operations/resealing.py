"""Rotation of keys: everything stored is sealed with the newest one."""

from threadmark.errors import ConfigError, located
from threadmark.program import Operation, write
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.inspecting import some_threads
from threadmark.sealed import SealedStore


def reencrypt(context: SaverContext, thread_id: str | None) -> Operation[int]:
    """Encrypt rows again with the newest key, one transaction for each thread. Returns how many rows changed."""
    store = context.store
    if not isinstance(store, SealedStore):
        raise ConfigError("this saver has no keyring: give it one that has the keys of the stored rows")
    count = 0
    after: str | None = ""
    while after is not None:
        names, after = yield from some_threads(context, thread_id, after)
        for name in names:
            with located(f"thread {name!r}"):
                count += yield from write(store.reseal, name)
    return count
