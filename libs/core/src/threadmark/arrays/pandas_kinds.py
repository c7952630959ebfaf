"""pandas: timestamps, durations, missing values, and frames whose columns have dtypes that can be stored exactly."""

import sys
from collections.abc import Callable
from typing import Any

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.kinds.times import is_zone
from threadmark.serde.kinds_api import Deconstruct, Definer, Family, Reconstruct, StoredClass, exactly
from threadmark.serde.lookup import derives


def deconstruct_column(column: Any) -> list[Any]:
    """Return a column as a list: the name of its form, then arrays or a list of values, and its dtype's additions."""
    import numpy as np
    import pandas as pd  # type: ignore[import-untyped]  # its stubs are a separate package

    dtype = column.dtype
    if isinstance(dtype, np.dtype) or type(column) is pd.arrays.NumpyExtensionArray:
        return ["numpy", np.asarray(column)]
    if type(dtype) is pd.StringDtype and dtype.storage == "python":
        texts = [None if missing else text for text, missing in zip(column, column.isna(), strict=True)]
        return ["text", dtype.na_value is pd.NA, texts]
    if type(dtype) is pd.CategoricalDtype:
        return ["category", column.codes.copy(), column.categories, column.ordered]
    if type(dtype) is pd.DatetimeTZDtype:
        return ["zoned", np.asarray(column.tz_convert("UTC").tz_localize(None)), column.tz]
    if isinstance(column, (pd.arrays.IntegerArray, pd.arrays.FloatingArray, pd.arrays.BooleanArray)):
        missing = column.isna()
        filled = column.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0))
        return ["masked", filled, missing]
    raise SerializationError(f"a pandas column of dtype {dtype} cannot be stored; convert it to another dtype")


def reconstruct_column(parts: Any) -> Any:
    """Return the argument of `deconstruct_column`."""
    check(type(parts) is list and bool(parts) and type(parts[0]) is str)
    kind, *content = parts
    reconstruct = _COLUMNS.get(kind)
    if reconstruct is None:
        raise CorruptDataError(f"a stored pandas column has an unknown form ({kind!r})")
    return reconstruct(*content)


def _reconstruct_values(values: Any) -> Any:
    check(_is_column(values))
    return values


def _reconstruct_texts(uses_na: Any, texts: Any) -> Any:
    import numpy as np
    import pandas as pd

    # pandas would convert anything else to text.
    check(type(uses_na) is bool and type(texts) is list and {*map(type, texts)} <= {str, type(None)})
    return pd.array(texts, dtype=pd.StringDtype("python", na_value=pd.NA if uses_na else np.nan))


def _reconstruct_categories(codes: Any, categories: Any, ordered: Any) -> Any:
    import pandas as pd

    check(is_codes(codes) and is_index(categories) and (ordered is None or type(ordered) is bool))
    return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(categories, ordered=ordered))


def _reconstruct_zoned(moments: Any, zone: Any) -> Any:
    import pandas as pd

    check(_is_column(moments) and moments.dtype.kind == "M" and zone is not None and is_zone(zone))
    return pd.DatetimeIndex(moments).tz_localize("UTC").tz_convert(zone).array


def _reconstruct_masked(values: Any, missing: Any) -> Any:
    import pandas as pd

    check(_is_column(values) and _is_column(missing))
    kinds: dict[str, Any] = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
    return kinds.get(values.dtype.kind, pd.arrays.IntegerArray)(values, missing)


_COLUMNS: dict[str, Callable[..., Any]] = {
    "numpy": _reconstruct_values,
    "text": _reconstruct_texts,
    "category": _reconstruct_categories,
    "zoned": _reconstruct_zoned,
    "masked": _reconstruct_masked,
}


def _is_column(values: Any) -> bool:
    import numpy as np

    return type(values) is np.ndarray and values.ndim == 1


def is_codes(values: Any) -> bool:
    """Whether these can be indexes into a level or into categories."""
    return _is_column(values) and values.dtype.kind == "i"


def is_index(value: Any) -> bool:
    """Whether this is a pandas Index, or an instance of a subclass."""
    import pandas as pd

    return derives(type(value), pd.Index)


