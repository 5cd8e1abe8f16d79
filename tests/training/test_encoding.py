"""Inputs encoded by Keras' layers, functions on features and on what a model takes."""

from __future__ import annotations

import json
import logging
import re

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import recordspec as rs
from recordspec.schema import user_functions

ROWS = 1024  # of which Keras takes quantiles at once


def test_single_rows_are_encoded_as_in_a_batch(small):
    features = "{x: float32, two: {dtype: string, shape: [2]}, v: {kind: var_len, dtype: int64}, \
        n: {kind: ragged, dtype: float32, shape: [null, null]}, y: int64}"
    encode = "{x: normalize, two: count, v: multi_hot, n: normalize}"
    some = [
        {"x": n, "two": ["a", "b"], "v": [n, 7][: n % 3], "n": [[1.0], [n, 2.0]], "y": n} for n in range(8)
    ]
    made = small(f"{{inputs: [x, two, v, n], targets: y, encode: {encode}}}", features, some)
    ((batch, _),) = made.dataset("train", batch=8)
    for place, (row, _) in enumerate(made.dataset("train", batch=None)):
        for name, value in row.items():
            np.testing.assert_allclose(value, batch[name][place], rtol=1e-6, err_msg=name)


def test_large_numbers_keep_their_differences(small):
    times = 1_790_000_000_000 + np.arange(8)
    given = small(
        "{inputs: x, targets: y, encode: {x: normalize}}",
        "{x: int64, y: int64}",
        [{"x": t, "y": 0} for t in times],
    )
    found = np.concatenate([x for x, _ in given.dataset("train").as_numpy_iterator()])
    assert found.dtype == np.float32
    np.testing.assert_allclose(np.sort(found), (np.arange(8) - 3.5) / np.arange(8).std(), rtol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_float16", "float64"])
def test_a_policy_of_keras_changes_no_numbers(small, policy):
    rows = [{"x": 1e6 + n, "y": n, "z": 1e5 * n} for n in range(8)]
    fit = "{inputs: [x, z], targets: y, encode: {x: normalize, z: {as: discretize, bins: 4}}}"
    given = small(fit, "{x: float32, z: float32, y: int64}", rows)
    expected, _ = given.preview("train")
    (given.data / "layers.json").unlink()
    before = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy(policy)
    try:
        found, _ = given.preview("train")
    finally:
        tf.keras.mixed_precision.set_global_policy(before)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype


def test_statistics_are_those_of_what_is_read(small, tmp_path):
    """Options of reading change the values, but not the shards."""
    fit, some = "{inputs: x, targets: y, encode: {x: normalize}}", [{"x": 4.0, "y": 0}, {"y": 1}]
    given = small(fit, "{x: {dtype: float32, default: 0.0}, y: int64}", some)
    assert given.layers()["x"].mean.numpy() == 2
    (tmp_path / "s.yaml").write_text((tmp_path / "s.yaml").read_text().replace("0.0", "10.0"))
    assert rs.Pipeline.load(tmp_path / "c.yaml").layers()["x"].mean.numpy() == 7


def adapted(layer, dataset, name: str):
    """A layer that Keras adapts to the values of a feature that are not missing."""

    def values(batch):
        value = batch[name]
        flat = value.flat_values if isinstance(value, tf.RaggedTensor) else value
        if f"{name}_missing" in batch:
            flat = flat[~batch[f"{name}_missing"]]
        return flat if flat.shape.rank > 1 else tf.expand_dims(flat, 1)  # Keras would take rows for batches

    layer.adapt(dataset.map(values))
    return layer


def test_layers_are_those_that_keras_adapts_to_the_training_split(pipeline):
    layers, keras = pipeline.layers(), tf.keras.layers
    train = rs.read(pipeline.data / "train-*", pipeline.schema, batch=ROWS)
    for name, axis in (("fare", None), ("vec", -1), ("photo", -1)):
        expected = adapted(keras.Normalization(axis=axis), train, name)
        np.testing.assert_allclose(np.ravel(layers[name].mean), np.ravel(expected.mean), 1e-5)
        np.testing.assert_allclose(np.ravel(layers[name].variance), np.ravel(expected.variance), 1e-5)
    bins = adapted(keras.Discretization(num_bins=5), train, "day")
    assert layers["day"].bin_boundaries == bins.bin_boundaries
    lookups = {
        "company": keras.StringLookup(),
        "tags": keras.StringLookup(),
        "ids": keras.IntegerLookup(),
        "two": keras.StringLookup(max_tokens=3),
    }
    for name, layer in lookups.items():
        expected = adapted(layer, train, name).get_vocabulary(include_special_tokens=False)
        assert layers[name].get_vocabulary(include_special_tokens=False) == expected
    assert -2 in layers["ids"].get_vocabulary()


def test_each_input_is_encoded(pipeline):
    layers, test = pipeline.layers(), rs.read(pipeline.data / "test-*", pipeline.schema, batch=32)
    stored, (inputs, *_) = next(iter(test)), next(iter(pipeline.dataset("test")))

    def same(name, expected):
        np.testing.assert_array_equal(inputs[name], expected, name)

    for name in ("company", "day", "vec", "kind"):
        same(name, layers[name](stored[name]))
    same("fare", tf.where(stored["fare_missing"], 0.0, layers["fare"](stored["fare"])))
    same("photo", layers["photo"](tf.cast(stored["photo"], tf.float32)))
    same("fare_missing", stored["fare_missing"])
    assert inputs["fare_missing"].numpy().any()
    vocabulary = layers["tags"].get_vocabulary()
    same("tags", [[float(token.encode() in row) for token in vocabulary] for row in stored["tags"].to_list()])
    known = [token.encode() for token in layers["two"].get_vocabulary()[1:]]
    same(
        "two",
        [
            [sum(one not in known for one in row), *(list(row).count(token) for token in known)]
            for row in stored["two"].numpy()
        ],
    )
    numbers = layers["ids"].get_vocabulary()
    longest = int(stored["ids"].bounding_shape()[1])
    same(
        "ids",
        [
            [*(numbers.index(one) if one in numbers else 1 for one in row), *[0] * (longest - len(row))]
            for row in stored["ids"].to_list()
        ],
    )
    same("tags_mask", tf.sequence_mask(stored["tags"].row_lengths()))


WITH_GAPS = """{
  day: {dtype: int64, date: days, default: 0, with_missing: true},
  code: {dtype: int64, default: 7, with_missing: true},
  word: {dtype: string, default: a, with_missing: true},
  fare: {dtype: float32, default: 0.0, with_missing: true},
  place: {dtype: float32, shape: [2], default: [0.0, 0.0], with_missing: true},
  pair: {dtype: string, shape: [2], default: ["", ""], with_missing: true},
  y: int64}"""
LEFT_OUT = (
    "{inputs: [day, code, word, fare, place, pair], targets: y, encode: {day: normalize, code: index,"
    " word: one_hot, fare: {as: discretize, bins: 4}, place: normalize, pair: count}}"
)


def frame_with_gaps(count: int = 400) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(draw.integers(0, 300, count), "D"),
            "code": pd.array(draw.integers(1, 5, count), "Int64"),
            "word": draw.choice(["b", "c", "d"], count, p=[0.2, 0.3, 0.5]).astype(object),
            "fare": draw.gamma(2, 20, count).astype(np.float32),
            "place": list(draw.normal([5, -3], [1, 2], (count, 2)).astype(np.float32)),
            "pair": list(draw.choice(["p", "q"], (count, 2), p=[0.3, 0.7])),
        }
    )
    for name in frame:  # each has other gaps, more than a quarter of the rows
        frame.loc[draw.random(count) < 0.3, name] = None
    return frame.assign(y=range(count))


