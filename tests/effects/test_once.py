"""Calls without an engine: made once, whatever they return or raise, on every backend and with both APIs."""

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from effects.places import APIS, PLACES, Receiver, once, opened
from patience import PATIENCE
from threadmark import (
    ConfigError,
    ConflictError,
    EffectFailedError,
    EffectLostError,
    Effects,
    EffectUnknownError,
    Keyring,
    LeaseLostError,
    MemorySaver,
    Saver,
    SerializationError,
)
from threadmark.effects import listing
from threadmark.effects.calls import Watch
from threadmark.effects.holder import this_process
from threadmark.effects.renewing import Renewals
from threadmark_langgraph import InMemorySaver


@pytest.fixture(params=PLACES)
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Saver]:
    with opened(request.param, tmp_path) as saver:
        yield saver


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.mark.parametrize("api", APIS)
def test_a_call_is_made_once(saver: Saver, receiver: Receiver, api: str) -> None:
    orders = Effects(saver).of("order 1")
    charge = receiver.charge if api == "blocking" else receiver.acharge
    first = once(api, orders, "charge", charge, 5)
    assert once(api, Effects(saver).of("order 1"), "charge", charge, 5) == first == {"receipt": 1, "amount": 5}
    assert receiver.calls == [5]
    once(api, orders, "charge", charge, 6)
    once(api, orders, "charge again", charge, 5)
    once(api, Effects(saver).of("order 2"), "charge", charge, 5)
    assert receiver.calls == [5, 6, 5, 5]
    assert len(set(receiver.keys)) == 4
    assert [effect.state for effect in orders.list("order 1")] == ["done"] * 3


def test_a_key_names_the_call(saver: Saver, receiver: Receiver) -> None:
    orders = Effects(saver).of("order")
    assert orders.once("charge", receiver.charge, 5, key="first") == orders.once("pay", receiver.charge, 7, key="first")
    orders.once("charge", receiver.charge, 5, key="second")
    assert receiver.calls == [5, 5]


def test_an_exception_is_a_result(saver: Saver, receiver: Receiver) -> None:
    orders = Effects(saver).of("order")
    receiver.errors = [ValueError("no such card", 4)]
    for _ in range(2):
        with pytest.raises(ValueError, match="no such card") as raised:
            orders.once("charge", receiver.charge, 5)
        assert raised.value.args == ("no such card", 4)
    assert receiver.calls == [5]
    (effect,) = orders.list()
    assert effect.state == "failed"
    assert "no such card" in (effect.error or "")


def test_an_exception_of_a_class_that_cannot_be_stored_is_raised_by_name(receiver: Receiver) -> None:
    class OddError(Exception):
        def __init__(self, connection: Any) -> None:
            super().__init__(connection)

    orders = Effects(MemorySaver()).of("order")
    receiver.errors = [OddError(threading.Lock())]
    with pytest.raises(OddError):
        orders.once("charge", receiver.charge, 5)
    with pytest.raises(EffectFailedError, match=r"effect 'charge' of thread 'order' .* failed before with .*OddError"):
        orders.once("charge", receiver.charge, 5)
    assert receiver.calls == [5]


def test_an_exception_that_cannot_tell_its_text_is_an_outcome_too(receiver: Receiver) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise AttributeError("response")

    orders = Effects(MemorySaver()).of("order")
    receiver.errors = [MuteError()]
    with pytest.raises(MuteError):
        orders.once("charge", receiver.charge, 5)
    with pytest.raises((MuteError, EffectFailedError)):
        orders.once("charge", receiver.charge, 5)
    assert [effect.state for effect in orders.list()] == ["failed"]
    assert receiver.calls == [5]


def test_a_later_failure_is_not_told_by_the_exception_of_an_earlier_one(saver: Saver, receiver: Receiver) -> None:
    orders = Effects(saver).of("order")
    receiver.errors = [ValueError("the first"), ValueError(threading.Lock())]
    with pytest.raises(ValueError, match="the first"):
        orders.once("charge", receiver.charge, 5)
    orders.settle(orders.list()[0], "not done")
    with pytest.raises(ValueError, match="lock"):
        orders.once("charge", receiver.charge, 5)
    with pytest.raises(EffectFailedError, match=r"failed before with ValueError: .*lock"):
        orders.once("charge", receiver.charge, 5)
    assert receiver.calls == [5, 5]


