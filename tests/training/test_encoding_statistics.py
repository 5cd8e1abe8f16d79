"""What layers learn (`training.encoding_statistics`), compared with Keras' `adapt`, from files of any layout
(`reading.decoded_files`)."""

from __future__ import annotations

import numpy as np
import pytest
import rows_to_encode
import tensorflow as tf

import recordspec as rs
from recordspec.locations import location
from recordspec.order.read_plan import plan_files
from recordspec.reading.decoded_files import decoded_files
from recordspec.store.dataset import StoredDataset
from recordspec.training import encoding_statistics
from recordspec.training.encoding_statistics import Bins, MeanAndVariance, Vocabulary, WordVocabulary
from recordspec.training.encoding_tensors import count_words


def random_numbers(rng: np.random.Generator) -> list[np.ndarray]:
    """Batches of few and of many different numbers, some as frequent as others."""
    return [rng.integers(-2, most, size) for most, size in [(5, 40), (1, 0), (900, 1500), (3, 7)]]


TEXTS = np.array([b"[UNK]", b"", *(f"t{n % 97}\u00e9{n}".encode() for n in range(1000))], object)


@pytest.mark.parametrize("most", [None, 2, 40])
@pytest.mark.parametrize("mask", [None, ""])
def test_a_vocabulary_of_texts_is_that_of_keras(mask, most, monkeypatch):
    monkeypatch.setattr(encoding_statistics, "_COUNTS_AT_ONCE", 50)
    monkeypatch.setattr(encoding_statistics, "_VALUES_AT_ONCE", 40)
    learner = Vocabulary(is_text=True, most=most, mask=mask)
    batches = [TEXTS[numbers + 2] for numbers in random_numbers(np.random.default_rng(1))]
    for batch in batches:
        learner.add(batch)
    special = 1 if mask is None else 2
    layer = tf.keras.layers.StringLookup(mask_token=mask, max_tokens=most and most + special)
    layer.adapt(tf.constant(np.concatenate(batches).tolist()))
    expected = [str(token) for token in layer.get_vocabulary(include_special_tokens=False)]
    assert learner.state() == {"vocabulary": expected}


@pytest.mark.parametrize("most", [None, 2, 40])
def test_a_vocabulary_of_integers_is_that_of_keras(most):
    learner, layer = (
        Vocabulary(is_text=False, most=most, mask=None),
        tf.keras.layers.IntegerLookup(max_tokens=most and most + 1),
    )
    batches = random_numbers(np.random.default_rng(2))
    for batch in batches:
        learner.add(batch)
    layer.adapt(np.concatenate(batches))
    expected = [int(token) for token in layer.get_vocabulary(include_special_tokens=False)]
    assert learner.state() == {"vocabulary": expected}


# Spaces and punctuation of ASCII and others, letters with two cases, and texts without words.
SENTENCES = [
    "", " ", "\t\n\v\f\r", "a", "A b. C, d! A", "  a\tB\nc\vd\fe\rf ", "ÄPFEL Äpfel äpfel", "İSTANBUL ẞ", "don't (stop)", "a-b_c",
    "x\u00a0y x\u2003y x\x1cy x\x85y", "“quoted” … — ¡no!", "[UNK] UNK unk", "a!b ! ? !? ...", "日本 日本語", "\\ ^ ` ~ | {} []", "1,5 15",
    "#$%&'()*+,-./:;<=>?@ \" _",
]  # fmt: skip


@pytest.mark.parametrize("standardize", ["lower_and_strip_punctuation", "lower", "strip_punctuation", "none"])
@pytest.mark.parametrize("most", [None, 7])
def test_words_are_those_of_keras(standardize, most, monkeypatch):
    monkeypatch.setattr(encoding_statistics, "_COUNTS_AT_ONCE", 5)
    monkeypatch.setattr(encoding_statistics, "_VALUES_AT_ONCE", 9)
    draw = np.random.default_rng(3)
    texts = [" ".join(draw.choice(SENTENCES, draw.integers(1, 4))) for _ in range(200)] + SENTENCES
    learner = WordVocabulary(standardize, most)
    for first in range(0, len(texts), 50):
        learner.add(np.array([text.encode() for text in texts[first : first + 50]], object))
    layer = tf.keras.layers.TextVectorization(
        max_tokens=most and most + 2,
        standardize=None if standardize == "none" else standardize,
        ragged=True,
    )
    layer.adapt(tf.constant(texts))
    assert learner.state() == {"vocabulary": layer.get_vocabulary(include_special_tokens=False)}
    counted = count_words(tf.constant(texts), standardize)
    np.testing.assert_array_equal(counted, layer(tf.constant(texts)).row_lengths())


