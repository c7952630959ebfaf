"""The context that every operation of a saver works with, the options of a saver, and the expiry of threads."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from typing import Any, NamedTuple, TypedDict

from threadmark.errors import ConfigError, short_repr
from threadmark.format.digests import segment_key
from threadmark.format.incarnations import MOST_KNOWN, KnownIncarnations
from threadmark.format.stored import EXPANSION_BYTES
from threadmark.model import Duration
from threadmark.program import Operation, Program, read, write
from threadmark.runtime.refusals import REFUSALS
from threadmark.saver.arguments import check_flag, check_keep_last, microseconds_in
from threadmark.saver.caches import EncodingCache, SegmentCache
from threadmark.saver.options import checked_duration
from threadmark.sealing import Cipher, Keyring, SegmentNames, cipher_of
from threadmark.serde import Serde, Serializer
from threadmark.serde.serializer import finds_parts
from threadmark.store.contract import Store, now
from threadmark.store.owned import OwnedStore
from threadmark.store.threads import is_sound_thread, thread_row

CACHE_BYTES = 64 * 1024 * 1024
"""The default capacity of the encoding cache."""


class StorageOptions(TypedDict, total=False):
    """The options of a saver about storage, on every backend."""

    cache_bytes: int
    """The most bytes of recent encodings to remember, so that a put need not read its parent."""
    max_expansion_bytes: int
    """How many bytes the values of a checkpoint may take beyond the size that their stored bytes account for. Values
    that were put need none. More is refused as damaged, so that a crafted row cannot take all memory."""
    pause_gc: bool
    """Whether to pause the garbage collector while a large value is decoded (default: False). Lists of many objects
    then decode up to twice as fast, but the pause applies to the whole process, so other threads' garbage waits, too.
    """
    keyring: Keyring | None
    """The keyring that seals every row (AES-256-GCM). Rows that it does not open are refused."""
    seal_metadata: bool
    """Whether to encrypt metadata as well (default: True). A filter then reads the metadata of all checkpoints."""


class ThreadOptions(TypedDict, total=False):
    """The options of a saver about its threads, on every backend."""

    owner_key: str | None
    """The key of a run's configuration that names the owner of a new thread (default: "user_id")."""
    ttl: Duration | None
    """How long a thread lives after its last write. After that `apply_retention` removes it."""
    refresh_on_read: bool
    """Whether a read extends a thread's life as well (default: False). It costs each get a second query."""
    keep_last: int | None
    """How many checkpoints of a namespace a put leaves, and up to an eighth more, by the rules of `prune`."""
    expect_newest: bool
    """Whether to refuse a put whose parent is not the newest checkpoint (default: False); see `put`."""


class SaverOptions(StorageOptions, ThreadOptions, total=False):
    """The options of a saver, on every backend."""

    serde: Serializer | None
    """The serializer of values. The default is `threadmark.Serde()`."""


class ThreadRules(NamedTuple):
    """The saver's rules for threads."""

    owner: str | None = None
    """The owner to whose threads the saver is limited."""
    owner_key: str | None = "user_id"
    ttl: int = 0
    """Microseconds, 0 for none."""
    refresh_on_read: bool = False
    keep_last: int | None = None
    expect_newest: bool = False


class KeyringCheck:
    """Whether the saver has checked that its keyring, or the lack of one, fits the database. Its clones share this."""

    done = False
    of_items = False
    """Whether a store of items has done so, whose rows the saver does not read."""


