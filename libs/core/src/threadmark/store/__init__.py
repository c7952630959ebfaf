"""The contract between a saver and its backends, and the stores that wrap another store.

Authors of backends find the contract's names here. `contract`, `threads` and `replica` explain them.
"""

from threadmark.store.contract import (
    ANYONE,
    NEVER,
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
    rank_after,
    was_added,
)

__all__ = [
    "ANYONE",
    "NEVER",
    "NO_NUMBER",
    "TOMBSTONE_MICROSECONDS",
    "Added",
    "Change",
    "CheckpointRow",
    "Follows",
    "Found",
    "Head",
    "Key",
    "Outline",
    "Refusal",
    "Scope",
    "Store",
    "WriteRow",
    "all_held",
    "nothing_held",
    "now",
    "rank_after",
    "was_added",
]
