"""`Effects`: the methods for calls that are made once, in both APIs, and the drivers of their flow."""

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, ClassVar, Literal, ParamSpec, TypeVar, cast

from threadmark.effects import listing
from threadmark.effects.calls import (
    NOT_DONE,
    Call,
    NotDone,
    OneCall,
    OnUnknown,
    Per,
    Policy,
    Request,
    Steps,
    UncalledError,
    Work,
    calling,
)
from threadmark.effects.place import Place, current_place, next_count, place_of
from threadmark.effects.renewing import failed, renewals
from threadmark.effects.table import EffectInfo, EffectState, Site, site_digest
from threadmark.errors import ConfigError, SerializationError, ThreadmarkError, short_repr
from threadmark.model import Config, Duration
from threadmark.names import as_text
from threadmark.program import Operation, Pause, aplay, arun, play, run
from threadmark.saver import Saver, SaverProtocol
from threadmark.saver.kit import SaverContext, check_word, checked_duration, encode

P = ParamSpec("P")
T = TypeVar("T")

_PARTS = 3
"""A claim is renewed after this fraction of its time."""

_FROM_ENGINE = frozenset({"config", "runtime", "writer", "store"})
"""Parameters that the engine fills, which are no inputs of a decorated function."""

_KEY = "idempotency_key"

_DEEPEST = 100
"""Levels of arguments whose dictionaries are put in order."""


