"""Judging a change: the reasons to refuse it, and which of two reasons counts."""

from threadmark_conformance.backend import World
from threadmark_conformance.judged import OWN_REASONS, judge, judged_for


async def each_reason_refuses_a_change_in_its_order(world: World) -> None:
    await judge(world, judged_for(OWN_REASONS), at_once=False)


async def changes_that_come_together_are_judged_each_by_itself(world: World) -> None:
    await judge(world, judged_for(OWN_REASONS), at_once=True)
