"""The methods of a saver about a thread's past, in both APIs. The logic is in the modules of the operations."""

from typing import Any

from threadmark.model import Config
from threadmark.program import Driver, arun, run
from threadmark.saver.kit import SaverContext, given_count
from threadmark.travel import blaming, diffing, forking, history, searching
from threadmark.travel.model import Blame, Diff, HistoryPage, SearchPage, Tree, Values


class TravelMethods:
    """What a saver tells about a thread's past, and how to go back to it."""

    _driver: Driver
    _context: SaverContext

    def history(
        self, thread: Config | str, *, ns: str | None = "", limit: int = 50, cursor: str | None = None
    ) -> HistoryPage:
        """Return a page of a thread's checkpoints, newest first, without reading a value.

        A damaged checkpoint is an entry that says what is wrong. A thread that is not there has no entries.

        Args:
            thread: The thread's id, or a configuration. With a `checkpoint_id` the history begins at that checkpoint,
                itself included; where it is not there, there are no entries.
            ns: Only this namespace, "" for the graph's own; None for all.
            limit: The most entries to return.
            cursor: The one of the page before. What is added meanwhile does not shift the next page.
        """
        return run(self._driver, history.history(self._context, thread, ns, given_count(limit, "limit"), cursor))

    def tree(self, thread: Config | str) -> Tree:
        """Return all checkpoints of a thread, and the branches that they form, in all namespaces.

        It reads no value and no header. A thread that is not there has an empty tree.
        """
        return run(self._driver, history.tree(self._context, thread))

    def diff(self, a: Config, b: Config, *, path: str | None = None, limit: int = 1000) -> Diff:
        """Return what differs between two checkpoints of a thread, by channel and by place inside of values.

        What both have in common by their manifests is not read. Objects are compared and shown by name and fields.

        Args:
            a: The one, mostly the older. A configuration without a `checkpoint_id` names the newest.
            b: The other one.
            path: Only what stands at this path, which may be a channel.
            limit: The most changes to return; `Diff.left_out` counts the others.
        """
        return run(self._driver, diffing.diff(self._context, a, b, path, given_count(limit, "limit")))

    def blame(self, thread: Config | str, path: str) -> Blame | None:
        """Return which checkpoint first held the present value at a path. Returns None where there is nothing.

        "Present" is the newest checkpoint, or the one that the configuration names. Checkpoints where the channel's
        stored value is the same are passed over without reading it.
        """
        return run(self._driver, blaming.blame(self._context, thread, path))

    def fork(self, config: Config, values: Values | None = None, *, as_thread: str | None = None) -> dict[str, Any]:
        """Begin a branch at a checkpoint, or a thread of its own, and return the configuration to go on with.

        The new checkpoint has the state of the one that `config` names, with `values` in place of what these channels
        hold, and shares its bytes. Nothing else changes. The branch is the newest of the namespace then, so that a run
        which names no checkpoint goes on there. Pending writes stay with the old checkpoint: the nodes that come next
        run again, and an open question is asked again. docs/how-to/time-travel.md says why.

        Raises CheckpointNotFoundError where there is no such checkpoint, and ConflictError if `as_thread` is taken.

        Args:
            config: The checkpoint. Without a `checkpoint_id` it is the newest.
            values: New values of channels, whole: a channel's reducer is the graph's own affair.
            as_thread: The id of a new thread, which gets the checkpoint and its ancestors under their ids; also what
                waits there (open questions, what has finished beside them), unless the run has gone on since.
        """
        return run(self._driver, forking.fork(self._context, config, values, as_thread))

    def restore(self, config: Config) -> dict[str, Any]:
        """Make a checkpoint the newest again, without losing what came after it. Returns its new configuration.

        It is forked, and what came after it stays as another branch. One that is the newest already is left as it is,
        with its pending writes.
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
        """Return where a text occurs in a thread's values, pending writes and metadata, whatever its case.

        A value that several checkpoints hold is read once and named once, with the checkpoint that first had it.

        Args:
            thread: The thread's id, or a configuration that names it.
            text: The text.
            ns: Only this namespace, "" for the graph's own; None for all.
            limit: The most matches to return.
            cursor: The one of the page before.
        """
        return run(self._driver, searching.search(self._context, thread, text, ns, given_count(limit, "limit"), cursor))

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def ahistory(
        self, thread: Config | str, *, ns: str | None = "", limit: int = 50, cursor: str | None = None
    ) -> HistoryPage:
        """Like `history`, for asyncio."""
        return await arun(self._driver, history.history(self._context, thread, ns, given_count(limit, "limit"), cursor))

    async def atree(self, thread: Config | str) -> Tree:
        """Like `tree`, for asyncio."""
        return await arun(self._driver, history.tree(self._context, thread))

    async def adiff(self, a: Config, b: Config, *, path: str | None = None, limit: int = 1000) -> Diff:
        """Like `diff`, for asyncio."""
        return await arun(self._driver, diffing.diff(self._context, a, b, path, given_count(limit, "limit")))

    async def ablame(self, thread: Config | str, path: str) -> Blame | None:
        """Like `blame`, for asyncio."""
        return await arun(self._driver, blaming.blame(self._context, thread, path))

    async def afork(
        self, config: Config, values: Values | None = None, *, as_thread: str | None = None
    ) -> dict[str, Any]:
        """Like `fork`, for asyncio."""
        return await arun(self._driver, forking.fork(self._context, config, values, as_thread))

    async def arestore(self, config: Config) -> dict[str, Any]:
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
            self._driver, searching.search(self._context, thread, text, ns, given_count(limit, "limit"), cursor)
        )

    # The end of what scripts/write_twins.py wrote.
