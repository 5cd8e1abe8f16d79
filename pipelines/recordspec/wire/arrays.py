"""Stored values in Arrow: an array for each key, with an item for each record of a batch.

| in the records | in Arrow |
|---|---|
| one value each | `int64`, `float` or `large_binary` |
| `k` values each | `fixed_size_list` of these types |
| any number of values | `large_list` of these types |
| no such key | null |
| a Feature without a list | an empty `large_list` of `null` |
| a FeatureList | `large_list` of any of the above, with an item for each step |

A column of large strings may also be a Python list, of bytes or of lists of bytes, whose strings are not
concatenated before they are encoded.

Arrow's own conversions from NumPy and from Python lists look for pandas first. That import takes a quarter of
a second in every process of a build, and a Ctrl-C during it is lost: pyarrow mistakes it for a missing
pandas. Hence arrays are created from buffers, and read as buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from recordspec._arrow import arrow
from recordspec.wire import native

if TYPE_CHECKING:
    from recordspec.wire.columns import Kind

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Sizes = int | Ints  # one number if all sizes are equal
# A pyarrow array (pyarrow is imported when the first is created), or a list of large strings.
ArrowArray = Any

# Bytes of a string for which copying takes as long as finding its address with ctypes: 0.6 us.
_LARGE = 4096
# The number of strings of one size from which grouping by size pays off: NumPy then creates each in 30 ns,
# while a slice of a copy of all takes 130 ns, and a slice without a copy 470 ns. Grouping takes 10 us per
# size.
_OF_ONE_SIZE = 100
_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}
_NUMBERS = {"bool", *_FLOATS, *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
_TEXTS = {"string", "large_string", "binary", "large_binary"}
_STORAGE: dict[str, Kind] = {"int64": "int64", "float": "float32", "large_binary": "bytes", "null": "none"}


def is_arrow(values: Any) -> bool:
    """Whether a value is an Arrow array; does not import pyarrow."""
    module = type(values).__module__
    return module.startswith("pyarrow") and hasattr(values, "null_count") and hasattr(values, "type")


@dataclass(frozen=True)
class StringsInPlace:
    """Strings that are anywhere in memory, such as in mapped files, and are copied when some are taken.

    Attributes:
        addresses: where each begins, int64 `[n]`.
        sizes: the bytes of each, int64 `[n]`.
        memory: what holds the memory.
    """

    addresses: Ints
    sizes: Ints
    memory: tuple[Any, ...]

    @property
    def nbytes(self) -> int:
        """The memory of the addresses and sizes."""
        return self.addresses.nbytes + self.sizes.nbytes

    def take(self, rows: Ints | slice) -> ArrowArray:
        """A copy of the given strings, in the given order, as `large_binary`."""
        addresses, places = self.addresses[rows], offsets(self.sizes[rows])
        data = np.empty(int(places[-1]), np.uint8)
        given = addresses, np.diff(places), places
        native.library().rs_copy(*map(native.at, given), len(addresses), native.at(data))
        return binary_array(data, places)


# ---- offsets of strings and lists ----


def offsets(sizes: npt.NDArray[np.integer[Any]]) -> Ints:
    """The offsets of strings of the given sizes, int64 `[n + 1]`."""
    places = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=places[1:])
    return places


def lengths_of(values: Sequence[Any]) -> Ints:
    """`len` of every value, int64 `[n]`. Raises TypeError if one has no length."""
    return np.fromiter(map(len, values), np.int64, len(values))


def sliding_windows(buffer: Bytes, width: int) -> npt.NDArray[np.void]:
    """Overlapping windows: item `i` is the `width` bytes from byte `i` on.

    Indexing it with many offsets reads or writes an item of up to 32 bytes in 4 ns; a slice for each takes 70
    ns.
    """
    count = max(0, len(buffer) - width + 1)
    overlapping: npt.NDArray[np.void] = np.ndarray((count,), f"V{width}", buffer, strides=(1,))
    return overlapping


def byte_table(characters: str) -> Mask:
    """A mask of the bytes of the given characters, bool `[256]`."""
    table = np.zeros(256, np.bool_)
    table[list(characters.encode())] = True
    return table


# ---- from buffers ----


def to_arrow(flat: Any, lengths: int | Ints = 1, rows: int | None = None) -> ArrowArray:
    """The array of a column.

    Args:
        flat: the values of all rows, concatenated: int64 or float32 `[m]`, an Arrow `large_binary`, or a list
            of bytes.
        lengths: the number of values of each row: one number, or int64 `[rows]`.
        rows: the number of rows, if it does not follow from the other arguments.
    """
    if isinstance(flat, list):
        flat = unjoined(flat)
    if isinstance(lengths, int) and lengths == 1:
        return numbers_array(flat) if isinstance(flat, np.ndarray) else flat
    if isinstance(lengths, int) and not lengths:
        lengths = np.zeros(rows or 0, np.int64)
    if isinstance(flat, list):
        counts = np.full(len(flat) // lengths, lengths) if isinstance(lengths, int) else lengths
        return [flat[start:stop] for start, stop in pairwise(offsets(counts).tolist())]
    values = values_array(flat)
    return fixed_lists(values, lengths) if isinstance(lengths, int) else list_array(values, offsets(lengths))


def values_array(flat: Any) -> ArrowArray:
    """Converts a NumPy array or a list to Arrow; Arrow values are returned unchanged."""
    if isinstance(flat, np.ndarray):
        return numbers_array(flat)
    if not isinstance(flat, list):
        return flat
    if is_list(flat):
        return list_array(strings_array(flat_of(flat)), offsets(counts_of(flat)))
    return strings_array(flat)


def numbers_array(values: npt.NDArray[Any], present: Mask | None = None) -> ArrowArray:
    """Numbers `[n]` in Arrow, without a copy. Values that are not present are null, whatever they are."""
    pyarrow = arrow()
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    kind = pyarrow.type_for_alias(values.dtype.name)
    return pyarrow.Array.from_buffers(kind, len(values), [bitmap(present), pyarrow.py_buffer(values)])


def binary_array(data: Any, places: Ints, present: Mask | None = None) -> ArrowArray:
    """Strings `data[places[i]:places[i + 1]]` as `large_binary`, without a copy; `data` is a buffer."""
    pyarrow = arrow()
    buffers = [bitmap(present), pyarrow.py_buffer(places), pyarrow.py_buffer(data)]
    return pyarrow.Array.from_buffers(pyarrow.large_binary(), len(places) - 1, buffers)


def strings_array(strings: Sequence[bytes]) -> ArrowArray:
    """A list of strings as `large_binary`."""
    return binary_array(b"".join(strings), offsets(lengths_of(strings)))


def string_scalar(string: bytes) -> Any:
    """A string as a scalar of `large_binary`. `pyarrow.scalar` imports pandas, which takes 0.2 s."""
    return strings_array([string])[0]


def rows_array(matrix: Bytes) -> ArrowArray:
    """The rows of uint8 `[n, width]` as `large_binary`, without a copy."""
    count, width = matrix.shape
    return binary_array(np.ascontiguousarray(matrix).reshape(-1), np.arange(count + 1) * width)


def squeezed(matrix: Bytes, sizes: npt.NDArray[np.integer[Any]]) -> ArrowArray:
    """The first `sizes` bytes of every row of uint8 `[n, width]` as `large_binary`.

    Whole rows are written in order, so that each row overwrites the padding of the row before. That is twice
    as fast as selecting the bytes by a mask.
    """
    width, places = matrix.shape[1], offsets(sizes)
    buffer = np.empty(int(places[-1]) + width, np.uint8)
    sliding_windows(buffer, width)[places[:-1]] = matrix.view(f"V{width}")[:, 0]
    return binary_array(buffer[: places[-1]], places)


def to_binary(strings: ArrowArray) -> ArrowArray:
    """Text or bytes of any Arrow type as `large_binary`."""
    kind = str(strings.type)
    if kind == "large_binary":
        return strings
    if kind.startswith("dictionary"):
        return to_binary(strings.dictionary_decode())
    return strings.cast(arrow().large_binary())


def unjoined(strings: list[bytes]) -> ArrowArray:
    """The strings of a list. Large strings stay in the list, so that they are copied only once, into
    their records.
    """
    large = sum(map(len, strings)) > _LARGE * len(strings) and set(map(type, strings)) == {bytes}
    return strings if large else strings_array(strings)


def list_array(items: ArrowArray, places: Ints, present: Mask | None = None) -> ArrowArray:
    """Lists `items[places[i]:places[i + 1]]`. Lists that are not present are null, and have no items."""
    pyarrow = arrow()
    kind, buffers = pyarrow.large_list(items.type), [bitmap(present), pyarrow.py_buffer(places)]
    return pyarrow.Array.from_buffers(kind, len(places) - 1, buffers, children=[items])


def empty_column(storage: str, rows: int) -> ArrowArray:
    """A column in which all rows are null."""
    pyarrow = arrow()
    types = {"int64": pyarrow.int64(), "float32": pyarrow.float32(), "bytes": pyarrow.large_binary()}
    return pyarrow.nulls(rows, pyarrow.large_list(types[storage]))


def fixed_lists(items: ArrowArray, size: int) -> ArrowArray:
    """Lists of `size` items each."""
    pyarrow = arrow()
    kind = pyarrow.list_(items.type, size)
    return pyarrow.Array.from_buffers(kind, len(items) // size, [None], children=[items])


def empty_lists(present: Mask) -> ArrowArray:
    """Empty lists of type `null` where `present` is true, else null."""
    return list_array(arrow().nulls(0), np.zeros(len(present) + 1, np.int64), present)


def bitmap(present: Mask | None) -> Any:
    """Truth values as an Arrow bitmap; None if all are true."""
    if present is None or present.all():
        return None
    return arrow().py_buffer(np.packbits(present, bitorder="little"))


def truth_array(values: Mask) -> ArrowArray:
    """Truth values `[n]` as an Arrow array."""
    pyarrow = arrow()
    bits = pyarrow.py_buffer(np.packbits(values, bitorder="little"))
    return pyarrow.Array.from_buffers(pyarrow.bool_(), len(values), [None, bits])


# ---- to NumPy ----


def to_numpy(array: ArrowArray) -> npt.NDArray[Any]:
    """An array of numbers or truth values as a NumPy array, with undefined values for nulls. Numbers are
    a view.
    """
    kind = str(array.type)
    if kind == "bool":
        return _truths(array)
    dtype = np.dtype(_FLOATS.get(kind, kind))
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), dtype)
    start = array.offset * dtype.itemsize
    return np.frombuffer(data, np.uint8)[start : start + len(array) * dtype.itemsize].view(dtype)


def _truths(array: ArrowArray) -> Mask:
    data, stop = array.buffers()[1], array.offset + len(array)
    if data is None or not len(array):
        return np.zeros(len(array), bool)
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=stop, bitorder="little")
    return bits[array.offset :].view(bool)


def present_in(array: ArrowArray) -> Mask:
    """A mask of the items that are not null, bool `[n]`."""
    if isinstance(array, list) or not array.null_count:
        return np.ones(len(array), bool)
    return _truths(array.is_valid())


def data_of(strings: ArrowArray) -> tuple[Bytes, Ints]:
    """The bytes of all strings, concatenated, uint8, and their offsets, int64 `[n + 1]`."""
    if isinstance(strings, list):
        strings = strings_array(strings)
    _, places, data = strings.buffers()
    if places is None or not len(strings):
        return np.zeros(0, np.uint8), np.zeros(len(strings) + 1, np.int64)
    start = strings.offset * 8
    begins = np.frombuffer(places, np.uint8)[start : start + 8 * (len(strings) + 1)].view(np.int64)
    buffer = np.frombuffer(b"" if data is None else data, np.uint8)[begins[0] : begins[-1]]
    return buffer, begins - begins[0] if begins[0] else begins


def buffer_of(strings: ArrowArray) -> Bytes:
    """The bytes of all strings, concatenated, uint8; without a copy for Arrow strings."""
    return data_of(strings)[0]


def sizes_of(strings: ArrowArray) -> Ints:
    """The number of bytes of each string, int64 `[n]`."""
    return lengths_of(strings) if isinstance(strings, list) else np.diff(data_of(strings)[1])


def views_of(strings: ArrowArray, head: int = 0, tail: int = 0) -> list[memoryview]:
    """A view of each string, without its first `head` and its last `tail` bytes."""
    buffer, places = data_of(strings)
    view, starts, stops = buffer.data, (places[:-1] + head).tolist(), (places[1:] - tail).tolist()
    return [view[start:stop] for start, stop in zip(starts, stops, strict=True)]


def are_ascii(strings: ArrowArray) -> bool:
    """Whether all bytes are ASCII."""
    if isinstance(strings, list):
        return all(map(bytes.isascii, strings))
    return not bool((buffer_of(strings) > 0x7F).any())


def bytes_in(strings: ArrowArray) -> list[bytes]:
    """The strings as a list of `bytes`."""
    if isinstance(strings, list):
        return strings
    if len(strings) < _OF_ONE_SIZE:
        return list(map(bytes, views_of(strings)))
    made: list[bytes] = objects_in(strings).tolist()
    return made


def objects_in(strings: ArrowArray) -> npt.NDArray[np.object_]:
    """The strings as an object array of `bytes`."""
    if isinstance(strings, list):
        array = np.empty(len(strings), object)
        array[:] = strings
        return array
    return objects_at(*data_of(strings))


def objects_at(data: Bytes, places: Ints) -> npt.NDArray[np.object_]:
    """The strings between offsets as an object array of `bytes`.

    Args:
        data: the bytes of the strings, one after another, uint8 `[bytes]`.
        places: the offsets where each string begins and the last one ends, int64 `[n + 1]`.
    """
    array = np.empty(len(places) - 1, object)
    if not len(data):
        array[:] = b""
        return array
    if len(data) > _LARGE * len(array):
        view = data.data
        array[:] = [bytes(view[start:stop]) for start, stop in pairwise(places.tolist())]
        return array
    if len(array) >= _OF_ONE_SIZE:
        sizes = np.diff(places)
        smallest, largest = int(sizes.min()), int(sizes.max())
        if smallest == largest:
            array[:] = data.view(f"V{largest}")
            return array
        # sorting the sizes, as np.unique does, takes longer than the strings
        different = np.flatnonzero(np.bincount(sizes)).tolist() if largest <= len(array) else sizes
        if len(different) * _OF_ONE_SIZE <= len(array):
            for size in different:
                rows = np.flatnonzero(sizes == size)
                array[rows] = sliding_windows(data, size)[places[rows]] if size else b""
            return array
    joined, bounds = data.tobytes(), places.tolist()
    array[:] = [joined[start:stop] for start, stop in pairwise(bounds)]
    return array


def address_of(values: ArrowArray, start: int) -> tuple[int, int]:
    """The address of numbers from item `start` on, and 0. For strings, the address of their bytes, and
    that of their offsets from item `start` on. 0 without a buffer.
    """
    _, first, *rest = (0 if one is None else one.address for one in values.buffers())
    if rest:
        return rest[0], first and first + 8 * start
    return first and first + values.type.bit_width // 8 * start, 0


# ---- columns ----


def is_number(array: ArrowArray) -> bool:
    """Whether the items are numbers or truth values."""
    return str(array.type) in _NUMBERS


def is_text(array: ArrowArray) -> bool:
    """Whether the items are text or bytes."""
    return str(array.type) in _TEXTS


def is_list(array: ArrowArray) -> bool:
    """Whether the items are lists."""
    if isinstance(array, list):
        return bool(array) and isinstance(array[0], list)
    return hasattr(array.type, "value_field")


def storage_of(array: ArrowArray) -> Kind:
    """The storage of a column's values; `none` for lists of type `null`."""
    if isinstance(array, list):
        return "bytes"
    kind = array.type
    while kind.num_fields:
        kind = kind.value_type
    return _STORAGE[str(kind)]


