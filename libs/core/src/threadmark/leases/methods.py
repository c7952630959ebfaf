"""The saver's method that makes a lease."""

from collections.abc import Callable

from threadmark.errors import ConfigError, short_repr
from threadmark.leases.lease import Lease
from threadmark.leases.taking import OnBusy, lease_request
from threadmark.model import Config, Duration
from threadmark.program import Driver
from threadmark.saver.kit import SaverContext


class LeaseMethods:
    """The saver's method that makes a lease. It serves both APIs: `with` or `async with` decides which one is used."""

    _driver: Driver
    _context: SaverContext

    def lease(
        self,
        thread_id: Config | str,
        *,
        on_busy: OnBusy = "wait",
        ttl: Duration = 30,
        holder: str | None = None,
        timeout: float | None = None,
        on_lost: Callable[[Lease], object] | None = None,
    ) -> Lease:
        """Return the right to write to a thread, for a `with` or `async with` block. One holder at a time has it.

        Start the run of the block with `lease.config`. The database compares the token of everything that is stored
        with the thread's last token, in the same statement. Once another holder has taken a lease, a write with your
        token raises LeaseLostError, however late it comes. While you hold the lease, a write without a token raises
        ThreadBusyError. The lease is renewed in the background, and by every write under it. docs/how-to/leases.md has
        examples and the limits.

        With "rollback" the block begins where the run of the other holder began: `lease.config` names that checkpoint,
        and a run that you start with it goes on from there. (Leave the `checkpoint_id` out for further runs of the
        block.) Nothing is deleted. The checkpoint is not copied either: pending writes belong to its id, from which an
        engine makes those of tasks, so a copy would lose its open questions. If the thread had no checkpoint then, an
        empty one is put as the newest. A run that itself began by a rollback is rolled back to the same place.
        Namespaces of subgraphs that keep their own memory stay as they are.

        An interrupt (Ctrl-C, a cancellation) while you wait for a lease leaves none behind. An interrupt at the instant
        in which the lease is taken may leave one, which ends after its `ttl`.

        Args:
            thread_id: The thread. It need not exist yet.
            on_busy: If another holder has a lease, "wait" until it ends, "reject" raises ThreadBusyError at once,
                "interrupt" takes the lease over, and "rollback" takes it over and goes back to where the other run
                began.
            ttl: The time without renewal after which the lease ends by itself, in seconds or as a timedelta.
            holder: The name that others see when they find the thread busy (default: this host and process).
            timeout: The seconds to wait before ThreadBusyError is raised (default: no limit).
            on_lost: A function that is called with the lease, once, when the lease is known to be lost. Any thread may
                call it.
        """
        if on_lost is not None and not callable(on_lost):
            raise ConfigError(f"on_lost must be a function of the lease, not {short_repr(on_lost)}")
        self._context.expect_unbound("lease")
        request = lease_request(thread_id, on_busy, ttl, holder, timeout)
        return Lease(self._driver, self._context, request, timeout, on_lost)
