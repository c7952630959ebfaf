"""Clients that charge once, a service that counts the charges, and the judgement of both.

Some calls have a service that knows keys. All others have one that is asked, by a `check` or by an operator: its answer
bars the requests that are still on their way, as a conclusive one must. So nothing may be charged twice, whatever was
paused, cut or lost.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from simulator.clients import THREADS, Client
from simulator.history import Call
from simulator.met import Met
from simulator.network import Link, LostError
from threadmark import Effects, EffectUnknownError, Saver, ThreadmarkError
from threadmark.effects.table import PREFIX, Site, read_table, value_in
from threadmark.program import run

KINDS = {
    "once": 24,
    "leased_once": 6,
    "settle": 6,
    "put": 4,
    "get": 1,
    "prune": 2,
    "retention": 1,
    "lease": 2,
    "copy": 1,
}
"""How often each kind of operation is chosen in a world of charges."""

CLAIM_TTLS = (1.0, 20.0)
"""Seconds without a renewal after which a claim counts as left. A pause may be longer than the shorter one."""

EXPECTED = (
    "a call came after its claim was taken over",
    "a call of an effect was cancelled",
    "a charge came too late",
    "a charge was made",
    "a check found a charge",
    "a service knew the key of a charge",
    "an effect was settled by hand",
    "an effect was unknown",
)
"""Events of charges that must be met in a run of enough seeds."""

_NEAR = 8
"""Among so many operations the calls have few keys, so that callers meet."""
_RAISES, _CHECKS, _RUNS, _DECLINES, _BUSY = range(5)
"""The kinds of calls: the rest of the number of a key, divided by five."""
_LATE = 0.5
"""This part of the requests that were not answered comes some time."""


class BusyError(Exception):
    """The service says that it did nothing."""


class _Charge(NamedTuple):
    idempotency_key: str
    receipt: str


class Service:
    """Makes charges."""

    def __init__(self, met: Met) -> None:
        self.met = met
        self.charges: dict[str, list[_Charge]] = {}
        """By the key that names the call."""
        self.keys: dict[str, set[str]] = {}
        """The idempotency keys of each call that began."""
        self._orders = 0
        self._barred: dict[str, int] = {}

    def order(self, key: str, idempotency_key: str) -> int:
        """Note that a request begins. Returns its number."""
        self._orders += 1
        self.keys.setdefault(key, set()).add(idempotency_key)
        return self._orders

    def charge(self, key: str, idempotency_key: str, order: int) -> str:
        """Charge, unless the key is known. Returns the receipt."""
        made = self.charges.setdefault(key, [])
        if _kind(key) == _RUNS and (known := [each for each in made if each.idempotency_key == idempotency_key]):
            self.met.note("a service knew the key of a charge")
            return known[0].receipt
        if order <= self._barred.get(idempotency_key, 0):
            self.met.note("a charge came too late")
            raise ConnectionError("it came too late")
        self.met.note("a charge was made")
        made.append(_Charge(idempotency_key, f"receipt {order} of {key}"))
        return made[-1].receipt

    def find(self, idempotency_key: str) -> Any:
        """Return the receipt of a charge, or that there is none, and will be none of the requests so far."""
        self._barred[idempotency_key] = self._orders
        for each in (each for some in self.charges.values() for each in some):
            if each.idempotency_key == idempotency_key:
                return each.receipt
        return Effects.NOT_DONE


def _kind(key: str) -> int:
    return int(key.rpartition(" ")[2]) % 5


class Charging(Client):
    """A client whose operations are calls that are to be made once, too."""

    service: Service
    link: Link
    """The way to the service."""
    claim_ttl = CLAIM_TTLS[0]

    async def work(self, saver: Saver) -> None:
        """Do the rest of its operations."""
        self._effects = Effects(saver, claim_ttl=self.claim_ttl)
        await super().work(saver)

    async def _once(self) -> None:
        thread = self._chance.choice(THREADS)
        await self._called(thread, self._effects.of(thread))

    async def _leased_once(self) -> None:
        """Call under a lease of the thread: its next holder does not wait for the claims of this one."""
        thread = self._chance.choice(THREADS)
        try:
            async with self._saver.lease(thread, on_busy="interrupt", ttl=1.0, holder=self.name) as lease:
                place = {"configurable": {"thread_id": thread, "lease_token": lease.token}}
                await self._called(thread, self._effects.of(place), lease.token)
        except ThreadmarkError:
            pass  # the lease is another's, or was lost; the history has what became of the call

    async def _called(self, thread: str, effects: Effects, lease: int = 0) -> None:
        key = f"{thread} {self._number // _NEAR + self._chance.randrange(3)}"
        call = self._begin("once", thread, id=key, lease=lease)
        await self._end(call, self._outcome(effects, key))
        name = call.error.partition(":")[0]
        if name == EffectUnknownError.__name__:
            self.service.met.note("an effect was unknown")
        elif name == "EffectLostError":
            self.service.met.note("a call came after its claim was taken over")

    async def _outcome(self, effects: Effects, key: str) -> str:
        """Call, and perhaps cancel it after a while. Returns the receipt, or the name of the service's error."""
        lasts = self._chance.choice((0.0, 0.0, 0.02, 0.5, 1.5 * self.claim_ttl))
        patience = self._chance.choice((None, None, None, 0.05, 1.0))

        async def charge(idempotency_key: str) -> str:
            return await self._charge(key, idempotency_key, lasts)

        # The renewals have tasks of their own.
        called = effects.aonce(
            "charge",
            charge,
            key=key,
            on_unknown="run" if _kind(key) == _RUNS else "raise",
            check=self._check if _kind(key) == _CHECKS else None,
            retry_on=(BusyError,),
        )
        try:
            receipt: str = await asyncio.wait_for(called, patience)
        except TimeoutError:
            self.service.met.note("a call of an effect was cancelled")
            return "cancelled"
        except (BusyError, ConnectionError, ValueError) as error:
            if isinstance(error, ThreadmarkError):
                raise
            return type(error).__name__
        return receipt

    async def _charge(self, key: str, idempotency_key: str, lasts: float) -> str:
        """Call the service, with a wait before the request or before the answer. A request may come late."""
        order, waits, is_sent = self.service.order(key, idempotency_key), self._chance.random() < 0.5, False
        try:
            await asyncio.sleep(lasts * waits)
            await self.link.travel()
            is_sent = True
            if _kind(key) == _DECLINES:
                raise ValueError(f"{key} is declined")
            if _kind(key) == _BUSY and self._chance.random() < 0.5:
                raise BusyError
            receipt = self.service.charge(key, idempotency_key, order)
            await asyncio.sleep(lasts * (not waits))
            await self.link.back()
        except LostError as error:
            raise ConnectionError(str(error)) from None
        finally:
            if not is_sent and _kind(key) != _DECLINES and self._chance.random() < _LATE:
                loop, seconds = asyncio.get_running_loop(), self._chance.expovariate(1.0)
                loop.call_later(seconds, self._charge_late, key, idempotency_key, order)
        return receipt

    def _charge_late(self, key: str, idempotency_key: str, order: int) -> None:
        with suppress(ConnectionError):  # its caller heard long ago that it failed
            self.service.charge(key, idempotency_key, order)

    async def _check(self, idempotency_key: str) -> Any:
        try:
            await self.link.travel()
            found = self.service.find(idempotency_key)
            await self.link.back()
        except LostError as error:
            raise ConnectionError(str(error)) from None
        if found is not Effects.NOT_DONE:
            self.service.met.note("a check found a charge")
            return f"{found}, found"
        return found

    async def _settle(self) -> None:
        """Act as an operator: ask the service about each call of which the outcome is not known."""
        thread = self._chance.choice(THREADS)
        call = self._begin("settle", thread)
        await self._end(call, self._settled(thread))

    async def _settled(self, thread: str) -> None:
        for effect in await self._effects.alist(thread):
            if effect.state == "unknown" or (effect.state == "running" and self._chance.random() < 0.1):
                try:
                    found = await self._check(effect.key)
                except ConnectionError:
                    continue
                await self._think()
                if found is Effects.NOT_DONE:
                    await self._effects.asettle(effect, "not done")
                else:
                    await self._effects.asettle(effect, "done", found)
                self.service.met.note("an effect was settled by hand")