def counts_of(array: ArrowArray) -> Ints:
    """The number of values, or of steps, of each row, int64 `[n]`; 0 for null."""
    if isinstance(array, list):
        return lengths_of(array) if is_list(array) else np.ones(len(array), np.int64)
    width = width_of(array) if is_list(array) else 1
    if width is None:
        return np.diff(places_of(array))
    counts = np.full(len(array), width)
    return counts * present_in(array) if array.null_count else counts


def fixed_count(array: ArrowArray) -> int | None:
    """The number of values of every row if it is fixed by the type of the array; else None."""
    if isinstance(array, StringsInPlace):
        return 1
    if isinstance(array, list):
        return None if is_list(array) else 1
    if array.null_count:
        return None
    return width_of(array) if is_list(array) else 1


def flat_of(array: ArrowArray) -> Any:
    """The values, or the steps, of all rows, concatenated: numbers in NumPy, other values in Arrow."""
    if isinstance(array, list):
        return [string for strings in array for string in strings] if is_list(array) else array
    flat = array
    if is_list(array):
        flat = items_of(array)
    elif array.null_count:
        flat = array.drop_null()
    return to_numpy(flat) if is_number(flat) else flat


def items_of(lists: ArrowArray) -> ArrowArray:
    """The items of all lists, concatenated, in Arrow or in a list."""
    if isinstance(lists, list):
        return flat_of(lists)
    width = width_of(lists)
    if width is None:
        places = places_of(lists)
        return lists.values.slice(places[0], places[-1] - places[0])
    # `flatten` omits the items of null, and takes five times as long as a slice
    return (
        lists.flatten() if lists.null_count else lists.values.slice(lists.offset * width, len(lists) * width)
    )