def test_a_coroutine_that_was_not_awaited_is_called_once_it_is(receiver: Receiver) -> None:
    orders = Effects(MemorySaver()).of("order")
    with pytest.raises(ConfigError, match="aonce"):
        orders.once("charge", receiver.acharge, 5)
    assert (receiver.calls, [effect.state for effect in orders.list()]) == ([], ["not done"])
    assert once("asyncio", orders, "charge", receiver.acharge, 5)["receipt"] == 1


def test_a_call_that_did_not_happen_is_made_by_the_next_attempt(saver: Saver, receiver: Receiver) -> None:
    orders = Effects(saver).of("order")
    receiver.errors = [OSError("no route"), OSError("no route")]
    for _ in range(2):
        with pytest.raises(OSError, match="no route"):
            orders.once("charge", receiver.charge, 5, retry_on=(OSError,))
        assert [effect.state for effect in orders.list()] == ["not done"]
    assert orders.once("charge", receiver.charge, 5, retry_on=(OSError,))["receipt"] == 3
    assert len(set(receiver.keys)) == 1


@pytest.mark.parametrize("error", [TimeoutError, ConnectionResetError("reset")])
def test_after_a_time_out_it_is_unknown_whether_the_call_happened(
    saver: Saver, receiver: Receiver, error: Exception
) -> None:
    orders = Effects(saver).of("order")
    receiver.errors = [error]
    with pytest.raises((TimeoutError, ConnectionError)):
        orders.once("charge", receiver.charge, 5)
    with pytest.raises(EffectUnknownError, match=r"effect 'charge' of thread 'order' \(key .*not known whether"):
        orders.once("charge", receiver.charge, 5)
    assert receiver.calls == [5]
    (effect,) = orders.list(state="unknown")
    assert effect.key == receiver.keys[0]


def test_a_result_that_cannot_be_stored_is_an_error_and_the_call_is_not_made_again(receiver: Receiver) -> None:
    def connect(amount: int) -> Any:
        receiver.charge(amount)
        return threading.Lock()

    orders = Effects(MemorySaver()).of("order")
    for _ in range(2):
        with pytest.raises(SerializationError, match=r"result of effect 'charge' of thread 'order' .*lock.* was made"):
            orders.once("charge", connect, 5)
    assert receiver.calls == [5]


def test_arguments_that_cannot_be_stored_need_a_key(receiver: Receiver) -> None:
    orders = Effects(MemorySaver()).of("order")
    with pytest.raises(SerializationError, match="Give key="):
        orders.once("charge", receiver.charge, threading.Lock())
    for _ in range(2):
        orders.once("charge", lambda _: receiver.charge(5), threading.Lock(), key="lock")
    assert len(receiver.calls) == 1
    with pytest.raises(
        SerializationError, match=r"arguments of effect 'pay' of thread 'order' .*lock.* undo_with= stores"
    ):
        orders.once("pay", lambda _: receiver.charge(5), threading.Lock(), key="another", undo_with="words")
    assert len(receiver.calls) == 1


def test_equal_arguments_are_those_of_one_call(receiver: Receiver) -> None:
    orders = Effects(MemorySaver()).of("order")
    for items in ({"a": 1, "b": [{"c": 2, 3: ({"d": 4, "e": 5},)}]}, {"b": [{3: ({"e": 5, "d": 4},), "c": 2}], "a": 1}):
        orders.once("charge", lambda *_, **__: receiver.charge(5), items, items=items)
    assert len(receiver.calls) == 2, "keys of several types keep their order"
    for items in ({"a": 1, "b": [({"d": 4, "e": 5},)]}, {"b": [({"e": 5, "d": 4},)], "a": 1}):
        orders.once("charge", lambda *_, **__: receiver.charge(6), items, items=items)
    assert receiver.calls == [5, 5, 6]
    within_itself: list[Any] = []
    within_itself += [within_itself, within_itself]
    with pytest.raises(SerializationError):
        orders.once("charge", lambda _: receiver.charge(7), within_itself)