def objections(service: Service, calls: Sequence[Call], saver: Saver, *, strict: bool) -> Iterable[str]:
    """Judge all charges by the receipts that callers got, and by the ledger at the end.

    If it is strict, no process was away for so long that its calls may have seemed to be over.
    """
    if strict:
        yield from _without_reason(calls)
    ledger = dict(_ledger(saver))
    for key, names in service.keys.items():
        state, value = ledger.get(next(iter(names)), ("missing", None))
        if len(names) > 1:
            yield f"{key} was called with several idempotency keys: {sorted(names)}"
        yield from _of_key(key, service.charges.get(key, []), state, value)
        for call in calls:
            got = call.did == "once" and call.id == key and call.acknowledged and call.value.startswith("receipt")
            if got and (state != "done" or call.value != value):
                yield f"a caller got what the ledger has not: {call}; {state} {value}"


def _of_key(key: str, charges: Sequence[_Charge], state: str, value: Any) -> Iterable[str]:
    """Compare the charges of a key with the ledger."""
    if len(charges) > 1:
        yield f"{key} was charged {len(charges)} times: {charges}"
    if state == "missing" or (charges and state not in ("done", "unknown", "running")):
        yield f"{key} was called, and is {state} in the ledger, with {len(charges)} charges"
    if state == "failed" and _kind(key) != _DECLINES:
        yield f"{key} counts as failed, and was not declined"
    if state == "done" and str(value).removesuffix(", found") not in [each.receipt for each in charges]:
        yield f"the ledger has {value} for {key}, and the service {charges}"


def _without_reason(calls: Sequence[Call]) -> Iterable[str]:
    """A call is unknown only if an earlier one ended without an outcome, and lost only if it was taken over."""
    made = [call for call in calls if call.did == "once"]
    for call in made:
        others = [each for each in made if each.id == call.id and each is not call and each.began <= call.ended]
        name = call.error.partition(":")[0]
        if name == "EffectUnknownError" and not any(map(_is_uncertain, others)):
            yield f"it is not known whether a call happened, and none was broken off: {call}"
        by_hand = any(each.did == "settle" and each.thread == call.thread for each in calls)
        if name == "EffectLostError" and not by_hand and not any(each.lease for each in (call, *others)):
            yield f"a call was taken over while it ran: {call}"


def _is_uncertain(call: Call) -> bool:
    return not call.acknowledged or call.value in ("cancelled", "ConnectionError")


def _ledger(saver: Saver) -> Iterable[tuple[str, tuple[str, Any]]]:
    """Return the state and the value of each call, by its idempotency key."""
    for effect in Effects(saver).list():
        ns, _, number = effect.id.rpartition("/")
        site = Site(effect.thread_id, PREFIX + ns, effect.name)
        table = run(saver._driver, read_table(saver._context, site))
        (claim,) = [each for each in table.claims if str(each.number) == number]
        if effect.thread_id in THREADS:  # a copy of a thread has the claims, too
            yield effect.key, (claim.state, value_in(saver._context, table, claim.value_channel))
