"""`label`: a class out of a list of names, stored as its index, also as a float, or by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from recordspec._arrow import arrow
from recordspec._tf import tf
from recordspec.errors import (
    Problem,
    SpecError,
    StoreError,
    describe,
    nearest,
    one_of_classes,
    show_int,
    show_shape,
)
from recordspec.locations import Location, PathText, is_below, read_text, resolved, url_problem
from recordspec.schema.features.feature import READING, Feature, Invalid, Traits, ValueType
from recordspec.schema.features.option_checks import check_sizes, check_value, problem, static
from recordspec.schema.features.stored import outside, refused_by_encode
from recordspec.schema.lists import by_row, check_lengths, rows_of
from recordspec.schema.ragged_array import dense, ragged
from recordspec.schema.tensors import Tensor, TypeSpec, ragged_spec
from recordspec.schema.values import EXACT_INTS, BadValue, is_within, unpacked
from recordspec.wire.arrays import (
    ArrowArray,
    Ints,
    bytes_in,
    counts_of,
    flat_of,
    is_arrow,
    is_list,
    is_number,
    offsets,
    part,
    present_in,
    sizes_of,
    strings_array,
    take,
    to_arrow,
    to_binary,
    to_numpy,
)
from recordspec.wire.columns import Column, Fixed, Layout, Ragged, Storage

_DIGITS = re.compile("[0-9]+")
# The class name for the index of all unknown names.
OOV_NAME = "<oov>"
_HASHES = 2**63 - 1
_UNKNOWN = -1
# The index of a missing label, as in TFDS and Hugging Face.
MISSING = -1
_STORAGE: dict[str, Storage] = {"index": "int64", "name": "bytes", "float": "float32"}
_PLACEHOLDER = "<the unknown name>"
_OOV_HINT = "`oov: index` gives all others one index"
# The largest vocabulary file, in bytes: it is read into memory.
_LONGEST_VOCABULARY = 64 << 20


@dataclass(frozen=True, kw_only=True)
class Label(Feature):
    """A class, or several classes. The names are in the spec, and are copied to the manifest.

    Given as a name or as an index, 0 to `len(names) - 1`; or as a list of names or indices. If names consist
    of digits, a whole number is accepted only if it is both the name and the index of one class: with the
    names `"1"` and `"2"`, the number 1 is refused, and the text `"1"` is the name. Decodes to the index,
    int64 `[*shape]`; with `shape: [null]` a batch is a RaggedTensor `[n, (k)]`.

    Attributes:
        names: the class names, in the order of their indices.
        vocabulary: instead of `names`, a file of names, one per line, in the schema's folder. The names are
            read when the schema is loaded, and are then part of it.
        shape: one label by default; `[null]` for any number of labels, `[k]` for k labels.
        oov: how an unknown name is handled: `error`, or `index`, which maps all unknown names to the index
            `len(names)`. An index out of range is always an error.
        pad: the padding value of labels in steps or in lists; by default -1, which is not a class, for
            `ignore_class` of a Keras loss. It may be an index, if weights or masks exclude the padding.
        encoding: `index` stores an int64; `name` stores the name as UTF-8, like other writers. An
            unknown stored name decodes to the index of `oov: index`, else it is an error. `float` stores the
            index as a float32, as the TFRecords of Earth Engine have it, and takes whole floats such as 1.0
            as indices; a stored fraction is an error.
        missing: `true` if a row may lack the label, as the rows of a test set do: it decodes to -1, and a
            second tensor, `<name>_missing`, bool `[]`, is true. A stored -1 is missing, too, as in TFDS. A
            target must not be missing, unless `fit` has weights. For labels of any number, `empty` treats a
            row without them as an empty list; a SequenceExample without the list of steps has no steps.
    """

    kind: ClassVar[str] = "label"

    names: tuple[str, ...] = ()
    vocabulary: PathText | None = None
    shape: tuple[int | None, ...] = ()
    oov: Literal["error", "index"] = "error"
    pad: int = field(default=-1, metadata=READING)
    encoding: Literal["index", "name", "float"] = "index"
    # wider than of other kinds: only a label has an index that no value has
    missing: Literal["error", "empty"] | bool = field(  # type: ignore[assignment]
        default="error", metadata=READING
    )

    def option_problems(self) -> Iterator[Problem]:
        if bool(self.names) == (self.vocabulary is not None):
            got = "both" if self.names else "neither"
            yield problem("names", "names, or a vocabulary file of them", got)
        if self.oov == "index" and OOV_NAME in self.names:
            yield problem("names", f"names other than {OOV_NAME} with `oov: index`", "it")
        if len(self.shape) > 1 or 0 in self.shape:
            yield problem("shape", "[], [null] or [k]", show_shape(self.shape))
        yield from check_sizes("shape", static(self.shape))
        yield from check_value("pad", self.pad, "int64", ())
        if self.missing is False:
            yield problem("missing", "`true`, `error` or `empty`", "`false`", "`error` is the default")
        if self._may_lack and self.shape:
            hint = "`empty` is for labels of any number" if self._varies else ""
            yield problem("missing", "`true` for one label alone", f"shape {show_shape(self.shape)}", hint)
        if self._as_float and self.classes > EXACT_INTS["float32"]:
            most = f"at most {EXACT_INTS['float32']:,} classes"
            yield problem("encoding", f"{most} for `float`", f"{self.classes:,}", "`index` stores any number")
        if self._may_lack and self._by_name and "" in self.names:
            yield problem("names", "names other than the empty one with `missing: true`", "it")
        seen: dict[str, int] = {}
        for place, name in enumerate(self.names):
            if name in seen:
                hint = f"it is name {seen[name]} already"
                yield Problem(
                    path=("names", place), expected="every name once", got=f"`{name}` again", hint=hint
                )
            seen.setdefault(name, place)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def takes_indices(self) -> bool:
        """Whether a whole number can only be an index, since each name of digits is its own index."""
        return all(
            name == str(place) for place, name in enumerate(self.names) if _DIGITS.fullmatch(name) is not None
        )

    @property
    def classes(self) -> int:
        """The number of indices: one for each name, and one more with `oov: index`."""
        return len(self.names) + (self.oov == "index")

    @cached_property
    def traits(self) -> Traits:
        has_unknown = self.oov == "index"
        names = (*self.names, OOV_NAME) if has_unknown else self.names
        return Traits(
            takes_arrow=True,
            optional=self._may_lack or (self.missing == "empty" and self._varies),
            indicator=f"{self.name}_missing" if self._may_lack else None,
            class_names=names,
            has_unknown_class=has_unknown,
        )

    @property
    def _may_lack(self) -> bool:
        """Whether a row may lack the label, which then decodes to -1."""
        return self.missing is True

    @property
    def _least(self) -> int:
        """The smallest index that a row may have; -1 means missing."""
        return MISSING if self._may_lack and not self._by_name else 0

    @property
    def _varies(self) -> bool:
        return self.shape == (None,)

    def resolved(self, folder: Location | None) -> Label:
        if self.vocabulary is None:
            return self
        return replace(self, names=_read_vocabulary(self.vocabulary, folder), vocabulary=None)

    def names_of(self, indices: Tensor) -> Tensor:
        """Converts indices of any shape to class names, as strings, in a graph or eagerly.

        A missing label, and a `pad` that is not an index, have the empty name. Raises InvalidArgumentError
        for any other index without a name.
        """
        known = self.traits.class_names
        if isinstance(indices, tf.RaggedTensor):
            return indices.with_flat_values(self.names_of(indices.flat_values))
        pad = MISSING if self._may_lack else self.pad  # one label alone has no padding
        if 0 <= pad < len(known):
            return tf.gather(tf.constant(known), indices)
        indices = tf.cast(indices, tf.int64)
        is_pad = indices == pad
        return tf.where(
            is_pad, "", tf.gather(tf.constant(known), tf.where(is_pad, tf.zeros_like(indices), indices))
        )

    @property
    def value_type(self) -> ValueType:
        return ValueType("class", self.shape)

    def stored_options(self) -> dict[str, Any]:
        """The stored options; the default `encoding: index` is left out."""
        options = super().stored_options()
        is_default = self.encoding == "index"
        return {key: one for key, one in options.items() if key != "encoding"} if is_default else options

    @property
    def _by_name(self) -> bool:
        return self.encoding == "name"

    @property
    def _as_float(self) -> bool:
        return self.encoding == "float"

    def columns(self) -> tuple[Column, ...]:
        layout: Layout = Ragged() if self._varies else Fixed(shape=static(self.shape), default=self._filler)
        return (Column(key=self.stored, storage=_STORAGE[self.encoding], layout=layout),)

    @property
    def _filler(self) -> str | float | None:
        """The stored form of a missing label; None if no row may lack it."""
        if not self._may_lack:
            return None
        return "" if self._by_name else float(MISSING) if self._as_float else MISSING

    def encode(self, values: Any) -> tuple[ArrowArray, ...]:
        if self.vocabulary is not None:
            hint = "Schema.load reads it"
            raise SpecError(
                problem("vocabulary", "names that have been read", "a file", hint).under(self.name)
            )
        if not self.shape:
            return (to_arrow(self._stored(self._indices(values))),)
        rows, counts = rows_of(values, f"a list of labels {show_shape(self.shape)}")
        if not self._varies:
            check_lengths(counts, np.asarray(counts) == self.shape[0], f"{self.shape[0]} labels")
        with by_row(counts):
            flat = self._indices(rows)
        return (to_arrow(self._stored(flat), counts, len(values)),)

    def _stored(self, indices: Ints) -> Any:
        """Converts indices to the stored form."""
        if self._by_name:
            return take(self._arrow_names, indices)
        return indices.astype(np.float32) if self._as_float else indices

    @cached_property
    def _arrow_names(self) -> ArrowArray:
        """The names in Arrow; the last one stands for unknown names."""
        return strings_array([name.encode() for name in self.traits.class_names])

    def invalid_stored(self, array: ArrowArray) -> Iterator[Invalid]:
        if self._by_name:
            return refused_by_encode(self, array)
        last = self.classes - 1
        return outside(array, self._least, last, self._range, {MISSING: self._hint_of_missing})

    def encode_one(self, value: Any) -> Sequence[Any] | None:
        if self.shape or self.vocabulary is not None:
            return None
        if self._as_float and type(value) is float:
            value = _without_point(value)
        index = self._places.get(value) if type(value) is str else value
        if type(index) is not int or not self._least <= index < self.classes:
            return None
        if index == MISSING:
            return (float(MISSING) if self._as_float else MISSING,)
        if not self.takes_indices and index is value and self.names[index : index + 1] != (str(index),):
            return None
        if self._by_name:
            return (self.traits.class_names[index].encode(),)
        return (float(index) if self._as_float else index,)

    def restored(self, stored: Mapping[str, Any]) -> Any:
        value = super().restored(stored)
        if self._as_float and value is not None:
            value = list(map(_whole, value)) if self.shape else _whole(value)
        return None if self._may_lack and value in (MISSING, b"") else value

    def decode(self, columns: Mapping[str, Tensor]) -> Tensor | dict[str, Tensor]:
        value = columns[self.stored]
        if self._as_float:
            value = self._whole_indices(value)
        if not self._may_lack:
            return indices_of(value, self.names, self.unknown_name) if self._by_name else value
        missing = value == ("" if self._by_name else MISSING)
        if self._by_name:
            known = indices_of(tf.where(missing, self.names[0], value), self.names, self.unknown_name)
            value = tf.where(missing, tf.constant(MISSING, known.dtype), known)
        return {self.name: value, f"{self.name}_missing": missing}

    def _whole_indices(self, values: Tensor) -> Tensor:
        """Stored floats as int64. Raises InvalidArgumentError for a fraction, which it names."""
        if isinstance(values, tf.RaggedTensor):
            return values.with_flat_values(self._whole_indices(values.flat_values))
        indices = tf.cast(values, tf.int64)
        is_whole = tf.cast(indices, values.dtype) == values
        problem = Problem(path=(self.name,), expected=self._range, got=_PLACEHOLDER)
        before, _, after = str(problem).partition(_PLACEHOLDER)
        flat, are_whole = tf.reshape(values, [-1]), tf.reshape(is_whole, [-1])
        first = tf.strings.as_string(tf.boolean_mask(flat, ~are_whole)[:1], shortest=True)
        message = tf.strings.join([before, tf.strings.reduce_join(first), after])
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(are_whole), [message])]):
            return tf.identity(indices)

    @property
    def unknown_name(self) -> tuple[str, str] | None:
        """The message for an unknown stored name, before and after the name; None with `oov: index`."""
        if self.oov == "index":
            return None
        problem = Problem(
            path=(self.name,), expected=self._expected(), got=f"`{_PLACEHOLDER}`", hint=_OOV_HINT
        )
        before, _, after = str(problem).partition(_PLACEHOLDER)
        return before, after

    def _indices(self, values: Any) -> Ints:
        if isinstance(values, Sequence) and values and type(values[0]) is int:
            values = _integers(values)
        if self._as_float:
            values = _whole_floats(values)
        if self.takes_indices and is_within(values, self._least, self.classes - 1):
            return values.astype(np.int64)  # type: ignore[no-any-return]
        if is_arrow(values) and not is_list(values):
            if hasattr(values, "dictionary"):
                return self._in_dictionary(values)
            indices = self._in_arrow(values)
            if bool((indices == _UNKNOWN).any()):
                values = bytes_in(to_binary(values))
        else:
            values = unpacked(values)
            values = values.tolist() if isinstance(values, np.ndarray) else values
            indices = np.full(len(values), _UNKNOWN)
            with suppress(Exception):  # a value without a hash, of any class
                indices = np.fromiter(map(self._places.get, values, repeat(_UNKNOWN)), np.int64, len(values))
        for row in np.flatnonzero(indices == _UNKNOWN).tolist():
            indices[row] = self._index(row, values[row])
        return indices

    def _in_dictionary(self, values: ArrowArray) -> Ints:
        """The index of each value of a dictionary array. Each entry of the dictionary is looked up once."""
        entries, places = values.dictionary, to_numpy(values.indices)
        if is_number(entries):
            return self._indices(to_numpy(entries)[places])
        positions = self._in_arrow(entries)
        # an unknown entry that no row uses is not an error
        unknown = np.flatnonzero(positions[places] == _UNKNOWN)
        used, firsts = np.unique(places[unknown], return_index=True)
        for row, entry in sorted(zip(unknown[firsts].tolist(), used.tolist(), strict=True)):
            positions[entry] = self._index(row, bytes_in(to_binary(entries.slice(entry, 1)))[0])
        indices: Ints = positions[places]
        return indices

    def _in_arrow(self, names: ArrowArray) -> Ints:
        """The index of each name, -1 for an unknown name; takes a hundredth of the time of a loop."""
        known = self._arrow_names.slice(0, len(self.names))
        indices = arrow().compute.index_in(to_binary(names), value_set=known)
        return np.where(present_in(indices), to_numpy(indices), _UNKNOWN).astype(np.int64)

    def _index(self, row: int, value: Any) -> int:
        if isinstance(value, bytes):
            try:
                value = value.decode()
            except UnicodeDecodeError:
                raise BadValue(row, self._expected(), describe(value)) from None
        if isinstance(value, str):
            index = self._places.get(value)
            if index is not None:
                return index
            if self.oov == "index":
                return len(self.names)
            hint = nearest(value, self.names) or f"add `{value}` to `names` if it is a class"
            raise BadValue(row, self._expected(), f"`{value}`", hint)
        value, given = _without_point(value) if self._as_float else value, value
        if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64)):
            if value == self._least == MISSING:
                return MISSING
            if not self.takes_indices:
                return self._same_class(row, int(value))
            if 0 <= value < self.classes:
                return int(value)
            hint = self._hint_of_missing if value == MISSING else ""
            raise BadValue(row, self._range, show_int(int(value)), hint)
        is_whole = _without_point(given) is not given
        hint = "`encoding: float` takes whole floats as indices" if is_whole else ""
        raise BadValue(row, self._expected(), describe(given), hint)

    def _same_class(self, row: int, number: int) -> int:
        """The class for which a number is both the name and the index. Raises BadValue if there is none."""
        named, indexed = self._places.get(str(number)), self.names[number : number + 1] if number >= 0 else ()
        if named == number:
            return number
        readings = [f"the name of class {named}"] if named is not None else []
        readings += [f"the index of `{name}`" for name in indexed]
        got = f"the number {show_int(number)}"
        hint = f"it is {' or '.join(readings)}" if readings else ""
        raise BadValue(row, "a name as text, as names consist of digits", got, hint)

    @property
    def _hint_of_missing(self) -> str:
        """What reads -1 instead."""
        if self.shape:
            numbers = (
                f"`kind: {self._kind_of_numbers}` with `dtype: {'float32' if self._as_float else 'int64'}`"
            )
            return f"a list of labels has no missing item: {numbers} reads -1 as a number"
        return "null is a missing label" if self._may_lack else "`missing: true` takes -1 as a missing label"

    @property
    def _kind_of_numbers(self) -> str:
        """The kind that reads the stored numbers of a list."""
        return "var_len" if self._varies else "fixed_len"

    @property
    def _range(self) -> str:
        missing = ", or -1, which is missing" if self._least else ""
        return f"an index from 0 to {self.classes - 1}{missing}"

    def _expected(self) -> str:
        names = one_of_classes(self.names)
        return f"{names}, or an index" if self.takes_indices else names

    def decode_numpy(self, columns: Mapping[str, ArrowArray]) -> Any:
        array = columns[self.stored]
        if self.encoding != "index":
            counts = counts_of(array)
            stored = self._stored_names if self._by_name else self._stored_floats
            indices = stored(flat_of(array), counts)
            array = to_arrow(indices, counts if self.shape or self._may_lack else 1, len(array))
        if self._varies:
            return ragged(array)
        values, _ = dense(array, static(self.shape), MISSING if self._may_lack else None)
        return {self.name: values, f"{self.name}_missing": values == MISSING} if self._may_lack else values

    @property
    def _fixed_shape(self) -> tuple[int, ...] | None:
        has_own = type(self).decode_numpy is not Label.decode_numpy
        return (
            None
            if has_own or self.encoding != "index" or self._varies or self._may_lack
            else static(self.shape)
        )

    def _stored_names(self, names: ArrowArray, counts: Ints) -> Ints:
        """The indices of stored names; `counts` has the number of names per row. Raises BadValue for an
        unknown name.
        """
        indices = self._in_arrow(names)
        is_unknown = indices == _UNKNOWN
        if self._may_lack:
            is_unknown &= sizes_of(to_binary(names)) > 0
        unknown = np.flatnonzero(is_unknown)
        if len(unknown) and self.oov == "error":
            row = int(np.searchsorted(offsets(counts), unknown[0], "right")) - 1
            name = bytes_in(part(to_binary(names), int(unknown[0]), int(unknown[0]) + 1))[0]
            raise BadValue(row, self._expected(), f"`{name.decode(errors='replace')}`", _OOV_HINT)
        indices[unknown] = len(self.names)
        return indices

    def _stored_floats(self, floats: npt.NDArray[np.float32], counts: Ints) -> Ints:
        """Stored floats as indices; `counts` has their number per row. Raises BadValue for a fraction."""
        fractions = np.flatnonzero(floats != np.floor(floats))  # also NaN
        fractions = fractions if len(fractions) else np.flatnonzero(np.isinf(floats))
        if len(fractions):
            row = int(np.searchsorted(offsets(counts), fractions[0], "right")) - 1
            raise BadValue(row, self._range, str(floats[fractions[0]]))
        return floats.astype(np.int64)

    def spec(self) -> TypeSpec | dict[str, TypeSpec]:
        if self._varies:
            return ragged_spec((None,), "int64")
        index = tf.TensorSpec(self.shape, "int64")
        return (
            {self.name: index, f"{self.name}_missing": tf.TensorSpec([], "bool")} if self._may_lack else index
        )

    def sample(self, rng: np.random.Generator) -> Any:
        count = self.shape[0] if self.shape else 1
        picks = rng.integers(0, len(self.names), int(rng.integers(0, 4)) if count is None else count)
        names = [self.names[pick] for pick in picks]
        return names if self.shape else names[0]


def _without_point(value: Any) -> Any:
    """A whole float as an int; other values are unchanged."""
    is_whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return int(value) if is_whole else value


def _whole(value: float) -> int:
    """The index that a stored float is. Raises ValueError for a fraction."""
    if not float(value).is_integer():
        raise ValueError(str(value))
    return int(value)


def _whole_floats(values: Any) -> Any:
    """Floats as int64 `[n]` if all are whole; other values are unchanged, since they have to be named."""
    if isinstance(values, Sequence) and values and set(map(type, values)) == {float}:
        values = np.fromiter(values, np.float64, len(values))
    is_float = isinstance(values, np.ndarray) and values.dtype.kind == "f"
    if not is_float or not bool((np.abs(values) <= EXACT_INTS["float64"]).all()):  # neither NaN nor infinity
        return values
    whole = values.astype(np.int64)
    return whole if bool((whole == values).all()) else values


def _integers(values: Sequence[Any]) -> Any:
    """The values as int64 `[n]` if all are ints; unchanged if not, or if a value is too large."""
    if set(map(type, values)) == {int}:
        with suppress(OverflowError):
            return np.fromiter(values, np.int64, len(values))
    return values


def indices_of(names: Tensor, known: Sequence[str], unknown: tuple[str, str] | None) -> Tensor:
    """Looks up the indices of names, strings of any shape or ragged; int64, in a graph or eagerly.

    An unknown name gets the index after the known names. If `unknown` is given, the message before and after
    the name, an unknown name raises InvalidArgumentError instead.
    """
    if isinstance(names, tf.RaggedTensor):
        return names.with_flat_values(indices_of(names.flat_values, known, unknown))
    flat, all_known = tf.reshape(names, [-1]), tf.constant(known)
    # sorted hashes, so that no table has to be created and kept outside of the graph
    hashed = tf.strings.to_hash_bucket_fast(all_known, _HASHES)
    order = tf.argsort(hashed)
    place = tf.searchsorted(tf.gather(hashed, order), tf.strings.to_hash_bucket_fast(flat, _HASHES))
    index = tf.gather(order, tf.minimum(place, len(known) - 1))
    is_known = tf.equal(tf.gather(all_known, index), flat)
    index = tf.reshape(tf.where(is_known, tf.cast(index, tf.int64), len(known)), tf.shape(names))
    index.set_shape(names.shape)
    if unknown is None:
        return index
    first = tf.strings.reduce_join(tf.boolean_mask(flat, ~is_known)[:1])
    message = tf.strings.join([unknown[0], first, unknown[1]])
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(is_known), [message])]):
        return tf.identity(index)


def _read_vocabulary(name: str, folder: Location | None) -> tuple[str, ...]:
    """The names in a text file of `folder`, one per line. Raises SpecError with all problems."""
    if folder is None:
        hint = "Schema.load takes it from the schema's folder"
        raise _wrong_file("a schema that is read from a file", "text", hint)
    url = url_problem(name)
    if url is not None:
        raise SpecError(url.under("vocabulary"))
    try:
        path, root = resolved(folder / name), resolved(folder)
    except (OSError, ValueError) as error:  # the path contains a NUL
        raise _wrong_file("the path of a file", f"`{name}`: {error}") from None
    if not is_below(path, root):
        raise _wrong_file(f"a file in {folder}", f"`{name}`")
    try:
        text = read_text(path, _LONGEST_VOCABULARY, "utf-8-sig")
    except (StoreError, SpecError) as error:
        (problem,) = error.problems
        raise _wrong_file(problem.expected, f"{path}: {problem.got}", problem.hint) from None
    return _names_in(text, path)


def _names_in(text: str, path: Location) -> tuple[str, ...]:
    lines = text.split("\n")
    if lines[-1] == "":  # after the last line break
        lines.pop()
    names = tuple(line.removesuffix("\r") for line in lines)
    if not names:
        raise _wrong_file("at least one name", f"{path}: none")
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if not name.strip():
            raise _wrong_file("a name on every line", f"{path}:{number}: an empty one")
        if name in first:
            got = f"{path}:{number}: `{name}`, which line {first[name]} has"
            raise _wrong_file("every name once", got)
        first[name] = number
    return names


def _wrong_file(expected: str, got: str, hint: str = "") -> SpecError:
    return SpecError(Problem(path=("vocabulary",), expected=expected, got=got, hint=hint))
