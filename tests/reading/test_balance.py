"""Classes that come equally often, and what they weigh where they do not."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs
from examples import sealed

SCHEMA = rs.Schema.loads(
    """
schema: s
features:
  n: int64
  words: {kind: var_len, dtype: int64}
  mood: {kind: label, names: [calm, glad, angry, absent]}
"""
)
ROWS = 6000
# of ten rows six, three, one and none
MOODS = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2]


@pytest.fixture(scope="module", params=["rows", {"blocks": 32}], ids=["rows", "blocks"])
def data(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("balance") / "data"
    rows = {
        "n": np.arange(ROWS),
        "words": [[index] * (index % 3) for index in range(ROWS)],
        "mood": [MOODS[index % 10] for index in range(ROWS)],
    }
    rs.write(rows, SCHEMA, folder, shards=4, layout=request.param)
    return folder


def read(data, **options):
    options = {"batch": 32, "shuffle": 500, "seed": 3, "balance": "mood", **options}
    return rs.read(data, SCHEMA, **options)


def numbers(dataset) -> list[list[int]]:
    return [batch["n"].numpy().reshape(-1).tolist() for batch in dataset]


def flat(batches: list[list[int]]) -> list[int]:
    return [number for batch in batches for number in batch]


def test_classes_come_equally_often(data):
    found = flat(numbers(read(data)))
    assert len(set(found)) == len(found)
    counts = Counter(MOODS[number % 10] for number in found)
    assert counts.keys() == {0, 1, 2}
    assert counts[2] == ROWS // 10  # of the rarest, all
    # within four standard deviations of the binomial distribution
    assert abs(counts[0] - 600) < 4 * (3600 / 6 * 5 / 6) ** 0.5
    assert abs(counts[1] - 600) < 4 * (1800 / 3 * 2 / 3) ** 0.5


def test_batches_are_full_and_rows_stay_whole(data):
    sizes = []
    for batch in read(data):
        sizes.append(len(batch["n"]))
        assert batch["mood"].numpy().tolist() == [MOODS[number % 10] for number in batch["n"].numpy()]
        expected = [[number] * (number % 3) for number in batch["n"].numpy()]
        assert batch["words"].to_list() == expected
    assert set(sizes[:-1]) == {32}


def test_the_choice_is_a_function_of_seed_and_epoch(data):
    dataset = read(data)
    first, second = numbers(dataset), numbers(dataset)
    assert set(flat(first)) != set(flat(second))
    parallel = read(data, interleave={"parallel": 2})
    assert [numbers(parallel), numbers(parallel)] == [first, second]
    tf.random.set_seed(5)
    try:
        assert numbers(read(data)) == first
    finally:
        tf.random.set_seed(None)
    other = read(data, balance={"by": "mood", "seed": 4})
    assert set(flat(numbers(other))) != set(flat(first))
    assert numbers(read(data, balance={"by": "mood", "seed": 3})) == first
    assert numbers(read(data, repeat=2)) == first + second


def test_it_goes_on_where_it_was_broken_off(data):
    dataset = read(data)
    epochs = [numbers(dataset) for _ in range(2)]
    resumed = read(data, start=(1, 17))
    assert numbers(resumed) == epochs[1][17:]


def test_without_a_shuffle_rows_keep_their_order(data):
    dataset = read(data, shuffle=None, seed=None, balance={"by": "mood", "seed": 1})
    first, second = flat(numbers(dataset)), flat(numbers(dataset))
    assert first == sorted(first)
    assert second == sorted(second)
    assert first != second
    assert int(dataset.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    resumed = read(data, shuffle=None, seed=None, balance={"by": "mood", "seed": 1}, start=(1, 2))
    assert flat(numbers(resumed)) == second[64:]


def test_it_goes_with_other_features_filters_buckets_and_caches(data):
    expected = flat(numbers(read(data)))
    only = read(data, features=["n"])
    assert list(only.element_spec) == ["n"]
    assert flat(numbers(only)) == expected
    filtered = read(data, filter=lambda features: features["n"] % 2 == 0)
    assert flat(numbers(filtered)) == [number for number in expected if number % 2 == 0]
    bucketed = read(data, bucket={"by": "words", "boundaries": [1, 2]})
    assert sorted(flat(numbers(bucketed))) == sorted(expected)
    cached = flat(numbers(read(data, cache="memory")))
    assert Counter(MOODS[number % 10] for number in cached)[2] == ROWS // 10
    assert len(cached) < ROWS // 2
    singles = flat(numbers(read(data, batch=None)))
    assert sorted(singles) == sorted(expected)


def test_what_cannot_be_balanced_is_named(data, tmp_path):
    seedless = "balance: expected the key `seed`, or a shuffle, got none (so that the rows are reproducible; see `recordspec docs explanation/order`)"
    for options, expected in [
        ({"balance": "mod"}, "read.balance.by: expected mood, got `mod` (did you mean `mood`?)"),
        ({"balance": "words"}, "read.balance.by: expected mood, got `words`"),
        ({"shuffle": None, "seed": None}, seedless),
    ]:
        with pytest.raises(rs.SpecError) as caught:
            read(data, **options)
        assert str(caught.value) == expected
    plain = rs.Schema.loads("schema: s\nfeatures: {n: int64}")
    rs.write({"n": [1]}, plain, tmp_path / "plain")
    with pytest.raises(rs.SpecError) as caught:
        rs.read(tmp_path / "plain", plain, batch=1, shuffle=1, seed=1, balance="n")
    expected = "read.balance.by: expected a schema with a label, one for each row, got `n`"
    assert str(caught.value) == expected


def test_files_that_nobody_counted_are_named(tmp_path):
    rs.write([{"n": 1, "words": [], "mood": 1}], SCHEMA, tmp_path / "data")
    (tmp_path / "data/manifest.json").unlink()
    with pytest.raises(rs.StoreError) as caught:
        read(tmp_path / "data")
    assert str(caught.value) == (
        f"{tmp_path}/data: read.balance.by: expected the rows of every class of `mood` in the manifest, "
        "got none (build the dataset again, or count them in adopted files: `recordspec adopt --check`)"
    )


CONFIG = """\
schema: s.yaml
data: data
write: {key: n, splits: {train: 3, test: 1}}
read: {batch: 32}
fit: {inputs: n, targets: mood}
"""


def pipeline(folder, config: str = CONFIG) -> rs.Pipeline:
    SCHEMA.dump(folder / "s.yaml")
    (folder / "config.yaml").write_text(config)
    return rs.Pipeline.load(folder / "config.yaml")


def test_weights_are_those_of_scikit_learn(tmp_path):
    made = pipeline(tmp_path)
    made.build([{"n": n, "words": [], "mood": MOODS[n % 10]} for n in range(500)])
    found = made.class_weights(["train", "test"])
    assert found == {0: 500 / (3 * 300), 1: 500 / (3 * 150), 2: 500 / (3 * 50), 3: 1.0}
    moods = [int(mood) for _, moods in made.dataset("train") for mood in moods]
    counts = np.bincount(moods)
    expected = {index: len(moods) / (3 * count) for index, count in enumerate(counts.tolist())}
    assert made.class_weights("train", "mood") == {**expected, 3: 1.0}


def test_keras_takes_the_weights(tmp_path):
    made = pipeline(tmp_path)
    made.build([{"n": n, "words": [], "mood": MOODS[n % 10]} for n in range(200)])
    model = tf.keras.Sequential([tf.keras.layers.Lambda(lambda n: tf.cast(n, tf.float32)[:, None] * 0)])
    model.add(tf.keras.layers.Dense(4))
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(made.dataset("train"), class_weight=made.class_weights("train"), verbose=0)
    assert history.history["loss"][0] > 0


def test_a_config_that_balances(tmp_path):
    text = CONFIG.replace("batch: 32", "batch: 32, shuffle: {seed: 1}, balance: mood")
    made = pipeline(tmp_path, text)
    made.build([{"n": n, "words": [], "mood": MOODS[n % 10]} for n in range(2000)])
    moods = [int(mood) for _, moods in made.dataset("train") for mood in moods]
    assert max(np.bincount(moods)) < 1.3 * min(np.bincount(moods))
    with pytest.raises(rs.SpecError) as caught:
        made.steps("train")
    assert str(caught.value) == (
        "read.balance: expected batches whose number follows from that of the rows, got `balance`"
    )
    with pytest.raises(rs.SpecError) as caught:
        pipeline(tmp_path, text.replace("balance: mood", "balance: mod"))
    assert str(caught.value) == (
        f"{tmp_path}/config.yaml:4:48: read.balance.by: expected mood, got `mod` (did you mean `mood`?)"
    )


def test_weights_that_cannot_be_had_are_named(tmp_path):
    made = pipeline(tmp_path)
    made.build([{"n": n, "words": [], "mood": 1} for n in range(20)])
    with pytest.raises(rs.SpecError, match=r"^feature: expected mood, got `n`$"):
        made.class_weights("train", "n")
    with pytest.raises(rs.StoreError, match="expected one of train, test, got `tarin`"):
        made.class_weights("tarin")
    path = tmp_path / "data/manifest.json"
    old = json.loads(path.read_text())
    del old["label_counts"]["train"]
    path.write_text(sealed(old))
    made = pipeline(tmp_path)
    assert made.class_weights("test")[1] == 1.0
    with pytest.raises(rs.StoreError) as caught:
        made.class_weights(["train", "test"])
    assert str(caught.value) == (
        f"{tmp_path}/data: feature: expected the rows of every class of `mood` in the manifest, "
        "got none (build the dataset again, or count them in adopted files: `recordspec adopt --check`)"
    )
    several = pipeline(tmp_path, CONFIG.replace("targets: mood", "targets: [mood, words]"))
    with pytest.raises(rs.SpecError) as caught:
        several.class_weights("test")
    expected = "feature: expected the name of a label, got none (the config's `fit` has no single target)"
    assert str(caught.value) == expected
