"""The method of a saver with which a lease begins."""

from collections.abc import Callable
from datetime import timedelta

from threadmark.errors import ConfigError, shown
from threadmark.leases.lease import Lease
from threadmark.leases.taking import OnBusy, given_lease
from threadmark.program import Driver
from threadmark.saver.kit import SaverContext


class LeaseMethods:
    """The method of a saver with which a lease begins: one for both APIs, because its block says which one is used."""

    _driver: Driver
    _context: SaverContext

    def lease(
        self,
        thread_id: str,
        *,
        on_busy: OnBusy = "wait",
        ttl: float | timedelta = 30,
        holder: str | None = None,
        timeout: float | None = None,
        on_lost: Callable[[Lease], object] | None = None,
    ) -> Lease:
        """Return the right to write to a thread, for a `with` or `async with` block: one at a time has it.

        Start the run of the block with `lease.config`. Whatever is stored with its token is compared with the last one
        of the thread, in the database and in the same statement: once somebody else has taken a lease, it raises
        LeaseLostError, however late it comes. Whoever has no token is refused with a ThreadBusyError meanwhile. The
        lease is renewed in the background and by what is stored. docs/how-to/leases.md has examples, and the limits.

        With "rollback" the block begins where the run of the other holder began: `lease.config` names that checkpoint,
        and a run that is started with it goes on from there. (Further runs of the block leave the `checkpoint_id` out.)
        Nothing is deleted, and no copy of the checkpoint is made: pending writes belong to its id, from which an engine
        makes those of tasks, so that the open questions of a copy would be lost.
        If the thread had no checkpoint then, an empty one is put as the newest. A run that began by a rollback itself
        is rolled back to the same place. Namespaces of subgraphs that keep a memory of their own are left as they are.

        An interrupt (Ctrl-C, a cancellation) while a lease is waited for leaves none. In the instant in which it is
        taken, one may be left that nobody releases: it is over after its `ttl`.

        Args:
            thread_id: The thread. It need not be there yet.
            on_busy: Where somebody else holds a lease, "wait" until it ends, "reject" raises ThreadBusyError at once,
                "interrupt" takes the lease over, and "rollback" does so and goes back to where the other run began.
            ttl: After how many seconds without renewal, or which timedelta, the lease ends by itself.
            holder: Who is named to others that find the thread busy (default: this host and process).
            timeout: How many seconds to wait, before a ThreadBusyError is raised (default: for as long as it takes).
            on_lost: Called with the lease, once, when it is known to be lost, by whichever thread finds out.
        """
        if on_lost is not None and not callable(on_lost):
            raise ConfigError(f"on_lost must be a function of the lease, not {shown(on_lost)}")
        wanted = given_lease(thread_id, on_busy, ttl, holder, timeout)
        return Lease(self._driver, self._context, wanted, timeout, on_lost)