class SaverContext(NamedTuple):
    """A backend's store, the serializer of values, and the shared memory of recent encodings."""

    store: Store
    serde: Serializer
    encoding_cache: EncodingCache
    keyring_check: KeyringCheck
    segment_key: Callable[[bytes], bytes] = segment_key
    """Derives the key of a segment from its bytes. Uses a secret if rows are encrypted."""
    segment_names: SegmentNames | None = None
    """Detects a wrong secret, if rows are encrypted."""
    expansion: int = EXPANSION_BYTES
    """How many bytes the values of a checkpoint may take beyond the size that their stored bytes account for."""
    pause_gc: bool = False
    """Whether the garbage collector is paused while a large value is decoded."""
    threads: ThreadRules = ThreadRules()
    cipher: Cipher | None = None
    """Seals rows with the keys of the keyring."""
    seal: Callable[..., Store] | None = None
    """Makes the store that seals rows, if rows are encrypted; with `owner=`, one that also proves the owner of a
    thread."""
    longest_pack: int | None = None
    """`Store.longest_pack` of the backend."""
    moves: Mapping[tuple[str, str, str], str] | None = None
    """The ranks of checkpoints that are moved here from another database, by thread, namespace and id; None if none are
    moved. A moved one counts as stored at its own `ts`, and its parent need not be there."""
    is_bound: bool = False
    """Whether everything runs in one transaction, which others end."""

    def of_owner(self, owner: str) -> "SaverContext":
        """Return the context limited to one owner's threads. Raises ConfigError if it is limited to another owner."""
        if self.threads.owner == owner:
            return self
        self.expect_no_view()
        store = self.store if self.seal is None else self.seal(owner=owner)
        return self._replace(store=OwnedStore(store, owner), threads=self.threads._replace(owner=owner))

    def without_classes(self) -> "SaverContext":
        """Return a context that shows objects by name and fields. Values of another serializer are loaded as always."""
        return self._replace(serde=self.serde.showing()) if finds_parts(self.serde) else self

    def expect_no_view(self) -> None:
        """Raise ConfigError if the context is limited to one owner's threads."""
        owner = self.threads.owner
        if owner is not None:
            raise ConfigError(f"only the threads of {owner!r} are here: ask the saver that this is a view of")

    def expect_unbound(self, method: str) -> None:
        """Raise ConfigError if everything runs in one transaction: `method` needs others."""
        if self.is_bound:
            raise ConfigError(
                f"this saver is part of a transaction, in which {method}() cannot work: "
                f"call {method}() of the saver that it was made of"
            )

    def segment_cache(self, segments: Mapping[bytes, bytes] | None = None) -> SegmentCache:
        """A cache for the segments that one transaction reads."""
        return SegmentCache(segments, expansion=self.expansion, names=self.segment_names)


def _thread_rules(options: SaverOptions) -> ThreadRules:
    owner_key, ttl, keep_last = options.get("owner_key", "user_id"), options.get("ttl"), options.get("keep_last")
    refresh, expect_newest = options.get("refresh_on_read", False), options.get("expect_newest", False)
    check_flag(refresh, "refresh_on_read")
    check_flag(expect_newest, "expect_newest")
    if owner_key is not None and (not isinstance(owner_key, str) or not owner_key):
        raise ConfigError(f"owner_key must be a key of the configuration or None, not {short_repr(owner_key)}")
    if ttl is not None:
        ttl = checked_duration(ttl, "ttl")
    if refresh and ttl is None:
        raise ConfigError("refresh_on_read needs a ttl, the time for which a thread that was read lives on")
    check_keep_last(keep_last)
    microseconds = 0 if ttl is None else microseconds_in(ttl)
    return ThreadRules(None, owner_key, microseconds, refresh, keep_last, expect_newest)


def checked_serde(serde: Serializer) -> Serializer:
    """Return the serializer. Raises ConfigError if it lacks a method."""
    if not isinstance(serde, Serializer):
        raise ConfigError(f"a serializer has dumps_typed and loads_typed, and a {type(serde).__name__} has not both")
    return serde


def check_options(saver: type, options: Mapping[str, Any], own: tuple[str, ...] = ()) -> None:
    """Refuse an option that a saver of this class, made with its `own`, does not have. The error lists those it has."""
    unknown = sorted(options.keys() - SaverOptions.__annotations__.keys())
    if unknown:
        known = [*own, *_own_options(saver), *SaverOptions.__annotations__]
        meant = "".join(f", did you mean {name!r}?" for name in get_close_matches(unknown[0], known, n=1))
        raise ConfigError(f"unknown option {unknown[0]!r}{meant or ':'} {saver.__name__} takes {', '.join(known)}")


