"""Who writes where: the term that both databases hold, and what raises it."""

from typing import NamedTuple

from threadmark.errors import StoreError
from threadmark.replica_store import Replica
from threadmark.replication.model import SideName


class StaleTermError(StoreError):
    """The database has a greater term: somebody else promoted. Whoever meets it reads the terms again and follows."""

    def __init__(self, replica: Replica | None = None) -> None:
        super().__init__("the database has a greater term: another process has promoted the other side")
        self.replica = replica


class Agreement(NamedTuple):
    """What the body of a `Replica` says, which both databases hold."""

    pair: str
    """A random id, made when the two were first used together. Another one is a ConfigError."""
    name: SideName
    """Which side this database is, so that swapped URLs are noticed."""
    active: SideName
    """Who takes the writes under this term."""

    def to_json(self) -> str:
        """The body."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, body: str) -> "Agreement":
        """Read a body."""
        raise NotImplementedError
