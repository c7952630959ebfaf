"""Several actors, each of which does one transaction at a time, in every order with few changes between them."""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from threadmark.program import Pause
from threadmark.replication.steps import On, PairFlow

Actor = Generator[None, None, None]
"""Goes on by one transaction each time it is asked to."""

_ORDERS_AT_MOST = 20_000


def acting(flow: PairFlow[Any], after_each: Callable[[], None]) -> Actor:
    """An actor that plays a flow. The assertions of `after_each` hold after each of its transactions."""
    try:
        asked: On | Pause = next(flow)
        while True:
            if isinstance(asked, Pause):
                asked = flow.send(None)
                continue
            try:
                answer = asked.side.driver.run(asked.transaction)
            except Exception as error:  # noqa: BLE001 - the test is about the flow's handling of it
                asked = flow.throw(error)
            else:
                after_each()
                yield
                asked = flow.send(answer)
    except StopIteration:
        return


def doing(calls: Sequence[Callable[[], Any]]) -> Actor:
    """An actor that makes one call after the other."""
    for call in calls:
        call()
        yield


def orders(begin: Callable[[], Sequence[Actor]], switches: int) -> Iterator[list[int]]:
    """Run actors, which `begin` makes again for each order, in every order with at most so many switches.

    At a switch another one goes on although the last one could. Yields each order when all are done.
    """
    script: list[int] | None = []
    for _ in range(_ORDERS_AT_MOST):
        if script is None:
            return
        made = _run(list(begin()), script, switches)
        yield [who for who, _ in made]
        script = _next(made)
    raise AssertionError(f"there are more than {_ORDERS_AT_MOST} orders")


def _run(actors: list[Actor], script: list[int], switches: int) -> list[tuple[int, list[int]]]:
    """Run one order. Returns each choice with those that were left to be tried there."""
    going = list(range(len(actors)))
    made: list[tuple[int, list[int]]] = []
    last = going[0]
    while going:
        free = [last] if last in going and switches == 0 else sorted(going, key=lambda who: (who != last, who))
        who = script[len(made)] if len(made) < len(script) else free[0]
        if who != last and last in going:
            switches -= 1
        made.append((who, free[free.index(who) + 1 :]))
        last = who
        if next(actors[who], _OVER) is _OVER:
            going.remove(who)
    return made


def _next(made: list[tuple[int, list[int]]]) -> list[int] | None:
    """The script of the order that comes next, None after the last."""
    for position in range(len(made) - 1, -1, -1):
        if made[position][1]:
            return [who for who, _ in made[:position]] + made[position][1][:1]
    return None


_OVER = object()
