"""Whether two values are the same to a program: equal, of the same types at every depth, in the same order.

Plain equality forgives too much here: 1 equals True, a datetime's fold does not count, NaN equals nothing.
"""

import datetime as dt
import gc
import ipaddress
import struct
from array import array
from collections import ChainMap, OrderedDict, defaultdict, deque
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # its stubs are a separate package
from pydantic import BaseModel


def same(one: Any, other: Any) -> bool:
    """Whether nothing but identity distinguishes the stored value from its copy."""
    if type(one) is not type(other):
        return False
    for kind, compare in _COMPARISONS:
        if isinstance(one, kind):
            return compare(one, other) and _same_attributes(one, other)
    if _attributes(one):
        return _same_attributes(one, other)
    return bool(one == other)


def _same_floats(one: float, other: float) -> bool:
    return struct.pack("d", one) == struct.pack("d", other)


def _same_items(one: Any, other: Any) -> bool:
    return len(one) == len(other) and all(map(same, list(one), list(other)))


def _same_sets(one: Any, other: Any) -> bool:
    return _same_items(sorted(one, key=_sort_key), sorted(other, key=_sort_key))


def _sort_key(member: Any) -> str:
    # The text of a set's member may depend on the order of the sets inside it.
    if isinstance(member, (set, frozenset)):
        return f"{type(member)}{sorted(map(_sort_key, member))}"
    if isinstance(member, tuple):
        return f"{type(member)}{list(map(_sort_key, member))}"
    return f"{type(member)}{member!r}"


def _same_mappings(one: Any, other: Any) -> bool:
    return _same_items(list(one.keys()), list(other.keys())) and _same_items(list(one.values()), list(other.values()))


def _same_moments(one: Any, other: Any) -> bool:
    clocks = [str(one), one.fold, one.microsecond], [str(other), other.fold, other.microsecond]
    return clocks[0] == clocks[1] and same(one.tzinfo, other.tzinfo)


def _same_arrays(one: Any, other: Any) -> bool:
    if not _same_dtypes(one.dtype, other.dtype) or one.shape != other.shape or not other.flags.writeable:
        return False
    if one.flags.f_contiguous and not other.flags.f_contiguous:
        return False
    if one.dtype == object:
        return _same_items(one.ravel().tolist(), other.ravel().tolist())
    # Long doubles have bytes among theirs that were never written.
    return bool(one.tolist() == other.tolist() if one.dtype.char in "gG" else one.tobytes() == other.tobytes())


def _same_dtypes(one: Any, other: Any) -> bool:
    """Equality would take longlong for long if they are as wide."""
    if one != other or one.char != other.char or one.isalignedstruct != other.isalignedstruct:
        return False
    if one.base is not one:
        return _same_dtypes(one.base, other.base)
    return all(_same_dtypes(one.fields[name][0], other.fields[name][0]) for name in one.names or ())


def _same_scalars(one: Any, other: Any) -> bool:
    # The text form of a long double says it all; its bytes have undefined ones among them.
    exact = one.dtype.char in "gG" or one.tobytes() == other.tobytes()
    return bool(_same_dtypes(one.dtype, other.dtype) and exact and str(one) == str(other))


def _same_masked(one: Any, other: Any) -> bool:
    parts = ("data", "fill_value", "hardmask")
    masks = (one.mask is np.ma.nomask) == (other.mask is np.ma.nomask) and np.array_equal(one.mask, other.mask)
    return masks and all(same(getattr(one, part), getattr(other, part)) for part in parts)


def _same_frames(one: Any, other: Any) -> bool:
    pd.testing.assert_frame_equal(one, other, check_freq=True)
    return bool(one.attrs == other.attrs)


def _same_series(one: Any, other: Any) -> bool:
    pd.testing.assert_series_equal(one, other, check_freq=True)
    return bool(one.attrs == other.attrs)


def _same_indexes(one: Any, other: Any) -> bool:
    pd.testing.assert_index_equal(one, other, exact=True)
    return all(getattr(one, name, None) == getattr(other, name, None) for name in ("freq", "sortorder"))


