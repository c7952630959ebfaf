"""The saver's method that encrypts everything with the newest key, in both APIs."""

from threadmark.encryption import resealing
from threadmark.encryption.resealing import PlainRows
from threadmark.model import Config, OnProgress
from threadmark.program import Driver, arun, run
from threadmark.saver.kit import SaverContext


class EncryptionMethods:
    """The method of a saver that needs a keyring."""

    _driver: Driver
    _context: SaverContext

    def reencrypt(
        self, thread_id: Config | str | None = None, *, plain: PlainRows = "refuse", progress: OnProgress | None = None
    ) -> int:
        """Encrypt everything stored, or one thread, with the newest key. Returns how many rows were encrypted again.

        Without a thread, this includes the items of stores and the values of caches, if threadmark-store is installed.
        With `plain="seal"`, rows that were stored without a keyring are encrypted as well; by default they are refused.
        """
        return run(self._driver, resealing.reencrypt(self, self._context, thread_id, plain, progress))

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def areencrypt(
        self, thread_id: Config | str | None = None, *, plain: PlainRows = "refuse", progress: OnProgress | None = None
    ) -> int:
        """Like `reencrypt`, for asyncio."""
        return await arun(self._driver, resealing.reencrypt(self, self._context, thread_id, plain, progress))

    # The end of the part that scripts/write_twins.py wrote.
