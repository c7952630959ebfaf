"""The meaning of an error of a server: whether to try again, for how long, and which error to raise.

Every step of a saver's transactions may be sent twice: rows are named by their content or their key, and a script that
finds them says so. So a step whose reply was lost is sent again, even if it may have been carried out.
"""

from typing import NamedTuple

from redis import exceptions

from threadmark.backends import Attempts, ConfigError, Outage, StoreError, ThreadmarkError, TransientStoreError
from threadmark_redis.driver.settings import Settings


class Refused(NamedTuple):
    """A server's answer that is an error."""

    code: str
    """The first word of the answer, such as "LOADING"; "ERR" if it has no code."""
    text: str
    """The rest, which may name keys, but no values."""
    error: Exception | None = None
    """The error of redis-py."""


class Lost(NamedTuple):
    """There is no connection, or it broke before every reply had come."""

    text: str
    error: Exception | None = None
    """The error that redis-py raised."""


Failure = Refused | Lost

# The parser removes the first word of errors for which it has classes, which depend on its release.
_CODES: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.NoScriptError, "NOSCRIPT"),
    (exceptions.OutOfMemoryError, "OOM"),
    (exceptions.ReadOnlyError, "READONLY"),
    (exceptions.NoPermissionError, "NOPERM"),
    (exceptions.MovedError, "MOVED"),  # before its base class
    (exceptions.AskError, "ASK"),
    (exceptions.TryAgainError, "TRYAGAIN"),
    (exceptions.MasterDownError, "MASTERDOWN"),  # before its base class
    (exceptions.ClusterDownError, "CLUSTERDOWN"),
    (exceptions.ClusterCrossSlotError, "CROSSSLOT"),
    (exceptions.ExecAbortError, "EXECABORT"),
    (exceptions.BusyLoadingError, "LOADING"),
    (exceptions.AuthenticationError, "NOAUTH"),
    (exceptions.AuthenticationWrongNumberOfArgsError, "NOAUTH"),
    (exceptions.AuthorizationError, "NOPERM"),
)

# The server refuses for now: it starts, is a replica or has become one, runs a long script, moves slots, lacks
# replicas, or has no connection left.
_PASSING = {
    "LOADING",
    "BUSY",
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "ASK",
    "MOVED",
    "NOREPLICAS",
    "UNBLOCKED",
    "UNPROVEN",  # our own: the change is not yet as durable as the saver requires
    "REPLICA",  # our own: the Sentinels' master says that it is none
    "REPLACED",  # our own: the Sentinels name another master now
}

_FULL = "max number of clients reached"


