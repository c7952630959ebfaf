"""Which checkpoint the command line means: an id, the beginning of one, or `~2` for two before the newest."""

from typing import Any

from threadmark import ConfigError, SaverProtocol
from threadmark_cli.exits import NotThereError

_BACK = "~"


def config_of(saver: SaverProtocol, thread_id: str, at: str | None, ns: str) -> dict[str, Any]:
    """Return the configuration that names the checkpoint; the newest where `at` is None."""
    if at is None:
        return _config(thread_id, ns, _back(saver, thread_id, ns, 0))
    if at.startswith(_BACK):
        count = at.removeprefix(_BACK)
        if not (count.isascii() and count.isdigit()):
            raise ConfigError(f"{at!r} names no checkpoint: write ~2 for two before the newest, ~0 for the newest")
        return _config(thread_id, ns, _back(saver, thread_id, ns, int(count)))
    ids = [node.id for node in saver.tree(thread_id).nodes if node.ns == ns and node.id.startswith(at)]
    if at in ids:
        ids = [at]
    if not ids:
        raise NotThereError(_none(saver, thread_id, ns, f"whose id begins with {at!r}"))
    if len(ids) > 1:
        raise ConfigError(f"{at!r} is the beginning of {len(ids)} checkpoints: write more of the id")
    return _config(thread_id, ns, ids[0])


def _back(saver: SaverProtocol, thread_id: str, ns: str, count: int) -> str:
    entries = saver.history(thread_id, ns=ns, limit=count + 1).entries
    if len(entries) <= count:
        raise NotThereError(_none(saver, thread_id, ns, f"{count} before the newest" if count else ""))
    return entries[count].id


def _none(saver: SaverProtocol, thread_id: str, ns: str, which: str) -> str:
    if saver.thread(thread_id) is None:
        return f"there is no thread {thread_id!r}"
    where = f" in namespace {ns!r}" if ns else ""
    return f"thread {thread_id!r} has no checkpoint{f' {which}' if which else ''}{where}"


def _config(thread_id: str, ns: str, checkpoint_id: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}