def test_what_is_missing_has_no_part_in_statistics(small):
    """pandas leaves out NaN, NaT and None, and Keras adapts to what is left."""
    frame = frame_with_gaps()
    made = small(LEFT_OUT, WITH_GAPS, frame)
    layers, keras = made.layers(), tf.keras.layers
    days = (frame["day"] - pd.Timestamp(0)) / pd.Timedelta("1D")
    assert layers["day"].mean.numpy() == pytest.approx(days.mean(), rel=1e-12)
    assert layers["day"].variance.numpy() == pytest.approx(days.var(ddof=0), rel=1e-9)
    places = np.stack(frame["place"].dropna())
    np.testing.assert_allclose(np.ravel(layers["place"].mean), places.mean(0), rtol=1e-5)
    np.testing.assert_allclose(np.ravel(layers["place"].variance), places.var(0), rtol=1e-5)
    for name in ("code", "word"):
        tokens = frame[name].value_counts().index.tolist()
        assert layers[name].get_vocabulary(include_special_tokens=False) == tokens
    tokens = frame["pair"].dropna().explode().value_counts().index.tolist()
    assert layers["pair"].get_vocabulary(include_special_tokens=False) == tokens
    (batch,) = rs.read(made.data / "train-*", made.schema, batch=len(frame))
    bins = keras.Discretization(num_bins=4)
    bins.adapt(tf.data.Dataset.from_tensors(batch["fare"][~batch["fare_missing"]][:, None]))
    assert layers["fare"].bin_boundaries == bins.bin_boundaries
    share = np.bincount(np.digitize(frame["fare"].dropna(), bins.bin_boundaries)) / frame["fare"].count()
    np.testing.assert_allclose(share, 0.25, atol=0.01)

    ((found, order),) = made.dataset("train", batch=len(frame))
    frame = frame.set_index("y").loc[order.numpy()]
    days = (frame["day"] - pd.Timestamp(0)) / pd.Timedelta("1D")
    scaled = ((days - days.mean()) / days.std(ddof=0)).fillna(0)
    np.testing.assert_allclose(found["day"], scaled, atol=1e-5)
    gaps = {name: frame[name].isna().to_numpy() for name in frame}
    assert (found["place"].numpy()[gaps["place"]] == 0).all()
    assert (found["code"].numpy() == 0).tolist() == gaps["code"].tolist()
    assert (found["word"].numpy()[:, 0] == 1).tolist() == gaps["word"].tolist()
    assert (found["pair"].numpy()[:, 0] == 2).tolist() == gaps["pair"].tolist()
    of_default = int(np.digitize(0.0, layers["fare"].bin_boundaries))
    assert set(found["fare"].numpy()[gaps["fare"]]) == {of_default}

    for place, (row, _) in enumerate(made.dataset("train", batch=None).take(20)):
        for name, value in row.items():
            np.testing.assert_allclose(value, found[name][place], atol=1e-6, err_msg=name)


