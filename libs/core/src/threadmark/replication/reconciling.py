"""Comparing two databases thread by thread, and copying what is missing."""

from threadmark.model import OnProgress
from threadmark.replication.model import Reconciled
from threadmark.replication.steps import Exchange, Side


def reconcile(
    source: Side,
    target: Side,
    term: int,
    *,
    both_ways: bool = False,
    dry_run: bool = False,
    after: str = "",
    progress: OnProgress | None = None,
) -> Exchange[Reconciled]:
    """Make the target have what the source has, and with `both_ways` the other way round as well.

    First both outboxes are copied. Then pages of summaries are compared, and only threads that differ are read. A
    thread that the source once gave to the target (`ReplicaStore.copied`) and has no more was deleted there, and goes
    here; rows that it has no more although its epoch has grown since were removed. What the target has by itself stays,
    and is reported or with `both_ways` copied. `after` is where an earlier one ended (`Progress.thread_id`).
    """
    raise NotImplementedError
