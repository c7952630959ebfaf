"""The ledger of one call site: its claims, in the metadata of the newest checkpoint of the site's namespace.

A change of a claim is a put that expects the checkpoint that was read, so of two that change at once one begins again.
Results are values of channels. So a listing reads no value, and a claim without a result takes one row.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any, Literal, NamedTuple
from uuid import UUID

from threadmark.config import ParsedConfig
from threadmark.effects.holder import Holder, running
from threadmark.errors import CorruptDataError, EffectFailedError, LocatedError
from threadmark.ids import new_id
from threadmark.program import Operation, Program, read_itself, write_and_reclaim
from threadmark.saver.kit import (
    LoadedCheckpoint,
    Namespace,
    Rule,
    SaverContext,
    carry_out,
    checkpoint_location,
    decode_channel,
    decode_metadata,
    draft_of,
    load,
    removal_of,
    store,
)
from threadmark.store.contract import Key, Outline

EffectState = Literal["running", "done", "failed", "unknown", "not done"]
"""The state of an effect: its call may still run, has returned, has raised an exception, has ended without a trace, or
did not happen and may be made."""

SOURCE = "effect"
PREFIX = "effects:"

Levels = Sequence[Sequence[str]]
"""A checkpoint of a run: pairs of a namespace and an id, from the graph's own to that of the innermost subgraph."""


class Claim(NamedTuple):
    """An effect of a call site, as its row has it: only values of JSON."""

    number: int
    """Its number at the site. The channels of its values end with it."""
    claim: str
    """The id of the claim, which each holder makes."""
    key: str
    """The idempotency key."""
    state: EffectState
    ordinal: int
    """Its place among the calls of this site along a line of history, from 1 on."""
    task_ordinal: int
    """Its place among those of its task."""
    used_at: Sequence[Levels]
    """The checkpoints whose tasks have asked for it, the one that claimed it first."""
    run: str | None
    holder: Sequence[Any]
    token: int | None
    """That of the lease that it was claimed under."""
    renewals: int
    claimed_at: str
    settled_at: str | None = None
    step: int | None = None
    node: str | None = None
    error: Sequence[str] | None = None
    """The name of the exception's class, and its text."""
    undo: str | None = None
    """The name of the function that takes the effect back."""

    @property
    def value_channel(self) -> str:
        """The channel of its result or exception."""
        return f"value:{self.number}"

    @property
    def undo_channel(self) -> str:
        """The channel of its arguments, for the function that takes it back."""
        return f"undo:{self.number}"

    @property
    def process(self) -> Holder:
        """The process that claimed it last."""
        return Holder(*self.holder)

    @property
    def is_settled(self) -> bool:
        """Whether it has an outcome."""
        return self.state in ("done", "failed")

    def has_no_holder(self) -> bool:
        """Whether the call has certainly ended, with its process or without a result."""
        return self.process.has_ended() or (self.process.is_here() and self.claim not in running)


class Site(NamedTuple):
    """A call site: the place of its ledger."""

    thread_id: str
    ns: str
    name: str
    token: int | None = None
    owner: tuple[str, str] | None = None
    """The key and the name of the thread's owner, for the case that a claim is the first row of the thread."""

    def config(self, newest: str | None) -> dict[str, Any]:
        """Return the configuration of a put after the newest checkpoint of the site."""
        named = {"thread_id": self.thread_id, "checkpoint_ns": self.ns, "checkpoint_id": newest}
        owner = {} if self.owner is None else {self.owner[0]: self.owner[1]}
        return {"configurable": {**owner, **named, **({} if self.token is None else {"lease_token": self.token})}}


class Table(NamedTuple):
    """The claims of a site as they were read or written."""

    claims: Sequence[Claim] = ()
    newest: str | None = None
    """The checkpoint that has them."""
    versions: Mapping[str, Any] = {}
    loaded: LoadedCheckpoint | None = None

    def with_claim(self, claim: Claim) -> Sequence[Claim]:
        """Return the claims, with this one in the place of the one with its number."""
        return [*(each for each in self.claims if each.number != claim.number), claim]

    def without(self, numbers: Collection[int]) -> "Table":
        """Return the table without some claims and their values."""
        left = [claim for claim in self.claims if claim.number not in numbers]
        channels = {channel for claim in left for channel in (claim.value_channel, claim.undo_channel)}
        versions = {channel: version for channel, version in self.versions.items() if channel in channels}
        return self._replace(claims=left, versions=versions)

    def of_id(self, claim: str) -> Claim | None:
        """The claim with an id."""
        return next((each for each in self.claims if each.claim == claim), None)


def site_digest(context: SaverContext, parts: bytes) -> str:
    """Return the namespace of a call site. It does not reveal the inputs if rows are sealed."""
    digest = sha256(parts).digest()
    return PREFIX + (context.segment_key(b"\0" + digest) + context.segment_key(b"\1" + digest)).hex()[:32]


def key_of(*parts: object) -> str:
    """Return an idempotency key that these parts decide."""
    return str(UUID(bytes=sha256(repr(parts).encode()).digest()[:16], version=5))


def moment() -> str:
    """Return the present time as it is stored."""
    return datetime.now(UTC).isoformat()


def read_table(context: SaverContext, site: Site) -> Operation[Table]:
    """Read the claims of a site, from the database itself."""
    loaded = yield from read_itself(load, context, ParsedConfig(site.thread_id, site.ns, None))
    if loaded is None:
        return Table()
    return Table(claims_of(loaded.outline), loaded.outline.id, loaded.header.versions, loaded)


