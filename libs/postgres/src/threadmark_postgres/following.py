"""Adding what another database told: a change is made where the thread has come up to the one before it."""

from threadmark.names import to_column
from threadmark.program import Program
from threadmark.store.contract import Added, Change, Follows, was_added
from threadmark_postgres.adding import AddingStore, shorter
from threadmark_postgres.schema import in_schema
from threadmark_postgres.sql import fencing, replication
from threadmark_postgres.steps import Query, Rows


class FollowingStore(AddingStore):
    """The part of the store that adds, with the changes of another database."""

    def add(self, change: Change) -> Program[Added]:
        """Like `AddingStore.add`, which knows nothing of what the thread is to have come from elsewhere."""
        return super().add(change) if change.copied is None else self._follow(change, change.copied)

    def _follow(self, change: Change, follows: Follows) -> Program[Added]:
        """One statement for a thread that came before. More where that one adds nothing."""
        query = self._following(change, follows)
        rows: Rows = (yield query) if query is not None else []
        if not rows:
            return (yield from self._lock_and_follow(change, follows))
        ((epoch, is_there, _, expires_at),) = rows
        if is_there and change.checkpoints:
            return Added(epoch, exists=True)
        return Added(epoch, expires_at=expires_at, pack_left_out=is_there)

    def _following(self, change: Change, follows: Follows) -> Query | None:
        """Return the statement for the change, None where only several can add it."""
        if change.touches or not (change.checkpoints or change.writes):
            return None
        # With it a thread in which this may have been deleted goes the other way.
        first = change.checkpoints[0].outline.id if change.checkpoints else change.writes[0].checkpoint_id
        statement, params = shorter(change._replace(continues=first), recorded=True)
        if params is None:
            return None
        query = in_schema(fencing.following(statement), self._schema)
        return Query(query, (*params, change.term, *follows), likely_last=True)

    def _lock_and_follow(self, change: Change, follows: Follows) -> Program[Added]:
        """Lock the thread, compare how far it has come from the other database, add, and note how far it is now."""
        if (yield from self.is_outdated(change)):
            return Added(0, "term")
        yield from self.lock_lease(change.thread_id)
        thread = to_column(change.thread_id)
        ((is_behind,),) = yield from self._execute(replication.IS_BEHIND, thread, follows.previous, follows.epoch)
        if is_behind:
            return Added(0, "behind")
        added = yield from super().add(change._replace(copied=None))
        if was_added(change, added):
            yield from self._execute(replication.SET_COPIED, thread, follows.position, follows.epoch)
        return added
