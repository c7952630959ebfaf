"""The bytes that a checkpoint or a write adds to its thread, and their stored form.

A `Draft` is a checkpoint that may be stored, and encodes its values. A `Deduplicator` compares each with similar values
of the thread, and gives it its stored form.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from threadmark.config import ParsedConfig
from threadmark.errors import ConfigError, LocatedError, SerializationError, ThreadmarkError
from threadmark.format.digests import proof
from threadmark.format.header import HEADER_TAG, Header, split_fields
from threadmark.format.rope import Deduplicated, Source, deduplicate, keys_in, patch
from threadmark.format.stored import LITERAL_LIMIT, LONGEST_TAG, Encoded, Stored, before_literal, shrink
from threadmark.ids import Version
from threadmark.model import MAPPING, SPECIAL_WRITES, ChannelVersions, Checkpoint
from threadmark.names import ID_BYTES, as_text, check_length
from threadmark.runtime.compiled import counterpart
from threadmark.saver.arguments import PLAIN_VERSIONS, SHORT, TEXT, by_channel, checked_versions, checked_writes
from threadmark.saver.batches import RECORD_OF_PACK
from threadmark.saver.caches import Known
from threadmark.saver.context import SaverContext
from threadmark.serde import Serde, Serializer
from threadmark.serde.serializer import OWN_TAGS, PLAIN
from threadmark.store.contract import WriteRow

_SOURCES = 24

_WHOLE_HEADER = 512
"""Up to this many bytes a header stands in its row whole: to store it costs less than to find the new bytes in it."""

_WHOLE_HEADER_OF_LITERALS = 1024
"""The same for a header without manifests: there, more of it is new with every step."""

_BEFORE_PLAIN = before_literal(PLAIN)

_DIGEST = attrgetter("digest")

_MUCH = 1024
"""With this many new bytes, it pays to search everything that is remembered."""

_FARTHEST = 64
"""But not a value longer than this many times the new bytes: an index is made of all of it."""


class Deduplicator:
    """The values of one change, each compared with the values of the thread that it probably repeats.

    Remembered values serve only if they are of the epoch that the change will prove; `borrowed` holds sources that were
    read in that epoch, whether or not they are still remembered.
    """

    def __init__(
        self, context: SaverContext, thread_id: str, epoch: int | None, borrowed: Mapping[bytes, Source]
    ) -> None:
        self._encoding_cache = context.encoding_cache
        self._segment_key = context.segment_key
        self._thread_id = thread_id
        self._epoch = epoch
        self._borrowed = borrowed
        self._fresh: dict[bytes, bytes] = {}
        self._used: set[bytes] = set()
        self._inherits = False
        self.has_manifests = False
        """Whether any value, so far, is not a literal."""
        self.deduplicated: list[tuple[Stored, Source]] = []
        """The deduplicated values, for the encoding cache."""
        self.emptied: list[tuple[str, bytes]] = []
        """The channels that a step has emptied, with the digests of the values that they had."""

    def store(self, encoded: tuple[str, bytes], likely: Sequence[Source], beside: Collection[bytes] = ()) -> Stored:
        """The stored form of a value: compared with sources near it, and if much of it is new, with all others."""
        tag, data = encoded
        if len(data) <= LITERAL_LIMIT:
            return Stored(tag, data, b"")
        stored, source = self._stored(encoded, likely, partial(self._deduplicated, data, likely, beside))
        if source is not None:
            self.deduplicated.append((stored, source))
        return stored

    def store_header(self, data: bytes, parent: Source | None, tag: str = HEADER_TAG) -> tuple[Stored, Source]:
        """The stored form of a header, and the header as a source for its successor's.

        It resembles its parent's, and nothing else resembles a header.
        """
        if len(data) <= (_WHOLE_HEADER if self.has_manifests else _WHOLE_HEADER_OF_LITERALS):
            return Stored(tag, data, b""), Source(data)
        proven = proof(data, parent.proof if parent else None)
        packed, fresh, manifest = patch(data, parent, self._segment_key)
        keys = keys_in(packed)
        if not keys:
            return Stored(tag, data, b""), Source(data)
        self._fresh |= fresh
        self._used.update(keys)
        return Stored(tag, packed, proven.digest), Source(data, packed, manifest, proof=proven)

    def rely(self, *, on_parent: bool) -> None:
        """Count on the parent to be there, as it was in the epoch, if it is needed to read the checkpoint."""
        self._inherits = self._inherits or on_parent

    def inherit(self) -> None:
        """Count on values that the thread already holds, some of which are more than literals."""
        self._inherits = self.has_manifests = True

    def sources(self, stored: Stored | None) -> list[Source]:
        """Return the bytes of a stored value, to compare with. Empty for literals and values not in the cache."""
        found = self._source(stored.digest) if stored is not None and stored.digest else None
        return [found] if found else []

    def siblings(self) -> list[Source]:
        """The values deduplicated before in this change, the last first."""
        return [source for _, source in reversed(self.deduplicated)]

    def likely_sources(self, ns: str, checkpoint_id: str | None, channel: str, held: Stored | None) -> list[Source]:
        """The likely sources of a channel's value after this checkpoint, if the checkpoint `held` another.

        That is its value there, or the one that it had before a step emptied it: the same tasks run in each turn.
        """
        before = self.sources(held) or self._encoding_cache.emptied(self._thread_id, ns, channel, self._epoch)
        return [*before, *self.written(ns, checkpoint_id, channel)]

    def written(self, ns: str, checkpoint_id: str | None, channel: str) -> list[Source]:
        """The writes of the step after this checkpoint to the channel, the last first."""
        return self._encoding_cache.written(self._thread_id, ns, checkpoint_id, channel, self._epoch)

    def epoch_and_segments(self) -> tuple[int | None, dict[bytes, bytes]]:
        """The rest of a change besides its rows: the epoch that must be proven, and the segments to add."""
        return (self.epoch, self.segments()) if self._inherits or self._used else (None, {})

    def segments(self) -> dict[bytes, bytes]:
        """The segments to add, in the form they are stored in."""
        return {key: shrink(data) for key, data in self._fresh.items()} if self._fresh else {}

    @property
    def epoch(self) -> int | None:
        """The epoch that must be proven: None if no value needs segments that the thread holds already."""
        return self._epoch if self._inherits or not self._used <= self._fresh.keys() else None

    def remember(self, epoch: int) -> None:
        """Once stored, a deduplicated value is a source for the next change."""
        self._encoding_cache.see_values(self._thread_id, epoch, self.deduplicated)

    def _stored(
        self, encoded: tuple[str, bytes], likely: Sequence[Source], deduplicating: Callable[[], Deduplicated]
    ) -> tuple[Stored, Source | None]:
        """The stored form of a value, and the value as a source for others, unless it is a literal."""
        tag, data = encoded
        for source in likely:  # a task's write to a channel is mostly its value after the step
            if source.proof is not None and source.data == data:
                return self._keep(Stored(tag, source.packed, source.proof.digest), source)
        proven = proof(data, likely[0].proof if likely else None)
        digest = proven.digest
        same = self._source(digest)
        if same is not None:
            return self._keep(Stored(tag, same.packed, digest), same)
        packed, fresh, manifest = deduplicating()
        if not keys_in(packed):
            return Stored(tag, data, b""), None
        self._fresh |= fresh
        return self._keep(Stored(tag, packed, digest), Source(data, packed, manifest, proof=proven))

    def _deduplicated(self, data: bytes, likely: Sequence[Source], beside: Collection[bytes]) -> Deduplicated:
        new = len(data)
        if likely or new < _MUCH:
            deduplicated = deduplicate(data, likely, self._segment_key, beside=beside)
            new = sum(map(len, deduplicated.fresh.values()))
            if new < _MUCH:
                return deduplicated
            if new == len(data):
                likely = ()
        far = self.siblings() + self._encoding_cache.recent(self._thread_id, self._epoch)
        # The best source comes first. Hardly anything of a much longer source can be used without waste.
        far.sort(key=lambda source: abs(len(source.data) - len(data)))
        worth = [source for source in far if len(source.data) <= _FARTHEST * new]
        return deduplicate(data, [*likely, *worth][:_SOURCES], self._segment_key, beside=beside)

    def _source(self, digest: bytes) -> Source | None:
        return self._borrowed.get(digest) or self._encoding_cache.source(self._thread_id, digest, self._epoch)

    def _keep(self, stored: Stored, source: Source) -> tuple[Stored, Source]:
        self._used.update(stored.segment_keys())
        self.has_manifests = self.has_manifests or bool(self._used)
        return stored, source


class Draft(NamedTuple):
    """A checkpoint that may be stored. Its values are encoded when first needed, and once."""

    id: str
    fields: Mapping[str, Any]
    """All of it."""
    values: dict[str, Any]
    versions: dict[str, Version]
    """The versions of its channels: a copy, which is stored."""
    new: Collection[str]
    """The channels that have changed."""
    reads: list[str]
    """Those of them that have a value: it is worth having the parent's, to store only the changes."""
    plain: bytes | None
    """The other fields as `split_fields` packs them, if only the usual ones are known to be there."""
    encoded: dict[str, tuple[str, bytes]]
    """Tags and bytes of the values that have been encoded, by channel."""

    def header(
        self,
        serde: Serializer,
        deduplicator: Deduplicator,
        parent: Known | None,
        sources_of: Callable[[str, Stored | None], Sequence[Source]],
    ) -> tuple[Header, bytes]:
        """Return the header with every value in its stored form, and its encoding.

        `sources_of` gives the sources of a channel's value, by its name and the parent's value.
        """
        held, has_manifests = (parent.header, parent.has_manifests) if parent else (_NO_PARENT, False)
        plain, rest = self.plain, None
        if plain is None:
            plain, rest = split_fields(self.fields, partial(encode, serde, "the checkpoint"))
        drafted = self.values, self.reads, self.new, self.versions, held, has_manifests
        values, changed, has_manifests, packed = lay_out(*drafted, plain, rest, type(serde) is Serde)
        if has_manifests:
            deduplicator.inherit()
        for channel in changed:
            encoded = self.encoded.get(channel)
            if encoded is None:
                encoded = self.encoded[channel] = encode(serde, f'channel "{channel}"', self.values[channel])
            tag, data = encoded
            if len(data) <= LITERAL_LIMIT:
                values[channel] = Stored(tag, data, b"")
            else:
                values[channel] = deduplicator.store(encoded, sources_of(channel, held.values.get(channel)))
        if parent is not None and parent.has_manifests:
            deduplicator.emptied = _emptied(self.new, held.values, values)
        header = Header(versions=self.versions, values=values, plain=plain, rest=rest)
        return header, header.to_bytes() if packed is None else packed


