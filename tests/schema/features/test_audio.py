"""Sounds: options that do not go together, foreign records, missing decoders (`schema.media.decoders`)."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs
from media import sound_bytes, tone
from one_feature import audio_schema as schema
from recordspec.schema.features.audio import Audio

RNG = np.random.default_rng(0)


def test_sounds_without_a_key_keep_their_split_from_build_to_build(tmp_path):
    """Without a key, the split is a hash of the encoded row."""
    rows = [{"x": RNG.uniform(-0.5, 0.5, 80).astype(np.float32)} for _ in range(60)]
    for name in ("one", "other"):
        rs.write(rows, schema(encoding="ogg"), tmp_path / name, split={"train": 50, "test": 50})
    shards = [sorted((tmp_path / name).glob("*.tfrecord")) for name in ("one", "other")]
    assert len(shards[0]) == 2
    for one, other in zip(*shards, strict=True):
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"sample_rate": 0}, "sample_rate: expected at least 1, got 0"),
        ({"channels": 0}, "channels: expected at least 1, got 0"),
        ({"encoding": "mp3", "dtype": "int16"}, "dtype: expected float32 for mp3, got `int16`"),
        ({"max_seconds": 0.0}, "max_seconds: expected a number above 0, got 0"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, expected):
    with pytest.raises(rs.SpecError) as caught:
        Audio(name="x", **{"sample_rate": 8000, **options})
    assert str(caught.value) == expected


@pytest.mark.parametrize("encoding", ["flac", "mp3", "ogg"])
def test_without_a_decoder_the_graph_is_not_made(encoding, monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "tensorflow_io", None)
    given = schema(encoding=encoding)
    rs.write([{"x": tone() / np.float32(32768)}], given, tmp_path / "data")
    with pytest.raises(rs.MissingExtra) as caught:
        rs.read(tmp_path / "data", given, batch=2)
    assert str(caught.value).startswith(
        f"expected tensorflow-io to decode {encoding} with TensorFlow {tf.__version__}, got "
    )
    assert str(caught.value).endswith(
        "(store it as wav or raw, or pip install 'recordspec[io]', which brings TensorFlow 2.16 "
        "(Python 3.12 or older); see `recordspec docs installing`)"
    )
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():  # which an exception in tf.map_fn would spoil
        assert tf.Variable(1).numpy() == 1


def test_another_rate_or_no_samples_in_a_foreign_record_is_an_error():
    slow = rs.Schema(name="s", features=(Audio(name="x", sample_rate=16000),))
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected a sample rate of 8000 Hz"):
        schema().decode(slow.encode({"x": tone()}))
    plain = rs.Schema.loads("schema: s\nfeatures: {x: string}")
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected samples, got none"):
        schema().decode(plain.encode({"x": sound_bytes(tone(0), 8000)}))


def test_another_number_of_channels_in_a_foreign_record_is_an_error():
    stereo = schema(channels=2).encode({"x": tone(channels=2)})
    with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible"):
        schema().decode(stereo)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible"):
        schema(channels=2).decode(schema().encode({"x": tone()}))
