"""The flow of a call that is made once: claim, call, settle; and the ways on from a claim without a result.

The first call puts its claim with "nothing is here" as its condition, so it asks nothing before. A call that was made
before fails at that, and reads. The flow yields transactions, pauses and calls of functions, so it serves both APIs.
"""

import logging
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar
from uuid import uuid4

from threadmark.effects.holder import running, this_process
from threadmark.effects.line import Position, position_of
from threadmark.effects.place import Place
from threadmark.effects.table import (
    Claim,
    EffectState,
    Site,
    Table,
    described,
    key_of,
    moment,
    outcome_in,
    read_table,
    remove_superseded,
    write_table,
)
from threadmark.errors import (
    ConfigError,
    ConflictError,
    EffectFailedError,
    EffectLostError,
    EffectUnknownError,
    LeaseLostError,
    SerializationError,
    short_repr,
)
from threadmark.program import Operation, Pause, Transaction
from threadmark.runtime.logs import log
from threadmark.saver.kit import SaverContext

Per = Literal["thread", "branch", "run"]
"""Which earlier calls count as this one: see docs/how-to/effects.md."""

OnUnknown = Literal["raise", "run", "ask"]
"""The way on from a call of which it is not known whether it happened."""


class NotDone(Enum):
    """The class of `NOT_DONE`."""

    NOT_DONE = "not done"


NOT_DONE: Final = NotDone.NOT_DONE
"""The answer of a `check` function that says that a call did not happen."""


class Policy(NamedTuple):
    """The options of a call."""

    per: Per
    on_unknown: OnUnknown
    check: Callable[[str], Any] | None
    retry_on: tuple[type[Exception], ...]
    unknown_on: tuple[type[Exception], ...]
    claim_ttl: float


class Work(NamedTuple):
    """A function with its arguments, and a way to take back what it does."""

    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    wants_key: bool
    undo: str | None
    """The name of the function that takes it back."""

    def call(self, key: str) -> Callable[[], Any]:
        """Return the call, with the idempotency key if the function asks for it."""
        kwargs = {**self.kwargs, "idempotency_key": key} if self.wants_key else self.kwargs
        return lambda: self.function(*self.args, **kwargs)


class Call(NamedTuple):
    """A request: to call a function, and to renew its claim while it runs."""

    function: Callable[[], Any]
    claim: str | None = None
    renew: Callable[[], Operation[bool]] | None = None


_outer: ContextVar[frozenset[str]] = ContextVar("threadmark_effects", default=frozenset())


@contextmanager
def calling(claim: str | None) -> Iterator[None]:
    """A block in which the function of a claim is called. It must not wait for its own claim."""
    token = _outer.set(_outer.get() | {claim} if claim else _outer.get())
    try:
        yield
    finally:
        _outer.reset(token)


Request: TypeAlias = Transaction[Any] | Pause | Call
T = TypeVar("T")
Steps: TypeAlias = Generator[Request, Any, T]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5

_TIDIED = 16
"""Before each claim of this number, a site looks for claims and rows that nothing needs any more: it has to read the
thread for that."""

_QUESTION = "Did this call happen? Nothing has been called again."
_ANSWERS: Sequence[EffectState] = ("done", "not done", "failed")


class UncalledError(ConfigError):
    """A blocking call was given the function of a coroutine, so nothing of it has run."""


class _OvertakenError(Exception):
    """Another call has changed the claims first, or still runs: look again, perhaps after a pause."""

    def __init__(self, pause: Pause | None = None) -> None:
        super().__init__()
        self.pause = pause


class Watch:
    """How long a claim of another process has not been renewed, by the clock of this process."""

    def __init__(self, ttl: float) -> None:
        self._ttl = ttl
        self._seen: tuple[str, int] | None = None
        self._since = 0.0
        self._pause = _FIRST_PAUSE

    def is_over(self, claim: Claim) -> bool:
        """Look at a claim. Returns whether it did not change for its whole time."""
        seen = claim.claim, claim.renewals
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since >= self._ttl

    def pause(self) -> Pause:
        """Return the pause before the next look."""
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)
        return Pause(min(pause, self._ttl / 4))


