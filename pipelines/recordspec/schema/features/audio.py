"""`audio`: audio samples, encoded or raw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from recordspec._tf import tf
from recordspec.errors import Problem
from recordspec.schema.features.feature import LATER, READING, WRITING, Feature, Invalid, Traits, ValueType
from recordspec.schema.features.option_checks import check_positive, check_value, problem
from recordspec.schema.features.stored import check_bytes, check_media, each_refused
from recordspec.schema.media.decoders import decode_sound
from recordspec.schema.media.resampling import MOST_WEIGHTS, resampled, resampled_array, weights
from recordspec.schema.media.sounds import SoundEncoding, decoded, encoded
from recordspec.schema.ragged_array import RaggedArray
from recordspec.schema.tensors import Tensor, TypeSpec, ragged_spec, split_raw
from recordspec.schema.values import Array, BadValue
from recordspec.wire.arrays import ArrowArray, bytes_in, flat_of, lengths_of, to_arrow
from recordspec.wire.columns import Column, Fixed

_LOSSY = ("mp3", "ogg")
_FULL_SCALE = 1 << 15


@dataclass(frozen=True, kw_only=True)
class Audio(Feature):
    """Audio.

    Given as a path, as the bytes of a file, or as an array of samples `[n, channels]` (or `[n]` for one
    channel). A file that TensorFlow can decode is stored unchanged; any other file is encoded again, or
    decoded with `encoding: raw`. Bytes are always the bytes of a file: samples without a header are given as
    an array. Decodes to samples `[n, channels]`; a batch is a RaggedTensor `[batch, (n), channels]`.

    TensorFlow decodes wav and raw; tensorflow-io decodes the other encodings, and without it, reading them
    raises MissingExtra.

    Attributes:
        sample_rate: the sample rate in Hz; without `convert`, other rates are errors.
        channels: the number of channels; 1 is mono.
        encoding: wav and flac have 16 bits per sample; mp3 and ogg (Vorbis) are lossy; raw has `dtype`.
        dtype: the decoded dtype: float32, with 1.0 as full scale, or int16 (not for mp3 and ogg).
        convert: whether audio with another rate, number of channels or sample width is converted at write:
            resampled, mixed to the mean of its channels (or one channel repeated), and rounded to 16 bits. By
            default it is an error, as is a file with the suffix of another format.
        max_seconds: the longest duration in seconds; longer audio is an error at write.
        pad: the padding value if `fit` makes a batch dense; 0, which is silence, by default.
        resample: the rate in Hz to which audio is resampled at read; the stored samples do not change.
    """

    kind: ClassVar[str] = "audio"

    sample_rate: int
    channels: int = 1
    encoding: SoundEncoding = "wav"
    dtype: Literal["float32", "int16"] = "float32"
    convert: bool = field(default=False, metadata=WRITING | LATER)
    max_seconds: float | None = field(default=None, metadata=WRITING)
    pad: Any = field(default=None, metadata=READING)
    resample: int | None = field(default=None, metadata=READING)

    def option_problems(self) -> Iterator[Problem]:
        yield from check_positive("sample_rate", self.sample_rate)
        yield from check_positive("channels", self.channels)
        if self.dtype == "int16" and self.encoding in _LOSSY:
            yield problem("dtype", f"float32 for {self.encoding}", "`int16`")
        if self.max_seconds is not None and not self.max_seconds > 0:
            yield problem("max_seconds", "a number above 0", f"{self.max_seconds:g}")
        yield from check_value("pad", self.pad, self.dtype, ())
        yield from check_positive("resample", self.resample)
        if self.resample and self.sample_rate > 0 and weights(self.sample_rate, self.resample) > MOST_WEIGHTS:
            expected = f"a rate that has a large divisor in common with {self.sample_rate}"
            yield problem("resample", expected, str(self.resample))

    @cached_property
    def traits(self) -> Traits:
        return Traits(per_example=self.encoding != "raw")

    @property
    def value_type(self) -> ValueType:
        return ValueType("media")

    def columns(self) -> tuple[Column, ...]:
        return (Column(key=self.stored, storage="bytes", layout=Fixed()),)

    def encode(self, values: Any) -> tuple[ArrowArray, ...]:
        return (to_arrow([encoded(self, row, value) for row, value in enumerate(values)]),)

    def invalid_stored(self, array: ArrowArray) -> Iterator[Invalid]:
        if self.encoding != "raw":
            return each_refused(array, lambda data: check_media(self, self.encoding, data))
        size = self.channels * np.dtype(self.dtype).itemsize
        return each_refused(array, lambda data: check_bytes(len(data), size, varies=True))

    @property
    def restored_type(self) -> ValueType | None:
        return ValueType(self.dtype, (None, self.channels)) if self.encoding == "raw" else None

    def restored(self, stored: Mapping[str, Any]) -> Any:
        if stored.get(self.stored) is None:
            return None
        (data,) = stored[self.stored]
        if self.encoding != "raw":
            return data
        return np.frombuffer(data, np.dtype(self.dtype).newbyteorder("<")).reshape(-1, self.channels)

    def decode(self, columns: Mapping[str, Tensor]) -> Tensor:
        samples = self._samples(columns[self.stored])
        if self.resample in (None, self.sample_rate):
            return samples
        return resampled(samples, self.sample_rate, self.resample)

    def _samples(self, data: Tensor) -> Tensor:
        if self.encoding == "raw":
            size = self.channels * np.dtype(self.dtype).itemsize
            return split_raw(data, lambda joined: tf.io.decode_raw(joined, self.dtype), size, [self.channels])
        if self.encoding == "wav":
            samples = decode_wav(data, self.sample_rate)
        else:
            samples = decode_sound(self.encoding, data)
        return converted_samples(samples, self.channels, self.dtype)

    def decode_numpy(self, columns: Mapping[str, ArrowArray]) -> RaggedArray:
        stored = bytes_in(flat_of(columns[self.stored]))
        if self.encoding == "raw":
            sounds = [self._raw(row, data) for row, data in enumerate(stored)]
        else:
            sounds = [decoded(self, row, data) for row, data in enumerate(stored)]
        if self.resample not in (None, self.sample_rate):
            sounds = [resampled_array(sound, self.sample_rate, self.resample) for sound in sounds]
        empty = np.zeros((0, self.channels), self.dtype)
        return RaggedArray(np.concatenate([empty, *sounds]), lengths_of(sounds))

    def _raw(self, row: int, data: bytes) -> Array:
        try:
            check_bytes(len(data), self.channels * np.dtype(self.dtype).itemsize, varies=True)
        except BadValue as bad:
            raise bad.moved(row) from None
        samples: Array = self.restored({self.stored: [data]})
        return samples

    def spec(self) -> TypeSpec:
        return ragged_spec((None, self.channels), self.dtype)

    def sample(self, rng: np.random.Generator) -> Any:
        longest = self.sample_rate * (self.max_seconds or 1)
        count = int(min(longest, rng.integers(1, 64)))
        if self.dtype == "int16":
            return rng.integers(-_FULL_SCALE, _FULL_SCALE, (count, self.channels), np.int16)
        return rng.uniform(-1, 1, (count, self.channels)).astype(np.float32)


def decode_wav(data: Tensor, rate: int) -> Tensor:
    """Decodes a WAV file, string `[]`, to float32 `[n, channels]`. Another sample rate raises
    InvalidArgumentError.
    """
    # decodes all channels: given a number of channels, the op would pad or drop some
    samples, rates = tf.audio.decode_wav(data)
    same = tf.debugging.assert_equal(rates, rate, f"expected a sample rate of {rate} Hz")
    with tf.control_dependencies([same]):
        return tf.identity(samples)


def converted_samples(samples: Tensor, channels: int, dtype: str) -> Tensor:
    """Converts samples `[n, channels]`, at least one, to float32 or int16."""
    full_scale = 1 << 15
    samples = tf.ensure_shape(samples, [None, channels])
    # audio decoders fail without an error and return no samples
    some = tf.debugging.assert_positive(tf.shape(samples)[0], "expected samples, got none")
    with tf.control_dependencies([some]):
        if samples.dtype == dtype:
            return tf.identity(samples)
        if dtype == "int16":  # exact: the floats are the int16 samples divided by full scale
            return tf.cast(samples * full_scale, tf.int16)
        return tf.cast(samples, tf.float32) / full_scale