def test_a_missing_value_that_a_map_replaces_is_known(small):
    features = "{x: {dtype: float32, default: 0.0, with_missing: true}, y: int64}"
    some = [{"x": 4.0, "y": 0}, {"y": 1}, {"x": 8.0, "y": 2}]
    made = small("{inputs: x, targets: y, encode: {x: normalize}}", features, some)

    def filled(features):
        features["x"] = tf.where(features["x_missing"], 10.0, features["x"])
        return features

    def read(**options) -> list[float]:
        return next(iter(made.dataset("train", **options)))[0].numpy().tolist()

    assert read() == [-1.0, 0.0, 1.0]
    assert read(map=lambda features: {"x": features["x"], "y": features["y"]}) == [-1.0, 0.0, 1.0]
    assert read(map=filled) == [-1.0, 2.0, 1.0]
    assert read(map=lambda features: {**features, "x": features["x"] + 1}) == [-0.5, -2.5, 1.5]
    with pytest.raises(rs.SpecError) as error:
        made.dataset("train", features=["x", "y"])
    assert str(error.value) == (
        "read.features: expected `x_missing` beside `x`, which `fit` encodes, got none"
    )


def test_all_values_missing_leave_none_to_learn_from(small):
    features = "{x: {dtype: float32, default: 0.0, with_missing: true}, y: int64}"
    made = small("{inputs: x, targets: y, encode: {x: normalize}}", features, [{"y": 0}, {"y": 1}])
    with pytest.raises(rs.SpecError) as error:
        made.layers()
    assert str(error.value) == "fit.encode.x: expected values to learn from, got none"


def test_steps_are_encoded_with_an_index_of_their_own_for_padding(tmp_path):
    (tmp_path / "s.yaml").write_text(
        "schema: s\ncontext: {y: int64}\nsequence: {words: text, tags: {kind: label, names: [a, b]}}\n"
    )
    fit = "{inputs: [words, tags], targets: y, encode: {words: index, tags: one_hot}}"
    (tmp_path / "c.yaml").write_text(f"schema: s.yaml\ndata: data\nread: {{batch: 4}}\nfit: {fit}\n")
    made = rs.Pipeline.load(tmp_path / "c.yaml")
    made.build(
        [{"y": 1, "words": ["v", "w", "w"], "tags": [0, 1, 1]}, {"y": 2, "words": ["w"], "tags": ["b"]}]
    )
    (inputs, _), *_ = made.dataset("train")
    assert inputs["words"].numpy().tolist() == [[3, 2, 2], [2, 0, 0]]
    assert inputs["tags"].numpy().tolist() == [[[1, 0], [0, 1], [0, 1]], [[0, 1], [0, 0], [0, 0]]]
    (tmp_path / "c.yaml").write_text(
        f"schema: s.yaml\ndata: data\nread: {{batch: 4}}\nfit: {fit.replace('index', 'discretize')}\n"
    )
    with pytest.raises(rs.SpecError) as error:
        rs.Pipeline.load(tmp_path / "c.yaml")
    assert str(error.value).endswith("expected numbers of one shape to discretize, got `words`, text of text")