class OneCall:
    """A call that is to be made once: its place, its site and its options."""

    def __init__(
        self, context: SaverContext, place: Place, site: Site, work: Work, policy: Policy, *, count: int | None
    ) -> None:
        self._context = context
        self._place = place
        self._site = site
        self._work = work
        self._policy = policy
        self._count = count
        """Which call of its task it is. None if a key names it."""
        self._claim = uuid4().hex
        self._watch = Watch(policy.claim_ttl)

    def once(self) -> Steps[Any]:
        """Make the call, or return or raise the outcome that is stored."""
        table, position = Table(), Position(self._count or 1)
        if self._place.in_engine and self._must_read():
            table, position = yield from self._read()
        running.add(self._claim)  # before it is stored: it must never be taken for one that has ended
        try:
            while True:
                try:
                    return (yield from self._attempt(table, self._match(table, position), position))
                except _OvertakenError as overtaken:
                    if overtaken.pause is not None:
                        yield overtaken.pause
                table, position = yield from self._read()
        finally:
            running.discard(self._claim)

    def _attempt(self, table: Table, found: Claim | None, position: Position) -> Steps[Any]:
        """Go on from the claim that was found, or from none."""
        if found is not None and found.claim == self._claim:  # it was stored, and the answer was lost
            return (yield from self._run(table, found))
        if found is None and self._is_due(table):
            yield from remove_superseded(self._context, self._site)
        if found is None or found.state == "not done":
            claim = self._new_claim(table, position) if found is None else self._taken(found)
            return (yield from self._run((yield from self._claimed(table, claim)), claim))
        if found.is_settled:
            used = found._replace(used_at=self._used(found))
            if used != found:
                yield from self._written(table, used)
            return outcome_in(self._context, self._site, table, found)
        if found.claim in _outer.get():
            raise ConfigError(f"{described(self._site, found)} makes the same call inside of itself: give one a key=")
        if found.state == "running" and not self._has_no_holder(found):
            raise _OvertakenError(self._watch.pause())
        return (yield from self._resolve(table, found))

    def _read(self) -> Steps[tuple[Table, Position]]:
        """Read the claims of the site, and find the place of this call among them."""
        table = yield from read_table(self._context, self._site)
        place, per = self._place, self._policy.per
        if not place.in_engine or (self._count is None and per == "thread"):
            return table, Position(self._count or 1)
        position = yield from position_of(
            self._context,
            place.thread_id,
            place.levels,
            self._count or 1,
            table.claims,
            finds_run=per == "run",
            only_own=per == "branch" and self._count is not None,
            whole=self._is_due(table),
        )
        return table.without(position.pruned), position

    def _is_due(self, table: Table) -> bool:
        """Whether the site is to be tidied before its next claim, as only few of its claims are."""
        return len(table.claims) % _TIDIED == _TIDIED - 1

    def _must_read(self) -> bool:
        """Whether the claim depends on stored rows: on the run, or on the task's own checkpoint being there."""
        per = self._policy.per
        return per == "run" or (per == "branch" and self._place.durability != "sync")

    def _match(self, table: Table, position: Position) -> Claim | None:
        """The claim of an earlier attempt at this call."""
        per, levels = self._policy.per, [*map(list, self._place.levels)]
        for claim in table.claims:
            if not self._place.in_engine:
                return claim
            is_of_task = levels in claim.used_at
            if self._count is None:
                is_same = per == "thread" or is_of_task or claim in position.earlier
                if is_same if per != "run" else claim.run == position.run:
                    return claim
            elif per == "branch":
                if is_of_task and claim.task_ordinal == self._count:
                    return claim
            elif claim.ordinal == position.ordinal and (per == "thread" or claim.run == position.run):
                return claim
        return None

    def _new_claim(self, table: Table, position: Position) -> Claim:
        """Return the claim of this call."""
        place, site = self._place, self._site
        levels = [[*level] for level in place.levels]
        where = None if self._count is None and self._policy.per == "thread" else (levels, self._count)
        return Claim(
            number=1 + max((claim.number for claim in table.claims), default=0),
            claim=self._claim,
            key=key_of(site.thread_id, site.ns, where),
            state="running",
            ordinal=position.ordinal,
            task_ordinal=self._count or 1,
            used_at=[levels] if levels else [],
            run=position.run,
            holder=[*this_process()],
            token=place.token,
            renewals=0,
            claimed_at=moment(),
            step=place.step,
            node=place.node,
            undo=self._work.undo,
        )

    def _taken(self, claim: Claim) -> Claim:
        """Return a claim as this call takes it over."""
        return claim._replace(
            claim=self._claim,
            state="running",
            holder=[*this_process()],
            token=self._place.token,
            renewals=0,
            claimed_at=moment(),
            settled_at=None,
            error=None,
            used_at=self._used(claim),
        )

    def _used(self, claim: Claim) -> Sequence[Any]:
        levels = [[*level] for level in self._place.levels]
        return claim.used_at if not levels or levels in claim.used_at else [*claim.used_at, levels]

    def _claimed(self, table: Table, claim: Claim) -> Steps[Table]:
        """Store a claim of this call, with the arguments if it can be taken back."""
        values = {claim.undo_channel: [[*self._work.args], dict(self._work.kwargs)]} if self._work.undo else {}
        try:
            return (yield from self._written(table, claim, values))
        except SerializationError as error:
            where = f"the arguments of {described(self._site, claim)}"
            raise SerializationError(
                f"{where}: {error}. undo_with= stores them: leave it out, or pass others"
            ) from error

    def _written(self, table: Table, claim: Claim, values: Mapping[str, Any] | None = None) -> Steps[Table]:
        try:
            return (yield from write_table(self._context, self._site, table, claim, values))
        except ConflictError:
            raise _OvertakenError from None

    def _has_no_holder(self, claim: Claim) -> bool:
        token = self._place.token
        if token is not None and claim.token is not None and token > claim.token:
            return True
        return claim.has_no_holder() or self._watch.is_over(claim)

    def _resolve(self, table: Table, claim: Claim) -> Steps[Any]:
        """Do as the policy says with a call of which it is not known whether it happened."""
        policy = self._policy
        if policy.check is None and policy.on_unknown != "run":
            if claim.state != "unknown":
                table = yield from self._written(table, claim._replace(state="unknown"))
            if policy.on_unknown == "raise":
                raise EffectUnknownError(self._unknown(claim))
            answer = yield Call(lambda: _asked(self._site, claim))
            return (yield from self._answered(table, claim, answer))
        taken = self._taken(claim)
        table = yield from self._claimed(table, taken)
        check = policy.check
        if check is None:
            return (yield from self._run(table, taken))
        try:
            found = yield self._held_call(lambda: check(claim.key), taken)
        except Exception:
            yield from self._settle(table, taken, "unknown")
            raise
        if found is NOT_DONE:
            return (yield from self._run(table, taken))
        return (yield from self._settle(table, taken, "done", found))

    def _answered(self, table: Table, claim: Claim, answer: Any) -> Steps[Any]:
        """Settle a claim by a person's answer."""
        state, value = _parse_answer(answer)
        taken = self._taken(claim)
        table = yield from self._claimed(table, taken)
        if state == "not done":
            return (yield from self._run(table, taken))
        if state == "done":
            return (yield from self._settle(table, taken, "done", value))
        error = EffectFailedError(f"{described(self._site, claim)} did not happen, and is not to: {value}")
        yield from self._settle(table, taken, "failed", error)
        raise error

    def _unknown(self, claim: Claim) -> str:
        ended = f" It ended with {': '.join(claim.error)}." if claim.error else ""
        return (
            f"{described(self._site, claim)} was begun at {claim.claimed_at} by {claim.process}, and it is not known "
            f"whether it happened: no result was stored.{ended} Find out at the service, by the key if it knows it. "
            "Then settle it: effects.settle(effect, 'done', value) or effects.settle(effect, 'not done'); "
            "check= or on_unknown= decides such cases for you"
        )

    def _run(self, table: Table, claim: Claim) -> Steps[Any]:
        """Call the function and store its outcome."""
        policy = self._policy
        try:
            value = yield self._held_call(self._work.call(claim.key), claim)
        except Exception as error:
            if isinstance(error, (*policy.retry_on, *_control_flow(), UncalledError)):
                state: EffectState = "not done"
            else:
                state = "unknown" if isinstance(error, policy.unknown_on) else "failed"
            yield from self._settle(table, claim, state, error)
            raise
        try:
            yield from self._settle(table, claim, "done", value)
        except SerializationError as refusal:  # it has happened, so it must not be made again
            where = f"the result of {described(self._site, claim)}"
            refused = SerializationError(f"{where}: {refusal}. The call was made, and is not made again")
            yield from self._settle(table, claim, "failed", refused)
            raise refused from refusal
        return value

    def _settle(self, table: Table, claim: Claim, state: EffectState, outcome: Any = None) -> Steps[Any]:
        """Store an outcome. Raises EffectLostError if the claim is no longer this call's."""
        return settle(self._context, self._site, table, claim, state, outcome)

    def _held_call(self, function: Callable[[], Any], claim: Claim) -> Call:
        return Call(function, claim.claim, lambda: renew(self._context, self._site, claim.claim))


