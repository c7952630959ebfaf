"""pandas: moments, durations, missing values, and frames whose columns have dtypes with an exact form as data."""

import sys
from typing import Any

from threadmark.errors import SerializationError
from threadmark.serde.kinds.columns import check, give_column, is_codes, is_index, take_column
from threadmark.serde.kinds.times import is_zone
from threadmark.serde.kinds_api import Deconstruct, Definer, Family, Reconstruct, StoredClass, exactly


class PandasValues(Family):
    """Each of these classes has one function that takes a value apart and one that builds it."""

    code = "V"
    title = "a pandas value"

    def accepts(self, cls: type) -> bool:
        """Whether the class is one of those."""
        pandas = sys.modules.get("pandas")
        return pandas is not None and cls in _parts(pandas)

    def writer(self, define: Definer) -> Deconstruct:
        """By the class's function."""
        shape, (parts, _) = define.shape(), _parts(sys.modules["pandas"])[define.cls]

        def deconstruct(value: Any) -> list[Any]:
            _refuse_attributes(value)
            return [shape, *parts(value)]

        return deconstruct

    def reader(self, stored: StoredClass) -> Reconstruct:
        """By the class's function."""
        _, reconstruct = _parts(sys.modules["pandas"])[stored.cls]
        return lambda items: reconstruct(*items)


# A level may be so long although the index is shorter.
_MOST_UNUSED = 1 << 16
FAMILIES = (PandasValues(),)


def _refuse_attributes(value: Any) -> None:
    """Refuse what a user attached, beside `attrs`; what pandas itself keeps there, a copy has or its class names."""
    found = getattr(value, "__dict__", None)
    if not found:
        return
    # Moments and durations cannot be copied, and keep under private names what they have worked out.
    usual = vars(value.copy(deep=False)) if hasattr(value, "copy") else {name for name in found if name[:1] == "_"}
    if own := sorted(name for name in found.keys() - {*usual} if not hasattr(type(value), name)):
        raise SerializationError(
            f"a pandas {type(value).__name__} with attributes of its own ({', '.join(own)}) cannot be stored; "
            "where it has attrs, put them there"
        )


def _parts(pandas: Any) -> dict[type, Any]:
    indexes = (pandas.Index, pandas.DatetimeIndex, pandas.TimedeltaIndex, pandas.CategoricalIndex)
    return {
        pandas.Timestamp: (_take_timestamp, _give_timestamp),
        pandas.Timedelta: (lambda value: (value.asm8,), _give_timedelta),
        type(pandas.NaT): (lambda _: (), lambda: pandas.NaT),
        type(pandas.NA): (lambda _: (), lambda: pandas.NA),
        pandas.RangeIndex: (_take_range, _give_range),
        pandas.MultiIndex: (_take_multi, _give_multi),
        pandas.Series: (_take_series, _give_series),
        pandas.DataFrame: (_take_frame, _give_frame),
        **dict.fromkeys(indexes, (_take_index, _give_index)),
    }


def _take_timestamp(value: Any) -> tuple[Any, ...]:
    # The zone decides the fold of a moment; a naive one has none, whatever it says.
    if value.fold and value.tz is None:
        raise SerializationError("a pandas Timestamp with a fold but no zone cannot be stored")
    return (value.asm8,) if value.tz is None else (value.asm8, value.tz)


def _give_timestamp(moment: Any, zone: Any = None) -> Any:
    import pandas as pd  # type: ignore[import-untyped]  # its stubs are a package of their own

    check(_is_numpys(moment, "datetime64") and is_zone(zone))
    value = pd.Timestamp(moment)
    return value if zone is None else value.tz_localize("UTC").tz_convert(zone)


def _give_timedelta(duration: Any) -> Any:
    import pandas as pd

    check(_is_numpys(duration, "timedelta64"))
    return pd.Timedelta(duration)


def _take_range(index: Any) -> tuple[Any, ...]:
    return (index.start, index.stop, index.step, index.name)


def _give_range(start: int, stop: int, step: int, name: Any) -> Any:
    import pandas as pd

    return pd.RangeIndex(*exactly([start, stop, step], int, int, int), name=name)


