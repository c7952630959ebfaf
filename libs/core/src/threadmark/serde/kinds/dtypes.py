"""numpy's dtypes as data, exactly: byte order, C type, fields with their offsets, units of time."""

from typing import TYPE_CHECKING, Any

from threadmark.errors import CorruptDataError, SerializationError

if TYPE_CHECKING:
    import numpy as np

_PLAIN_KINDS = frozenset("biufcmMOSUV")


def c_types(dtype: "np.dtype[Any]") -> str:
    """Return what tells dtypes apart that numpy takes as equal: C types of one width, and whether fields are aligned.

    Raises SerializationError for a dtype with metadata or with items of another class, which would be lost.
    """
    if dtype.metadata:
        raise SerializationError("a numpy dtype with metadata cannot be stored")
    if (dtype.names is not None or dtype.char == "V") and dtype.type.__name__ != "void":
        raise SerializationError(f"a numpy dtype of {dtype.type.__name__}, with fields, cannot be stored")
    if dtype.base is not dtype:
        return c_types(dtype.base)
    if dtype.names is None:
        return dtype.char
    fields: Any = dtype.fields
    return "|" * dtype.isalignedstruct + "".join([c_types(fields[name][0]) for name in dtype.names])


def dtype_parts(dtype: "np.dtype[Any]") -> Any:
    """Return a dtype as data: its text, if that says everything."""
    import numpy as np

    if dtype.names is not None:
        # A field's title is another key beside its name.
        known: Any = dtype.fields
        fields = [[name, dtype_parts(known[name][0]), known[name][1]] for name in dtype.names]
        if dtype.hasobject or len(known) > len(dtype.names) or not dtype.itemsize:
            raise SerializationError(
                "a structured numpy array with objects or titles, or without bytes, cannot be stored"
            )
        return ["fields", fields, dtype.itemsize, dtype.isalignedstruct]
    if dtype.subdtype is not None:
        item, shape = dtype.subdtype
        return ["items", dtype_parts(item), list(shape)]
    if dtype.kind not in _PLAIN_KINDS or np.dtype(dtype.str) != dtype:
        raise SerializationError(f"an array of numpy dtype {dtype} cannot be stored; convert it to another dtype")
    # longlong is another type than long with the same text, if both have the same width.
    return dtype.str if np.dtype(dtype.str).char == dtype.char else ["type", dtype.char, dtype.str]


def dtype_from(parts: Any) -> "np.dtype[Any]":
    """Return the dtype that `dtype_parts` was given."""
    import numpy as np

    if type(parts) is str:
        return _plain_dtype(parts)
    match parts:
        case ["fields", list(fields), int(size), bool(aligned)]:
            names, items, offsets = zip(*fields, strict=True) if fields else ((), (), ())
            formats = [dtype_from(item) for item in items]
            if not size or any(format_.hasobject for format_ in formats):
                raise CorruptDataError("a structured dtype can neither have objects nor be without bytes")
            layout = {"names": list(names), "formats": formats, "offsets": list(offsets), "itemsize": size}
            found: np.dtype[Any] = np.dtype(layout, align=aligned)  # type: ignore[call-overload]  # a literal is wanted
            return found
        case ["items", item, list(shape)]:
            return np.dtype((dtype_from(item), tuple(shape)))
        case ["type", str(character), str(text)]:
            known = _plain_dtype(text)
            named = np.dtype(character).newbyteorder(known.byteorder)
            # On another platform the type may have another width.
            return named if named == known else known
    raise CorruptDataError("a stored dtype is not valid")


def _plain_dtype(text: str) -> "np.dtype[Any]":
    """Return the dtype whose own text this is. numpy would accept many other texts, and lists of them."""
    import numpy as np

    found = np.dtype(text)
    if found.str != text:
        raise CorruptDataError("a stored dtype is not valid")
    return found
