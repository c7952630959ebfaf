"""One serializer serves many threads, and imports nothing that its values do not need."""

import gc
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from serde import specimens as s
from serde.sameness import same
from threadmark.errors import SerializationError
from threadmark.serde import Serde, Serializer


def test_it_is_what_a_saver_asks_for() -> None:
    assert isinstance(Serde(), Serializer)


def test_none_costs_a_tag() -> None:
    assert Serde().dumps_typed(None) == ("n", b"")
    assert Serde().loads_typed(("n", b"")) is None


def test_threads_share_one_serializer() -> None:
    """Its memory between calls (the latest shape of a model, say) is never seen half."""
    serde = Serde()

    def turn(number: int) -> bool:
        value: list[Any] = [
            s.Model(x=number),
            s.Model(y=number),
            s.Extra(x=number),
            s.Point({number, str(number)}),
        ]
        value[number % 4] = s.Model.model_construct(y=[number])
        return all(same(value, serde.loads_typed(serde.dumps_typed(value))) for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(turn, range(200)))


def test_an_error_leaves_nothing_behind() -> None:
    serde = Serde()
    before = serde.dumps_typed([s.Point(1), s.Point(2)])
    for broken in ([s.Point(1), object()], [s.Model(x=lambda: 1)]):
        with pytest.raises(SerializationError):
            serde.dumps_typed(broken)
    assert serde.dumps_typed([s.Point(1), s.Point(2)]) == before


def test_values_handed_out_share_nothing() -> None:
    serde = Serde()
    stored = serde.dumps_typed([s.Model(x=[1]), {"a": [1]}])
    first, second = serde.loads_typed(stored), serde.loads_typed(stored)
    first[0].x.append(2)
    first[0].model_fields_set.add("y")
    first[1]["a"].append(2)
    assert same(second, [s.Model(x=[1]), {"a": [1]}])


def test_a_value_is_let_go_when_the_call_ends() -> None:
    """And not when the interpreter next looks for cycles: values are large, and savers bound memory."""
    point = s.Point(1, [{2, "b"}, {(3,)}])
    seen = weakref.ref(point)
    gc.disable()
    try:
        Serde().dumps_typed([point, bytearray(b"a")])
        del point
        assert seen() is None
    finally:
        gc.enable()


def test_importing_it_imports_no_package_of_the_users_values() -> None:
    code = "import sys, threadmark.serde as s; s.Serde().dumps_typed([{1}]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    modules = set(done.stdout.split())
    assert "msgpack" in modules
    assert not modules & {"numpy", "pandas", "pydantic", "attr", "msgspec", "langchain_core", "langgraph"}
