"""Copiers of a thread meet each other, and its writers, in every order: both sides are equal then.

A copier also dies before or after any of its transactions: the next one finishes its work.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pytest

from replication.histories import history, put, write
from replication.orders import Actor, acting, doing, orders
from replication.sides import (
    TERM,
    assert_sound,
    copied_both_ways,
    in_store,
    pair_in_memory,
    rows,
    side,
    stored,
    with_stored,
)
from threadmark.replication import applying, snapshots
from threadmark.replication.copying import copy_thread
from threadmark.saver import Saver
from threadmark_conformance.engine import at

THREAD = "thread"


class Scene(NamedTuple):
    """The state before, and the changes while the thread is copied."""

    prepare: Callable[[Saver, Saver], Any]
    """The contents of both databases before, and the waiting changes."""
    calls: Callable[[Saver, Saver], Sequence[Callable[[], Any]]]
    back: bool = False
    """Whether the second one who copies does so in the other direction."""
    gone: str = ""
    """The checkpoint that must not be there in the end."""


def _nothing(_: Saver, __: Saver) -> None:
    pass


def _history(one: Saver, _: Saver) -> None:
    history(one, THREAD)


def _copied(one: Saver, other: Saver) -> None:
    history(one, THREAD)
    copied_both_ways(side(one), side(other, "secondary"))


def _lagging(one: Saver, other: Saver) -> None:
    _copied(one, other)
    put(one, THREAD, 4, "0003")


def _apart(one: Saver, other: Saver) -> None:
    _copied(one, other)
    put(one, THREAD, 4, "0003")
    put(other, THREAD, 5, "0003")
    write(other, THREAD, "0003", "of the other one")
    write(one, THREAD, "0003", "of the first one")


SCENES = {
    "put": Scene(_lagging, lambda one, _: [lambda: put(one, THREAD, 5, "0004"), lambda: write(one, THREAD, "0005", 5)]),
    "begin": Scene(_nothing, lambda one, _: [lambda: put(one, THREAD, 1), lambda: put(one, THREAD, 2, "0001")]),
    "delete a checkpoint": Scene(_lagging, lambda one, _: [lambda: one.delete_checkpoint(at(THREAD, "", "0002"))]),
    "prune": Scene(_lagging, lambda one, _: [lambda: one.prune([THREAD]), lambda: put(one, THREAD, 6, "0004")]),
    "delete and begin anew": Scene(
        _lagging, lambda one, _: [lambda: one.delete_thread(THREAD), lambda: put(one, THREAD, 7)]
    ),
    "replace": Scene(_lagging, lambda one, _: [lambda: put(one, THREAD, 4, "0003", again=True)]),
    "write over": Scene(_lagging, lambda one, _: [lambda: write(one, THREAD, "0003", "another")]),
    "set the title": Scene(_lagging, lambda one, _: [lambda: one.update_thread(THREAD, title="a title")]),
    "both": Scene(_apart, lambda _, other: [lambda: put(other, THREAD, 8, "0005")], back=True),
    "both, set the title": Scene(
        _apart,
        lambda one, other: [lambda: other.update_thread(THREAD, title="new"), lambda: put(one, THREAD, 9)],
        back=True,
    ),
    "both, one prunes": Scene(_apart, lambda _, other: [lambda: other.prune([THREAD])], back=True),
    "both, one deletes": Scene(_apart, lambda one, _: [lambda: one.delete_thread(THREAD)], back=True),
    "both, one deletes a checkpoint of the other": Scene(
        _apart,
        lambda one, _: [lambda: one.delete_checkpoint(at(THREAD, "", "0005")), lambda: put(one, THREAD, 6)],
        gone="0005",
    ),
    "both, it goes on while the other deletes its checkpoint": Scene(
        _apart, lambda _, other: [lambda: other.delete_checkpoint(at(THREAD, "", "0004"))], back=True, gone="0004"
    ),
    "both, one deletes a checkpoint of both": Scene(
        _apart,
        lambda one, other: [
            lambda: one.delete_checkpoint(at(THREAD, "", "0002")),
            lambda: put(other, THREAD, 7, "0002"),
        ],
        back=True,
    ),
    "both delete": Scene(
        _apart,
        lambda one, other: [
            lambda: one.delete_thread(THREAD),
            lambda: other.delete_thread(THREAD),
            lambda: put(other, THREAD, 3),
        ],
        back=True,
    ),
}


_IN_PARTS = (
    "put",
    "begin",
    "delete and begin anew",
    "both",
    "both, one deletes a checkpoint of the other",
    "both, it goes on while the other deletes its checkpoint",
    "both, one deletes a checkpoint of both",
    "both delete",
)


@pytest.mark.parametrize(
    ("name", "size"), [(name, "at once") for name in SCENES] + [(name, "in parts") for name in _IN_PARTS]
)
def test_whoever_copies_meets_others_in_every_order(name: str, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if size == "in parts":
        in_parts(monkeypatch)
    scene, savers, sound = SCENES[name], [*pair_in_memory()], Sound()
    scene.prepare(*savers)
    prepared = [stored(saver) for saver in savers]

    def begin() -> Sequence[Actor]:
        savers[:] = map(with_stored, prepared)
        one, other = savers
        first, second = side(one), side(other, "secondary")
        there, back = (first, second), (second, first)
        come = [-1]

        def after_each() -> None:
            sound.expect(other)
            copied = in_store(second, second.store.copied, [THREAD])
            position = copied[THREAD].position if THREAD in copied else -1
            assert position >= come[0] or position < 0, "the target went back"
            come[0] = position

        return [
            acting(copy_thread(*there, THREAD, TERM), after_each),
            acting(copy_thread(*(back if scene.back else there), THREAD, TERM), after_each),
            doing(scene.calls(one, other)),
        ]

    count = 0
    for order in orders(begin, switches=1):
        count += 1
        one, other = savers
        copied_both_ways(side(one), side(other, "secondary"))
        try:
            assert rows(side(one)) == rows(side(other))
            assert not scene.gone or not one.get(at(THREAD, "", scene.gone)), "it came back"
            sound.expect(one)
            sound.expect(other)
        except AssertionError as error:
            raise AssertionError(f"in the order {order}: {error}") from error
    assert count > 5


@pytest.mark.parametrize("name", ["put", "begin", "delete and begin anew", "set the title", "both delete"])
def test_whoever_copies_dies_at_any_moment_and_another_one_finishes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_parts(monkeypatch)
    scene, savers = SCENES[name], pair_in_memory()
    scene.prepare(*savers)
    for call in scene.calls(*savers):
        call()
    prepared = [stored(saver) for saver in savers]
    for moment in range(100):
        one, other = map(with_stored, prepared)
        first, second = side(one), side(other, "secondary")
        dying = acting(copy_thread(first, second, THREAD, TERM), partial(assert_sound, other))
        died = all(next(dying, _OVER) is not _OVER for _ in range(moment + 1))
        dying.close()
        copied_both_ways(first, second)
        assert rows(first) == rows(second)
        if not died:
            break
    assert 3 < moment < 99


_OVER = object()


class Sound:
    """Looks at each state that is met only once, as most are met in many orders."""

    def __init__(self) -> None:
        self._met: set[str] = set()

    def expect(self, saver: Saver) -> None:
        """Fail if anything is damaged or unreadable."""
        state = repr(rows(side(saver)))
        if state not in self._met:
            assert_sound(saver)
            self._met.add(state)


def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every thread be so large that it is copied in parts."""
    monkeypatch.setattr(applying, "MOST_ROWS", 2)
    monkeypatch.setattr(applying, "MOST_BYTES", 300)
    monkeypatch.setattr(snapshots, "_MOST_ROWS_READ", 0)
