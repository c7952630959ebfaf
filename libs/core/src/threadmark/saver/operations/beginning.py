"""Before a saver without a keyring stores anything: the database must not be one whose rows are sealed.

A deployment that lost its keyring would store new threads in clear beside sealed ones, and nobody would see it.
"""

from threadmark.errors import ConfigError
from threadmark.program import Operation, read
from threadmark.saver.context import SaverContext
from threadmark.sealed import SealedStore
from threadmark.sealing import looks_sealed


def expect_plain(context: SaverContext) -> Operation[None]:
    """Look at one checkpoint, once for each saver. Raises ConfigError if it is sealed and there is no keyring."""
    if not isinstance(context.store, SealedStore):
        found = yield from read(context.store.sample)
        # A sealed row has its check inside, and none beside it.
        if found is not None and not found[0] and looks_sealed(found[1]):
            raise ConfigError(
                "the database is sealed: give keyring=, the keyring that its rows were stored with; without it "
                "new rows would be stored in clear"
            )
    context.first_look.done = True
