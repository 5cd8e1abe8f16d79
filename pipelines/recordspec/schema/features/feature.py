"""The base class of feature kinds."""

from __future__ import annotations

import abc
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from recordspec import html
from recordspec.errors import Problem, SpecError
from recordspec.locations import Location
from recordspec.schema.options import freeze, option_texts
from recordspec.schema.ragged_array import parsed
from recordspec.schema.tensors import Tensor, TypeSpec
from recordspec.schema.values import DTYPES, nested, unpacked
from recordspec.wire.arrays import ArrowArray, Ints, is_arrow, is_number
from recordspec.wire.columns import Column, Fixed

if TYPE_CHECKING:
    from recordspec.schema.dates import DateUnit
    from recordspec.schema.features.geometry import Pictures

# Metadata of an option that changes how records are read, but not the stored data.
READING: dict[str, bool] = {"reading": True}
# Metadata of an option that changes the accepted or stored values, but not how they are read.
WRITING: dict[str, bool] = {"writing": True}
# Metadata of an option added later: with its default, a schema keeps the fingerprint that it has without it.
LATER: dict[str, bool] = {"later": True}

# The decoded form of lists of different lengths.
ListForm = Literal["ragged", "dense", "sparse"]
# Rows with invalid values, all for one reason, ascending, int64 `[m]`; and the problem of a given row.
Invalid = tuple[Ints, Callable[[int], Problem]]


@dataclass(frozen=True)
class ValueType:
    """The type of a feature's value in a row: one item, or nested lists of items.

    Attributes:
        item: a dtype for numbers; `text` for str or bytes; `class` for a class name, as str or bytes,
            or its index; `media` for a path, the bytes of a file, or an array; `pair` for a pair of indices
            and values; `any` for values that only the kind can convert.
        shape: `()` for one item, else the sizes of the lists; null stands for any size.
        date: the unit in which dates and times are stored, for kinds that take them.
        missing_item: the value in place of an item of a list that is missing, if an option gives it.
    """

    item: str = "any"
    shape: tuple[int | None, ...] = ()
    date: DateUnit | None = None
    missing_item: Any = None

    @property
    def is_number(self) -> bool:
        return self.item in DTYPES


@dataclass(frozen=True, kw_only=True)
class Traits:
    """Facts about a feature, for the parts of the package that use its values.

    Attributes:
        outputs: the names of the decoded tensors, if they differ from the feature's name and the indicator.
        optional: whether a row may omit the value: its key is then not stored, and the default is decoded.
        takes_default: whether an option gives the value for a record without the key.
        indicator: the name of the output that marks missing values, bool `[]`.
        class_names: the class names, in the order of their stored indices; empty for other values.
        has_unknown_class: whether the last class name stands for all unknown names.
        longest: the largest number of items of a value, if an option limits it.
        list_form: the decoded form of lists of different lengths, if an option sets it.
        has_lengths: whether a batch has the lengths of its values: false if it is padded and has no second
            tensor.
        takes_steps: whether each step of a SequenceExample may have a value.
        spans_steps: whether a value of a SequenceExample spans all the steps instead of a single step.
        takes_arrow: whether `encode` takes text, lists and dictionaries as Arrow arrays; if not, it gets
            Python lists.
        per_example: whether `decode` takes one record at a time, as codecs do, instead of a batch.
        may_grow: whether decoded values may be many times larger than their bytes, as pixels are; by default
            like `per_example`.
        mask_of: the name of the image whose pixels a mask classifies.
        takes_files: whether `encode` also takes paths of files, as all kinds for images and audio do.

    Example:
        >>> rs.KINDS["fixed_len"](name="a", dtype="int64", default=0).traits.optional
        True
    """

    outputs: tuple[str, ...] = ()
    optional: bool = False
    takes_default: bool = False
    indicator: str | None = None
    class_names: tuple[str, ...] = ()
    has_unknown_class: bool = False
    longest: int | None = None
    list_form: ListForm | None = None
    has_lengths: bool = True
    takes_steps: bool = True
    spans_steps: bool = False
    takes_arrow: bool = False
    per_example: bool = False
    may_grow: bool | None = None
    mask_of: str | None = None
    takes_files: bool = False

    def __post_init__(self) -> None:
        if self.may_grow is None:
            object.__setattr__(self, "may_grow", self.per_example)

    @property
    def known_names(self) -> tuple[str, ...]:
        """The class names that data may contain, without the name that stands for all unknown names.

        Example:
            >>> rs.KINDS["label"](name="a", names=("b", "c"), oov="index").traits.known_names
            ('b', 'c')
        """
        return self.class_names[:-1] if self.has_unknown_class else self.class_names