class Effects:
    """A ledger of calls, in the database of a saver. `once` makes a call, and returns its stored result ever after.

    Inside a node, task or tool of LangGraph the thread and the place come from the run; give the graph the same saver
    as its checkpointer. Elsewhere, `effects.of(thread_id)` names the thread. There is nothing to close.
    """

    NOT_DONE: ClassVar[NotDone] = NOT_DONE
    """The answer of a `check` function that says that the call did not happen."""

    def __init__(
        self,
        saver: SaverProtocol,
        *,
        per: Per = "thread",
        on_unknown: OnUnknown = "raise",
        unknown_on: Sequence[type[Exception]] = (TimeoutError, ConnectionError),
        claim_ttl: Duration = 60,
    ) -> None:
        """Make it over a saver.

        Args:
            saver: The saver that stores claims and results.
            per: Which earlier calls count as the same one, unless a call says otherwise.
            on_unknown: The way on from a call of which it is not known whether it happened.
            unknown_on: The exceptions that leave it unknown whether a call happened. Name those of your client, too,
                if they are no subclasses of these.
            claim_ttl: The time after which the claim of a process of another machine counts as left, in seconds or as
                a timedelta. A call that takes longer is renewed.
        """
        if not isinstance(saver, Saver):
            checkpointer = isinstance(getattr(saver, "saver", None), Saver)
            hint = "give its `.saver`" if checkpointer else "threadmark.open(url) returns one"
            raise ConfigError(f"expected a threadmark.Saver, got {type(saver).__name__}: {hint}")
        self._saver = saver
        self._thread: Config | str | None = None
        ttl = checked_duration(claim_ttl, "claim_ttl").total_seconds()
        self._policy = _checked(Policy(per, on_unknown, None, (), _classes(unknown_on), ttl))

    def __repr__(self) -> str:
        return f"<Effects over {self._saver!r}>"

    def of(self, thread: Config | str) -> "Effects":
        """Return the effects of a thread, for calls without an engine. A config may have the token of a lease."""
        other = Effects(self._saver)
        other._thread, other._policy = thread, self._policy
        place_of(thread, None)  # refuses what names no thread
        return other

    def once(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        key: str | None = None,
        per: Per | None = None,
        on_unknown: OnUnknown | None = None,
        check: Callable[[str], Any] | None = None,
        retry_on: Sequence[type[Exception]] = (),
        unknown_on: Sequence[type[Exception]] | None = None,
        undo_with: Callable[..., Any] | str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call a function and store its result, or return the result of the call that was made before.

        It is the same call if its thread, the place in the graph, the name and the arguments are the same, and so is
        its number among such calls on the way to the present step. An exception is stored and raised again, too. A
        function with a parameter `idempotency_key` gets a key that stays the same until the call is settled: hand it
        to a service that compares keys.

        Raises EffectUnknownError if a process has ended during the call, and EffectLostError if this call's claim was
        taken over while it ran. docs/how-to/effects.md explains both.

        Args:
            name: The name of the effect.
            function: It is called with the other arguments.
            key: Names the call instead of its place and arguments, which then need not be storable.
            per: "thread": a replay of the past gets the results of the branch that it leaves. "branch": it makes
                its own calls. "run": only a replay without new input gets them.
            on_unknown: "raise" an error, "run" it again, or "ask" a person, by an interrupt of the graph.
            check: A function of the idempotency key that asks the service, and returns the result or
                `effects.NOT_DONE`. It decides before `on_unknown`.
            retry_on: Exceptions that say that the call did not happen, so that the next attempt makes it.
            unknown_on: Exceptions that leave it unknown (default: those of `Effects`).
            undo_with: The function, or words, that take the effect back. `to_undo` returns it with the arguments.
            *args: The arguments of the function.
            **kwargs: Its keyword arguments.
        """
        options = self._options(per, on_unknown, check, retry_on, unknown_on)
        return self._play(self._call(name, function, args, kwargs, kwargs, key, options, undo_with))

    def effect(
        self,
        name: str | None = None,
        *,
        key: Callable[..., str] | None = None,
        per: Per | None = None,
        on_unknown: OnUnknown | None = None,
        check: Callable[[str], Any] | None = None,
        retry_on: Sequence[type[Exception]] = (),
        unknown_on: Sequence[type[Exception]] | None = None,
        undo_with: Callable[..., Any] | str | None = None,
    ) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Return a decorator whose functions, blocking ones and coroutines, are called as by `once` and `aonce`.

        `@tool` and the like come above it. The parameters `config`, `runtime`, `writer` and `store`, which the engine
        fills, are no inputs, and `idempotency_key` is hidden from a tool's schema. The other options are those of
        `once`; `key` is a function of the arguments.
        """
        options = self._options(per, on_unknown, check, retry_on, unknown_on)

        def decorate(function: Callable[P, T]) -> Callable[P, T]:
            call = self._decorated(name or _name_of(function), function, key, options, undo_with)
            return cast("Callable[P, T]", _named_like(function, self._both_ways(function, call)))

        return decorate

    def list(self, thread: Config | str | None = None, *, state: EffectState | None = None) -> "Sequence[EffectInfo]":
        """Return the effects of a thread, or of all threads for None, newest first. Reads no result.

        For all threads, the database looks at the metadata of every checkpoint. `state` leaves only effects in that
        state. One of a process of another machine counts as "running" until a call or `settle` finds that it has ended.
        """
        _check_state(state)
        return self._run(listing.list_effects(self._context, self._thread if thread is None else thread, state))

    def settle(self, effect: EffectInfo, state: Literal["done", "not done", "failed"], value: Any = None) -> EffectInfo:
        """Say what became of an effect, by hand. Returns it as it is stored now.

        A call that still runs, somewhere, is refused its result. Raises ConflictError if the state of the effect has
        changed since it was listed.

        Args:
            effect: One of those that `list` returns.
            state: "done" with the result as `value`; "failed" with the reason; or "not done", so that the next attempt
                makes the call. That is also the way on after you have taken an effect back.
            value: The result, or the reason.
        """
        if state not in ("done", "not done", "failed"):
            raise ConfigError(f"an effect is settled as 'done', 'not done' or 'failed', not {short_repr(state)}")
        token = None if self._thread is None else place_of(self._thread, None).token
        return self._run(listing.settle(self._context, effect, state, value, token))

    def to_undo(self, config: Config) -> "Sequence[listing.Undo]":
        """Return the effects that a return to a checkpoint leaves behind, newest first: done, running and unknown ones.

        Each has what `undo_with` recorded. Nothing is undone.
        """
        return self._run(listing.to_undo(self._context, config))

    def restore(self, config: Config) -> listing.Restored:
        """Call `saver.restore(config)`. Returns the new configuration, and what `to_undo` returned before."""
        left = self._run(listing.to_undo(self._context, config))
        return listing.Restored(self._saver.restore(config), left)

    @property
    def _context(self) -> SaverContext:
        return self._saver._context  # noqa: SLF001 - its flows run on the saver's own context and driver

    def _options(
        self,
        per: Per | None,
        on_unknown: OnUnknown | None,
        check: Callable[[str], Any] | None,
        retry_on: Sequence[type[Exception]],
        unknown_on: Sequence[type[Exception]] | None,
    ) -> Policy:
        own = self._policy
        unknown = own.unknown_on if unknown_on is None else _classes(unknown_on)
        return _checked(
            Policy(per or own.per, on_unknown or own.on_unknown, check, _classes(retry_on), unknown, own.claim_ttl)
        )

    def _both_ways(
        self, function: Callable[..., Any], call: Callable[[Sequence[Any], Mapping[str, Any]], Steps[Any]]
    ) -> Callable[..., Any]:
        """Return a function that drives the flow of its call, a coroutine's for a coroutine's."""

        async def with_asyncio(*args: Any, **kwargs: Any) -> Any:
            return await self._aplay(call(args, kwargs))

        def blocking(*args: Any, **kwargs: Any) -> Any:
            return self._play(call(args, kwargs))

        return with_asyncio if inspect.iscoroutinefunction(function) else blocking

    def _decorated(
        self,
        name: str,
        function: Callable[..., Any],
        key: Callable[..., str] | None,
        policy: Policy,
        undo_with: Callable[..., Any] | str | None,
    ) -> Callable[[Sequence[Any], Mapping[str, Any]], Steps[Any]]:
        """Return the function from the arguments of a call to its flow."""

        def call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Steps[Any]:
            inputs = {each: value for each, value in kwargs.items() if each not in _FROM_ENGINE}
            named = None if key is None else key(*args, **inputs)
            return self._call(name, function, args, kwargs, inputs, named, policy, undo_with)

        return call

    def _call(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        inputs: Mapping[str, Any],
        key: str | None,
        policy: Policy,
        undo_with: Callable[..., Any] | str | None,
    ) -> Steps[Any]:
        """Return the flow of a call. `inputs` are the keyword arguments that tell calls apart."""
        context = self._context
        context.expect_unbound("once")
        owner_key = context.threads.owner_key
        place = current_place(owner_key) if self._thread is None else place_of(self._thread, owner_key)
        as_text(name, "the name of an effect")
        if key is None and self._thread is None:
            _expect_checkpoints(place, name)
        parts = (
            [place.thread_id, policy.per, as_text(key, "key")]
            if key is not None
            else [place.thread_id, policy.per, name, place.nodes, place.path, *_in_order([[*args], dict(inputs)], {})]
        )
        site = Site(
            place.thread_id, site_digest(context, _encoded(context, name, parts)), name, place.token, place.owner
        )
        undo = undo_with if undo_with is None or isinstance(undo_with, str) else _name_of(undo_with)
        work = Work(function, args, kwargs, _KEY in _parameters(function), undo)
        count = None if key is not None or not place.in_engine else next_count(place, site.ns)
        return OneCall(context, place, site, work, policy, count=count).once()

    def _play(self, steps: Steps[T]) -> T:
        """Drive the flow of a call on the caller's thread."""
        return play(steps, self._answer)

    async def _aplay(self, steps: Steps[T]) -> T:
        """Like `_play`, for asyncio."""
        return await aplay(steps, self._aanswer)

    def _answer(self, request: Request) -> Any:
        driver = self._saver._driver  # noqa: SLF001 - see `_context`
        if isinstance(request, Call):
            renew = request.renew
            if renew is None:
                return _blocking(request.function())
            renewing = renewals.renewing(self._policy.claim_ttl / _PARTS, lambda: run(driver, renew()))
            with calling(request.claim), renewing:
                return _blocking(request.function())
        if isinstance(request, Pause):
            return time.sleep(request.seconds)
        return driver.run(request)

    async def _aanswer(self, request: Request) -> Any:
        import asyncio

        if isinstance(request, Call):
            renewal = None if request.renew is None else asyncio.create_task(self._arenew(request.renew))
            try:
                with calling(request.claim):
                    result = request.function()
                    return await result if inspect.isawaitable(result) else result
            finally:
                if renewal is not None:
                    renewal.cancel()
        if isinstance(request, Pause):
            return await asyncio.sleep(request.seconds)
        return await self._saver._driver.arun(request)  # noqa: SLF001 - see `_context`

    async def _arenew(self, renew: Callable[[], Operation[bool]]) -> None:
        """Renew a claim until it is gone, or this task is cancelled."""
        import asyncio

        goes_on = True
        while goes_on:
            await asyncio.sleep(self._policy.claim_ttl / _PARTS)
            try:
                goes_on = await self._arun(renew())
            except Exception as error:  # noqa: BLE001 - whatever it is, the call goes on, and its claim with it
                failed(error)

    def _run(self, operation: Operation[T]) -> T:
        """Drive an operation on the caller's thread."""
        return run(self._saver._driver, operation)  # noqa: SLF001 - see `_context`

    async def _arun(self, operation: Operation[T]) -> T:
        """Like `_run`, for asyncio."""
        return await arun(self._saver._driver, operation)  # noqa: SLF001 - see `_context`

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def aonce(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        key: str | None = None,
        per: Per | None = None,
        on_unknown: OnUnknown | None = None,
        check: Callable[[str], Any] | None = None,
        retry_on: Sequence[type[Exception]] = (),
        unknown_on: Sequence[type[Exception]] | None = None,
        undo_with: Callable[..., Any] | str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Like `once`, for asyncio."""
        options = self._options(per, on_unknown, check, retry_on, unknown_on)
        return await self._aplay(self._call(name, function, args, kwargs, kwargs, key, options, undo_with))

    async def alist(
        self, thread: Config | str | None = None, *, state: EffectState | None = None
    ) -> "Sequence[EffectInfo]":
        """Like `list`, for asyncio."""
        _check_state(state)
        return await self._arun(listing.list_effects(self._context, self._thread if thread is None else thread, state))

    async def asettle(
        self, effect: EffectInfo, state: Literal["done", "not done", "failed"], value: Any = None
    ) -> EffectInfo:
        """Like `settle`, for asyncio."""
        if state not in ("done", "not done", "failed"):
            raise ConfigError(f"an effect is settled as 'done', 'not done' or 'failed', not {short_repr(state)}")
        token = None if self._thread is None else place_of(self._thread, None).token
        return await self._arun(listing.settle(self._context, effect, state, value, token))

    async def ato_undo(self, config: Config) -> "Sequence[listing.Undo]":
        """Like `to_undo`, for asyncio."""
        return await self._arun(listing.to_undo(self._context, config))

    async def arestore(self, config: Config) -> listing.Restored:
        """Like `restore`, for asyncio."""
        left = await self._arun(listing.to_undo(self._context, config))
        return listing.Restored(await self._saver.arestore(config), left)

    # The end of the part that scripts/write_twins.py wrote.


def _blocking(result: Any) -> Any:
    """Return the result of a blocking function."""
    if inspect.iscoroutine(result):
        result.close()
        raise UncalledError("the function is a coroutine's: call it with `await effects.aonce(...)`")
    return result


def _checked(policy: Policy) -> Policy:
    check_word(policy.per, Per, "per")
    check_word(policy.on_unknown, OnUnknown, "on_unknown")
    if policy.check is not None and not callable(policy.check):
        raise ConfigError(f"check must be a function of the idempotency key, not {short_repr(policy.check)}")
    return policy


def _classes(found: Any) -> tuple[type[Exception], ...]:
    """Return classes of exceptions as a tuple. Raises ConfigError for anything else."""
    if not isinstance(found, Iterable):  # such as a class that stands alone
        name = found.__name__ if isinstance(found, type) else short_repr(found)
        raise ConfigError(f"retry_on and unknown_on take several classes of exceptions, such as ({name},)")
    classes = tuple(found)
    for each in classes:
        if not (isinstance(each, type) and issubclass(each, Exception)):
            raise ConfigError(f"retry_on and unknown_on take classes of exceptions, not {short_repr(each)}")
    return classes


def _check_state(state: EffectState | None) -> None:
    if state is not None:
        check_word(state, EffectState, "state")


def _expect_checkpoints(place: Place, name: str) -> None:
    """Raise ConfigError if the checkpoints of the run do not lead to the place of a call."""
    if not place.in_engine:
        raise ConfigError(
            f"effect {name!r} is called in a run without checkpoints, so its place is not known: compile the graph "
            "with the saver as its checkpointer, or give key="
        )
    if place.durability == "exit":
        raise ConfigError(
            f"effect {name!r} is called in a run with durability='exit', which stores no checkpoint before its end, so "
            "a run after a crash would not find the call again: give key=, or choose 'async' or 'sync'"
        )


def _encoded(context: SaverContext, name: str, parts: Sequence[Any]) -> bytes:
    """Encode the parts that tell a call site from others."""
    try:
        _, data = encode(context.serde, f"the arguments of effect {name!r}", parts)
    except ThreadmarkError as error:
        raise SerializationError(f"{error}. Give key=, and the arguments need not be stored") from error
    return data


def _in_order(value: Any, known: dict[int, Any], levels: int = _DEEPEST) -> Any:
    """Return a value with the keys of its dictionaries in order: equal arguments are those of one call.

    `known` has the copies so far by the ids of their originals, which may refer to each other.
    """
    kind = type(value)
    if kind not in (dict, list, tuple) or not levels:
        return value
    if id(value) in known:
        return known[id(value)]
    if kind is tuple:
        return tuple([_in_order(each, known, levels - 1) for each in value])
    if kind is list:
        copied: Any = []
        known[id(value)] = copied
        copied.extend(_in_order(each, known, levels - 1) for each in value)
        return copied
    try:
        keys = sorted(value)
    except TypeError:  # they are of several types
        keys = list(value)
    known[id(value)] = copied = {}
    copied.update((key, _in_order(value[key], known, levels - 1)) for key in keys)
    return copied


def _name_of(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', short_repr(function))}"


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # some functions written in C have none
        return {}


def _named_like(function: Callable[..., Any], made_once: Callable[..., Any]) -> Callable[..., Any]:
    """Return the new function with the name and the signature of the one it replaces, without the key."""
    wrapped = wraps(function)(made_once)
    signature = inspect.signature(function)
    parameters = [each for name, each in signature.parameters.items() if name != _KEY]
    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # `inspect` reads it
    wrapped.__annotations__ = {name: kind for name, kind in function.__annotations__.items() if name != _KEY}
    return wrapped