def test_the_statistics_are_kept_until_the_dataset_is_another(small, monkeypatch):
    made = small("{inputs: x, targets: y, encode: {x: normalize}}")
    assert made.layers()["x"].mean.numpy() == [1.75]
    kept = json.loads((made.data / "layers.json").read_text())
    assert kept["layers"] == {"x": {"mean": 1.75, "variance": 1.3125}}
    with monkeypatch.context() as patched:
        patched.setattr(rs.Pipeline, "_plan", None)  # nothing is read
        assert made.layers()["x"].mean.numpy() == [1.75]
    made.build([{"x": 1.0, "y": 1}, {"x": 3.0, "y": 1}], force=True)
    assert made.layers()["x"].mean.numpy() == [2.0]
    made.build([{"x": 8.0, "y": 1}], append=True)
    assert made.layers()["x"].mean.numpy() == [4.0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text[:20], "Unterminated string starting at: line 1 column 17 (char 16)"),
        (lambda text: "", "Expecting value: line 1 column 1 (char 0)"),
        (lambda text: "[1]", "list indices must be integers or slices, not str"),
        (lambda text: text.replace('"layers"', '"layer"'), "no 'layers'"),
        (lambda text: text.replace('"mean": 1.75', '"mean": NaN'), "`x` has none of `normalize`"),
        (lambda text: text.replace("1.3125", "Infinity"), "`x` has none of `normalize`"),
        (lambda text: text.replace("1.3125", "1e999"), "`x` has none of `normalize`"),
        (lambda text: text.replace("1.3125", "-1.3125"), "`x` has none of `normalize`"),
        (lambda text: text.replace("1.75", "[1.75]").replace("1.3125", "[1.3125]"), "`x` has none of `normalize`"),
        (lambda text: text.replace('"mean"', '"median"'), "no 'mean'"),
        (lambda text: text.replace('"z": {', '"y": {'), "no 'z'"),
        (lambda text: re.sub(r"(bin_boundaries.: \[)", r"\1NaN, ", text), "`z` has none of `discretize`"),
        (lambda text: re.sub(r"(bin_boundaries.: \[)", r"\1 1e9, ", text), "`z` has none of `discretize`"),
        (lambda text: text.replace('"a"', '"b"'), "`t` has none of `index`"),
        (lambda text: text.replace('"a"', "NaN"), "`t` has none of `index`"),
        (lambda text: re.sub(r"vocabulary.: \[[^]]*", 'vocabulary": [', text), "`t` has none of `index`"),
    ],
)  # fmt: skip
def test_statistics_that_do_not_load_are_computed_again(small, change, reason):
    encode = "{x: normalize, z: {as: discretize, bins: 2}, t: index}"
    rows = [{"x": n / 2, "z": float(n), "t": "ab"[n % 2], "y": n} for n in range(8)]
    fit = f"{{inputs: [x, z, t], targets: y, encode: {encode}}}"
    made = small(fit, "{x: float32, z: float32, t: string, y: int64}", rows)
    layers = made.layers()
    path = made.data / "layers.json"
    whole = path.read_text()
    path.write_text(change(whole))
    assert path.read_text() != whole
    text = f"the statistics of `fit.encode` are computed again: {path}: {reason}"
    with pytest.warns(UserWarning, match=f"^{re.escape(text)}$"):
        again = made.layers()
    assert again["x"].mean.numpy() == layers["x"].mean.numpy()
    assert again["t"].get_vocabulary() == layers["t"].get_vocabulary()
    assert again["z"].bin_boundaries == layers["z"].bin_boundaries
    assert path.read_text() == whole


def test_statistics_that_cannot_be_kept_are_taken_again(small, monkeypatch):
    made = small("{inputs: x, targets: y, encode: {x: normalize}}")
    (made.data / "layers.json").mkdir()
    with pytest.warns(UserWarning, match=r"the statistics of `fit.encode` are not kept: .*layers.json"):
        assert made.layers()["x"].mean.numpy() == [1.75]


def test_another_training_split_is_named(small):
    made = small("{inputs: x, targets: y, encode: {x: normalize}}")
    text = (made.folder / "c.yaml").read_text()
    (made.folder / "c.yaml").write_text(text + "write: {splits: {one: 1, two: 1}, key: y}\n")
    folds = rs.Pipeline.load(made.folder / "c.yaml")
    folds.build([{"x": n / 2, "y": n} for n in range(8)], force=True)
    with pytest.raises(rs.StoreError) as error:
        folds.dataset("two")
    assert str(error.value) == (
        "encoders: expected a split `train`, from which `fit.encode` learns, got one, two "
        "(`encoders=pipeline.encoders(SPLIT)` takes another one; see `recordspec docs encoding`)"
    )
    layers = folds.layers("one")
    (first, _), *_ = folds.dataset("two", encoders=folds.encoders("one"))
    stored = next(iter(rs.read(folds.data / "two-*", folds.schema, batch=4)))
    np.testing.assert_array_equal(first, layers["x"](stored["x"]))


@pytest.mark.parametrize(
    ("features", "row", "expected"),
    [
        (
            "{x: float32, y: int64}",
            {"x": float("nan"), "y": 1},
            "finite numbers to normalize, got NaN or infinity",
        ),
        (
            "{x: {kind: var_len, dtype: float32}, y: int64}",
            {"x": [], "y": 1},
            "values to learn from, got none",
        ),
        (
            "{x: {kind: tensor, dtype: float64, shape: [2, 2]}, y: int64}",
            {"x": np.array([[1e300, 1], [-1e300, 1]]), "y": 1},
            "finite numbers to normalize, got a variance beyond float64",
        ),
        (
            "{x: {kind: var_len, dtype: float32, as: dense}, y: int64}",
            {"x": [1.0], "y": 1},
            "a feature without padding, got a padded batch (`as: ragged`)",
        ),
        (
            "{x: {kind: var_len, dtype: float32, as: sparse}, y: int64}",
            {"x": [1.0], "y": 1},
            "a feature without padding, got a sparse batch (`as: ragged`)",
        ),
    ],
)
def test_values_that_cannot_be_normalized(small, features, row, expected):
    made = small("{inputs: x, targets: y, encode: {x: normalize}}", features, [row])
    with pytest.raises(rs.SpecError) as error:
        made.layers()
    assert str(error.value) == f"fit.encode.x: expected {expected}"