def claims_of(outline: Outline) -> list[Claim]:
    """Return the claims in the metadata of a site's checkpoint."""
    try:
        return [Claim(**each) for each in decode_metadata(outline)["effect"]["claims"]]
    except (KeyError, TypeError) as error:
        raise CorruptDataError("it has no claims of effects", checkpoint_location(outline)) from error


def write_table(
    context: SaverContext, site: Site, table: Table, claim: Claim, values: Mapping[str, Any] | None = None
) -> Operation[Table]:
    """Store a claim that was added or changed, with values of channels. Raises ConflictError if the table has changed.

    The row names the checkpoints whose tasks have made the calls, so it is pruned with the last of them.
    """
    values = values or {}
    versions = {**table.versions, **dict.fromkeys(values, max(table.versions.values(), default=0) + 1)}
    checkpoint = {
        "v": 4,
        "id": new_id(),
        "ts": moment(),
        "channel_values": dict(values),
        "channel_versions": versions,
        "versions_seen": {},
    }
    claims = table.with_claim(claim)
    metadata = {
        "source": SOURCE,
        "step": -1 if claim.step is None else claim.step,
        "parents": {level[0]: level[1] for level in claim.used_at[-1]} if claim.used_at else {},
        "callers": sorted({levels[0][1] for each in claims for levels in each.used_at}),
        "effect": {"name": site.name, "claims": [each._asdict() for each in claims]},
    }
    where = ParsedConfig(site.thread_id, site.ns, table.newest, site.token)
    new = {channel: versions[channel] for channel in values}
    draft = draft_of(checkpoint, new)  # type: ignore[arg-type]  # a dictionary with every key of a Checkpoint
    config = site.config(table.newest)
    stored = yield from store(context, config, where, draft, metadata, expect_newest=True)
    return Table(claims, stored["configurable"]["checkpoint_id"], versions)


def remove_superseded(context: SaverContext, site: Site) -> Operation[None]:
    """Remove the rows of a site before its newest, which nothing reads. Damage is left to the next reader.

    Each row has all claims, so without this the rows of a site would take the square of its calls.
    """
    with suppress(CorruptDataError):
        yield from write_and_reclaim(_superseded_removed, context, site)


def _superseded_removed(context: SaverContext, site: Site) -> Program[None]:
    if (yield from context.store.lock(site.thread_id)) is not None:
        rule = Rule(everything=False, choose=partial(_superseded, site.ns))
        removal = yield from removal_of(context, site.thread_id, rule)
        yield from carry_out(context, site.thread_id, removal)


def _superseded(ns: str, namespace: Namespace) -> set[Key]:
    return {outline.key for outline in namespace.outlines[1:] if outline.ns == ns}


def value_in(context: SaverContext, table: Table, channel: str) -> Any:
    """Decode the value of a channel of a table that was read. None if it has none."""
    loaded = table.loaded
    value = None if loaded is None else loaded.header.values.get(channel)
    if loaded is None or value is None:
        return None
    return decode_channel(context, loaded.outline, channel, value, loaded.data)


def outcome_in(context: SaverContext, site: Site, table: Table, claim: Claim) -> Any:
    """Return the result of a settled claim, or raise its exception."""
    if claim.state == "done":
        return value_in(context, table, claim.value_channel)
    name, text = claim.error or ("Exception", "")
    failure = EffectFailedError(f"{described(site, claim)} failed before with {name}: {text}")
    try:
        error = value_in(context, table, claim.value_channel)
    except LocatedError as refusal:  # its class is not here, or may not be loaded
        raise failure from refusal
    if not isinstance(error, Exception):
        raise failure
    error.add_note(f"(the stored exception of {described(site, claim)})")
    raise error


def described(site: Site, claim: Claim) -> str:
    """Name an effect in a message."""
    return f"effect {site.name!r} of thread {site.thread_id!r} (key {claim.key})"


class EffectInfo(NamedTuple):
    """An effect of a thread, without its result."""

    id: str
    """Its id in the thread, for `settle`."""
    thread_id: str
    name: str
    state: EffectState
    key: str
    """The idempotency key that its function gets."""
    claimed_at: datetime
    settled_at: datetime | None
    step: int | None
    node: str | None
    holder: str
    """The process that claimed it last."""
    error: str | None
    """The name and text of the exception that ended the call, if there is one."""
    undo: str | None
    """The function or the words that take it back."""
    checkpoint_ids: Sequence[str]
    """The checkpoints of the thread's own namespace whose tasks have asked for it."""
    version: str
    """Changes with its state, so that `settle` settles the effect as it was listed."""


def version_of(claim: Claim) -> str:
    """Return a text that changes with the state of an effect."""
    return f"{claim.claim} {claim.state} {claim.settled_at}"


def info_of(thread_id: str, ns: str, name: str, claim: Claim) -> EffectInfo:
    """Return the description of a claim."""
    state: EffectState = "unknown" if claim.state == "running" and claim.has_no_holder() else claim.state
    return EffectInfo(
        id=f"{ns.removeprefix(PREFIX)}/{claim.number}",
        thread_id=thread_id,
        name=name,
        state=state,
        key=claim.key,
        claimed_at=datetime.fromisoformat(claim.claimed_at),
        settled_at=datetime.fromisoformat(claim.settled_at) if claim.settled_at else None,
        step=claim.step,
        node=claim.node,
        holder=str(claim.process),
        error=": ".join(claim.error) if claim.error else None,
        undo=claim.undo,
        checkpoint_ids=[level[1] for levels in claim.used_at for level in levels[:1]],
        version=version_of(claim),
    )
