"""The names for authors of backends and of caches, all in one place: docs/reference/backend-contract.md describes them.

A backend imports nothing else of core. It announces a function `open_url(url, **options)` as an entry point of the
group `threadmark.savers`; a cache announces one of `threadmark.caches` that takes the URL.
"""

from threadmark.caching import Cache, CacheRequest, Filling, Got
from threadmark.errors import (
    ClosedError,
    ConfigError,
    CorruptDataError,
    MissingDependencyError,
    SchemaError,
    StoreError,
    ThreadmarkError,
    TransientStoreError,
    short_repr,
)
from threadmark.format.digests import KEY_SIZE
from threadmark.format.packs import FIRST_RECORD, MOST_KEYS, PACK, is_pack_index, unpack_writes
from threadmark.ids import UUID_BYTES, deleted_up_to, greatest_id, packed_uuid, uuid_text
from threadmark.model import SPECIAL_WRITES, UpgradeReport
from threadmark.names import ESCAPES, MESSAGES_NS, from_column, to_column
from threadmark.program import (
    Attempts,
    Driver,
    Flow,
    Operation,
    Pause,
    Program,
    Step,
    Transaction,
    aplay,
    arun,
    play,
    read,
    read_existing,
    relay,
    run,
)
from threadmark.runtime.blocks import INSIDE, expect_outside
from threadmark.runtime.compiled import counterpart, implementation
from threadmark.runtime.logs import Log, slow_after
from threadmark.runtime.outages import Outage
from threadmark.runtime.processes import close_at_exit, reset_after_fork, was_closed
from threadmark.runtime.refusals import ReadOnlyError
from threadmark.runtime.turns import Turn
from threadmark.runtime.workers import (
    Answer,
    Failed,
    WaitingCall,
    Workers,
    in_spite_of_cancelling,
    may_be_interrupted,
    run_on_loop,
    settle,
)
from threadmark.saver import Saver, SaverOptions
from threadmark.saver.arguments import check_flag, check_seconds, check_word
from threadmark.saver.options import options_in
from threadmark.store.contract import (
    ANYONE,
    NO_NUMBER,
    TOMBSTONE_MICROSECONDS,
    Added,
    Change,
    CheckpointRow,
    Follows,
    Found,
    Head,
    Key,
    Outline,
    Refusal,
    Scope,
    Store,
    WriteRow,
    all_held,
    nothing_held,
    now,
    was_added,
)
from threadmark.store.formats import Format
from threadmark.store.judging import Facts, is_outdated, judged, may_be_gone, renewal
from threadmark.store.replica import (
    LONG_MARK,
    MARK_BYTES,
    Copied,
    Entry,
    Replica,
    ReplicaStore,
    RowMarks,
    StaleTermError,
    Summary,
    Waiting,
    WriteKey,
    mark_of,
    sum_of_marks,
)
from threadmark.store.threads import (
    UNFINISHED,
    Beginning,
    LeaseRow,
    ThreadCounts,
    ThreadOutline,
    ThreadPlace,
    ThreadRow,
    ThreadScope,
    ThreadStore,
    in_scope,
    is_unfinished,
    status_of,
)

# Rows of names that belong together are easier to read than a column.
# fmt: off
__all__ = [  # noqa: RUF022 - by what they are for, as the page has them
    # the saver
    "Saver", "SaverOptions", "check_flag", "check_seconds", "check_word", "options_in", "slow_after",
    # programs and their players
    "Attempts", "Driver", "Flow", "Operation", "Pause", "Program", "Step", "Transaction", "aplay", "arun", "play",
    "read", "read_existing", "relay", "run",
    # the store
    "ANYONE", "Added", "Beginning", "Change", "CheckpointRow", "Follows", "Found", "Head", "Key", "NO_NUMBER",
    "Outline", "Refusal", "Scope", "Store", "TOMBSTONE_MICROSECONDS", "WriteRow", "all_held", "nothing_held", "now",
    "was_added",
    # threads and leases
    "LeaseRow", "ThreadCounts", "ThreadOutline", "ThreadPlace", "ThreadRow", "ThreadScope", "ThreadStore", "UNFINISHED",
    "in_scope", "is_unfinished", "status_of",
    # the format of a database
    "Format", "UpgradeReport",
    # judging a change
    "Facts", "is_outdated", "judged", "may_be_gone", "renewal",
    # replication
    "Copied", "Entry", "LONG_MARK", "MARK_BYTES", "Replica", "ReplicaStore", "RowMarks", "StaleTermError", "Summary",
    "Waiting", "WriteKey", "mark_of", "sum_of_marks",
    # rows and columns
    "ESCAPES", "FIRST_RECORD", "KEY_SIZE", "MESSAGES_NS", "MOST_KEYS", "PACK", "SPECIAL_WRITES", "UUID_BYTES",
    "deleted_up_to", "from_column", "greatest_id", "is_pack_index", "packed_uuid", "to_column", "unpack_writes",
    "uuid_text",
    # threads of the process, forks, logs, compiled code, and the blocks of transactions
    "Answer", "Failed", "INSIDE", "Log", "Outage", "Turn", "WaitingCall", "Workers", "close_at_exit", "counterpart",
    "expect_outside", "implementation", "in_spite_of_cancelling", "may_be_interrupted", "reset_after_fork",
    "run_on_loop", "settle", "was_closed",
    # caches
    "Cache", "CacheRequest", "Filling", "Got",
    # errors
    "ClosedError", "ConfigError", "CorruptDataError", "MissingDependencyError", "ReadOnlyError", "SchemaError",
    "StoreError", "ThreadmarkError", "TransientStoreError", "short_repr",
]
# fmt: on