@pytest.mark.parametrize(
    ("feature", "encode", "values", "expected"),
    [
        ("float32", "{as: discretize, bins: 2}", [1.0, np.nan], "finite numbers to discretize, got NaN or infinity"),
        ("float32", "{as: discretize, bins: 2}", [1.0, np.inf], "finite numbers to discretize, got NaN or infinity"),
        ("int64", "{as: discretize, bins: 2}", [1 << 40, (1 << 40) + 9], "numbers that float32 divides into 2 bins, got 1099511627776 to 1099511627785 (normalize them)"),
        ("int64", "index", [-1, -1], "values to learn from, got only padding or unknown values"),
        ("string", "one_hot", ["[UNK]"], "values to learn from, got only padding or unknown values"),
        ("{kind: var_len, dtype: string}", "index", [[""], []], "values to learn from, got only padding or unknown values"),
        ("{kind: var_len, dtype: string}", "{as: index, max_tokens: 2}", [["a"]], "`max_tokens` of at least 3, as padding and unknown values are two, got 2"),
    ],
)  # fmt: skip
def test_values_that_a_layer_cannot_learn_from(small, feature, encode, values, expected):
    some = [{"x": value, "y": 0} for value in values]
    made = small(f"{{inputs: x, targets: y, encode: {{x: {encode}}}}}", f"{{x: {feature}, y: int64}}", some)
    with pytest.raises(rs.SpecError) as error:
        made.layers()
    assert str(error.value) == f"fit.encode.x: expected {expected}"


def test_as_many_indices_as_max_tokens(small):
    some = [{"x": [1, 2, 2, 3, 3, 3], "y": 0}]
    fit = "{inputs: x, targets: y, encode: {x: {as: index, max_tokens: 4}}}"
    made = small(fit, "{x: {kind: var_len, dtype: int64}, y: int64}", some)
    assert made.preview("train")[0].tolist() == [[1, 3, 3, 2, 2, 2]]


def test_a_variance_beyond_float32(small):
    made = small(
        "{inputs: x, targets: y, encode: {x: normalize}}", some=[{"x": x, "y": 0} for x in (-3e38, 3e38)]
    )
    assert sorted(made.preview("train")[0]) == [-1, 1]


@pytest.mark.parametrize(
    ("fit", "expected"),
    [
        (
            "encode: {k: {as: one_hot, max_tokens: 2}}",
            "fit.encode.k.max_tokens: expected none, since a label has its classes, got 2",
        ),
        (
            "encode: {x: one_hot}",
            "fit.encode.x: expected text, integers or a label to one_hot, got `x`, fixed_len of float32",
        ),
        (
            "encode: {y: normalize}",
            "fit.encode.y: expected one of index, one_hot, multi_hot, words, for a target, got `normalize`",
        ),
        ("encode: {z: normalize}", "fit.encode.z: expected one of x, k, y, got `z` (encode it in `map`)"),
        (
            "encode: {x: {as: normalize, bins: 3}}",
            "fit.encode.x.bins: expected none with `as: normalize`, got 3",
        ),
        ("encode: {x: {as: discretize, bins: 1}}", "fit.encode.x.bins: expected at least 2, got 1"),
        ("pad_to: {x: 0}", "fit.pad_to.x: expected a length of at least 1, got 0"),
    ],
)
def test_options_that_do_not_fit_are_refused(small, fit, expected):
    with pytest.raises(rs.SpecError) as error:
        small(
            f"{{inputs: [x, z, k], targets: y, derived: [z], {fit}}}",
            "{x: float32, y: int64, k: {kind: label, names: [a, b]}}",
        )
    assert str(error.value).partition(": ")[2] == expected


def test_a_derived_name_is_of_its_own(small):
    for derived in ("x", "z, z"):
        with pytest.raises(rs.SpecError) as error:
            small(f"{{inputs: x, targets: y, derived: [{derived}]}}")
        assert ": expected a name of its own, got `" in str(error.value)


def test_a_map_derives_inputs_and_another_takes_what_fit_gives(small):
    made = small("{inputs: [x, twice], targets: y, derived: [twice]}")

    def derive(features):
        return {**features, "twice": 2 * features["x"]}

    def shifted(inputs, targets):
        return inputs["twice"] + 1, targets

    (inputs, targets), *_ = made.dataset("train", map=derive)
    assert inputs["twice"].numpy().tolist() == [0, 1, 2, 3]
    (inputs, targets), *_ = made.dataset("train", map=derive, map_fit=shifted)
    assert inputs.numpy().tolist() == [1, 2, 3, 4]
    assert targets.numpy().tolist() == [0, 1, 2, 3]
    made.preview("train", 2, map=derive, map_fit=shifted)
    (inputs, _), *_ = made.input_fn("train", map=derive, map_fit=shifted)()
    assert inputs.numpy().tolist() == [1, 2, 3, 4]
    alone = small("{inputs: x}")
    assert [batch.numpy().tolist() for batch in alone.dataset("train", map_fit=lambda x: -x)][1][1] == -2.5


