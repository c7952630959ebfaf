"""The cost of reading a value is bounded by its length: small bytes that ask for much are refused in time."""

import gc
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import msgpack
import pytest
from msgpack import ExtType, packb

from serde import specimens as s
from serde.catalogue import EXACT
from serde.test_safe import crafted
from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde import Serde
from threadmark.serde.whole import _is_short

SERDE = Serde()
A_BYTE = 200  # the most memory that a byte of an encoding may stand for: a deque of nothing has five bytes
AT_ALL = 512 * 1024  # and the bound for any length


def array(shape: list[int], content: bytes, dtype: str = "<f8") -> list[Any]:
    """A crafted numpy array."""
    return [ExtType(84, packb(["Ynumpy:ndarray", dtype, "C"])), shape, content]


def pandas(name: str, *items: Any) -> list[Any]:
    """A crafted pandas value."""
    return [ExtType(84, packb([f"Vpandas:{name}"])), *items]


HUGE = 10**10
LONG = pandas("RangeIndex", 0, HUGE, 1, None)
CODES = array([1], b"\0", "|i1")
NAMES = [f"n{number}" for number in range(500)]
MODEL = ExtType(84, packb(["Mserde.specimens:Extra", [], NAMES, 0, 0]))
BOMBS: dict[str, Any] = {
    "a single value for a long index": pandas("Series", ["numpy", array([], bytes(8))], LONG, None, {}),
    "a column of one for a long index": pandas("Series", ["numpy", array([1], bytes(8))], LONG, None, {}),
    "a frame of single values": pandas("DataFrame", [["numpy", array([], bytes(8))]], LONG, LONG, {}),
    "an index of a single value": pandas("Index", ["numpy", array([], bytes(8))], None, None),
    "long levels": pandas("MultiIndex", [LONG, LONG], [CODES, CODES], [None, None]),
    "levels that are ranges": pandas("MultiIndex", [[ExtType(84, b"r"), 0, HUGE, 1]], [CODES], [None]),
    "categories that are a range": pandas(
        "Index", ["category", CODES, [ExtType(84, b"r"), 0, HUGE, 1], False], None, None
    ),
    "an index that is a range": pandas(
        "DataFrame", [], [ExtType(84, b"r"), 0, 0, 1], [ExtType(84, b"r"), 0, HUGE, 1], {}
    ),
    "an array without the bytes": array([HUGE], b"12345678"),
    "an array of large items": array([1], b"", "|V2000000000"),
    "many models with many fields set": [[MODEL]] * 2000,
}
NESTED = {
    "arrays": b"\xdd\x00\x00\xff\xff" * 1000 + bytes(70_000),
    "short arrays": b"\xdc\xff\xff" * 1000 + bytes(70_000),
    "arrays in maps": b"\x81\xa1a\xdd\x00\x00\xff\xff" * 500 + bytes(70_000),
    "arrays in a mark": packb([1, ExtType(84, b"\xdd\x00\x00\xff\xff" * 900 + bytes(70_000))]),
    "arrays that look like bytes": b"\x92"
    + packb(b"\xdc\xff\xff" * 99)
    + b"\xdd\x00\x00\xff\xff" * 1000
    + bytes(70_000),
}


def peak(tag: str, encoded: bytes) -> int:
    """The most additional memory that reading took."""
    tracemalloc.start()
    try:
        kept = SERDE.loads_typed((tag, encoded))
        del kept
    except (CorruptDataError, SerializationError):
        pass
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return most


@pytest.mark.parametrize("name", BOMBS)
def test_a_value_that_asks_for_more_than_it_brings_is_corrupt(name: str) -> None:
    encoded = packb(BOMBS[name])
    with pytest.raises(CorruptDataError):
        SERDE.loads_typed(("t", encoded))
    assert peak("t", encoded) < AT_ALL + 20 * len(encoded)


@pytest.mark.parametrize("tag", ["m", "t"])
@pytest.mark.parametrize("name", NESTED)
def test_arrays_that_announce_more_than_there_is_are_corrupt(name: str, tag: str) -> None:
    with pytest.raises(CorruptDataError):
        SERDE.loads_typed((tag, NESTED[name]))
    assert peak(tag, NESTED[name]) < 20 * len(NESTED[name])