class TestUnknown:
    """A process has ended during a call: here, one that a signal or a cancellation has interrupted."""

    @pytest.fixture
    def orders(self, saver: Saver, receiver: Receiver) -> Effects:
        orders = Effects(saver).of("order")

        def interrupted(amount: int, idempotency_key: str) -> None:
            receiver.charge(amount, idempotency_key)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            orders.once("charge", interrupted, 5)
        return orders

    def test_it_is_said(self, orders: Effects, receiver: Receiver) -> None:
        for _ in range(2):
            with pytest.raises(EffectUnknownError, match=f"key {receiver.keys[0]}"):
                orders.once("charge", receiver.charge, 5)
        assert receiver.calls == [5]

    def test_it_is_made_again_with_the_same_key(self, orders: Effects, receiver: Receiver) -> None:
        assert orders.once("charge", receiver.charge, 5, on_unknown="run")["receipt"] == 2
        assert orders.once("charge", receiver.charge, 5)["receipt"] == 2
        assert receiver.keys[0] == receiver.keys[1]

    def test_the_service_says_that_it_happened(self, orders: Effects, receiver: Receiver) -> None:
        asked: list[str] = []

        def check(key: str) -> dict[str, int]:
            asked.append(key)
            return {"receipt": 1}

        for _ in range(2):
            assert orders.once("charge", receiver.charge, 5, check=check) == {"receipt": 1}
        assert receiver.calls == [5]
        assert asked == receiver.keys

    def test_the_service_says_that_it_did_not_happen(self, orders: Effects, receiver: Receiver) -> None:
        for _ in range(2):
            assert orders.once("charge", receiver.charge, 5, check=lambda _: Effects.NOT_DONE)["receipt"] == 2
        assert receiver.keys[0] == receiver.keys[1]

    def test_the_service_does_not_answer(self, orders: Effects, receiver: Receiver) -> None:
        def check(key: str) -> None:
            raise TimeoutError(key)

        for _ in range(2):
            with pytest.raises(TimeoutError):
                orders.once("charge", receiver.charge, 5, check=check)
        with pytest.raises(EffectUnknownError):
            orders.once("charge", receiver.charge, 5)
        assert receiver.calls == [5]

    def test_an_operator_says_that_it_happened(self, orders: Effects, receiver: Receiver) -> None:
        (effect,) = orders.list(state="unknown")
        settled = orders.settle(effect, "done", {"receipt": "by hand"})
        assert (settled.state, settled.key) == ("done", effect.key)
        assert orders.once("charge", receiver.charge, 5) == {"receipt": "by hand"}
        assert receiver.calls == [5]

    def test_an_operator_says_that_it_did_not_happen(self, orders: Effects, receiver: Receiver) -> None:
        orders.settle(orders.list()[0], "not done")
        assert orders.once("charge", receiver.charge, 5)["receipt"] == 2

    def test_an_operator_says_that_it_has_failed(self, orders: Effects, receiver: Receiver) -> None:
        orders.settle(orders.list()[0], "failed", "the card is blocked")
        for _ in range(2):
            with pytest.raises(EffectFailedError, match="the card is blocked"):
                orders.once("charge", receiver.charge, 5)
        assert receiver.calls == [5]


def test_of_two_that_call_at_once_one_waits_for_the_other(saver: Saver, receiver: Receiver) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(amount: int) -> dict[str, Any]:
        begun.set()
        assert go_on.wait(30)
        return receiver.charge(amount)

    with ThreadPoolExecutor() as pool:
        first = pool.submit(Effects(saver).of("order").once, "charge", slow, 5)
        assert begun.wait(30)
        others = [pool.submit(Effects(saver).of("order").once, "charge", slow, 5) for _ in range(3)]
        go_on.set()
        assert [each.result(30) for each in (first, *others)] == [{"receipt": 1, "amount": 5}] * 4
    assert receiver.calls == [5]


def test_a_call_whose_effect_was_settled_is_refused_its_result(saver: Saver, receiver: Receiver) -> None:
    orders = Effects(saver).of("order")

    def settled_meanwhile(amount: int) -> dict[str, Any]:
        orders.settle(orders.list(state="running")[0], "done", {"receipt": "by hand"})
        return receiver.charge(amount)

    with pytest.raises(EffectLostError, match="was taken over or settled before the call ended, so its result is refu"):
        orders.once("charge", settled_meanwhile, 5)
    assert orders.once("charge", receiver.charge, 5) == {"receipt": "by hand"}


