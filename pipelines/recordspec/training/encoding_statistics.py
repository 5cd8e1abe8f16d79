"""Statistics that the layers of `fit.encode` learn from a split: means, vocabularies, bin boundaries."""

from __future__ import annotations

import abc
import re
import string
from typing import Any, Literal

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, SpecError
from recordspec.schema.ragged_array import RaggedArray
from recordspec.schema.values import Array
from recordspec.wire.arrays import Mask

# Keras' tokens for an unknown text and an unknown integer, which a vocabulary does not contain.
UNKNOWN_TEXT, UNKNOWN_INTEGER = "[UNK]", -1
# How texts are changed before they are split into words, by Keras' names; `none` changes nothing.
Standardize = Literal["lower_and_strip_punctuation", "lower", "strip_punctuation", "none"]
# The characters to remove. As in Keras, only ASCII letters become lower case, and only ASCII spaces split.
PUNCTUATION = f"[{re.escape(string.punctuation)}]"
# The number of rows of which Keras' layer computes quantiles at once. It then merges the quantiles.
_ROWS_OF_BINS = 1024
# The number of quantiles to which it reduces the merged quantiles.
_QUANTILES = 1 / 0.01
# The least number of values, or of their bytes, to count at once, and of counts to merge at once.
_VALUES_AT_ONCE, _BYTES_AT_ONCE, _COUNTS_AT_ONCE = 1 << 17, 8 << 20, 1 << 20


def _nothing(expected: str, got: str, hint: str = "") -> SpecError:
    return SpecError(Problem(expected=expected, got=got, hint=hint))


class Learner(abc.ABC):
    """Learns the state of a layer from batches of values."""

    def add(self, value: Any, missing: Mask | None = None) -> None:
        """Adds the values of a batch.

        Args:
            value: an array `[n, ...]`, or a RaggedArray.
            missing: bool `[n]`, true for rows of an array without a value; None if all rows have one.
        """
        while isinstance(value, RaggedArray):
            value = value.values
        self._add(value if missing is None else value[~missing])

    @abc.abstractmethod
    def _add(self, values: Array) -> None: ...

    @abc.abstractmethod
    def state(self) -> dict[str, Any]:
        """The state of the layer, for JSON. Raises SpecError if the values do not define a state."""


class MeanAndVariance(Learner):
    """The mean and the variance of numbers; if values are not scalars, separately along their last axis."""

    def __init__(self) -> None:
        self._count, self._mean, self._squares = 0, np.zeros(()), np.zeros(())

    def _add(self, values: Array) -> None:
        """Adds the mean and the sum of squared deviations (Chan, Golub and LeVeque, 1979)."""
        values = values.astype(np.float64).reshape(-1, *values.shape[1:][-1:])
        count = len(values)
        if not count:
            return
        total = self._count + count
        with np.errstate(over="ignore", invalid="ignore"):  # `state` refuses NaN and infinity
            mean = values.mean(0)
            apart = mean - self._mean
            squares = ((values - mean) ** 2).sum(0) + apart**2 * self._count * count / total
            self._squares = self._squares + squares
            self._mean = self._mean + apart * count / total
        self._count = total

    def state(self) -> dict[str, Any]:
        if not self._count:
            raise _nothing("values to learn from", "none")
        variance = self._squares / self._count
        if not np.isfinite(variance).all():
            got = "a variance beyond float64" if np.isfinite(self._mean).all() else "NaN or infinity"
            raise _nothing("finite numbers to normalize", got)
        return {"mean": self._mean.tolist(), "variance": variance.tolist()}


class Vocabulary(Learner):
    """Distinct texts or integers in Keras' order: the most frequent first; of equal frequency, the largest.

    Args:
        is_text: whether the values are texts.
        most: the largest size of the vocabulary; None for all values.
        mask: the text that stands for padding, and is left out.
        classes: whether the values are classes of a target. Classes are sorted, so that their indices do not
            depend on frequency, and include the tokens that otherwise stand for unknown values.
    """

    def __init__(self, *, is_text: bool, most: int | None, mask: str | None, classes: bool = False) -> None:
        self._is_text, self._most = is_text, most
        special = [UNKNOWN_TEXT, mask] if is_text else [UNKNOWN_INTEGER]
        self._left_out = [] if classes else [token for token in special if token is not None]
        self._classes = classes
        self._values: list[Any] = []  # arrays that are not counted yet
        self._counted: list[Any] = []  # tables of values and counts
        self._merged = 0  # the number of values in the first table

    def _add(self, values: Array) -> None:
        pyarrow, flat = arrow(), values.reshape(-1)
        if not self._is_text:
            self._add_tokens(pyarrow.array(flat.astype(np.int64)))
        else:
            self._add_tokens(pyarrow.array(flat, pyarrow.large_binary()))

    def _add_tokens(self, tokens: Any) -> None:
        """Adds tokens, an Arrow array."""
        self._values.append(tokens)
        size = sum(array.nbytes for array in self._values)
        if sum(map(len, self._values)) >= _VALUES_AT_ONCE or size >= _BYTES_AT_ONCE:
            self._count()
        if sum(map(len, self._counted)) >= 2 * self._merged + _COUNTS_AT_ONCE:
            self._counted = [self._joined()]
            self._merged = len(self._counted[0])

    def _count(self) -> None:
        pyarrow = arrow()
        if self._values:
            counted = pyarrow.compute.value_counts(pyarrow.chunked_array(self._values))
            self._counted.append(pyarrow.table({"value": counted.field(0), "count": counted.field(1)}))
            self._values = []

    def _joined(self) -> Any:
        """All values, each once, with their counts."""
        if len(self._counted) == 1:
            return self._counted[0]
        table = arrow().concat_tables(self._counted).group_by("value").aggregate([("count", "sum")])
        return table.select(["value", "count_sum"]).rename_columns(["value", "count"])

    def state(self) -> dict[str, Any]:
        compute = arrow().compute
        self._count()
        if not sum(map(len, self._counted)):
            raise _nothing("values to learn from", "none")
        counted = self._joined()
        for token in self._left_out:
            wanted = token.encode() if isinstance(token, str) else token
            counted = counted.filter(compute.not_equal(counted["value"], wanted))
        ordered = counted.sort_by([("count", "descending"), ("value", "descending")])["value"]
        tokens = ordered.slice(0, self._most).to_pylist()
        if not tokens:
            raise _nothing("values to learn from", "only padding or unknown values")
        if self._classes:
            tokens.sort()
        try:
            return {"vocabulary": [token.decode() if self._is_text else token for token in tokens]}
        except UnicodeDecodeError as error:
            raise _nothing("text", f"bytes that are not UTF-8: {error}") from None


