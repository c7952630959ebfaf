"""Columns of pandas values: numpy arrays, and columns with those dtypes of pandas that can be stored exactly."""

from collections.abc import Callable
from typing import Any

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.kinds.times import is_zone
from threadmark.serde.lookup import derives


def deconstruct_column(column: Any) -> list[Any]:
    """Return a column as a list: the name of its form, then arrays or a list of values, and what its dtype adds."""
    import numpy as np
    import pandas as pd  # type: ignore[import-untyped]  # its stubs are a package of their own

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
    """Return the column that `deconstruct_column` was given."""
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
    """Raise CorruptDataError unless all fit. pandas would convert what does not, and open files for names of zones."""
    if not all(fits):
        raise CorruptDataError("a stored pandas value is not valid")