def width_of(lists: ArrowArray) -> int | None:
    """The number of items of each list of a `fixed_size_list`."""
    size: int | None = getattr(lists.type, "list_size", None)
    return size


def places_of(lists: ArrowArray) -> Ints:
    """The offsets of a `large_list` in its values, int64 `[n + 1]`."""
    data = lists.buffers()[1]
    if data is None or not len(lists):
        return np.zeros(len(lists) + 1, np.int64)
    start = lists.offset * 8
    return np.frombuffer(data, np.uint8)[start : start + 8 * (len(lists) + 1)].view(np.int64)


def part(array: ArrowArray, start: int, stop: int) -> ArrowArray:
    """Rows `start` to `stop`, without a copy, but of strings in place."""
    if isinstance(array, StringsInPlace):
        return array.take(slice(start, stop))
    return array[start:stop] if isinstance(array, list) else array.slice(start, stop - start)


def take(array: ArrowArray, rows: Ints) -> ArrowArray:
    """The given rows, in the given order."""
    if isinstance(array, StringsInPlace):
        return array.take(rows)
    if isinstance(array, list):
        return [array[row] for row in rows.tolist()]
    width = width_of(array)
    if width and not array.null_count and isinstance(flat := flat_of(array), np.ndarray):
        # copies whole rows, while Arrow would take the numbers one by one
        return to_arrow(flat.reshape(-1, width)[rows].reshape(-1), width)
    return array.take(numbers_array(rows))