@dataclass(frozen=True, kw_only=True)
class Feature(abc.ABC):
    """A named value of a record: how it is given, stored and decoded.

    The fields of a kind's dataclass are exactly its YAML options.

    Attributes:
        name: the feature's name in Python.
        key: the stored name, if it differs.
        missing: how a SequenceExample without the list of steps is read: an `error`, or `empty`, as if it had
            no steps. For `var_len`, `ragged` and labels of any number, also how a row without a list is
            treated.
        description: a text for readers.

    Example:
        >>> schema.names["x"].kind, schema.names["inside"].kind
        ('fixed_len', 'label')
    """

    kind: ClassVar[str]

    name: str
    key: str | None = None
    missing: Literal["error", "empty"] = field(default="error", metadata=READING)
    description: str = field(default="", metadata=READING)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # as an attribute of the kind, a fact would have no effect
        for name in {fact.name for fact in fields(Traits)} & vars(cls).keys():
            if "ClassVar" in str(cls.__annotations__.get(name, "ClassVar")):  # not an option
                raise TypeError(f"{cls.__name__}.{name}: expected a fact in `traits`, got an attribute")

    def __post_init__(self) -> None:
        freeze(self)
        problems = list(self.option_problems())
        if problems:
            raise SpecError(problems)

    def _repr_html_(self) -> str:
        return html.in_notebook(self._html)

    def _html(self) -> Iterator[html.Markup]:
        yield html.heading(f"{self.name}: {self.kind}")
        if self.description:
            yield html.paragraph(self.description)
        stored = ", ".join(f"{column.key}: {column.storage}" for column in self.columns())
        rows = [*option_texts(self).items(), ("stored as", stored)]
        yield html.listing(("option", "value"), rows, "option")

    @property
    def stored(self) -> str:
        """The key under which the values are stored.

        Example:
            >>> schema.names["x"].stored
            'x'
        """
        return self.name if self.key is None else self.key

    @property
    def value_type(self) -> ValueType:
        """The type of a value for `encode`. Sources convert their cells to this type, except for `any`.

        Example:
            >>> schema.names["x"].value_type.item
            'float32'
        """
        return ValueType()

    @cached_property
    def traits(self) -> Traits:
        """Facts about the values of the feature; a kind states the facts that differ from the defaults.

        Example:
            >>> schema.names["inside"].traits.class_names
            ('no', 'yes')
        """
        return Traits()

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the decoded tensors.

        Example:
            >>> rs.KINDS["var_len"](name="a", dtype="int64", as_="dense", with_length=True).outputs
            ('a', 'a_length')
        """
        traits = self.traits
        return traits.outputs or ((self.name,) if traits.indicator is None else (self.name, traits.indicator))

    def indicating(self, missing: bool) -> Feature:
        """The feature with or without the indicator of missing values, if it can have one.

        Example:
            >>> feature = rs.KINDS["fixed_len"](name="a", dtype="int64", default=0)
            >>> feature.indicating(True).traits.indicator
            'a_missing'
        """
        return self

    @property
    def padding(self) -> dict[str, Any]:
        """The padding values of rows of different sizes in a dense tensor, by output.

        None means zero or the empty string. The option `pad` of a kind, if any, is the padding of the output
        named like the feature.

        Example:
            >>> schema.names["inside"].padding
            {'inside': -1}
        """
        return {name: getattr(self, "pad", None) if name == self.name else None for name in self.outputs}

    def _mask_problems(self, image: Pictures) -> Iterator[Problem]:
        """Yields the problems of a mask whose options contradict those of its image."""
        return iter(())

    def _moved_with(self, row: int, value: Any, image: Pictures, picture: Any) -> Any:
        """A row's mask, turned in the same way as its image is turned at encoding.

        Raises BadValue if the mask and the image have different sizes.
        """
        return value

    def among(self, names: Container[str]) -> Feature:
        """The feature for a record with only these features: references to other features are removed.

        Example:
            >>> rs.KINDS["image"](name="a", shape=(8, 8, 1), mask_of="b").among(["a"]).traits.mask_of
        """
        return self

    @property
    def shortest(self) -> Feature:
        """The feature without options that only repeat their effective default.

        Example:
            >>> rs.KINDS["text"](name="a", key="a").shortest.key is None
            True
        """
        return replace(self, **self._spelled_out())

    def _spelled_out(self) -> dict[str, Any]:
        """Options that repeat their effective default, with the shorter value for each."""
        return {"key": None} if self.key == self.name else {}

    def stored_options(self) -> dict[str, Any]:
        """The options that determine the stored bytes: all except options of reading, and options added later
        that have their default.

        Example:
            >>> schema.names["x"].stored_options()["dtype"]
            'float32'
        """
        shortest = self.shortest
        options = {
            option.name: getattr(shortest, option.name)
            for option in fields(self)
            if not option.metadata.get("reading")
            and not (option.metadata.get("later") and getattr(shortest, option.name) == option.default)
        }
        return options | {"kind": self.kind, "key": self.stored}

    def read_options(self) -> dict[str, Any]:
        """The stored options that matter to a reader. For example, the JPEG quality does not.

        Example:
            >>> "quality" in rs.KINDS["image"](name="a", shape=(8, 8, 3), encoding="jpeg").read_options()
            False
        """
        writing = {field.name for field in fields(self) if field.metadata.get("writing")}
        return {name: value for name, value in self.stored_options().items() if name not in writing}

    def option_problems(self) -> Iterable[Problem]:
        """Yields the problems of the options, each with the option's name as its path.

        Example:
            >>> list(schema.names["x"].option_problems())
            []
        """
        return ()

    def resolved(self, folder: Location | None) -> Feature:
        """Returns the feature with the contents of the files that its options name, in the schema's folder.

        `Schema.load` calls it. Raises SpecError, with the option's name as the path.

        Example:
            >>> schema.names["inside"].resolved(None) == schema.names["inside"]
            True
        """
        return self

    @abc.abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The stored columns. No other code names a stored key.

        Example:
            >>> schema.names["x"].columns()[0].key
            'x'
        """

    @abc.abstractmethod
    def encode(self, values: Any) -> tuple[ArrowArray, ...]:
        """Converts a batch of values to an Arrow array for each of `columns()`, which `to_arrow` creates.

        Args:
            values: a list, or a NumPy array `[n, ...]`; with `takes_arrow` also an Arrow array without nulls.

        Raises BadValue, with the index of the first invalid value. None is never valid.

        Example:
            >>> (array,) = schema.names["inside"].encode(["yes", "no"])
            >>> array.to_pylist()
            [1, 0]
        """

    def encode_one(self, value: Any) -> Sequence[Any] | None:
        """Returns the int, float or bytes that `encode` would store, as a sequence; None if `encode` has to
        be called.

        A shortcut for kinds with one column, and for common Python types that are stored unchanged: NumPy
        takes ten times as long for a single value.

        Example:
            >>> schema.names["inside"].encode_one("yes")
            (1,)
        """
        return None

    def invalid_stored(self, array: ArrowArray) -> Iterator[Invalid]:
        """Yields the invalid values among stored values of the right type and number; by default none.

        Args:
            array: an Arrow array of each row's values of the first column, without nulls.

        Example:
            >>> import pyarrow
            >>> for rows, problem in schema.names["inside"].invalid_stored(pyarrow.array([0, 7])):
            ...     print(rows, problem(rows[0]))
            [1] expected an index from 0 to 1, got 7
        """
        return iter(())

    @property
    def restored_type(self) -> ValueType | None:
        """The type of the values of `restored`. None if `restored` returns the list under the feature's key,
        or its single value.

        Example:
            >>> rs.KINDS["fixed_len"](name="a", dtype="int64", shape=(2, 2)).restored_type.shape
            (2, 2)
        """
        type_ = self.value_type
        if type_.item == "pair":
            return type_
        if type_.item == "any" or len(type_.shape) <= 1:
            return None
        return ValueType(self.columns()[0].storage, type_.shape)

    def restored(self, stored: Mapping[str, Any]) -> Any:
        """The value of a stored record, in the form that a row gives it: `encode` converts it to the same
        record.

        By default, nested lists of the shape of `value_type`; for the item `any`, the stored values.

        Args:
            stored: the lists of a record, by key; None, or no key, for a missing list.

        Returns None for a missing value. Raises ValueError, TypeError, IndexError or zlib.error for data that
        this feature does not store.

        Example:
            >>> rs.KINDS["fixed_len"](name="a", dtype="int64", shape=(2, 2)).restored({"a": [1, 2, 3, 4]})
            [[1, 2], [3, 4]]
        """
        flat, shape = stored.get(self.stored) or [], self.value_type.shape
        if self.value_type.item == "any":
            return flat[0] if len(flat) == 1 else stored.get(self.stored)
        if not flat and None not in shape and 0 not in shape:
            return None
        return nested(flat, shape)

    def decode(self, columns: Mapping[str, Tensor]) -> Tensor | dict[str, Tensor]:
        """Converts the parsed columns, by key, to the value, in a graph, for any leading rank.

        A feature with several tensors returns a dict by name. By default, the value is the first column as
        `tf.io` parses it.

        Example:
            >>> import tensorflow as tf
            >>> schema.names["x"].decode({"x": tf.constant([0.5])}).numpy().tolist()
            [0.5]
        """
        return columns[self.stored]

    def decode_numpy(self, columns: Mapping[str, ArrowArray]) -> Any:
        """Converts the stored columns, by key, to the NumPy values of a batch, without TensorFlow.

        The values equal those of `decode`: an array `[n, ...]`; a RaggedArray or a SparseArray if rows differ
        in size; or for a feature with several tensors, a dict of values by name. By default, the value is the
        first column as `tf.io` parses it.

        Args:
            columns: an Arrow array for each of `columns()`; a row without the key is null.

        Raises BadValue, with the index of the first row that does not decode; SpecError if the kind overrides
        `decode`, but not `decode_numpy`.

        Example:
            >>> import pyarrow
            >>> schema.names["x"].decode_numpy({"x": pyarrow.array([0.5], pyarrow.float32())}).tolist()
            [0.5]
        """
        if type(self).decode is not Feature.decode:
            raise self._needs_tensorflow("decode", "decode_numpy")
        return parsed(self.columns()[0], columns)

    @property
    def _fixed_shape(self) -> tuple[int, ...] | None:
        """The shape of a value if values decode to what the only column stores, unless a record lacks it."""
        if type(self).decode_numpy is not Feature.decode_numpy or type(self).decode is not Feature.decode:
            return None
        (column, *others) = self.columns()
        is_fixed = isinstance(column.layout, Fixed) and not column.layout.ragged and not others
        return column.cell if is_fixed else None

    @property
    def _takes_lists(self) -> bool:
        """Whether `decode_numpy` takes a RaggedArray in place of the Arrow array of the only column."""
        return False

    def _needs_tensorflow(self, method: str, wanted: str) -> SpecError:
        """The error for a kind that implements a method for TensorFlow, but not its counterpart for NumPy."""
        hint = f"it has `{method}`, which needs TensorFlow: `rs.read` reads it"
        return SpecError(
            Problem(path=(self.name,), expected=f"a kind with `{wanted}`", got=self.kind, hint=hint)
        )

    @abc.abstractmethod
    def spec(self) -> TypeSpec | dict[str, TypeSpec]:
        """The type of one decoded value, without the batch dimension.

        A RaggedTensorSpec means that a batch of values of different sizes is ragged. A TensorSpec with an
        unknown dimension means that the batch is padded.

        Example:
            >>> schema.names["x"].spec()
            TensorSpec(shape=(), dtype=tf.float32, name=None)
        """

    @abc.abstractmethod
    def sample(self, rng: np.random.Generator) -> Any:
        """A random valid value.

        Example:
            >>> import numpy as np
            >>> schema.names["inside"].sample(np.random.default_rng(1))
            'no'
        """


def as_taken(feature: Feature, values: Any) -> Any:
    """Values in the form that `encode` of a feature takes; Arrow numbers become NumPy arrays."""
    as_they_are = not is_arrow(values) or (feature.traits.takes_arrow and not is_number(values))
    return values if as_they_are else unpacked(values)