@counterpart("arguments.plain_checkpoint", Draft)
def draft_of(checkpoint: Checkpoint, new_versions: ChannelVersions) -> Draft:
    """Check the checkpoint and new versions for `put`. Returns them with channel names of type `str`."""
    if new_versions is None:
        raise ConfigError("new_versions must be a dictionary: an empty one, where no channel has changed")
    if not isinstance(checkpoint, MAPPING):
        raise ConfigError(f"the checkpoint must be a dictionary, not {type(checkpoint).__name__}")
    checkpoint_id = checkpoint.get("id")
    if not isinstance(checkpoint_id, str) or not checkpoint_id:
        raise ConfigError("the checkpoint has no id: give it one, as threadmark.new_id() makes them")
    if type(checkpoint_id) is not str:
        checkpoint_id = as_text(checkpoint_id, "the checkpoint's id")
    if type(checkpoint.get("v", 0)) is not int:
        raise ConfigError("the checkpoint's v must be an int: it is the number of the format it has")
    if len(checkpoint_id) > SHORT:
        check_length(checkpoint_id, ID_BYTES, "the checkpoint's id")
    values: Any = checkpoint.get("channel_values")
    versions: Any = checkpoint.get("channel_versions")
    if not _are_plain(values, versions, new_versions):
        values, versions = dict(by_channel(values, "channel_values")), checked_versions(versions)
        new_versions = by_channel(new_versions, "new_versions")
    new = new_versions.keys()
    return Draft(
        id=checkpoint_id,
        fields=checkpoint,
        values=values,
        versions=dict(versions),
        new=new,
        reads=list(filter(values.__contains__, new)),
        plain=None,
        encoded={},
    )