def test_bytes_that_look_like_long_arrays_are_read() -> None:
    for value in ([b"\xdd\xff\xff\xff\xff" * 500], [(b"\xdc\xff\xff",)] * 500, ["\u0700\u0740" * 400, (1,)]):
        assert SERDE.loads_typed(SERDE.dumps_typed(value)) == value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", EXACT)
def test_what_is_put_takes_so_much_a_byte_at_most(group: str) -> None:
    """The honest side: this holds for every kind, so no honest value is near the limit."""
    for name, make in EXACT[group].items():
        _, one = SERDE.dumps_typed(make())
        tag, encoded = SERDE.dumps_typed([make() for _ in range(max(1, 5_000 // max(1, len(one))))])
        SERDE.loads_typed((tag, encoded))  # the memory for the classes is not the value's
        assert peak(tag, encoded) < AT_ALL + A_BYTE * len(encoded), name


DENSE: dict[str, Any] = {
    "lists": [],
    "maps": {},
    "sets": [ExtType(84, b"s")],
    "tuples": [ExtType(84, b"t"), 1],
    "deques": [ExtType(84, b"q"), None],
    "ordered dictionaries": [ExtType(84, b"o"), {}],
    "counters": [ExtType(84, b"n"), {}],
    "namespaces": [ExtType(84, b"N"), {}],
    "chains": [ExtType(84, b"h")],
    "patterns": [ExtType(84, b"R"), "(?i)[a-z]|b?", 32],
    "networks": [ExtType(84, b"3"), "::/0"],
    "fractions": [ExtType(84, b"/"), 1, 3],
    "ranges": pandas("RangeIndex", 0, 1, 1, None),
    "arrays": array([0], b""),
    "models": [ExtType(84, packb(["Mserde.specimens:Extra", [], [], 0, 0]))],
    "other models each time": [ExtType(84, packb(["Mserde.specimens:Extra", ["x"], [], 0, 0]))],
}


@pytest.mark.parametrize("name", DENSE)
def test_crafted_values_take_so_much_a_byte_at_most(name: str) -> None:
    encoded = packb([DENSE[name]] * 2000)
    if len(encoded) > 30 * 2000:  # marks in full, which a writer would have written once
        encoded = packb([DENSE[name]] * 500)
    peak("t", encoded)
    assert peak("t", encoded) < AT_ALL + A_BYTE * len(encoded)


def test_marks_that_differ_take_so_much_a_byte_at_most() -> None:
    """Each mark makes a reader, and readers are kept from call to call, but not without end."""
    serde = Serde()
    head = "Mserde.specimens:Extra"
    encoded = packb([[ExtType(84, packb([head, [], [str(number)], 2, 0])), {}] for number in range(3000)])
    tracemalloc.start()
    for round_ in range(40):
        long = [f"{round_} {number}" + "x" * 90 for number in range(10_000)]
        loaded = serde.loads_typed(("t", packb([ExtType(84, packb([head, long, [], 0, 0, ["x"]])), *range(10_000)])))
        assert len(loaded.__dict__) == 10_000
        del long, loaded
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 16 * 1024 * 1024  # of 40 MB of marks
    assert peak("t", encoded) < AT_ALL + A_BYTE * len(encoded)


def test_a_model_notes_no_more_fields_as_set_than_it_has() -> None:
    with pytest.raises(SerializationError, match="noted as set"):
        SERDE.dumps_typed(s.Model.model_construct({f"n{number}" for number in range(100)}, x=1))
    model = s.Extra(x=1, other=2, third=3)  # type: ignore[call-arg]  # extra ones are allowed
    assert SERDE.loads_typed(SERDE.dumps_typed(model)) == model


def test_fields_that_are_gone_are_named_as_far_as_somebody_would_read() -> None:
    names = [f"field{number:05}" for number in range(10_000)]
    with pytest.raises(SerializationError, match=r"field00000 was removed;.* and 9991 more\)") as caught:
        SERDE.loads_typed(crafted("Dserde.specimens:Point", *names, details=(names,)))
    assert len(str(caught.value)) < 1000


def test_a_level_may_be_much_longer_than_its_index_only_where_it_is_stored() -> None:
    import pandas as pd  # type: ignore[import-untyped]  # its stubs are a separate package

    index = pd.MultiIndex.from_product([pd.RangeIndex(100_000), ["a"]])
    assert SERDE.loads_typed(SERDE.dumps_typed(index)).equals(index)
    levels = [pd.RangeIndex(100_000), pd.Index(["a"])]
    odd = pd.MultiIndex(levels=levels, codes=[[1], [0]])
    if type(odd.levels[0]) is pd.RangeIndex:
        with pytest.raises(SerializationError, match="remove_unused_levels"):
            SERDE.dumps_typed(odd)


def test_a_place_is_not_longer_than_somebody_would_read() -> None:
    """A part's place is made for every part before it, so with long keys it would take hours."""
    bad = {"k" * 1_000_000: [*[1] * 20_000, object()]}
    with pytest.raises(SerializationError, match=r"^\['kkk"):
        SERDE.dumps_typed(bad)
    stored = packb({"k" * 1_000_000: [*[1] * 20_000, [ExtType(84, b"q"), "a"]]})
    with pytest.raises(CorruptDataError) as caught:
        SERDE.loads_typed(("t", stored))
    assert len(str(caught.value)) < 600


CHILD = """
import random, resource, sys, warnings
from serde.catalogue import EXACT
from serde.test_fuzz import STORED, damaged, read
from threadmark.errors import CorruptDataError
from threadmark.serde import Serde
from threadmark.serde.whole import _is_short
warnings.simplefilter("ignore")
serde, rng = Serde(), random.Random(11)
large = [serde.dumps_typed(value) for value in (bytes(1 << 28), [bytes(1 << 28), (1,)])]
limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (1 << 27)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for stored in large:
    try:
        serde.loads_typed(stored)
    except CorruptDataError as error:
        assert "MemoryError" in str(error), error
    else:
        raise SystemExit("it was read")
del large, stored
for tag, encoded in STORED:
    for bytes_ in damaged(encoded, rng):
        read(rng.choice([tag, "m", "t"]), bytes_)
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a process's memory can be limited in this way on Linux only")
def test_damaged_values_under_a_limit_of_memory() -> None:
    """Neither do they take it all, nor does a MemoryError come out as itself if an honest value is too large."""
    tests = Path(__file__).parent.parent
    child = subprocess.run(
        [sys.executable, "-c", CHILD], cwd=tests, capture_output=True, text=True, timeout=300, check=False
    )
    assert child.stdout == "done\n", child.stderr


def test_the_crafted_values_are_what_they_seem() -> None:
    """So that they are refused for their faults."""
    index = pandas("RangeIndex", 0, 1, 1, None)
    loaded = SERDE.loads_typed(("t", packb(pandas("Series", ["numpy", array([1], bytes(8))], index, None, {}))))
    assert list(loaded) == [0.0]
    levels = SERDE.loads_typed(("t", packb(pandas("MultiIndex", [index], [CODES], [None]))))
    assert len(levels) == 1
    few = SERDE.loads_typed(crafted("Mserde.specimens:Extra", details=([], ["x"], 0, 0)))
    assert few.model_fields_set == {"x"}
    assert msgpack.version


@pytest.mark.parametrize("group", EXACT)
def test_a_few_headers_are_read_as_msgpack_reads_them(group: str) -> None:
    """With any cut: a value that counts as complete is."""
    for make in EXACT[group].values():
        encoded = SERDE.dumps_typed(make())[1][:400]
        for end in range(len(encoded) + 1):
            unpacker = msgpack.Unpacker(max_buffer_size=500)
            unpacker.feed(encoded[:end])
            try:
                unpacker.skip()
            except msgpack.OutOfData:
                assert not _is_short(encoded[:end])