def check(*fits: bool) -> None:
    """Raise CorruptDataError unless all fit. pandas would convert anything else, and open files for names of zones."""
    if not all(fits):
        raise CorruptDataError("a stored pandas value is not valid")


class PandasValues(Family):
    """Values of pandas. Each class has one function that takes a value apart and one that builds it."""

    code = "V"
    title = "a pandas value"

    def accepts(self, cls: type) -> bool:
        """Whether the class is one of them."""
        pandas = sys.modules.get("pandas")
        return pandas is not None and cls in _parts(pandas)

    def writer(self, define: Definer) -> Deconstruct:
        """Write the result of the class's function."""
        shape, (parts, _) = define.shape(), _parts(sys.modules["pandas"])[define.cls]

        def deconstruct(value: Any) -> list[Any]:
            _refuse_attributes(value)
            return [shape, *parts(value)]

        return deconstruct

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Build the value by the class's function."""
        _, reconstruct = _parts(sys.modules["pandas"])[stored.cls]
        return lambda items: reconstruct(*items)


_MOST_UNUSED = 1 << 16
"""A level may have this many values although the index is shorter."""

FAMILIES = (PandasValues(),)


def _refuse_attributes(value: Any) -> None:
    """Refuse attributes that a user attached outside of `attrs`. Those of pandas are in a copy too, or in the class."""
    found = getattr(value, "__dict__", None)
    if not found:
        return
    # Timestamps and durations cannot be copied, and keep cached results under private names.
    standard = vars(value.copy(deep=False)) if hasattr(value, "copy") else {name for name in found if name[:1] == "_"}
    if own := sorted(name for name in found.keys() - {*standard} if not hasattr(type(value), name)):
        raise SerializationError(
            f"a pandas {type(value).__name__} with attributes of its own ({', '.join(own)}) cannot be stored; "
            "where it has attrs, put them there"
        )


def _parts(pandas: Any) -> dict[type, Any]:
    indexes = (pandas.Index, pandas.DatetimeIndex, pandas.TimedeltaIndex, pandas.CategoricalIndex)
    return {
        pandas.Timestamp: (_deconstruct_timestamp, _reconstruct_timestamp),
        pandas.Timedelta: (lambda value: (value.asm8,), _reconstruct_timedelta),
        type(pandas.NaT): (lambda _: (), lambda: pandas.NaT),
        type(pandas.NA): (lambda _: (), lambda: pandas.NA),
        pandas.RangeIndex: (_deconstruct_range, _reconstruct_range),
        pandas.MultiIndex: (_deconstruct_multi, _reconstruct_multi),
        pandas.Series: (_deconstruct_series, _reconstruct_series),
        pandas.DataFrame: (_deconstruct_frame, _reconstruct_frame),
        **dict.fromkeys(indexes, (_deconstruct_index, _reconstruct_index)),
    }


def _deconstruct_timestamp(value: Any) -> tuple[Any, ...]:
    # The zone decides the fold, and a Timestamp without a zone has none, even if it shows one.
    if value.fold and value.tz is None:
        raise SerializationError("a pandas Timestamp with a fold but no zone cannot be stored")
    return (value.asm8,) if value.tz is None else (value.asm8, value.tz)


def _reconstruct_timestamp(moment: Any, zone: Any = None) -> Any:
    import pandas as pd

    check(_is_numpys(moment, "datetime64") and is_zone(zone))
    value = pd.Timestamp(moment)
    return value if zone is None else value.tz_localize("UTC").tz_convert(zone)


def _reconstruct_timedelta(duration: Any) -> Any:
    import pandas as pd

    check(_is_numpys(duration, "timedelta64"))
    return pd.Timedelta(duration)


def _deconstruct_range(index: Any) -> tuple[Any, ...]:
    return (index.start, index.stop, index.step, index.name)


def _reconstruct_range(start: int, stop: int, step: int, name: Any) -> Any:
    import pandas as pd

    return pd.RangeIndex(*exactly([start, stop, step], int, int, int), name=name)


