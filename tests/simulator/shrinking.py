"""Makes a plan that fails smaller: operations and faults are left out as long as it still fails."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from simulator.plan import Plan

T = TypeVar("T")

MOST_ATTEMPTS = 400


def shrunk(plan: Plan, fails: Callable[[Plan], bool], attempts: int = MOST_ATTEMPTS) -> Plan:
    """Return a part of a plan that fails, of which nothing can be left out in few attempts."""
    left = attempts

    def still_fails(smaller: Plan) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and fails(smaller)

    while left > 0:
        before = plan
        plan = _without_clients(plan, still_fails)
        plan = _without_operations(plan, still_fails)
        plan = _without_faults(plan, still_fails)
        if plan == before:
            break
    return plan


def _without_clients(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    for client in sorted({each.client for each in plan.operations}):
        smaller = plan._replace(operations=tuple(each for each in plan.operations if each.client != client))
        if fails(smaller):
            plan = smaller
    return plan


def _without_operations(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    kept = _cut_down(plan.operations, lambda kept: fails(plan._replace(operations=kept)))
    return plan._replace(operations=kept)


def _without_faults(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    kept = _cut_down(plan.faults, lambda kept: fails(plan._replace(faults=kept)))
    return plan._replace(faults=kept)


def _cut_down(items: tuple[T, ...], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Leave out ever smaller parts."""
    size = max(1, len(items) // 2)
    while items:
        start = 0
        while start < len(items):
            kept: Sequence[T] = items[:start] + items[start + size :]
            if fails(tuple(kept)):
                items = tuple(kept)
            else:
                start += size
        if size == 1:
            break
        size //= 2
    return items