@pytest.mark.parametrize(
    ("functions", "expected"),
    [
        ({"map": lambda x, y: (x, y)}, "map: expected a function of (features), a dict, got <lambda>(x, y)"),
        (
            {"map": lambda features: features["x"]},
            "map: expected a dict of features from `map`, got SymbolicTensor",
        ),
        (
            {"map": lambda features: features},
            "fit.inputs: expected one of x, y, got `z` (`map` must add it)",
        ),
        ({}, "fit.inputs: expected one of x, y, got `z` (`map` must add it)"),
        (
            {"map_fit": lambda batch: batch},
            "map_fit: expected a function of (inputs, targets), got <lambda>(batch)",
        ),
        ({"map": {"x": 1}}, "map: expected a function of (features), a dict, got dict"),
        (
            {"map": lambda features: {**features, "z": features["X"]}},
            "map: expected one of x, y, got `X` (did you mean `x`?)",
        ),
    ],
)
def test_functions_that_do_not_fit_are_named(small, functions, expected):
    made = small("{inputs: [x, z], targets: y, derived: [z]}")
    with pytest.raises(rs.SpecError) as error:
        made.dataset("train", **functions)
    assert str(error.value) == expected


@pytest.mark.parametrize(
    ("map_fit", "expected"),
    [
        (lambda x, y: (x["w"], y), "expected one of x, z, got `w`"),
        (
            lambda x, y: x,
            f"{(parts := 'expected (inputs, targets) or (inputs, targets, weights), a tuple,')} "
            "from `map_fit`, got dict",
        ),
        (lambda x, y: [x["x"], y], f"{parts} from `map_fit`, got list"),
        (lambda x, y: (x,), f"{parts} from `map_fit`, got one of 1"),
    ],
)
def test_a_map_fit_that_loses_a_part_is_named(small, map_fit, expected):
    made = small("{inputs: [x, z], targets: y, derived: [z]}")
    with pytest.raises(rs.SpecError) as error:
        made.dataset("train", map=lambda features: {**features, "z": features["x"]}, map_fit=map_fit)
    assert str(error.value) == f"map_fit: {expected}"


def test_an_error_in_a_map_comes_without_warnings_of_autograph(small, caplog, monkeypatch):
    class Hints:
        __text = "a hint"

        def nearest(self, name, known):
            return self.__text  # AutoGraph converts no such attributes, and warns once of each such method

    monkeypatch.setattr(user_functions, "nearest", Hints().nearest)
    made = small("{inputs: x, targets: y}")
    monkeypatch.setattr(logging.getLogger("tensorflow"), "propagate", True)
    with pytest.raises(rs.SpecError, match="a hint"):
        made.dataset("train", map=lambda features: {"x": features["X"]})
    assert caplog.records == []


def test_a_map_fit_may_add_weights(small):
    made = small("{inputs: x, targets: y}")
    (_, _, weights), *_ = made.dataset("train", map_fit=lambda x, y: (x, y, x + 1))
    assert weights.numpy().tolist() == [1.0, 1.5, 2.0, 2.5]


def test_an_error_of_another_dict_in_a_map_is_its_own(small):
    made = small("{inputs: x, targets: y}")
    with pytest.raises(KeyError, match="x"):
        made.dataset("train", map=lambda features: {"x": {}["x"]})


def test_an_encoder_that_is_missing_is_an_error(small, tmp_path):
    made = small("{inputs: x, targets: y, encode: {x: normalize}}")
    expected = "encoders: expected an encoder for each name of `fit.encode`, got none for `x` (`Pipeline.encoders` returns all; see `recordspec docs encoding`)"
    for call in (
        lambda: made.dataset("train", encoders={}),
        lambda: made.export_model(lambda inputs: inputs, tmp_path / "m", encoders={}),
    ):
        with pytest.raises(rs.SpecError) as error:
            call()
        assert str(error.value) == expected
    with pytest.raises(rs.SpecError) as error:
        made.dataset("train", layers=made.layers())
    renamed = "layers: expected `encoders`, got `layers` (renamed: `encoders=pipeline.encoders(SPLIT)`)"
    assert str(error.value) == renamed
    with pytest.raises(rs.SpecError) as error:
        made.dataset("train", encoders=made.layers())
    assert (
        str(error.value) == "encoders.x: expected a FitEncoder, as `encoders` returns it, got a Normalization"
    )


def test_without_fit_there_is_nothing_for_map_fit(small):
    made = small("")
    with pytest.raises(rs.SpecError) as error:
        made.dataset("train", map_fit=lambda x: x)
    assert str(error.value) == "map_fit: expected a config with `fit`, got none (`map` takes all features)"
    with pytest.raises(rs.SpecError) as error:
        made.export_model(lambda x: x, made.folder / "m")
    assert str(error.value) == "fit: expected the inputs of the model, got none"


