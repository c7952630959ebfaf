"""numpy's arrays, scalars and dtypes, stored exactly.

An array is stored as type, shape, memory order and bytes, and comes back writable. A dtype is stored with its byte
order, C type, fields with their offsets, and units of time.
"""

import math
import sys
from typing import TYPE_CHECKING, Any

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.kinds_api import Deconstruct, Definer, Family, Reconstruct, Shape, Shapes, StoredClass, only

if TYPE_CHECKING:
    import numpy as np

_PLAIN_KINDS = frozenset("biufcmMOSUV")


def c_types(dtype: "np.dtype[Any]") -> str:
    """Return the differences of dtypes that numpy takes as equal: C types of one width, and whether fields are aligned.

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
        # A field's title is another key for it.
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
    """Return the argument of `dtype_parts`."""
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


class Arrays(Family):
    """Arrays. The mark has the dtype and the memory order. Objects are stored one by one."""

    code = "Y"
    title = "a numpy array"

    def accepts(self, cls: type) -> bool:
        """Whether this is ndarray itself. Subclasses may hold more, which only they know."""
        return _is_numpys(cls, "ndarray")

    def writer(self, define: Definer) -> Deconstruct:
        """Write the shape, then the bytes or the objects."""
        shapes = _shapes_by_dtype(define)

        def deconstruct(array: "np.ndarray[Any, Any]") -> list[Any]:
            order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
            content = array.ravel(order).tolist() if array.dtype.kind == _OBJECTS else _content(array, order)
            return [shapes[array.dtype, c_types(array.dtype), order], list(array.shape), content]

        return deconstruct

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Build the array from a copy of the bytes, so that it owns them."""
        dtype, order = dtype_from(stored.details[0]), _order(stored.details[1])

        def reconstruct(items: list[Any]) -> Any:
            shape, content = items
            if type(shape) is not list or not all(type(length) is int and length >= 0 for length in shape):
                raise CorruptDataError("the shape of a stored array is not valid")
            return _array_from(dtype, order, tuple(shape), content)

        return reconstruct


class MaskedArrays(Family):
    """numpy.ma.MaskedArray: the data, the mask, the fill value, and whether the mask is hard."""

    code = "y"
    title = "a masked numpy array"

    def accepts(self, cls: type) -> bool:
        """Whether this is MaskedArray itself."""
        masked = sys.modules.get("numpy.ma")
        return masked is not None and cls is masked.MaskedArray

    def writer(self, define: Definer) -> Deconstruct:
        """Write the data and the mask as arrays."""
        import numpy as np

        shape, standard = define.shape(), vars(define.cls(0)).keys()

        def deconstruct(array: Any) -> list[Any]:
            if array.baseclass is not np.ndarray:
                raise SerializationError("a masked array of a subclass of ndarray cannot be stored")
            # numpy keeps a user's notes in `_optinfo`, and copies them to results.
            if array.__dict__.keys() - standard or getattr(array, "_optinfo", None):
                raise SerializationError("a masked array with attributes of its own cannot be stored")
            mask = None if array.mask is np.ma.nomask else array.mask
            return [shape, array.data, mask, _fill_value(array), bool(array.hardmask)]

        return deconstruct

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Build the array from its parts, once they are known to fit."""
        import numpy as np

        def reconstruct(items: list[Any]) -> Any:
            data, mask, fill_value, hard = items
            fits = type(data) is np.ndarray and _is_mask(mask, data) and _is_fill_value(fill_value, data)
            if not fits or type(hard) is not bool:
                raise CorruptDataError("a stored masked array is not valid")
            mask = np.ma.nomask if mask is None else mask
            return stored.cls(data, mask=mask, fill_value=fill_value, hard_mask=hard)

        return reconstruct


def _is_mask(mask: Any, data: "np.ndarray[Any, Any]") -> bool:
    """Whether this can be the array's mask without being converted, which would be done object by object."""
    import numpy as np

    if mask is None:
        return True
    return type(mask) is np.ndarray and mask.dtype == np.ma.make_mask_descr(data.dtype) and mask.shape == data.shape


def _is_fill_value(value: Any, data: "np.ndarray[Any, Any]") -> bool:
    """Whether this is one item that numpy takes as a fill value without running methods of an object."""
    import numpy as np

    if value is None:
        return True
    return type(value) is np.ndarray and value.shape == () and (data.dtype.hasobject or not value.dtype.hasobject)


def _fill_value(array: Any) -> "np.ndarray[Any, Any] | None":
    """Return the fill value that was set, or None. numpy's default may have another type than the array."""
    import numpy as np

    own, standard = (np.asarray(each.fill_value) for each in (array, type(array)(array.data)))
    if _are_one(own, standard):
        return None
    if not _are_one(own, np.asarray(type(array)(array.data, fill_value=own).fill_value)):
        raise SerializationError("a masked array whose fill value numpy does not take as it is cannot be stored")
    return own


def _are_one(value: Any, other: Any) -> bool:
    """Whether two arrays without dimensions hold one value."""
    if value.dtype != other.dtype or c_types(value.dtype) != c_types(other.dtype):
        return False
    return bool(value[()] is other[()] if value.dtype.hasobject else _content(value, "C") == _content(other, "C"))