def _are_plain(values: Any, versions: Any, new: Any) -> bool:
    """Whether these are dictionaries whose keys are of type str, the versions being of type str or int."""
    return (
        type(values) is type(versions) is type(new) is dict
        and TEXT.issuperset(map(type, chain(values, versions, new)))
        and PLAIN_VERSIONS.issuperset(map(type, versions.values()))
    )


_NO_PARENT = Header({}, {}, b"", None)


@counterpart("putting.lay_out", Stored)
def lay_out(
    provided: dict[str, Any],
    reads: list[str],
    new: Collection[str],
    versions: dict[str, Version],
    parent: Header,
    has_manifests: bool,  # noqa: FBT001 - compiled functions are called by position
    plain: bytes,  # noqa: ARG001 - as the next two: for the counterpart
    rest: Encoded | None,  # noqa: ARG001
    is_own: bool,  # noqa: ARG001, FBT001
) -> tuple[dict[str, Any], list[str], bool, bytes | None]:
    """Find the values that a checkpoint has of its parent.

    Returns its values, each in its stored form if it has not changed, the channels whose values have changed,
    whether any value that has not is more than a literal, and the header's encoding if that is made at once. `reads`
    are the new channels that have a value; `has_manifests` is whether any of the parent's values may be more than a
    literal; `is_own` says that the serializer is this package's, so that the counterpart may encode short values.
    """
    inherited = _inherited(new, versions, parent)
    values = {**provided, **inherited}
    if len(reads) < len(values) - len(inherited):  # others cannot be inherited either
        reads = [channel for channel in provided if channel not in inherited]
    return values, reads, has_manifests and any(map(_DIGEST, inherited.values())), None