def _same_exceptions(one: Any, other: Any) -> bool:
    names = ("args", "__cause__", "__context__", "__suppress_context__", *_EXCEPTION_FIELDS)
    # Nothing else tells a field of an OSError that is None from one that was never set.
    texts = not isinstance(one, OSError) or str(one) == str(other)
    return texts and all(same(getattr(one, name, None), getattr(other, name, None)) for name in names)


def _same_models(one: Any, other: Any) -> bool:
    names = ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
    return all(same(getattr(one, name), getattr(other, name)) for name in names)


def _same_attributes(one: Any, other: Any) -> bool:
    return _same_mappings(_attributes(one), _attributes(other))


def _attributes(value: Any) -> dict[str, Any]:
    if isinstance(value, (pd.DataFrame, pd.Series, pd.Index, pd.Timedelta, np.ndarray, Enum, array, *_REMEMBERING)):
        return {}
    found = dict(getattr(value, "__dict__", {}))
    for owner in type(value).__mro__:
        slots = vars(owner).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            mangled = f"_{owner.__name__.lstrip('_')}{name}" if name.startswith("__") and name[-1] != "_" else name
            if hasattr(value, mangled) and name not in _NOT_COMPARED:
                found[mangled] = getattr(value, mangled)
    for name in _NOT_COMPARED:
        found.pop(name, None)
    return found


_REMEMBERING = (
    PurePath,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
)
_NOT_COMPARED = ("__dict__", "__weakref__", "__orig_class__", "_attrs_cached_hash")
_EXCEPTION_FIELDS = (
    *("errno", "strerror", "filename", "filename2", "characters_written", "code", "value"),
    *("name", "path", "msg", "name_from"),
    *("message", "exceptions"),
    *("encoding", "object", "start", "end", "reason"),
    *("lineno", "offset", "text", "end_lineno", "end_offset", "print_file_and_line"),
)
_COMPARISONS: tuple[tuple[Any, Any], ...] = (
    (Enum, lambda one, other: one is other or one == other),
    # A path and an address cache their results; that is not part of them.
    (_REMEMBERING, lambda one, other: one == other and str(one) == str(other)),
    (float, _same_floats),
    (complex, lambda one, other: _same_floats(one.real, other.real) and _same_floats(one.imag, other.imag)),
    (np.ma.MaskedArray, _same_masked),
    (np.ndarray, _same_arrays),
    (np.generic, _same_scalars),
    (pd.DataFrame, _same_frames),
    (pd.Series, _same_series),
    (pd.Index, _same_indexes),
    (type(pd.NaT), lambda one, other: one is other),
    (type(pd.NA), lambda one, other: one is other),
    (
        pd.Timestamp,
        lambda one, other: one == other and one.unit == other.unit and str(one.tz) == str(other.tz),
    ),
    # It remembers parts of itself that it was asked for.
    (pd.Timedelta, lambda one, other: one == other and one.unit == other.unit),
    ((dt.datetime, dt.time), _same_moments),
    # Zones are equal to themselves only; this says the key, and whether it is the one that everyone shares.
    (ZoneInfo, lambda one, other: one.__reduce__() == other.__reduce__()),
    (dt.timezone, lambda one, other: one.__getinitargs__() == other.__getinitargs__()),
    (Decimal, lambda one, other: one.as_tuple() == other.as_tuple()),
    (BaseException, _same_exceptions),
    (BaseModel, _same_models),
    ((set, frozenset), _same_sets),
    (
        defaultdict,
        lambda one, other: one.default_factory is other.default_factory and _same_mappings(one, other),
    ),
    ((dict, OrderedDict), _same_mappings),
    (MappingProxyType, lambda one, other: same(gc.get_referents(one), gc.get_referents(other))),
    (ChainMap, lambda one, other: _same_items(one.maps, other.maps)),
    (deque, lambda one, other: one.maxlen == other.maxlen and _same_items(one, other)),
    (array, lambda one, other: one.typecode == other.typecode and one.tobytes() == other.tobytes()),
    (
        slice,
        lambda one, other: _same_items([one.start, one.stop, one.step], [other.start, other.stop, other.step]),
    ),
    ((list, tuple), _same_items),
    ((str, int, bytes, bytearray), lambda one, other: one == other),
)