MOODS = [{"x": n / 2, "y": ["sad", "glad", "sad", "new [UNK]", "sad"][n % 5]} for n in range(20)]


def test_a_text_target_gets_its_classes_from_the_training_split(small):
    made = small("{inputs: x, targets: y, encode: {y: index}}", "{x: float32, y: text}", MOODS)
    assert made.class_names() == made.class_names("y") == ("glad", "new [UNK]", "sad")
    assert made.layers()["y"].get_vocabulary() == ["glad", "new [UNK]", "sad"]
    (x, y), *_ = made.dataset("train")
    names = [made.class_names()[index] for index in y.numpy()]
    assert names == [MOODS[int(2 * one)]["y"] for one in x.numpy()]
    assert y.dtype == tf.int64
    ((row, one), *_) = made.dataset("train", batch=None)
    assert (one.shape, made.class_names()[one.numpy()]) == ((), MOODS[int(2 * row.numpy())]["y"])
    kept = json.loads((made.data / "layers.json").read_text())["layers"]
    assert kept == {"y": {"vocabulary": ["glad", "new [UNK]", "sad"]}}


@pytest.mark.parametrize(
    ("feature", "encode", "values", "classes", "expected"),
    [
        ("int64", "index", [1, -1, 0, 1], ("-1", "0", "1"), [2, 0, 1, 2]),
        ("int64", "{as: index, max_tokens: 2}", [1, 7, 1, -1], ("-1", "1"), [1, 0, 1, 0]),
        ("text", "{as: index, max_tokens: 3}", [*"bbaac"], ("[UNK]", "a", "b"), [2, 2, 1, 1, 0]),
        ("text", "index", ["", "[UNK]", "b"], ("", "[UNK]", "b"), [0, 1, 2]),
        ("text", "one_hot", [*"ba"], ("a", "b"), [[0, 1], [1, 0]]),
        (
            "{kind: var_len, dtype: string}", "index", [["b", "a"], ["a"]], ("a", "b"),
            [[1, 0], [0, -1]],
        ),
        (
            "{kind: var_len, dtype: string}", "multi_hot", [["b", "a"], ["a"], []], ("a", "b"),
            [[1, 1], [1, 0], [0, 0]],
        ),
        ("{kind: label, names: [p, q]}", "one_hot", ["q", "p"], ("p", "q"), [[0, 1], [1, 0]]),
    ],
)  # fmt: skip
def test_classes_of_targets(small, feature, encode, values, classes, expected):
    some = [{"x": float(place), "y": value} for place, value in enumerate(values)]
    fit = f"{{inputs: x, targets: y, encode: {{y: {encode}}}}}"
    made = small(fit, f"{{x: float32, y: {feature}}}", some)
    assert made.class_names() == classes
    ((x, y),) = made.dataset("train", batch=8)
    assert [y.numpy().tolist()[place] for place in np.argsort(x)] == expected
    assert y.dtype == (tf.int64 if "index" in encode else tf.float32)


def test_a_target_that_the_training_split_does_not_have(small, tmp_path):
    (tmp_path / "s.yaml").write_text("schema: s\nfeatures: {x: float32, y: text, part: text}\n")
    (tmp_path / "c.yaml").write_text(
        "schema: s.yaml\ndata: data\nwrite: {splits: {column: part}}\nread: {batch: 4}\n"
        "fit: {inputs: x, targets: y, encode: {y: index}}\n"
    )
    made = rs.Pipeline.load(tmp_path / "c.yaml")
    rows = [("a", "train"), ("b", "train"), ("a", "test"), ("c", "test"), ("d", "test")]
    made.build([{"x": 0.0, "y": y, "part": part} for y, part in rows])
    expected = (
        r"fit\.encode\.y: expected one of `a`, `b`, as in the training split, got `c` "
        r"\(`max_tokens` gives all others one class\)"
    )
    assert [y.numpy().tolist() for _, y in made.dataset("train")] == [[0, 1]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=expected):
        list(made.dataset("test"))
    many = [{"x": 0.0, "y": str(y), "part": "train"} for y in range(11)]
    made.build([*many, {"x": 0.0, "y": "z", "part": "test"}], force=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"one of 11 classes, as in the .* got `z`"):
        list(made.dataset("test"))


def test_an_input_that_is_a_target_too_is_encoded_once(small):
    made = small("{inputs: x, targets: x, encode: {x: normalize}}")
    (x, y), *_ = made.dataset("train")
    assert y.numpy().tolist() == [0.0, 0.5, 1.0, 1.5]
    assert x.numpy()[0] < 0
    with pytest.raises(rs.SpecError) as error:
        made.class_names()
    assert str(error.value) == "feature: expected a label, or a target in `fit.encode`, got `x`"