def spread(array: ArrowArray, present: Mask) -> ArrowArray:
    """Spreads the rows over the true items of `present`; the rest are null."""
    array = values_array(array)
    places = np.cumsum(present) - 1
    return array.take(numbers_array(places, present))


def joined(many: Sequence[ArrowArray]) -> ArrowArray:
    """The rows of all arrays, concatenated."""
    if len(many) == 1:
        return many[0]
    if all(isinstance(one, StringsInPlace) for one in many):
        memory = tuple(held for one in many for held in one.memory)
        addresses, sizes = (
            np.concatenate([getattr(one, name) for one in many]) for name in ("addresses", "sizes")
        )
        return StringsInPlace(addresses, sizes, memory)
    if all(isinstance(one, list) for one in many) and len({is_list(one) for one in many if one}) < 2:
        return [string for one in many for string in one]
    arrays = [values_array(one) for one in many]
    if len({str(array.type) for array in arrays}) > 1:
        depth = max(_depth(array.type) for array in arrays)
        arrays = [as_lists(array, depth) for array in arrays]
    return arrow().concat_arrays(arrays)


def as_lists(array: ArrowArray, depth: int = 1) -> ArrowArray:
    """A column as `large_list`; with a depth of 2, a feature list whose steps are `large_list`."""
    if not is_list(array):
        present = present_in(array)
        return list_array(values_array(flat_of(array)), offsets(present.astype(np.int64)), present)
    items = items_of(array) if depth == 1 else as_lists(items_of(array), depth - 1)
    return list_array(items, offsets(counts_of(array)), present_in(array))


def _depth(kind: Any) -> int:
    return 1 + _depth(kind.value_type) if kind.num_fields else 0


def lists_in(array: ArrowArray) -> Iterator[Any]:
    """The values of each row: a list of Python numbers or bytes; None for null."""
    flat = flat_of(array)
    values = flat.tolist() if isinstance(flat, np.ndarray) else bytes_in(flat) if len(flat) else []
    places = offsets(counts_of(array)).tolist()
    for (start, stop), here in zip(pairwise(places), present_in(array).tolist(), strict=True):
        yield values[start:stop] if here else None


# ---- text ----


def prefixes(strings: ArrowArray, size: int) -> ArrowArray:
    """The first `size` bytes of each string, or all of a shorter string."""
    if int(sizes_of(strings).max(initial=0)) <= size:
        return strings
    return arrow().compute.binary_slice(strings, 0, size)


def are_text(strings: ArrowArray) -> bool:
    """Whether each string is valid UTF-8."""
    pyarrow = arrow()
    try:
        strings.cast(pyarrow.large_string())
    except pyarrow.ArrowInvalid:
        return False
    return True
