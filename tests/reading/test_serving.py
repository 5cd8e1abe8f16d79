"""Trained models, exported with the decoding and the encoding of their training, and served."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs


def test_a_model_that_was_never_fitted_is_not_exported(small, tmp_path):
    made = small("{inputs: x, targets: y}")
    model = tf.keras.Sequential([tf.keras.layers.Reshape((1,)), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    with pytest.raises(rs.SpecError) as error:
        made.export_model(model, tmp_path / "m")
    expected = "model: expected a trained model, got one without weights (`model.fit` makes its weights)"
    assert str(error.value) == expected
    model.fit(made.dataset("train"), verbose=0)
    made.export_model(model, tmp_path / "m")


def test_a_model_of_an_input_that_fit_does_not_have_is_named(small, tmp_path):
    made = small("{inputs: [x, y]}")
    inputs = {name: tf.keras.Input((), name=name) for name in ("x", "why")}
    model = tf.keras.Model(inputs, inputs["x"] + inputs["why"])
    with pytest.raises(rs.SpecError) as error:
        made.export_model(model, tmp_path / "m")
    assert str(error.value) == "model.inputs: expected one of x, y, got `why`"


SERVED = """
import base64, json, sys
sys.modules["recordspec"] = None
import numpy as np, tensorflow as tf

model = tf.saved_model.load(sys.argv[1])
request = json.load(open(sys.argv[2]))
# as TensorFlow Serving reads a request of its REST API
signature = model.signatures[request.get("signature_name", "serving_default")]
types = signature.structured_input_signature[1]

def value(one):
    if isinstance(one, list):
        return [value(item) for item in one]
    return base64.b64decode(one["b64"]) if isinstance(one, dict) and one.keys() == {"b64"} else one

rows = request["instances"]
if len(types) == 1 and not all(isinstance(row, dict) and row.keys() == types.keys() for row in rows):
    columns = {name: [value(row) for row in rows] for name in types}
else:
    columns = {name: [value(row[name]) for row in rows] for name in types}