@pytest.mark.parametrize("size", [1, 700, 1024, 5000])
def test_bins_are_those_of_keras_whatever_the_batches(size):
    """Keras merges the quantiles of each 1,024 rows; of these, missing ones are left out."""
    rng = np.random.default_rng(size)
    numbers, missing = rng.normal(3, 2, 5000).astype(np.float32), rng.random(5000) < 0.2
    learner, layer = Bins(7), tf.keras.layers.Discretization(num_bins=7)
    for first in range(0, 5000, size):
        learner.add(numbers[first : first + size], missing[first : first + size])
    for first in range(0, 5000, 1024):
        some = slice(first, first + 1024)
        layer.update_state(numbers[some][~missing[some]])
    layer.finalize_state()
    assert learner.state() == {"bin_boundaries": list(map(float, layer.bin_boundaries))}


def test_moments_are_those_of_all_values():
    rng = np.random.default_rng(0)
    values, learner = rng.normal([1e6, 0, -3], [1, 1e-3, 5], (3000, 3)), MeanAndVariance()
    for first in (0, 1, 1000):
        learner.add(values[first : {0: 1, 1: 1000}.get(first, 3000)])
    state = learner.state()
    np.testing.assert_allclose(state["mean"], values.mean(0), rtol=1e-12)
    np.testing.assert_allclose(state["variance"], values.var(0), rtol=1e-9)


@pytest.fixture(scope="module")
def by_layout(tmp_path_factory) -> dict[str, rs.Pipeline]:
    """The same rows in several layouts, by the options of their build."""
    made = {}
    rows = rows_to_encode.rows(300)
    for options in ("layout: rows", "layout: {blocks: 64}", "compression: gzip"):
        folder = tmp_path_factory.mktemp("layout")
        (folder / "s.yaml").write_text(rows_to_encode.SCHEMA)
        config = rows_to_encode.CONFIG.replace("shards: 2}", f"shards: 2, {options}}}")
        (folder / "c.yaml").write_text(config)
        made[options] = rs.Pipeline.load(folder / "c.yaml")
        made[options].build(rows)
    return made


def learned(pipeline: rs.Pipeline) -> str:
    (pipeline.data / "layers.json").unlink(missing_ok=True)
    pipeline.layers()
    return (pipeline.data / "layers.json").read_text().partition('"layers"')[2]


def test_the_layout_and_the_compression_change_no_statistics(by_layout):
    first, *others = map(learned, by_layout.values())
    assert others == [first, first]


@pytest.mark.parametrize("options", ["layout: rows", "layout: {blocks: 64}"])
def test_a_corrupt_record_is_named(by_layout, options):
    path = min(by_layout[options].data.glob("train-*"))
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
        with pytest.raises(
            rs.RecordError, match=rf"^{path}: record 0 at byte 0: expected data that matches its CRC"
        ):
            learned(by_layout[options])
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize(
    ("block", "place"), [(None, "record 3 at byte 90"), (2, "record 1 at byte 49, row 1")]
)
def test_a_value_that_does_not_decode_is_named(tmp_path, block, place):
    schema = rs.Schema.loads("schema: s\nfeatures: {x: {kind: label, names: [a, b], encoding: name}}")
    other = rs.Schema.loads("schema: s\nfeatures: {x: string}")
    layout = "rows" if block is None else {"blocks": block}
    rs.write([{"x": name} for name in "abac"], other, tmp_path / "data", layout=layout)
    path = min((tmp_path / "data").glob("*.tfrecord"))
    assert path.stat().st_size in (4 * 30, 2 * 49)
    plan = plan_files(StoredDataset((location(path),), None, other))
    with pytest.raises(rs.RecordError) as error:
        list(decoded_files(schema, plan, None))
    assert (
        str(error.value)
        == f"{path}: {place}: features.x: expected one of `a`, `b`, or an index, got `c` (`oov: index` gives all others one index)"
    )
