"""Operations over all threads, one of which is damaged: they handle the others, and name the damaged one."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from threadmark import CheckpointTuple, CorruptDataError, Saver, ThreadNotFoundError
from threadmark.model import Problem

IDLE = timedelta(days=30)


def over_all_threads(saver: Saver) -> Iterator[tuple[str, Callable[[], tuple[object, list[Problem]]]]]:
    """Yield every operation that goes over all threads, by its name: its result, and the problems it names."""
    yield "threads", lambda: _threads(saver)
    for sort in ("updated", "-created", "created", "id"):
        yield f"threads by {sort}", lambda sort=sort: (_ids(saver, sort), [])  # type: ignore[misc]  # a lambda's default
    yield "count_threads", lambda: (saver.count_threads(), [])
    yield "list", lambda: _listed(saver)
    yield "stats", lambda: (None, list(saver.stats().problems))
    yield "verify", lambda: (None, saver.verify().problems)
    yield "a dry prune", lambda: _pruned(saver, dry_run=True)
    yield "a dry retention", lambda: _retained(saver, dry_run=True)
    yield "a prune", lambda: _pruned(saver, dry_run=False)
    yield "a retention", lambda: _retained(saver, dry_run=False)
    yield "a prune of runs", lambda: (None, list(saver.delete_for_runs(["a run"]).problems))


def with_one_thread(saver: Saver, thread_id: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield operations on one thread, by their names."""
    where = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    yield "get", lambda: saver.get_tuple(where)
    yield "history", lambda: list(saver.list(where))
    yield "thread", lambda: saver.get_thread(thread_id)
    yield "tree", lambda: saver.tree(thread_id)
    yield "copy", lambda: saver.copy_thread(thread_id, "a copy")
    yield "prune", lambda: saver.prune([thread_id])
    yield "update", lambda: saver.update_thread(thread_id, title="a title", metadata={}, owner=None, expires_at=None)
    yield "lease", lambda: _leased(saver, thread_id)
    yield "delete", lambda: saver.delete_thread(thread_id)


def refused(operation: Callable[[], object], *, may_be_gone: bool) -> CorruptDataError | None:
    """Run an operation that may meet damage, or find no thread any more. Any other error is raised."""
    try:
        operation()
    except CorruptDataError as error:
        return error
    except ThreadNotFoundError:
        assert may_be_gone
    return None


def _threads(saver: Saver) -> tuple[object, list[Problem]]:
    page = saver.list_threads(limit=100)
    sound = {
        info.id: (info.owner, info.title, info.metadata, info.expires_at) for info in page.threads if not info.problems
    }
    return sound, [problem for info in page.threads for problem in info.problems]


def _ids(saver: Saver, sort: Any) -> list[str]:
    """The ids of all threads, read in pages of one."""
    found: list[str] = []
    cursor = None
    while len(found) < 100:
        page = saver.list_threads(sort=sort, limit=1, cursor=cursor)
        found += [info.id for info in page.threads]
        cursor = page.cursor
        if cursor is None:
            break
    return sorted(found)


def _listed(saver: Saver) -> tuple[list[CheckpointTuple], list[Problem]]:
    found: list[CheckpointTuple] = []
    try:
        for each in saver.list(None):
            found.append(each)  # noqa: PERF402 - the items before the error count
    except CorruptDataError as error:
        return found, [Problem("damaged", error.location, error.problem)]
    return found, []


def _pruned(saver: Saver, *, dry_run: bool) -> tuple[object, list[Problem]]:
    pruned = saver.prune(None, older_than=IDLE, dry_run=dry_run)
    return pruned.threads, list(pruned.problems)


def _retained(saver: Saver, *, dry_run: bool) -> tuple[object, list[Problem]]:
    report = saver.apply_retention(idle_for=IDLE, keep_last=2, max_bytes=10**9, dry_run=dry_run)
    return report.threads, report.problems


def _leased(saver: Saver, thread_id: str) -> None:
    with saver.lease(thread_id):
        pass
