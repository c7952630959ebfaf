"""The saver's methods for a thread's past, in both APIs. The modules of this package have the logic."""

from typing import Any

from threadmark.model import Config
from threadmark.program import Driver, arun, run
from threadmark.saver.kit import SaverContext, checked_count
from threadmark.travel import blaming, diffing, forking, history, searching
from threadmark.travel.model import Blame, Diff, HistoryPage, SearchPage, Tree, Values


class TravelMethods:
    """The methods of a saver that look at a thread's past and go back to it."""

    _driver: Driver
    _context: SaverContext

    def history(
        self, thread: Config | str, *, ns: str | None = "", limit: int = 20, cursor: str | None = None
    ) -> HistoryPage:
        """Return a page of a thread's checkpoints, newest first, without reading a value.

        A damaged checkpoint has an entry whose `problem` describes the damage. A thread that does not exist has no
        entries.

        Args:
            thread: The thread's id, or a configuration. With a `checkpoint_id` the history begins at that checkpoint
                and includes it; if the checkpoint does not exist, there are no entries.
            ns: Only this namespace, "" for the graph's own; None for all.
            limit: The most entries to return.
            cursor: The cursor of the page before. Checkpoints that are added between two calls do not shift the next
                page.
        """
        return run(self._driver, history.history(self._context, thread, ns, checked_count(limit, "limit"), cursor))

    def tree(self, thread: Config | str) -> Tree:
        """Return all checkpoints of a thread in all namespaces, and the branches that they form.

        This reads no value and no header. A thread that does not exist has an empty tree.
        """
        return run(self._driver, history.tree(self._context, thread))

    def diff(self, a: Config | str, b: Config | str, *, path: str | None = None, limit: int = 1000) -> Diff:
        """Return the differences between two checkpoints of a thread, by channel and by place inside values.

        Parts that both share by their manifests are not read. Objects are compared and returned by name and fields.

        Args:
            a: The first checkpoint, usually the older one. A configuration without a `checkpoint_id` names the newest.
            b: The second checkpoint.
            path: Compare only the part at this path, which may be a channel.
            limit: The most changes to return; `Diff.left_out` counts the others.
        """
        return run(self._driver, diffing.diff(self._context, a, b, path, checked_count(limit, "limit")))

    def blame(self, thread: Config | str, path: str) -> Blame | None:
        """Return the checkpoint that first held the present value at a path, or None if there is nothing.

        "Present" means in the newest checkpoint, or in the one that the configuration names. Checkpoints with the same
        stored value of the channel are skipped without reading it.
        """
        return run(self._driver, blaming.blame(self._context, thread, path))

    def fork(
        self, config: Config | str, values: Values | None = None, *, as_thread: str | None = None
    ) -> dict[str, Any]:
        """Begin a branch at a checkpoint, or a new thread, and return the configuration to go on with.

        The new checkpoint has the state of the one that `config` names, with `values` in place of the present values of
        these channels, and shares its bytes. Nothing else changes. The branch becomes the newest of the namespace, so a
        run that names no checkpoint goes on there. Pending writes stay with the old checkpoint: the next nodes run
        again, and an open question is asked again. docs/how-to/time-travel.md explains why.

        Raises CheckpointNotFoundError if there is no such checkpoint, and ConflictError if `as_thread` is taken.

        Args:
            config: The checkpoint. Without a `checkpoint_id` it is the newest.
            values: New values of channels, whole: reducers are not applied.
            as_thread: The id of a new thread. It gets the checkpoint and its ancestors under the same ids, and the
                pending writes (open questions, results of finished tasks) unless the run has gone on since.
        """
        return run(self._driver, forking.fork(self._context, config, values, as_thread))

    def restore(self, config: Config | str) -> dict[str, Any]:
        """Make a checkpoint the newest again, without losing later ones. Returns its new configuration.

        The checkpoint is forked, and the later ones stay as another branch. If it is the newest already, it is left as
        it is, with its pending writes.
        """
        return run(self._driver, forking.restore(self._context, config))

    def search(
        self,
        thread: Config | str,
        text: str,
        *,
        ns: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> SearchPage:
        """Return the places of a text in a thread's values, pending writes and metadata, ignoring case.

        A value that several checkpoints share is read once and reported once, with the checkpoint that first had it.

        Args:
            thread: The thread's id, or a configuration that names it.
            text: The text to find.
            ns: Only this namespace, "" for the graph's own; None for all.
            limit: The most matches to return.
            cursor: The cursor of the page before.
        """
        return run(
            self._driver, searching.search(self._context, thread, text, ns, checked_count(limit, "limit"), cursor)
        )

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def ahistory(
        self, thread: Config | str, *, ns: str | None = "", limit: int = 20, cursor: str | None = None
    ) -> HistoryPage:
        """Like `history`, for asyncio."""
        return await arun(
            self._driver, history.history(self._context, thread, ns, checked_count(limit, "limit"), cursor)
        )

    async def atree(self, thread: Config | str) -> Tree:
        """Like `tree`, for asyncio."""
        return await arun(self._driver, history.tree(self._context, thread))

    async def adiff(self, a: Config | str, b: Config | str, *, path: str | None = None, limit: int = 1000) -> Diff:
        """Like `diff`, for asyncio."""
        return await arun(self._driver, diffing.diff(self._context, a, b, path, checked_count(limit, "limit")))

    async def ablame(self, thread: Config | str, path: str) -> Blame | None:
        """Like `blame`, for asyncio."""
        return await arun(self._driver, blaming.blame(self._context, thread, path))

    async def afork(
        self, config: Config | str, values: Values | None = None, *, as_thread: str | None = None
    ) -> dict[str, Any]:
        """Like `fork`, for asyncio."""
        return await arun(self._driver, forking.fork(self._context, config, values, as_thread))

    async def arestore(self, config: Config | str) -> dict[str, Any]:
        """Like `restore`, for asyncio."""
        return await arun(self._driver, forking.restore(self._context, config))

    async def asearch(
        self,
        thread: Config | str,
        text: str,
        *,
        ns: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> SearchPage:
        """Like `search`, for asyncio."""
        return await arun(
            self._driver, searching.search(self._context, thread, text, ns, checked_count(limit, "limit"), cursor)
        )

    # The end of the part that scripts/write_twins.py wrote.