def settle(
    context: SaverContext,
    site: Site,
    table: Table,
    claim: Claim,
    state: EffectState,
    outcome: Any = None,
    taken: Claim | None = None,
) -> Operation[Any]:
    """Store the outcome of a claim: a result, or an exception. Returns the result.

    With `taken`, the claim is taken over in the same step, unless its state has changed: that raises ConflictError.
    """
    error = outcome if state != "done" and isinstance(outcome, Exception) else None
    settled = (taken or claim)._replace(
        state=state,
        settled_at=moment(),
        error=None if error is None else [type(error).__qualname__, _text_of(error)],
    )
    values = _values(context, settled, outcome)
    while True:
        try:
            yield from write_table(context, site, table, settled, values)
        except ConflictError:
            table = yield from read_table(context, site)
            now = table.of_id(settled.claim) or table.of_id(claim.claim)
            if now is not None and now.settled_at == settled.settled_at:  # it was stored, and the answer was lost
                return outcome
            if taken is not None and (now is None or now.state != claim.state):
                raise
            if now is None:
                raise _lost(site, claim, "was taken over or settled") from None
            settled = settled._replace(renewals=now.renewals, used_at=now.used_at)
        except LeaseLostError as lost:
            raise _lost(site, claim, "was made under a lease that is lost") from lost
        else:
            return outcome