REVIEWS = [
    "Good, good film!",
    "bad film",
    "",
    "Äh: good bad good bad good",
    "unseen words only here",
    "so so",
]


def of_words(small, encode: str, fit: str = "", feature: str = "text", reviews=None) -> rs.Pipeline:
    reviews = REVIEWS if reviews is None else reviews
    some = [{"y": place, **({} if one is None else {"x": one})} for place, one in enumerate(reviews)]
    config = f"{{inputs: x, targets: y, encode: {{x: {encode}}}{fit}}}"
    return small(config, f"{{x: {feature}, y: int64}}", some)


@pytest.mark.parametrize(
    ("encode", "options"),
    [
        ("words", {}),
        ("{as: words, max_tokens: 5}", {"max_tokens": 5}),
        ("{as: words, max_tokens: 5, length: 3}", {"max_tokens": 5, "output_sequence_length": 3}),
        ("{as: words, standardize: lower}", {"standardize": "lower"}),
        ("{as: words, standardize: none, length: 2}", {"standardize": None, "output_sequence_length": 2}),
    ],
)
def test_texts_are_indices_of_words_as_keras_has_them(small, encode, options):
    made = of_words(small, encode)
    layer = tf.keras.layers.TextVectorization(**options)
    layer.adapt(tf.constant(REVIEWS))
    assert made.layers()["x"].get_vocabulary() == layer.get_vocabulary()
    ((x, y),) = made.dataset("train", batch=8)
    expected = layer(tf.gather(tf.constant(REVIEWS), y))
    assert x.dtype == tf.int64
    np.testing.assert_array_equal(x, expected)
    assert made.dataset("train").element_spec[0].shape[1] == options.get("output_sequence_length")
    for place, (row, _) in enumerate(made.dataset("train", batch=None)):
        np.testing.assert_array_equal(row, x[place][: len(row)])
        assert not x[place][len(row) :].numpy().any()
    (made.data / "layers.json").write_text("{}")
    with pytest.warns(UserWarning, match="no 'fingerprint'"):
        made.layers()


def test_words_are_kept_ragged(small):
    made = of_words(small, "words", ", ragged: keep")
    ((x, y),) = made.dataset("train", batch=8)
    counts = [3, 2, 0, 6, 4, 2]
    assert isinstance(x, tf.RaggedTensor)
    assert x.row_lengths().numpy().tolist() == [counts[place] for place in y.numpy()]


def test_a_missing_text_has_no_words(small):
    feature = "{dtype: string, default: never seen, with_missing: true}"
    made = of_words(small, "{as: words, length: 2}", feature=feature, reviews=["a b", None, "b b"])
    assert made.layers()["x"].get_vocabulary() == ["", "[UNK]", "b", "a"]
    ((x, y),) = made.dataset("train", batch=8)
    assert dict(zip(y.numpy().tolist(), x.numpy().tolist(), strict=True)) == {0: [3, 2], 1: [0, 0], 2: [2, 2]}


def test_buckets_by_the_number_of_words(small):
    reviews = ["a " * n + "! ." * 30 for n in range(24)]
    made = of_words(small, "words", reviews=reviews)
    bucket = {"by": "x", "boundaries": [8, 16]}
    batches = [(x.numpy(), y.numpy()) for x, y in made.dataset("train", batch=4, bucket=bucket)]
    assert {tuple(sorted({*(y // 8)})) for _, y in batches} == {(0,), (1,), (2,)}
    assert all((x != 0).sum(1).tolist() == y.tolist() for x, y in batches)
    assert made.bench("train", batch=4, bucket=bucket, seconds=0.01).stages[-1].name == "whole"


@pytest.mark.parametrize(
    ("encode", "feature", "expected"),
    [
        ("words", "{kind: var_len, dtype: string}", "x: expected one text for words, got `x`, var_len of text"),
        ("words", "int64", "x: expected one text for words, got `x`, fixed_len of int64"),
        ("{as: words, max_tokens: 2}", "text", "x.max_tokens: expected at least 3, got 2"),
        ("{as: words, length: 0}", "text", "x.length: expected at least 1, got 0"),
        ("{as: index, length: 3}", "text", "x.length: expected none with `as: index`, got 3"),
        ("{as: index, standardize: lower}", "text", "x.standardize: expected none with `as: index`, got lower"),
        ("{as: words, bins: 3}", "text", "x.bins: expected none with `as: words`, got 3"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_words(small, encode, feature, expected):
    with pytest.raises(rs.SpecError) as error:
        of_words(small, encode, feature=feature)
    assert str(error.value).partition(": fit.encode.")[2] == expected


def test_words_are_served_as_they_were_trained(small, tmp_path):
    made = of_words(small, "{as: words, max_tokens: 6, length: 4}")
    made.export_model(lambda x: tf.cast(x, tf.float32), tmp_path / "m")
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    ((x, y),) = made.dataset("train", batch=8)
    np.testing.assert_array_equal(loaded.predict(x=tf.gather(tf.constant(REVIEWS), y))["y"], x)