def _deconstruct_multi(index: Any) -> tuple[Any, ...]:
    if not all(_is_level(level, len(index)) for level in index.levels):
        raise SerializationError(
            "a pandas MultiIndex with a range among its levels that is much longer than itself cannot be stored; "
            "store index.remove_unused_levels()"
        )
    order = () if index.sortorder is None else (index.sortorder,)
    if {*map(type, order)} - {int}:
        raise SerializationError("a pandas MultiIndex whose sortorder is not an int cannot be stored")
    return (list(index.levels), [codes.copy() for codes in index.codes], list(index.names), *order)


def _reconstruct_multi(levels: list[Any], codes: list[Any], names: list[Any], order: int | None = None) -> Any:
    import pandas as pd

    check(type(levels) is type(codes) is type(names) is list and all(map(is_codes, codes)))
    rows = max(map(len, codes), default=0)
    check(all(is_index(level) and _is_level(level, rows) for level in levels), order is None or type(order) is int)
    return pd.MultiIndex(levels=levels, codes=codes, names=names, sortorder=order)


def _is_level(level: Any, rows: int) -> bool:
    """Whether a range, which takes a few bytes in storage, is short enough to be a level of the index."""
    import pandas as pd

    return type(level) is not pd.RangeIndex or len(level) <= max(rows, _MOST_UNUSED)


def _deconstruct_index(index: Any) -> tuple[Any, ...]:
    return (deconstruct_column(index.array), index.name, _deconstruct_frequency(getattr(index, "freq", None)))


def _reconstruct_index(column: Any, name: Any, frequency: Any) -> Any:
    import pandas as pd

    values = reconstruct_column(column)
    index = pd.Index(values, dtype=values.dtype, name=name)
    if frequency is not None:
        # pandas checks that the timestamps have this frequency.
        index = type(index)(index, freq=_reconstruct_frequency(frequency))
    return index


def _deconstruct_frequency(offset: Any) -> str | list[Any] | None:
    """Return a frequency's text, or the parts of a DateOffset. Refuses those whose text does not say all."""
    import pandas as pd

    if offset is None:
        return None
    is_plain = type(offset) is pd.DateOffset
    found = [offset.n, offset.normalize, dict(sorted(offset.kwds.items()))] if is_plain else offset.freqstr
    try:
        same = _reconstruct_frequency(found) == offset
    except ValueError:
        same = False
    if not same:
        raise SerializationError(
            f"a pandas index with the frequency {offset!r} cannot be stored: the frequency's text does not say all "
            "of it; store the index without (index.freq = None)"
        )
    return found


def _reconstruct_frequency(found: Any) -> Any:
    import pandas as pd

    if type(found) is str:
        return pd.tseries.frequencies.to_offset(found)
    check(type(found) is list)
    count, normalize, kwds = exactly(found, int, bool, dict)
    check({*map(type, kwds)} <= {str} and {*map(type, kwds.values())} <= {int, float})
    return pd.DateOffset(count, normalize, **kwds)


def _deconstruct_series(series: Any) -> tuple[Any, ...]:
    _refuse_flags(series)
    return (deconstruct_column(series.array), series.index, series.name, dict(series.attrs))


def _reconstruct_series(column: Any, index: Any, name: Any, attrs: dict[Any, Any]) -> Any:
    import pandas as pd

    values = reconstruct_column(column)
    # pandas would repeat a single value to the length of the index.
    check(is_index(index) and len(values) == len(index) and type(attrs) is dict)
    # Without the dtype, pandas would infer another one for objects.
    series: Any = pd.Series(values, index=index, name=name, dtype=values.dtype)
    series.attrs = attrs
    return series


def _deconstruct_frame(frame: Any) -> tuple[Any, ...]:
    _refuse_flags(frame)
    columns = [deconstruct_column(frame.iloc[:, position].array) for position in range(frame.shape[1])]
    return (columns, frame.columns, frame.index, dict(frame.attrs))


def _reconstruct_frame(columns: list[Any], names: Any, index: Any, attrs: dict[Any, Any]) -> Any:
    import pandas as pd

    check(type(columns) is list and is_index(names) and is_index(index) and type(attrs) is dict)
    series = {position: _reconstruct_series(column, index, None, {}) for position, column in enumerate(columns)}
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