class WordVocabulary(Vocabulary):
    """The words of texts, as `keras.layers.TextVectorization` learns them.

    Args:
        standardize: how texts are changed before they are split.
        most: the largest number of words; None for all.
    """

    def __init__(self, standardize: Standardize, most: int | None) -> None:
        super().__init__(is_text=True, most=most, mask="")
        self._standardize = standardize

    def _add(self, values: Array) -> None:
        pyarrow = arrow()
        texts = pyarrow.array(values.reshape(-1), pyarrow.large_binary())
        words = pyarrow.compute.list_flatten(split_words(texts, self._standardize))
        self._add_tokens(words.view(pyarrow.large_binary()))


def split_words(texts: Any, standardize: Standardize) -> Any:
    """Splits texts into words, as `keras.layers.TextVectorization` does. Words may be empty.

    Args:
        texts: an Arrow array of bytes, `[n]`.

    Returns an Arrow array of lists of strings, `[n]`.
    """
    compute = arrow().compute
    texts = texts.view(arrow().large_string())
    if "lower" in standardize:
        texts = compute.ascii_lower(texts)
    if "strip" in standardize:
        texts = compute.replace_substring_regex(texts, PUNCTUATION, "")
    return compute.ascii_split_whitespace(texts)


class Bins(Learner):
    """The boundaries of bins of about equally many numbers, as `keras.layers.Discretization` learns them."""

    def __init__(self, bins: int) -> None:
        self._bins = bins
        self._quantiles = np.zeros((2, 0), np.float32)
        self._low, self._high = np.inf, -np.inf
        self._waiting: list[tuple[Array, Mask]] = []

    def add(self, value: Array, missing: Mask | None = None) -> None:
        self._waiting.append((value, np.zeros(len(value), bool) if missing is None else missing))
        self._learn(_ROWS_OF_BINS)

    def _learn(self, least: int) -> None:
        """Learns from the waiting rows, `least` rows at a time: the sizes of batches have no influence."""
        count = sum(len(value) for value, _ in self._waiting)
        if count < least:
            return
        value, missing = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        done = count // least * least
        self._waiting = [(value[done:], missing[done:])]
        for first in range(0, done, least):
            some = slice(first, first + least)
            self._add(value[some][~missing[some]])

    def _add(self, values: Array) -> None:
        if values.size:
            numbers = values.astype(np.float64)
            self._low = np.minimum(self._low, numbers.min())  # `minimum` and `maximum` keep NaN
            self._high = np.maximum(self._high, numbers.max())
            both = np.concatenate([_spaced(values), self._quantiles], 1)
            self._quantiles = _fewer(both[:, np.argsort(both[0])], 1 / _QUANTILES)

    def state(self) -> dict[str, Any]:
        self._learn(max(1, sum(len(value) for value, _ in self._waiting)))
        low, high = self._low, self._high
        if (low, high) == (np.inf, -np.inf):
            raise _nothing("values to learn from", "none")
        if not np.isfinite([low, high]).all():
            raise _nothing("finite numbers to discretize", "NaN or infinity")
        largest = max(abs(low), abs(high))
        if largest > np.finfo(np.float32).max or 0 < high - low < self._bins * np.spacing(
            np.float32(largest)
        ):
            got = f"{low:.17g} to {high:.17g}"
            raise _nothing(f"numbers that float32 divides into {self._bins} bins", got, "normalize them")
        return {"bin_boundaries": _fewer(self._quantiles, 1 / self._bins)[0, :-1].tolist()}


def _spaced(values: Array) -> Array:
    """Sorted numbers at equal distances, and the count that each stands for: float32 `[2, k]`."""
    ordered = np.sort(values.astype(np.float32), axis=None)
    each = max(len(ordered) / _QUANTILES, 1)
    chosen = ordered[int(each - 1) :: int(each)]
    return np.stack([chosen, np.full_like(chosen, each)])


def _fewer(quantiles: Array, share: float) -> Array:
    """Reduces sorted numbers with weights to quantiles, one for each `share` of the total weight.

    Returns interpolated quantiles and their weights, float32 `[2, k]`. If there are fewer numbers than
    quantiles, returns the numbers unchanged.
    """
    if quantiles.shape[1] * share < 1:
        return quantiles
    numbers, reached = quantiles[0], quantiles[1].cumsum()
    wanted, known = share + np.arange(0, 1, share), reached / reached[-1]
    weights = np.diff(np.interp(wanted, known, reached), prepend=0)
    return np.stack([np.interp(wanted, known, numbers), weights]).astype(np.float32)