def _inherited(new: Collection[str], versions: dict[str, Version], parent: Header) -> dict[str, Stored]:
    """The parent's values of the channels that have not changed since. Few of many have, so those are left out.

    If the version has moved on, nothing is inherited: LangGraph puts a copy of a checkpoint as its sibling, with no
    new versions, and a channel that was emptied on the way stays empty.
    """
    inherited, held = parent.values.copy(), parent.versions.copy()
    for channel in new:
        inherited.pop(channel, None)
        if channel in versions:
            held[channel] = versions[channel]
    if held != versions:  # it says more than which channels are new
        for channel, _ in versions.items() ^ held.items():
            inherited.pop(channel, None)
    if not inherited.keys() <= versions.keys():  # a channel without a version cannot have kept it
        return {channel: value for channel, value in inherited.items() if channel in versions}
    return inherited


def _emptied(new: Iterable[str], before: Mapping[str, Stored], after: Mapping[str, Stored]) -> list[tuple[str, bytes]]:
    """The channels whose value was more than a literal, and no longer is, with the digests of those values."""
    emptied = []
    for channel in new:
        left = before.get(channel)
        if left is not None and left.digest and (channel not in after or not after[channel].digest):
            emptied.append((channel, left.digest))
    return emptied


def needed_segments(header: Header, stored: Stored) -> tuple[bytes, ...]:
    """The segments that reading a checkpoint takes, those of its header first."""
    keys = [*stored.segment_keys()]
    for value in header.values.values():
        if value.digest:
            keys += value.segment_keys()
    return tuple(dict.fromkeys(keys)) if keys else ()


def encode(serde: Serializer, what: str, value: Any) -> tuple[str, bytes]:
    """Encode a value. Errors name it, such as a channel, and the place inside it.

    An error of the user's own serializer is the cause of a SerializationError. Returns its tag and its bytes.
    """
    try:
        tag, data = serde.dumps_typed(value)
        if tag in OWN_TAGS and type(data) is bytes:
            return tag, data
        if type(data) is not bytes:  # some serializers return the user's bytearray, which may change
            data = bytes(memoryview(data))
        length = len(tag.encode("utf-8", "surrogatepass"))
    except LocatedError as error:
        raise error.at(what) from error.origin
    except ThreadmarkError:
        raise
    except Exception as error:
        raise SerializationError(f"the serializer cannot store a {type(value).__name__}: {error}", what) from error
    if length > LONGEST_TAG:
        raise SerializationError(f"the serializer's tag is longer than {LONGEST_TAG} bytes", what)
    return tag, data


@counterpart("arguments.encoded_writes", SPECIAL_WRITES, PLAIN, encode, Serde)
def encode_writes(
    serde: Serializer, writes: Iterable[tuple[str, Any]]
) -> tuple[dict[int, tuple[str, tuple[str, bytes]]], int]:
    """Check and encode a task's writes.

    Returns (channel, (tag, data)) by the index of each write, and the size of all data. A task has one write of a
    special channel, so the last of a batch stands for all.
    """
    encoded = {}
    for position, (channel, value) in enumerate(checked_writes(writes)):
        index = SPECIAL_WRITES.get(channel, position)
        encoded[index] = channel, encode(serde, f'channel "{channel}"', value)
    size = 0
    for _, (_, data) in encoded.values():
        size += len(data)
    return encoded, size


def rows_of_scalars(
    serde: Serializer, where: ParsedConfig, task_id: str, task_path: str, writes: object, longest: int | None
) -> list[WriteRow] | None:
    """The rows of a task's writes, if those are numbers and short texts: they need nothing that the thread holds.

    Returns None for anything else, which `encode_writes` has to see. Also if a pack of them would have more
    bytes than `longest`, or if the names of the task have to be checked.
    """
    if type(serde) is not Serde:
        return None
    thread_id, ns, checkpoint_id, _ = where
    rows = _rows_of_scalars(thread_id, ns, checkpoint_id, task_id, task_path, writes)
    return None if rows and longest is not None and len(rows[0].value) > longest else rows


@counterpart("packs.rows_of_scalars", WriteRow, RECORD_OF_PACK, SPECIAL_WRITES, _BEFORE_PLAIN, is_whole=True)
def _rows_of_scalars(
    thread_id: str,  # noqa: ARG001 - as the others: for the counterpart
    ns: str,  # noqa: ARG001
    checkpoint_id: str | None,  # noqa: ARG001
    task_id: str,  # noqa: ARG001
    task_path: str,  # noqa: ARG001
    writes: object,  # noqa: ARG001
) -> list[WriteRow] | None:
    """Return None: to look for such writes pays only if it is compiled."""
    return None
