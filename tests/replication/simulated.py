"""The rounds of a simulation: the faults, the work under them, and the looks at both databases."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from replication.journal import Journal
from replication.simulation import CALM, STEPS, Client, Fault, Plan, Simulation
from threadmark import ThreadmarkError


def play(plan: Plan, seed: int, folder: Path, make_world: type[Simulation] = Simulation) -> list[str]:
    """Play one round. Returns the checker's objections."""
    world = make_world(plan, seed, folder)
    try:
        term = world.term
        world.work()
        world.judge_now()
        _ROUNDS[plan.fault](world)
        if plan.fault == "none" and world.term != term:
            world.objections.append("the term was raised though both sides were well")
        if not world.objections:
            world.judge_at_the_end(calm=plan.fault in CALM)
    finally:
        world.close()
    return world.objections


def first_objections(
    plans: list[Plan], folder: Path, *, rounds: int, make_world: type[Simulation] = Simulation
) -> list[str]:
    """Play rounds of these plans in turn until the checker objects."""
    for number in range(rounds):
        for index, plan in enumerate(plans):
            place = folder / f"{number} {index}"
            place.mkdir()
            objections = play(plan, number, place, make_world)
            if objections:
                return [f"round {number} of {plan}: {each}" for each in objections]
    return []


def _none(world: Simulation) -> None:
    world.work()


def _move(world: Simulation) -> None:
    world.promote()
    world.work()
    world.judge_now()


def _active(world: Simulation) -> None:
    """No client reaches the active side."""
    side = world.active
    with _unreachable(world, side):
        world.work(2)
        _move_from(world, side)
        world.judge_now()
        world.work()
        world.judge_now()


def _standby(world: Simulation) -> None:
    with _unreachable(world, 1 - world.active):
        world.work(4 * STEPS)
        world.judge_now()


def _split(world: Simulation) -> None:
    """One client sees only the active side, the others only the other one."""
    side = world.active
    lonely = world.clients[0]
    lonely.links[1 - side].way = "closed"
    with _unreachable(world, side, but=lonely):
        _move_from(world, side)
        world.work()
        world.judge_now()
    lonely.links[1 - side].way = "open"
    world.work()


def _deaf(world: Simulation) -> None:
    """Commits without an answer, of one client at the active side and of another at the other one."""
    side = world.active
    world.clients[0].links[side].way = "deaf"
    world.clients[1].links[1 - side].way = "deaf"
    world.work()
    world.judge_now()
    for client in world.clients:
        client.links[0].way = client.links[1].way = "open"
    world.work()


def _late(world: Simulation) -> None:
    """Writes to the active side fail, and are carried out when others may have done the same elsewhere."""
    side = world.active
    links = [each.links[side] for each in (*world.clients, world.operator)]
    for link in links:
        link.way = "late"
    world.work(1)
    _move_from(world, side)
    world.work(2)
    for link in links:
        link.way = "open"
        world.come_late(link)
    world.work()
    world.judge_now()
    world.work()


def _death(world: Simulation) -> None:
    """A client dies between any two transactions, then the active side cannot be reached."""
    for client in world.clients[1:]:
        client.death.at(world._chance.randrange(12))
    for _ in range(STEPS):
        for client in world.clients[1:]:
            client.step()
    world.judge_now()
    _active(world)


def _slow(world: Simulation) -> None:
    """A client is stopped while it copies. In that time others delete its thread, and the writes are moved."""
    victim, side = world.clients[0], 1 - world.active
    victim.links[side].way = "silent"
    worker = threading.Thread(target=lambda: _work(victim, 3))
    worker.start()
    world.wait_for(lambda: victim.links[side].held > 0 or not worker.is_alive(), "a client to copy something")
    journal = Journal("operator", world.lines.append)
    for thread_id in [each for each in world.expectations().threads() if each.startswith(f"{victim.name}.")]:
        number = journal.begin("delete", thread=thread_id)
        try:
            journal.end(number, "acknowledged", str(world.operator.pair.delete_thread(thread_id)))
        except ThreadmarkError as error:
            journal.end(number, "raised", f"{type(error).__name__}: {error}")
    world.clients, busy = world.clients[1:], world.clients
    world.work(3)
    world.clients = busy
    victim.links[side].way = "open"
    worker.join()
    world.judge_now()
    world.work(3)


def _work(client: Client, steps: int) -> None:
    for _ in range(steps):
        client.step()


def _move_from(world: Simulation, side: int) -> None:
    if world.plan.failover == "manual":
        world.promote()
        return
    world.wait_for(lambda: world.active != side, "a client to promote the other side by itself")


@contextmanager
def _unreachable(world: Simulation, side: int, but: Client | None = None) -> Iterator[None]:
    links = [each.links[side] for each in (*world.clients, world.operator) if each is not but]
    for link in links:
        link.way = "closed"
    try:
        yield
    finally:
        for link in links:
            link.way = "open"


_ROUNDS: dict[Fault, Callable[[Simulation], Any]] = {
    "none": _none,
    "move": _move,
    "active": _active,
    "standby": _standby,
    "split": _split,
    "deaf": _deaf,
    "late": _late,
    "death": _death,
    "slow": _slow,
}