class Scalars(Family):
    """Single values with a dtype, by their bytes. Text and bytes are stored as such: arrays drop NULs at their end."""

    code = "#"
    title = "a numpy scalar"

    def accepts(self, cls: type) -> bool:
        """Whether the class is numpy's own."""
        numpy = sys.modules.get("numpy")
        return numpy is not None and issubclass(cls, numpy.generic) and cls.__module__ == "numpy"

    def writer(self, define: Definer) -> Deconstruct:
        """Write the bytes."""
        import numpy as np

        cls = define.cls
        if issubclass(cls, (str, bytes)):
            shape = define.shape(None)
            # The builtin's own methods, because numpy's cut off NULs at the end.
            if issubclass(cls, str):
                return lambda scalar: [shape, str.__str__(scalar)]
            return lambda scalar: [shape, bytes.__getitem__(scalar, slice(None))]
        shapes = _shapes_by_dtype(define)
        if issubclass(cls, np.void) and cls is not np.void:
            raise SerializationError(f"a numpy {cls.__name__} cannot be stored; store its items, as a tuple")
        if issubclass(cls, np.void):
            return lambda scalar: [shapes[scalar.dtype, c_types(scalar.dtype), "C"], _content(scalar, "C")]
        # The class says which C type it is.
        return lambda scalar: [shapes[scalar.dtype, "", "C"], _content(scalar, "C")]

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Build an array of one item, and take the item."""
        cls = stored.cls
        if stored.details == [None]:
            return _text_reader(cls)
        dtype, order = dtype_from(stored.details[0]), _order(stored.details[1])
        if dtype.type is not cls:
            _not_of(cls)
        return lambda items: _array_from(dtype, order, (1,), *items)[0]


def _text_reader(cls: Any) -> Reconstruct:
    if not issubclass(cls, (str, bytes)):
        _not_of(cls)
    content: type[str | bytes] = str if issubclass(cls, str) else bytes
    return lambda items: cls(only(items, content))


_OBJECTS = "O"
"""numpy's letter for arrays of objects."""

_WORTH_A_VIEW = 4096
"""Arrays up to this many bytes are copied, which costs less than making two views."""

_LONG_DOUBLES = frozenset("gG")
_MANTISSA_OF_TEN_BYTES = 63
FAMILIES = (Arrays(), MaskedArrays(), Scalars())


def _is_numpys(cls: type, name: str) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and cls is getattr(numpy, name)


def _shapes_by_dtype(define: Definer) -> Shapes[Any]:
    def new_shape(key: "tuple[np.dtype[Any], str, str]") -> Shape:
        dtype, _, order = key
        return define.shape(dtype_parts(dtype), order, opaque=dtype.kind != _OBJECTS)

    return Shapes(new_shape)


def _array_from(dtype: "np.dtype[Any]", order: Any, shape: tuple[int, ...], content: Any) -> "np.ndarray[Any, Any]":
    import numpy as np

    if dtype.kind == _OBJECTS:
        if type(content) is not list:
            raise CorruptDataError("a stored array of objects is not valid")
        return np.fromiter(content, dtype=object, count=len(content)).reshape(shape, order=order)
    length = dtype.itemsize
    for each in shape:
        length *= each
    if dtype.hasobject or type(content) is not bytes or len(content) != length:
        raise CorruptDataError("a stored array does not have as many bytes as its shape and dtype need")
    return np.ndarray(shape, dtype, buffer=content, order=order).copy(order="K")


def _content(array: Any, order: Any) -> bytes | memoryview:
    """Return the bytes, without a copy if they are in memory in the right order."""
    import numpy as np

    dtype = array.dtype
    if (dtype.names or dtype.char in _LONG_DOUBLES) and not (used := _used(dtype)).all():
        # Unused bytes become zeros, so that equal arrays have equal bytes and no other memory is stored.
        content = bytearray(array.tobytes(order))
        np.frombuffer(content, np.uint8).reshape(-1, dtype.itemsize)[:, ~used] = 0
        return bytes(content)
    in_order = array.T if order == "F" else array
    if in_order.flags.c_contiguous and array.nbytes > _WORTH_A_VIEW:
        view: memoryview = in_order.reshape(-1).view(np.uint8).data
        return view
    found: bytes = array.tobytes(order)
    return found


def _used(dtype: "np.dtype[Any]") -> "np.ndarray[Any, Any]":
    """Return which bytes of an item are used: not the padding between fields, nor that of a long double."""
    import numpy as np

    if dtype.subdtype is not None:
        item, shape = dtype.subdtype
        return np.tile(_used(item), math.prod(shape))
    known: Any = dtype.fields
    used = np.full(dtype.itemsize, known is None)
    for name in dtype.names or ():
        field, offset, *_ = known[name]
        used[offset : offset + field.itemsize] |= _used(field)
    if dtype.char in _LONG_DOUBLES and np.finfo(np.longdouble).nmant == _MANTISSA_OF_TEN_BYTES:
        unused = slice(None, -10) if dtype.byteorder == ">" else slice(10, None)
        used.reshape(-1, np.dtype(np.longdouble).itemsize)[:, unused] = False
    return used


def _order(found: object) -> Any:
    if found not in ("C", "F"):
        raise CorruptDataError("the memory order of a stored array is not valid")
    return found


def _not_of(cls: type) -> Any:
    raise CorruptDataError(f"a stored {cls.__qualname__} has another dtype")