def failure_of(error: Exception) -> Failure:
    """Return the failure for an error of redis-py or of the socket."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return Refused(code, _words(error).removeprefix(f"{code} "), error)
    if isinstance(error, exceptions.ResponseError) or _FULL in str(error):
        first, _, rest = _words(error).partition(" ")
        own_code = first.isupper() and first != "ERR"
        return Refused(first, rest, error) if own_code else Refused("ERR", _words(error), error)
    return Lost(_words(error), error)


def passes(failure: Failure) -> bool:
    """Return whether the same step may succeed on another connection, now or soon."""
    return isinstance(failure, Lost) or failure.code in _PASSING or _FULL in failure.text


class Retries(Attempts):
    """The retries of one operation.

    A saver that never had a connection does not wait, because a wrong address looks like a server that is away.
    """

    def __init__(self, settings: Settings, outage: Outage) -> None:
        super().__init__(settings.timeout)
        self._settings = settings
        self._outage = outage
        self._is_first = True

    def next_wait(self, failure: Failure, *, reached: bool) -> float:
        """Return the seconds to wait before the next attempt, and log it. Raises the error that ends the attempts.

        `reached` says whether the saver ever had a connection. Call it with no connection and no lock held.
        """
        astray = failure[0] == "MOVED" and self._settings.servers.layout != "cluster"  # not followed here
        if isinstance(failure, Refused) and (astray or not passes(failure)):
            raise threadmark_error(failure, self._settings) from failure.error
        if not reached and isinstance(failure, Lost):
            raise TransientStoreError(
                f"{self._settings} could not be reached: {failure.text.rstrip('.')}. This saver never had a "
                "connection, so it does not wait for the server: see that it runs at this address"
            ) from failure.error
        if self.left <= 0:
            raise TransientStoreError(
                f"{self._settings} could not be used for {self._settings.timeout:g} s: {what_happened(failure)}"
            ) from failure.error
        wait = self._longer_wait()
        then = f"trying again in {wait:.2f} s, and for {self.left:.0f} s at most"
        self._outage.failed(what_happened(failure), then, is_first=self._is_first)
        self._is_first = False
        return wait


def what_happened(failure: Failure) -> str:
    """Describe a passing failure, with advice if there is some."""
    if isinstance(failure, Lost):
        return f"no connection, or it was lost ({failure.text})"
    event = _EVENTS.get(failure.code, "the server refuses for now")
    return f"{event} ({failure.code}: {failure.text})"


_EVENTS = {
    "LOADING": "the server starts and loads its data",
    "BUSY": "a long script keeps the server busy",
    "READONLY": "the server takes no writes, as a replica or after a failover",
    "REPLICA": "the server is a replica, and the Sentinels have not agreed on another master yet",
    "REPLACED": "the Sentinels have made another server the master",
    "MASTERDOWN": "the server is a replica that has lost its master",
    "CLUSTERDOWN": "the cluster lacks a master",
    "TRYAGAIN": "the thread's slot moves to another node",
    "ASK": "the thread's slot moves to another node",
    "MOVED": "the cluster's slots change places",
    "NOREPLICAS": "the server lacks the replicas that its min-replicas-to-write asks for",
    "UNBLOCKED": "the server became a replica while a change waited for its durability",
    "UNPROVEN": "the change is in the server's memory, but not where the saver's durability wants it",
    "ERR": "the server has no connection left; give a smaller pool_size, or the server a larger maxclients",
}


def threadmark_error(failure: Refused, settings: Settings) -> ThreadmarkError:
    """Return the Threadmark error for a server's answer."""
    said = f"{settings}: {failure.code} {failure.text.rstrip('.')}"
    if failure.code == "CROSSSLOT" or "cross slot" in failure.text.lower():
        return ConfigError(
            f"{settings}: a thread's keys must stand in one slot, and the server says that they do not "
            f"({failure.text}): give a prefix without braces"
        )
    if failure.code == "MOVED" and settings.servers.layout != "cluster":
        return ConfigError(f"{settings} is a node of a cluster: write redis+cluster:// in the URL")
    for words, remedy in _OTHER_SERVERS.items():
        if words in failure.text.lower().replace("`", "'"):  # as Redis 6 quotes it
            return ConfigError(f"{said}. {remedy}")
    advice = _ADVICE.get(failure.code)
    if advice is None and any(words in failure.text.lower() for words in _FORBIDDEN):
        advice = _COMMANDS
    return StoreError(f"{said}. {advice}" if advice else said)


_OTHER_SERVERS = {
    "cluster support disabled": "This server is no node of a cluster: write redis:// in the URL",
    "unknown command 'sentinel'": "This server is no Sentinel: give the addresses of Sentinels, which listen on port "
    "26379 by default, or write redis:// in the URL for this server alone",
}
"""Answers of servers of another kind than the URL says."""

_FORBIDDEN = ("unknown command", "not allowed", "disabled", "not supported", "unsupported")
"""Answers of providers that say something else than NOPERM."""

_COMMANDS = (
    "A saver needs EVALSHA and EVAL with the commands on hashes, sorted sets, keys and the time, and SCAN: where a "
    "provider forbids scripts, use another one (docs/how-to/redis.md has a table)"
)

_ADVICE = {
    "OOM": "The server has reached its maxmemory and may evict nothing: raise maxmemory, delete or prune threads, or "
    "give the saver a ttl",
    "NOPERM": f"Allow the user the command: ACL SETUSER <user> ~<prefix>* +@all -@dangerous +scan +info. {_COMMANDS}",
    "NOAUTH": "Give user and password in the URL: redis://user:password@host",
    "WRONGPASS": "Give user and password in the URL: redis://user:password@host",
    "MISCONF": "The server cannot write to its disk, as its log says, and takes no writes until it can",
    "TOOLONG": "Store less in one step, item or result, or copy a shorter thread; or raise the server's setting "
    "proto-max-bulk-len",
    "WRONGTYPE": "Another application uses keys with this prefix: give the saver another prefix",
}


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