def _take_multi(index: Any) -> tuple[Any, ...]:
    if not all(_is_level(level, len(index)) for level in index.levels):
        raise SerializationError(
            "a pandas MultiIndex with a range among its levels that is much longer than itself cannot be stored; "
            "store index.remove_unused_levels()"
        )
    order = () if index.sortorder is None else (index.sortorder,)
    if {*map(type, order)} - {int}:
        raise SerializationError("a pandas MultiIndex whose sortorder is not an int cannot be stored")
    return (list(index.levels), [codes.copy() for codes in index.codes], list(index.names), *order)


def _give_multi(levels: list[Any], codes: list[Any], names: list[Any], order: int | None = None) -> Any:
    import pandas as pd

    check(type(levels) is type(codes) is type(names) is list and all(map(is_codes, codes)))
    rows = max(map(len, codes), default=0)
    check(all(is_index(level) and _is_level(level, rows) for level in levels), order is None or type(order) is int)
    return pd.MultiIndex(levels=levels, codes=codes, names=names, sortorder=order)


def _is_level(level: Any, rows: int) -> bool:
    """Whether a level that takes no room where it is stored takes none to speak of in the index either."""
    import pandas as pd

    return type(level) is not pd.RangeIndex or len(level) <= max(rows, _MOST_UNUSED)


def _take_index(index: Any) -> tuple[Any, ...]:
    return (take_column(index.array), index.name, _take_frequency(getattr(index, "freq", None)))


def _give_index(column: Any, name: Any, frequency: Any) -> Any:
    import pandas as pd

    values = give_column(column)
    index = pd.Index(values, dtype=values.dtype, name=name)
    if frequency is not None:
        # Sets the frequency after checking that the moments have it.
        index = type(index)(index, freq=_give_frequency(frequency))
    return index


def _take_frequency(offset: Any) -> str | list[Any] | None:
    """A frequency's text, or the parts of a DateOffset; the texts of others leave out holidays, hours and more."""
    import pandas as pd

    if offset is None:
        return None
    is_plain = type(offset) is pd.DateOffset
    found = [offset.n, offset.normalize, dict(sorted(offset.kwds.items()))] if is_plain else offset.freqstr
    try:
        same = _give_frequency(found) == offset
    except ValueError:
        same = False
    if not same:
        raise SerializationError(
            f"a pandas index with the frequency {offset!r} cannot be stored: the frequency's text does not say all "
            "of it; store the index without (index.freq = None)"
        )
    return found


def _give_frequency(found: Any) -> Any:
    import pandas as pd

    if type(found) is str:
        return pd.tseries.frequencies.to_offset(found)
    check(type(found) is list)
    count, normalize, kwds = exactly(found, int, bool, dict)
    check({*map(type, kwds)} <= {str} and {*map(type, kwds.values())} <= {int, float})
    return pd.DateOffset(count, normalize, **kwds)


def _take_series(series: Any) -> tuple[Any, ...]:
    _refuse_flags(series)
    return (take_column(series.array), series.index, series.name, dict(series.attrs))


def _give_series(column: Any, index: Any, name: Any, attrs: dict[Any, Any]) -> Any:
    import pandas as pd

    values = give_column(column)
    # A single value would be repeated as often as the index says.
    check(is_index(index) and len(values) == len(index) and type(attrs) is dict)
    # The dtype is given because pandas would guess again for objects.
    series: Any = pd.Series(values, index=index, name=name, dtype=values.dtype)
    series.attrs = attrs
    return series


def _take_frame(frame: Any) -> tuple[Any, ...]:
    _refuse_flags(frame)
    columns = [take_column(frame.iloc[:, position].array) for position in range(frame.shape[1])]
    return (columns, frame.columns, frame.index, dict(frame.attrs))


def _give_frame(columns: list[Any], names: Any, index: Any, attrs: dict[Any, Any]) -> Any:
    import pandas as pd

    check(type(columns) is list and is_index(names) and is_index(index) and type(attrs) is dict)
    series = {position: _give_series(column, index, None, {}) for position, column in enumerate(columns)}
    frame: Any = pd.DataFrame(series, index=index)
    frame.columns = names
    frame.attrs = attrs
    return frame


def _refuse_flags(value: Any) -> None:
    if not value.flags.allows_duplicate_labels:
        raise SerializationError("pandas values that forbid duplicate labels cannot be stored")


def _is_numpys(value: Any, name: str) -> bool:
    import numpy as np

    return type(value) is getattr(np, name)
