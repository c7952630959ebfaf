"""The kit: the parts from which operations outside of core are made.

`travel`, `interfaces` and the other folders above core import this module, the public ones (`OPEN` in
`tests/test_house.py`), and nothing else of core. So you can change anything that is not named here and run core's tests
alone; a change to a name in this module may affect every folder.
"""

from threadmark.format.digests import (
    CHECK_SIZE,
    HOW_TO_OPEN,
    HOW_TO_SEAL,
    NOT_OPENED,
    NOT_SEALED,
    OF_ANOTHER_LIFE,
    pack_plain,
    proof,
    segment_key,
)
from threadmark.format.header import Header, plain_fields, with_fields
from threadmark.format.rope import Source, layout
from threadmark.format.stored import LITERAL_LIMIT, Allowance, Stored, announced_size, expand, expect_compression
from threadmark.saver.arguments import (
    ThreadQuery,
    check_config,
    check_flag,
    check_keep_last,
    check_progress,
    check_seconds,
    check_word,
    checked_count,
    checked_owner,
    checked_run_id,
    cursor_of,
    microseconds_of,
    place_of,
    thread_query,
    time_of,
)
from threadmark.saver.batches import (
    Write,
    count_writes,
    is_pack,
    is_record,
    members,
    members_or_itself,
    opened_write,
    proven_batches,
    proven_writes,
    without_records,
)
from threadmark.saver.caches import BoundedCache, EncodingCache, Known, SegmentCache, fill
from threadmark.saver.completeness import lacking, missing, prove_absent, prove_complete, proven_row
from threadmark.saver.context import SaverContext, check_options, checked_serde, first_expiry, refresh_expiry
from threadmark.saver.decoding import decode_channel, decode_items, decode_metadata, decode_part, decode_write, decoded
from threadmark.saver.loading import NO_EPOCH, CheckpointLoader, LoadedCheckpoint, missing_headers
from threadmark.saver.next_nodes import TRIGGERS, header_tag
from threadmark.saver.operations.beginning import add_first, check_keyring, upgrade
from threadmark.saver.operations.delta import ANCESTORS_ASKED, counted_channels, is_snapshot, may_be_delta
from threadmark.saver.operations.listing import (
    Item,
    Reader,
    all_outlines,
    good,
    listing,
    load_many,
    loaders,
    open_headers,
    thread_ids,
    whole,
)
from threadmark.saver.operations.parts import load_value, parse_place
from threadmark.saver.operations.pruning import keep_at_most, keep_last
from threadmark.saver.operations.reading import expect_plain_once, get_tuple, load
from threadmark.saver.operations.removing import Rule, carry_out, delete_checkpoint, delete_thread, removal_of
from threadmark.saver.operations.reporting import damaged, reporter_of_threads, some_threads
from threadmark.saver.operations.retaining import apply_retention, retention_rule
from threadmark.saver.operations.threads import count_threads, filtered, get_thread, list_threads
from threadmark.saver.operations.writing import (
    add_change,
    busy_error,
    last_lease,
    live_on,
    lost_error,
    refusal_error,
    store,
)
from threadmark.saver.options import checked_duration, option_in_url
from threadmark.saver.paging import Pages, new_cursor, parts_of_cursor
from threadmark.saver.paths import Path, channel_text, key_text, name_text, parse_path
from threadmark.saver.proving import (
    checkpoint_location,
    checkpoint_row,
    header_location,
    metadata_of,
    prove_checkpoint,
    prove_write,
    rebound_write,
    sound_row,
    task_location,
    with_check,
    write_location,
)
from threadmark.saver.storing import Deduplicator, Draft, draft_of, encode, needed_segments
from threadmark.saver.survivors import Namespace, sends_lie_with_parent

# Rows of names that belong together are easier to read than a column.
# fmt: off
__all__ = [  # noqa: RUF022 - by their purpose
    # the types of arguments
    "Path", "ThreadQuery", "channel_text", "check_config", "check_flag", "check_keep_last",
    "check_progress", "check_seconds", "check_word", "cursor_of", "draft_of", "checked_count", "checked_duration",
    "checked_owner",
    "thread_query", "checked_run_id", "key_text", "microseconds_of", "name_text", "option_in_url", "parse_path",
    "place_of", "time_of",
    # reading
    "ANCESTORS_ASKED", "BoundedCache", "CheckpointLoader", "EncodingCache", "Item", "Known", "LoadedCheckpoint",
    "NO_EPOCH", "Pages", "Reader", "SegmentCache", "all_outlines", "counted_channels", "decode_channel", "decode_items",
    "decode_metadata", "decode_part", "decode_write", "decoded", "expect_plain_once", "fill", "get_tuple",
    "parse_place", "good", "is_snapshot", "listing", "load", "load_many", "load_value", "loaders", "may_be_delta",
    "missing_headers", "new_cursor", "open_headers", "parts_of_cursor", "thread_ids", "whole",
    # proving
    "CHECK_SIZE", "HOW_TO_OPEN", "HOW_TO_SEAL", "NOT_OPENED", "NOT_SEALED", "OF_ANOTHER_LIFE", "Write",
    "checkpoint_location", "checkpoint_row", "count_writes", "header_location", "is_pack", "is_record", "lacking",
    "members", "members_or_itself", "metadata_of", "missing", "opened_write", "prove_absent", "prove_checkpoint",
    "prove_complete", "prove_write", "proven_batches", "proven_row", "proven_writes", "rebound_write", "sound_row",
    "task_location", "with_check", "without_records", "write_location",
    # writing
    "Allowance", "Deduplicator", "Draft", "Header", "LITERAL_LIMIT", "Source", "Stored", "add_change", "add_first",
    "announced_size", "busy_error", "check_keyring", "encode", "expand", "expect_compression", "first_expiry", "layout",
    "live_on", "lost_error", "needed_segments", "pack_plain", "plain_fields", "proof", "refresh_expiry",
    "refusal_error", "TRIGGERS", "header_tag", "segment_key", "store", "with_fields",
    # removing
    "Namespace", "Rule", "carry_out", "delete_checkpoint", "delete_thread", "keep_at_most", "keep_last", "removal_of",
    "apply_retention", "retention_rule", "sends_lie_with_parent",
    # threads
    "count_threads", "filtered", "get_thread", "list_threads", "last_lease",
    # the parts that operations share
    "SaverContext", "check_options", "checked_serde", "damaged", "reporter_of_threads", "some_threads", "upgrade",
]
# fmt: on