found = signature(**{name: tf.constant(columns[name], spec.dtype) for name, spec in types.items()})
np.save(sys.argv[3], found["output_0"].numpy())
"""


def served(folder: Path, request: dict) -> np.ndarray:
    """What a SavedModel predicts, in a process without recordspec."""
    (folder / "request.json").write_text(json.dumps(request))
    command = [sys.executable, "-c", SERVED, folder / "model", folder / "request.json", folder / "found.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return np.load(folder / "found.npy")


def test_a_model_is_served_as_it_was_trained(pipeline, tmp_path):
    """With both signatures, bit for bit: of the same inputs as in training, and of the same predictions."""
    keras = tf.keras
    types, *_ = pipeline.dataset("train").element_spec
    inputs = {name: keras.Input(spec.shape[1:], dtype=spec.dtype, name=name) for name, spec in types.items()}
    flat = [
        keras.layers.Flatten()(keras.ops.cast(one, "float32"))
        if len(one.shape) > 1
        else keras.ops.expand_dims(keras.ops.cast(one, "float32"), 1)
        for name, one in inputs.items()
        if name not in ("ids", "tags_mask")
    ]
    words = keras.layers.Embedding(20, 3)(inputs["ids"])
    flat += [keras.layers.GlobalAveragePooling1D()(words)]
    flat += [keras.ops.sum(keras.ops.cast(inputs["tags_mask"], "float32"), 1, keepdims=True)]
    model = keras.Model(inputs, keras.layers.Dense(2)(keras.layers.Concatenate()(flat)))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(pipeline.dataset("train"), verbose=0)
    pipeline.export_model(model, tmp_path / "model")

    batch, _, _ = next(iter(pipeline.dataset("test", batch=8)))
    expected = model(batch).numpy()
    stored = next(iter(rs.read(pipeline.schema, pipeline.data / "test-*", batch=8)))
    columns = {}
    for name, value in stored.items():
        if isinstance(value, tf.RaggedTensor):
            columns[f"{name}_row_lengths"] = value.row_lengths().numpy().tolist()
            value = value.to_tensor()
        columns[name] = value.numpy().tolist()
    rows = [
        {name: text(value[row]) for name, value in columns.items() if name not in ("y", "w")}
        for row in range(8)
    ]
    np.testing.assert_array_equal(served(tmp_path, {"instances": rows}), expected)
    files = tf.data.Dataset.list_files(str(pipeline.data / "test-*"), shuffle=False)
    records = [
        base64.b64encode(record).decode()
        for record in tf.data.TFRecordDataset(files).take(8).as_numpy_iterator()
    ]
    request = {"signature_name": "examples", "instances": [{"b64": record} for record in records]}
    np.testing.assert_array_equal(served(tmp_path, request), expected)
    with pytest.raises(rs.StoreError, match=r"model` exists: give a folder that does not"):
        pipeline.export_model(model, tmp_path / "model")


def text(value):
    if isinstance(value, list):
        return [text(one) for one in value]
    return {"b64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def test_a_request_needs_no_label_and_a_map_is_served(small, tmp_path):
    made = small("{inputs: [x, z], targets: y, derived: [z]}")

    def derive(features):
        return {**features, "z": 2 * features["x"]}

    with pytest.raises(rs.SpecError) as error:
        made.export_model(lambda inputs: inputs["z"], tmp_path / "m")
    assert str(error.value) == "map: expected the function that adds `z`, got none"
    made.export_model(lambda inputs: inputs["z"] + inputs["x"], tmp_path / "m", map=derive)
    signatures = tf.saved_model.load(str(tmp_path / "m")).signatures
    request = made.schema.without("y")
    assert [feature.name for feature in request.features] == ["x"]
    found = signatures["examples"](examples=tf.constant([request.encode({"x": 1.5})]))
    assert found["output_0"].numpy().tolist() == [4.5]
    assert signatures["serving_default"](x=tf.constant([2.0]))["output_0"].numpy().tolist() == [6.0]
    assert set(signatures["serving_default"].structured_input_signature[1]) == {"x"}
    with pytest.raises(rs.SpecError) as error:
        made.schema.without("z")
    assert str(error.value) == "expected one of x, y, got `z`"


def test_a_request_has_an_indicator_only_where_it_is_needed(small, tmp_path):
    features = "{x: {dtype: float32, default: 7.0, with_missing: true}, y: int64}"
    some = [{"x": 1.0, "y": 1}, {"x": 3.0, "y": 1}, {"y": 2}]
    cases = [
        ("inputs: x", {"x"}, 7.0),
        ("inputs: [x, x_missing]", {"x", "x_missing"}, 7.0),
        ("inputs: x, encode: {x: normalize}", {"x", "x_missing"}, 0.0),
        ("inputs: x, encode: {x: {as: discretize, bins: 2}}", {"x"}, 1),
    ]
    for place, (options, asked, expected) in enumerate(cases):
        made = small(f"{{{options}, targets: y}}", features, some)
        folder = tmp_path / str(place)
        made.export_model(lambda given: given["x"] if isinstance(given, dict) else given, folder)
        signatures = tf.saved_model.load(str(folder)).signatures
        assert set(signatures["serving_default"].structured_input_signature[1]) == asked
        records = tf.constant([made.schema.without("y").encode({})])
        assert signatures["examples"](examples=records)["output_0"].numpy().tolist() == [expected]
        tensors = {"x": tf.constant([7.0]), "x_missing": tf.constant([True])}
        found = signatures["serving_default"](**{name: tensors[name] for name in asked})
        assert found["output_0"].numpy().tolist() == [expected]


# The name of the input of each feature: `=` means the same.
INPUTS = """
price =, Price Price_2, a_b =, a-b a_b_2, a.b a_b_3, a/b a_b_4, A/B A_B_5, größe gr__e, gräße gr__e_2, x =,
x_row_lengths x_row_lengths_2, feature_a =, _a feature_a_2, __a feature_a_3, 1a feature_1a, é1 feature_1,
- feature_, ü feature__2, 日本 feature__3, class class_, None None_, self self_, name =, inputs =, args =,
kwargs =, cls =, training =, examples =, tensors =
"""


def test_every_name_of_a_feature_is_the_name_of_an_input(small, tmp_path):
    inputs = dict(pair.split() for pair in INPUTS.split(","))
    inputs = {name: name if same == "=" else same for name, same in inputs.items()} | {"a b": "a_b_6"}
    kinds = dict.fromkeys(inputs, "float32") | {"x": {"kind": "var_len", "dtype": "float32"}}
    rows = [
        {name: row + place / 8 for place, name in enumerate(inputs)} | {"x": [0.5] * row} for row in range(3)
    ]
    made = small(json.dumps({"inputs": list(inputs)}), json.dumps(kinds), rows)

    def model(features):
        return tf.stack([tf.reduce_sum(one, 1) if name == "x" else one for name, one in features.items()], 1)

    assert made.export_model(model, tmp_path / "m") == inputs
    signatures = tf.saved_model.load(str(tmp_path / "m")).signatures
    records = tf.constant([made.schema.encode(row) for row in rows])
    expected = [[sum(row[name]) if name == "x" else row[name] for name in inputs] for row in rows]
    given = {inputs[name]: tf.constant([row[name] for row in rows]) for name in inputs if name != "x"}
    given["x"] = tf.ragged.constant([row["x"] for row in rows]).to_tensor()
    given["x_row_lengths"] = tf.constant([0, 1, 2], tf.int64)
    for found in signatures["examples"](examples=records), signatures["serving_default"](**given):
        assert found["output_0"].numpy().tolist() == expected
