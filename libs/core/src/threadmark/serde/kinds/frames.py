"""pandas: moments, durations, missing values, and frames whose columns have dtypes with an exact form as data."""

import sys
from typing import Any

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.plan import Definer, Give, Stored, Take


class PandasValues:
    """Each of these classes has one function that takes a value apart and one that builds it."""

    letter = "V"
    title = "a pandas value"

    def accepts(self, cls: type) -> bool:
        """Whether the class is one of those."""
        pandas = sys.modules.get("pandas")
        return pandas is not None and cls in _parts(pandas)

    def writer(self, define: Definer) -> Take:
        """By the class's function."""
        shape, (parts, _) = define.shape(), _parts(sys.modules["pandas"])[define.cls]

        def take(value: Any) -> list[Any]:
            _refuse_attributes(value)
            return [shape, *parts(value)]

        return take

    def reader(self, stored: Stored) -> Give:
        """By the class's function."""
        _, give = _parts(sys.modules["pandas"])[stored.cls]
        return lambda items: give(*items)


FAMILY = PandasValues()


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
        pandas.Timedelta: (lambda value: (value.asm8,), pandas.Timedelta),
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

    value = pd.Timestamp(moment)
    return value if zone is None else value.tz_localize("UTC").tz_convert(zone)


def _take_range(index: Any) -> tuple[Any, ...]:
    return (index.start, index.stop, index.step, index.name)


def _give_range(start: int, stop: int, step: int, name: Any) -> Any:
    import pandas as pd

    return pd.RangeIndex(start, stop, step, name=name)


def _take_multi(index: Any) -> tuple[Any, ...]:
    order = () if index.sortorder is None else (index.sortorder,)
    return (list(index.levels), [codes.copy() for codes in index.codes], list(index.names), *order)


def _give_multi(levels: list[Any], codes: list[Any], names: list[Any], order: int | None = None) -> Any:
    import pandas as pd

    return pd.MultiIndex(levels=levels, codes=codes, names=names, sortorder=order)


def _take_index(index: Any) -> tuple[Any, ...]:
    return (_take_column(index.array), index.name, _take_frequency(getattr(index, "freq", None)))


def _give_index(column: Any, name: Any, frequency: Any) -> Any:
    import pandas as pd

    values = _give_column(column)
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

    match found:
        case str(text):
            return pd.tseries.frequencies.to_offset(text)
        case [int(count), bool(normalize), dict(kwds)]:
            return pd.DateOffset(count, normalize, **kwds)
    raise CorruptDataError("a stored frequency is not one")


def _take_series(series: Any) -> tuple[Any, ...]:
    _refuse_flags(series)
    return (_take_column(series.array), series.index, series.name, dict(series.attrs))


def _give_series(column: Any, index: Any, name: Any, attrs: dict[Any, Any]) -> Any:
    import pandas as pd

    values = _give_column(column)
    # The dtype is given because pandas would guess again for objects.
    series: Any = pd.Series(values, index=index, name=name, dtype=values.dtype)
    series.attrs = attrs
    return series


def _take_frame(frame: Any) -> tuple[Any, ...]:
    _refuse_flags(frame)
    columns = [_take_column(frame.iloc[:, place].array) for place in range(frame.shape[1])]
    return (columns, frame.columns, frame.index, dict(frame.attrs))


def _give_frame(columns: list[Any], names: Any, index: Any, attrs: dict[Any, Any]) -> Any:
    import pandas as pd

    series = {place: _give_series(column, index, None, {}) for place, column in enumerate(columns)}
    frame: Any = pd.DataFrame(series, index=index)
    frame.columns = names
    frame.attrs = attrs
    return frame


def _refuse_flags(value: Any) -> None:
    if not value.flags.allows_duplicate_labels:
        raise SerializationError("pandas values that forbid duplicate labels cannot be stored")


def _take_column(column: Any) -> list[Any]:
    """A column's values as numpy arrays or a list, with what its dtype adds; named, because each dtype has its way."""
    import numpy as np
    import pandas as pd

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


def _give_column(parts: Any) -> Any:
    import numpy as np
    import pandas as pd

    match parts:
        case ["numpy", np.ndarray() as values]:
            return values
        case ["text", bool(uses_na), list(texts)]:
            return pd.array(texts, dtype=pd.StringDtype("python", na_value=pd.NA if uses_na else np.nan))
        case ["category", np.ndarray() as codes, categories, ordered]:
            return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(categories, ordered=ordered))
        case ["zoned", np.ndarray() as moments, zone]:
            return pd.DatetimeIndex(moments).tz_localize("UTC").tz_convert(zone).array
        case ["masked", np.ndarray() as values, np.ndarray() as missing]:
            kinds: dict[str, Any] = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
            return kinds.get(values.dtype.kind, pd.arrays.IntegerArray)(values, missing)
    raise CorruptDataError("a stored pandas column is not one")
