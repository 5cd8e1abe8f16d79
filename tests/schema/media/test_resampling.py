"""Sounds at another rate: tones stay, lengths are those of the rates, and the laws are kept."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs
from one_feature import audio_schema as schema
from one_feature import decoded
from recordspec.schema.features.audio import Audio
from recordspec.schema.media.resampling import resampled, resampled_array
from recordspec.testing import LAWS, Case, stored_again_it_is_the_same


@pytest.mark.parametrize(("rate", "wanted"), [(16000, 8000), (8000, 48000), (44100, 16000)])
def test_tones_are_resampled(rate, wanted):
    """A tone below the cutoff stays, but for the ends; one above half of the new rate goes."""

    def tones(rate: int, count: int, *hertz: float) -> np.ndarray:
        return np.sin(2 * np.pi * np.arange(count)[:, None] / rate * np.array(hertz)).astype(np.float32)

    low, high = 0.4 * min(rate, wanted), 0.55 * min(rate, wanted)
    given = schema(sample_rate=rate, resample=wanted, channels=2, encoding="raw")
    count = rate // 5 + 1
    found = decoded(given, tones(rate, count, low, high))
    assert len(found) == -(-count * wanted // rate)
    inside = slice(len(found) // 10, -len(found) // 10)
    expected = tones(wanted, len(found), low, high)
    assert np.abs(found - expected)[inside, 0].max() < 2e-3
    if wanted < rate:
        assert np.abs(found[inside, 1]).max() < 2e-3


def test_a_long_sound_keeps_its_length():
    """The samples times the new rate are more than int32 holds."""
    given = schema(sample_rate=44100, resample=16000, encoding="raw", dtype="int16")
    found = decoded(given, np.full((135_000, 1), 1000, np.int16))
    assert len(found) == -(-135_000 * 16000 // 44100)
    assert (abs(found[20:-20].astype(int) - 1000) < 10).all()


@pytest.mark.parametrize("encoding", ["raw", "wav"])
def test_a_batch_without_sounds_is_resampled(encoding):
    sound = Audio(name="x", sample_rate=8000, resample=6000, encoding=encoding)
    one = rs.Schema(name="s", features=(sound,))
    assert one.decode(tf.constant([], tf.string))["x"].to_list() == []
    steps = rs.Schema(name="s", record="sequence_example", sequence=(sound,))
    assert steps.decode([steps.encode({"x": []})] * 2)["x"].to_list() == [[], []]


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize(("rate", "wanted"), [(8000, 6000), (8000, 48000), (44100, 16000), (11025, 8000)])
def test_numpy_resamples_within_one_unit_in_the_last_place(rate, wanted, dtype):
    rng = np.random.default_rng(0)
    for count in (1, 7, 500):
        samples = rng.uniform(-1, 1, (count, 2)).astype(np.float32)
        if dtype == "int16":
            samples = rng.choice([-32768, 32767, 5], (count, 2)).astype(np.int16)  # also beyond full scale
        expected = resampled(tf.constant(samples), rate, wanted).numpy()
        found = resampled_array(samples, rate, wanted)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        unit = 1 if dtype == "int16" else np.spacing(np.abs(expected))
        assert (np.abs(found.astype(float) - expected.astype(float)) <= unit).all()


@pytest.mark.parametrize("law", [law for law in LAWS if law is not stored_again_it_is_the_same])
@pytest.mark.parametrize(
    ("options", "tolerance"), [({"encoding": "raw", "dtype": "int16"}, 1), ({"channels": 2}, 2**-23)]
)
def test_resampled_sounds_keep_the_laws(law, options, tolerance):
    law(Case(Audio(name="x", sample_rate=8000, resample=6000, **options), tolerance=tolerance))