def _values(context: SaverContext, claim: Claim, outcome: Any) -> dict[str, Any]:
    """The channel of an outcome. An exception that cannot be stored is left to its name and text.

    The channel is None then: it may hold the outcome of an earlier call that was settled as "not done".
    """
    if claim.state not in ("done", "failed"):
        return {}
    if claim.state == "failed":
        try:
            context.serde.dumps_typed(outcome)
        except Exception:  # noqa: BLE001 - the serializer may be the user's, and the text is there in any case
            return {claim.value_channel: None}
    return {claim.value_channel: outcome}


def _text_of(error: Exception) -> str:
    """Return the text of an exception, which is of any class: one that cannot tell it is an outcome, too."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - it is the user's method, and the error to raise is the call's own
        return ""


def _lost(site: Site, claim: Claim, reason: str) -> EffectLostError:
    text = (
        f"{described(site, claim)}: the claim of {claim.process} {reason} before the call ended, so its result is "
        "refused, and nothing was stored. The call may have happened: look at the service, and at effects.list()"
    )
    log.write(logging.ERROR, "%s", text)
    return EffectLostError(text)


def renew(context: SaverContext, site: Site, claim_id: str) -> Operation[bool]:
    """Renew a claim while its call runs. Returns whether it is still there."""
    while True:
        table = yield from read_table(context, site)
        claim = table.of_id(claim_id)
        if claim is None or claim.state not in ("running", "unknown"):
            return False
        try:
            yield from write_table(context, site, table, claim._replace(state="running", renewals=claim.renewals + 1))
        except ConflictError:
            continue
        return True


def _control_flow() -> tuple[type[Exception], ...]:
    """The exceptions by which the engine interrupts a task. None if the engine is not loaded."""
    found = getattr(sys.modules.get("langgraph.errors"), "GraphBubbleUp", None)
    return () if found is None else (found,)


def _asked(site: Site, claim: Claim) -> Any:
    """Interrupt the graph with a question. In the run that resumes it, returns the answer."""
    interrupt = getattr(sys.modules.get("langgraph.types"), "interrupt", None)
    if interrupt is None:
        raise ConfigError("on_unknown='ask' interrupts a graph of LangGraph, and none runs here: choose 'raise'")
    return interrupt(
        {
            "question": _QUESTION,
            "effect": site.name,
            "thread_id": site.thread_id,
            "key": claim.key,
            "claimed_at": claim.claimed_at,
            "holder": str(claim.process),
            "answers": [
                '{"state": "done", "value": ...}',
                '{"state": "not done"}',
                '{"state": "failed", "error": ...}',
            ],
        }
    )


def _parse_answer(answer: Any) -> tuple[EffectState, Any]:
    state = answer.get("state") if isinstance(answer, Mapping) else answer
    value = (answer.get("value") if state == "done" else answer.get("error")) if isinstance(answer, Mapping) else None
    for known in _ANSWERS:
        if state == known:
            return known, value
    raise ConfigError(
        f"the answer to an effect's question must have a state of {', '.join(map(repr, _ANSWERS))}, such as "
        f'{{"state": "done", "value": ...}}, not {short_repr(answer)}: resume with another one'
    )
