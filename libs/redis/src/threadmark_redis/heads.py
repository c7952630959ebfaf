"""The recorded heads of namespaces, and the heads computed from the checkpoints that exist.

A caller asks for one after the other, in either order, and compares them. A put in between would look like damage, so
both must be from the same moment. For one thread that holds because the transaction is strict. For all threads, both
are read of each thread at once, and so they are for one thread if others change it too often.
"""

from threadmark.backends import CorruptDataError, Head, Program
from threadmark_redis.columns import namespaces_in, parts_of
from threadmark_redis.index import Settings
from threadmark_redis.listing import live_ids
from threadmark_redis.reading import Reader
from threadmark_redis.transactions import ChangedError, HeadKind, Work, the_work

_TRIES = 16
"""How often a thread is read before everything starts again."""


def recorded_heads(settings: Settings, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
    """Return the recorded heads of a namespace (None: of all), of a thread (None: of all)."""
    work = yield from the_work()
    if thread_id is None or work.is_late:
        return _of_namespace((yield from _of_one_moment(settings, thread_id, work, "recorded")), ns)
    return _of_namespace((yield from _recorded(Reader(settings.prefix, thread_id, work))), ns)


def counted_heads(settings: Settings, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
    """Return the heads computed from the checkpoints."""
    work = yield from the_work()
    if thread_id is None or work.is_late:
        return _of_namespace((yield from _of_one_moment(settings, thread_id, work, "counted")), ns)
    work.is_strict = True
    return _of_namespace((yield from _counted(Reader(settings.prefix, thread_id, work))), ns)


def _of_one_moment(settings: Settings, thread_id: str | None, work: Work, kind: HeadKind) -> Program[list[Head]]:
    """Return the heads of one kind. Those of the other kind are read with them, and kept for the next call."""
    if (thread_id, kind) not in work.heads:
        recorded, counted = list[Head](), list[Head]()
        for name in (yield from live_ids(settings)) if thread_id is None else [thread_id]:
            try:
                some_recorded, some_counted = yield from _both(Reader(settings.prefix, name, work))
            except CorruptDataError:
                if thread_id is not None:
                    raise
                some_recorded, some_counted = [Head(name, "", "", 1)], []  # so that the missing checkpoints show
            recorded += some_recorded
            counted += some_counted
        work.heads |= {(thread_id, "recorded"): recorded, (thread_id, "counted"): counted}
    return work.heads.pop((thread_id, kind))


def _both(reader: Reader) -> Program[tuple[list[Head], list[Head]]]:
    seen = reader.work.seen
    for _ in range(_TRIES):
        seen.pop(reader.thread_id, None)  # this reading does not depend on earlier ones of the thread
        recorded = yield from _recorded(reader)
        counted = yield from _counted(reader)
        if reader.locked is not None or seen[reader.thread_id].first == seen[reader.thread_id].last:
            return recorded, counted
    raise ChangedError


def _recorded(reader: Reader) -> Program[list[Head]]:
    recorded = namespaces_in((yield from reader.head()))
    return [Head(reader.thread_id, ns, rank, count) for ns, (count, rank) in recorded.items()]


def _counted(reader: Reader) -> Program[list[Head]]:
    fields = set((yield from reader.checkpoint_names()))
    ranks: dict[str, list[str]] = {}
    for member in (yield from reader.members()):
        if member in fields:  # a checkpoint that only one of the two has cannot be found
            ns, rank = parts_of(member)
            ranks.setdefault(ns, []).append(rank)
    return [Head(reader.thread_id, ns, max(some), len(some)) for ns, some in ranks.items()]


def _of_namespace(heads: list[Head], ns: str | None) -> list[Head]:
    return [head for head in heads if ns in (None, head.ns)]