def test_an_effect_that_has_changed_is_listed_again_before_it_is_settled(saver: Saver, receiver: Receiver) -> None:
    orders = Effects(saver).of("order")
    receiver.errors = [TimeoutError()]
    with pytest.raises(TimeoutError):
        orders.once("charge", receiver.charge, 5)
    (unknown,) = orders.list()
    not_done = orders.settle(unknown, "not done")
    orders.once("charge", receiver.charge, 5)
    for old in (unknown, not_done):
        with pytest.raises(ConflictError, match="list it again"):
            orders.settle(old, "not done")
    # After the charge was taken back by hand, the call may be made again.
    orders.settle(orders.list()[0], "not done")
    assert orders.once("charge", receiver.charge, 5)["receipt"] == 3


def test_of_two_operators_one_settles(tmp_path: Path, receiver: Receiver) -> None:
    with opened("sqlite", tmp_path) as saver:
        orders = Effects(saver).of("order")
        receiver.errors = [TimeoutError()]
        with pytest.raises(TimeoutError):
            orders.once("charge", receiver.charge, 5)
        (effect,) = orders.list()
        operations = [listing.settle(saver._context, effect, state, None, None) for state in ("not done", "done")]
        # Both have read the claim before one of them changes it.
        asked = [operation.send(saver._driver.run(next(operation))) for operation in operations]
        finish(saver, operations[0], asked[0])
        with pytest.raises(ConflictError, match="list it again"):
            finish(saver, operations[1], asked[1])
        assert [each.state for each in orders.list()] == ["not done"]


def finish(saver: Saver, operation: Any, asked: Any) -> None:
    """Drive an operation to its end."""
    with suppress(StopIteration):
        while True:
            try:
                answer = saver._driver.run(asked)
            except ConflictError as error:
                asked = operation.throw(error)
            else:
                asked = operation.send(answer)


def test_a_call_under_a_lost_lease_is_refused_its_result(saver: Saver, receiver: Receiver) -> None:
    def overtaken(amount: int) -> dict[str, Any]:
        receiver.charge(amount)
        second.__enter__()
        return {}

    first, second = saver.lease("order"), saver.lease("order", on_busy="interrupt")
    with first:
        with pytest.raises(EffectLostError, match="under a lease that is lost"):
            Effects(saver).of(first.config).once("charge", overtaken, 5)
        with pytest.raises(LeaseLostError):
            Effects(saver).of(first.config).once("charge", receiver.charge, 6)
    try:
        # The claim of a lost lease has no holder, so nothing is waited for.
        with pytest.raises(EffectUnknownError):
            Effects(saver).of(second.config).once("charge", receiver.charge, 5)
    finally:
        second.release()
    assert receiver.calls == [5]


def test_a_process_that_has_the_number_of_one_that_ended_holds_none_of_its_claims() -> None:
    here = this_process()
    parent = here._replace(process=os.getppid(), began="before all others")
    assert parent.has_ended() is bool(here.machine)
    assert not here.has_ended()


