"""Changes the sample rate of audio, in graph."""

from __future__ import annotations

from math import ceil, gcd

import numpy as np

from recordspec._tf import tf
from recordspec.schema.tensors import Tensor
from recordspec.schema.values import Array

# Zeros of the sinc on each side of a sample, and the cutoff as a fraction of the lower Nyquist frequency:
# with this number of zeros, the filter falls off within the remaining fraction.
_ZEROS = 16
_CUTOFF = 0.95
# Windows of samples that are multiplied at a time.
_WINDOWS = 256
# The largest kernel: rates without a common divisor need weights for each sample of a second.
MOST_WEIGHTS = 1 << 22


def resampled(samples: Tensor, rate: int, wanted: int) -> Tensor:
    """Resamples audio, by band-limited interpolation with a Hann-windowed sinc.

    The method is that of J. O. Smith, "Digital Audio Resampling". Sums are computed in float64: in float32
    their last bit depends on the number of samples.

    Args:
        samples: float32 or int16 `[n, channels]`, or a RaggedTensor `[b, (n), channels]`.
        rate, wanted: the old and the new rate in Hz.

    Returns:
        The samples at the new rate, `ceil(n * wanted / rate)` of them; int16 is rounded and clipped.
    """
    if isinstance(samples, tf.RaggedTensor):
        longest = _resampled(samples.to_tensor(), rate, wanted)
        return tf.RaggedTensor.from_tensor(longest, _lengths(samples.row_lengths(), rate, wanted))
    return _resampled(samples[None], rate, wanted)[0]


def resampled_array(samples: Array, rate: int, wanted: int) -> Array:
    """`resampled` in NumPy, for an array `[n, channels]`; equal within one unit in the last place."""
    old, _, width = _steps(rate, wanted)
    count = -(-len(samples) * wanted // rate)
    around = np.pad(samples.astype(np.float64), [(width, width + old), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(around, 2 * width + old, axis=0)[::old]
    kernel = _kernel(rate, wanted)[:, 0]
    # in chunks, since a matrix product copies the windows, which overlap
    parts = [windows[start : start + _WINDOWS] @ kernel for start in range(0, len(windows), _WINDOWS)]
    made = np.concatenate(parts).transpose(0, 2, 1).reshape(-1, samples.shape[1])[:count]
    if samples.dtype.kind == "i":
        info = np.iinfo(samples.dtype)
        made = np.clip(np.rint(made), info.min, info.max)
    return np.asarray(made.astype(samples.dtype))


def _lengths(lengths: Tensor, rate: int, wanted: int) -> Tensor:
    return -(-lengths * wanted // rate)


def _resampled(samples: Tensor, rate: int, wanted: int) -> Tensor:
    """Resamples `[b, n, channels]`, with zeros before the first and after the last sample."""
    old, new, width = _steps(rate, wanted)
    # int64, since in int32 the number of samples times the rate overflows after some seconds
    shape, channels = tf.shape(samples, tf.int64), samples.shape[-1]
    apart = tf.transpose(tf.cast(samples, tf.float64), [0, 2, 1])
    apart = tf.reshape(apart, [shape[0] * channels, shape[1], 1])  # -1 has no size in a batch without samples
    around = tf.pad(apart, [[0, 0], [width, width + old], [0, 0]])
    made = tf.nn.conv1d(around, tf.constant(_kernel(rate, wanted)), old, "VALID")
    made = tf.reshape(made, [shape[0], channels, new * tf.shape(made, tf.int64)[1]])
    made = made[:, :, : _lengths(shape[1], rate, wanted)]
    made = tf.transpose(made, [0, 2, 1])
    if samples.dtype.is_integer:
        made = tf.round(made)
    return tf.ensure_shape(tf.saturate_cast(made, samples.dtype), [None, None, channels])


def _steps(rate: int, wanted: int) -> tuple[int, int, int]:
    """The numbers of old and new samples of equal duration, and the half width of the filter in old
    samples.
    """
    divisor = gcd(rate, wanted)
    old, new = rate // divisor, wanted // divisor
    return old, new, ceil(_ZEROS * old / (min(old, new) * _CUTOFF))


def weights(rate: int, wanted: int) -> int:
    """The number of weights of the kernel."""
    old, new, width = _steps(rate, wanted)
    return new * (2 * width + old)


def _kernel(rate: int, wanted: int) -> Array:
    """The weights of old samples in new ones, float64 `[2 * width + old, 1, new]`."""
    old, new, width = _steps(rate, wanted)
    cutoff = min(old, new) * _CUTOFF
    places = np.arange(-width, width + old)[:, None] / old - np.arange(new)[None, :] / new
    zeros = np.clip(places * cutoff, -_ZEROS, _ZEROS)
    window = np.cos(zeros * np.pi / _ZEROS / 2) ** 2
    return np.asarray(np.sinc(zeros) * window * cutoff / old)[:, None, :]