def _own_options(saver: type) -> list[str]:
    """Return the keyword arguments that the classes of a saver take in addition to the options of all savers."""
    signatures = [inspect.signature(vars(each)["__init__"]) for each in saver.__mro__[:-1] if "__init__" in vars(each)]
    parameters = [each for signature in signatures for each in signature.parameters.values()]
    return list(dict.fromkeys(each.name for each in parameters if each.kind is each.KEYWORD_ONLY))


def context_of(store: Store, options: SaverOptions, sealed: Callable[..., Store] | None = None) -> SaverContext:
    """Return the context of a saver with these options. `sealed` is the class of a store that seals another store's
    rows.
    """
    serde, cache_bytes = options.get("serde"), options.get("cache_bytes", CACHE_BYTES)
    if not isinstance(cache_bytes, int) or cache_bytes < 0:
        raise ConfigError(f"cache_bytes must be a number of bytes from 0 on, not {short_repr(cache_bytes)}")
    serializer = Serde() if serde is None else checked_serde(serde)
    expansion = options.get("max_expansion_bytes")
    if expansion is not None and (not isinstance(expansion, int) or expansion < 0):
        raise ConfigError(f"max_expansion_bytes must be a number of bytes from 0 on, not {short_repr(expansion)}")
    pause_gc = options.get("pause_gc", False)
    check_flag(pause_gc, "pause_gc")
    context = SaverContext(
        store,
        serializer,
        EncodingCache(cache_bytes),
        KeyringCheck(),
        expansion=EXPANSION_BYTES if expansion is None else expansion,
        pause_gc=pause_gc,
        threads=_thread_rules(options),
        longest_pack=store.longest_pack,
    )
    keyring, seal_metadata = options.get("keyring"), options.get("seal_metadata", True)
    check_flag(seal_metadata, "seal_metadata")
    if keyring is None:
        return context
    if not isinstance(keyring, Keyring):
        raise ConfigError(f"keyring must be a threadmark.Keyring, not a {type(keyring).__name__}")
    if sealed is None:
        raise ConfigError("this saver does not seal rows: leave keyring= out")
    known = KnownIncarnations(context.encoding_cache.epoch, most=MOST_KNOWN if cache_bytes else 0)
    cipher = cipher_of(keyring)
    seal = partial(sealed, store, cipher, seal_metadata=seal_metadata, known=known)
    return context._replace(
        store=seal(),
        segment_key=cipher.segment_key,
        segment_names=SegmentNames(cipher),
        cipher=cipher,
        seal=seal,
    )


def first_expiry(context: SaverContext) -> int | None:
    """Return the time at which a thread that begins now expires, in microseconds since 1970. None means never.

    Not every put writes a thread's row. A thread is given a quarter more than the `ttl`, and again when less than the
    `ttl` is left. So it never expires early, and its row is written once in a quarter of the `ttl`.
    """
    ttl = context.threads.ttl
    return now() + ttl + ttl // 4 if ttl else None


def is_due(context: SaverContext, expires_at: int | None) -> bool:
    """Return whether a thread's life is to be extended. A thread that never expires keeps living."""
    return bool(context.threads.ttl) and expires_at is not None and expires_at - now() < context.threads.ttl


def refresh_expiry(context: SaverContext, thread_id: str) -> Operation[None]:
    """Extend the life of a thread that was read, if it is due."""
    outline = yield from read(context.store.thread, thread_id)
    if outline is not None and is_due(context, outline.row.expires_at):
        with suppress(*REFUSALS):
            yield from extend_expiry(context, thread_id)


def extend_expiry(context: SaverContext, thread_id: str) -> Operation[bool]:
    """Extend a thread's life. Returns whether the thread exists: it may have expired and been removed before."""
    return (yield from write(_extend, context, thread_id))


def _extend(context: SaverContext, thread_id: str) -> Program[bool]:
    yield from context.store.lock(thread_id)
    outline = yield from context.store.thread(thread_id)
    # A damaged row is left to its reader; a new check would hide it.
    if outline is not None and is_due(context, outline.row.expires_at) and is_sound_thread(outline.row):
        yield from context.store.set_thread(thread_row(outline.row._replace(expires_at=first_expiry(context))))
    return outline is not None