def test_a_claim_that_is_renewed_is_not_over(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, over = Watch(10.0), []
    for moment, renewals in ((0, 0), (9, 1), (18, 1), (19, 1)):
        monkeypatch.setattr(time, "monotonic", lambda moment=moment: float(moment))
        over.append(watch.is_over(cast("Any", SimpleNamespace(claim="one", renewals=renewals))))
    monkeypatch.undo()
    assert over == [False, False, False, True]


def test_a_long_call_keeps_its_claim(saver: Saver, receiver: Receiver) -> None:
    held = Effects(saver, claim_ttl=0.3).of("order")
    waits = threading.Event()

    def slow(amount: int) -> dict[str, Any]:
        waits.wait(0.9)
        return receiver.charge(amount)

    for api in APIS:
        assert once(api, held, "charge", slow, api) == once(api, held, "charge", slow, api)
    assert receiver.calls == [*APIS]
    assert {effect.state for effect in held.list()} == {"done"}


def test_a_claim_for_ever_ends_no_renewals_of_others() -> None:
    waits, renewing = threading.Event(), Renewals()
    with renewing.renewing(timedelta.max.total_seconds() / 3, lambda: True):
        waits.wait(0.1)  # so that the thread has begun to wait for that time
        with renewing.renewing(0.01, lambda: waits.set() is None):  # type: ignore[func-returns-value]  # it goes on
            assert waits.wait(PATIENCE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_call_in_a_process_that_was_killed_is_unknown_at_once(tmp_path: Path, receiver: Receiver) -> None:
    with opened("sqlite", tmp_path) as saver:
        child = os.fork()
        if child == 0:
            with opened("sqlite", tmp_path) as own:
                Effects(own).of("order").once("charge", lambda _: os._exit(1), 5)
        os.waitpid(child, 0)
        with pytest.raises(EffectUnknownError, match=f"process {child} on "):
            Effects(saver, claim_ttl=timedelta(hours=1)).of("order").once("charge", receiver.charge, 5)
    assert receiver.calls == []


def test_sealed_effects_show_nothing(tmp_path: Path, receiver: Receiver) -> None:
    keyring = Keyring({"2026": b"k" * 32}, "2026", digest_secret=b"d" * 32)
    with opened("sqlite", tmp_path, keyring=keyring) as saver:
        orders = Effects(saver).of("order")
        for _ in range(2):
            orders.once("charge", receiver.charge, "the card of Ada")
        assert [effect.name for effect in orders.list()] == ["charge"]
    assert receiver.calls == ["the card of Ada"]
    assert b"Ada" not in (tmp_path / "threads.db").read_bytes()


def test_an_effect_belongs_to_the_owner_of_its_thread(saver: Saver, receiver: Receiver) -> None:
    config = {"configurable": {"thread_id": "order", "user_id": "ada"}}
    Effects(saver).of(config).once("charge", receiver.charge, 5)
    assert [info.owner for info in saver.list_threads().threads] == ["ada"]
    assert Effects(saver.for_owner("ada")).list()[0].name == "charge"
    assert Effects(saver.for_owner("bob")).list() == []


def test_a_deleted_thread_has_no_effects_and_another_one_begins_anew(saver: Saver, receiver: Receiver) -> None:
    orders = Effects(saver).of("order")
    orders.once("charge", receiver.charge, 5)
    saver.copy_thread("order", "copy")
    saver.delete_thread("order")
    assert orders.list("order") == []
    Effects(saver).of("copy").once("charge", receiver.charge, 5)
    orders.once("charge", receiver.charge, 5)
    assert receiver.calls == [5, 5, 5]
    assert not saver.verify().problems


@pytest.mark.parametrize("api", APIS)
def test_a_call_that_waits_for_itself_is_refused(api: str) -> None:
    orders = Effects(MemorySaver()).of("order")

    async def charge_again(amount: int) -> Any:
        return await orders.aonce("charge", charge_again, amount)

    def charge(amount: int) -> Any:
        return orders.once("charge", charge, amount)

    with pytest.raises(ConfigError, match="makes the same call inside of itself"):
        once(api, orders, "charge", charge if api == "blocking" else charge_again, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per": "graph"}, "per"),
        ({"on_unknown": "guess"}, "on_unknown"),
        ({"check": "ask"}, "check must be a function"),
        ({"retry_on": (5,)}, "classes of exceptions"),
        ({"retry_on": ValueError}, r"such as \(ValueError,\)"),
        ({"unknown_on": TimeoutError}, "several classes of exceptions"),
        ({"key": 5}, "key must be a string"),
    ],
)
def test_other_options_are_refused(options: dict[str, Any], message: str, receiver: Receiver) -> None:
    with pytest.raises(ConfigError, match=message):
        Effects(MemorySaver()).of("order").once("charge", receiver.charge, 5, **options)
    assert receiver.calls == []


def test_odd_uses_are_refused(receiver: Receiver) -> None:
    effects = Effects(MemorySaver())
    with pytest.raises(ConfigError, match=r"effects\.of\(thread_id\)"):
        effects.once("charge", receiver.charge, 5)
    with pytest.raises(ConfigError, match="aonce"):
        effects.of("order").once("charge", receiver.acharge, 5)
    with pytest.raises(ConfigError, match=r"give its `\.saver`"):
        Effects(InMemorySaver())  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ConfigError, match="settled as"):
        effects.settle(None, "running")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ConfigError, match=r"that effects\.list\(\) returned, not 'charge'"):
        effects.settle("charge", "done")  # type: ignore[arg-type]  # that is the point
    assert repr(effects).startswith("<Effects over <MemorySaver")
