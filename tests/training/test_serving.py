"""Trained models, exported with the decoding and the encoding of their training, and served; what they answer
(`training.predictions`)."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import recordspec as rs
from recordspec.training.predictions import TargetClasses, outputs_of


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


ASKED = 24  # rows
SERVED = """
import base64, json, sys
sys.modules["recordspec"] = None
import numpy as np, tensorflow as tf

model = tf.saved_model.load(sys.argv[1])

def value(one):
    if isinstance(one, list):
        return [value(item) for item in one]
    return base64.b64decode(one["b64"]) if isinstance(one, dict) and one.keys() == {"b64"} else one

def answer(request):  # as TensorFlow Serving reads a request of its REST API
    signature = model.signatures[request.get("signature_name", "serving_default")]
    types = signature.structured_input_signature[1]
    if len(types) == 1:
        columns = {name: [value(row) for row in request["instances"]] for name in types}
    else:
        for row in request["instances"]:
            assert row.keys() == types.keys(), row.keys() ^ types.keys()
        columns = {name: [value(row[name]) for row in request["instances"]] for name in types}
    found = signature(**{name: tf.constant(columns[name], spec.dtype) for name, spec in types.items()})
    return {name: value.numpy() for name, value in found.items()}

np.savez(sys.argv[3], *map(answer, json.load(open(sys.argv[2]))))
"""


def served(folder: Path, *requests: dict) -> list[dict[str, np.ndarray]]:
    """What a SavedModel answers, in a process without recordspec."""
    (folder / "request.json").write_text(json.dumps(requests))
    command = [sys.executable, "-c", SERVED, folder / "model", folder / "request.json", folder / "found.npz"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return [answer.item() for answer in np.load(folder / "found.npz", allow_pickle=True).values()]


def test_a_model_is_served_as_it_was_trained(pipeline, tmp_path):
    """With each signature, bit for bit: of the same inputs as in training, and of the same predictions."""
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
    named = pipeline.export_model(model, tmp_path / "model")
    assert list(named) == ["company", "fare", "day", "vec", "tags", "ids", "two", "kind", "photo"]

    batch, _, _ = next(iter(pipeline.dataset("test", batch=ASKED)))
    probabilities = tf.nn.softmax(model(batch)).numpy()
    best = probabilities.argmax(1)
    expected = {
        "class": np.array([b"n", b"p"], object)[best],
        "probability": probabilities[np.arange(ASKED), best],
        "classes": np.array([[b"n", b"p"]] * ASKED, object),
        "probabilities": probabilities,
    }

    def check(found):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, name)
            assert found[name].dtype == value.dtype

    stored = next(iter(rs.read(pipeline.data / "test-*", pipeline.schema, batch=ASKED)))
    missing = stored.pop("fare_missing").numpy()
    assert 0 < missing.sum() < ASKED
    columns = {}
    for name, value in stored.items():
        if isinstance(value, tf.RaggedTensor):
            columns[f"{name}_row_lengths"] = value.row_lengths().numpy().tolist()
            value = value.to_tensor()
        columns[name] = value.numpy().tolist()
    columns["kind"] = ["abc"[index] for index in columns["kind"]]
    columns["fare"] = np.where(missing, np.nan, columns["fare"]).tolist()
    rows = [
        {name: text(value[row]) for name, value in columns.items() if name not in ("y", "w")}
        for row in range(ASKED)
    ]
    files = tf.data.Dataset.list_files(str(pipeline.data / "test-*"), shuffle=False)
    records = list(tf.data.TFRecordDataset(files).take(ASKED).as_numpy_iterator())
    coded = [{"b64": base64.b64encode(record).decode()} for record in records]
    by_name, by_record = served(
        tmp_path,
        {"instances": rows},
        {"signature_name": "examples", "instances": coded},
    )
    check(by_name)
    check(by_record)
    with pytest.raises(rs.StoreError, match=r"model` exists: give a folder that does not"):
        pipeline.export_model(model, tmp_path / "model")


def text(value):
    if isinstance(value, list):
        return [text(one) for one in value]
    return {"b64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def test_signatures_have_the_methods_and_defaults_of_tensorflow_serving(pipeline, tmp_path):
    pipeline.export_model(lambda inputs: inputs["company"][:, :2], tmp_path / "m", outputs="logits")
    saved = saved_model_pb2.SavedModel.FromString((tmp_path / "m/saved_model.pb").read_bytes())
    found = saved.meta_graphs[0].signature_def
    for name in "serving_default", "examples":
        assert found[name].method_name == "tensorflow/serving/predict"
    assert [*found["examples"].inputs] == ["examples"]
    assert sorted(found["serving_default"].defaults) == [
        "company", "fare", "ids", "ids_row_lengths", "tags", "tags_row_lengths",
    ]  # fmt: skip


CLIENT = """
import sys
sys.modules["recordspec"] = None
import tensorflow as tf

model = tf.saved_model.load(sys.argv[1])
answer = model.predict(
    plan=tf.constant(["gold", "free"]), born=tf.constant(["1990-05-17", ""]), visits=tf.constant([3, 4], tf.int64)
)
print(answer["class"].numpy().tolist(), answer["probability"].numpy().tolist())
for wrong in {"plan": tf.constant(["silver"])}, {"born": tf.constant(["17.5.1990"])}, {"plan": tf.constant(["gold"] * 3)}:
    given = {"plan": tf.constant(["gold"]), "visits": tf.constant([1], tf.int64), **wrong}
    try:
        model.predict(**given)
    except tf.errors.InvalidArgumentError as error:
        print(str(error).partition("[")[2].partition("]")[0])
"""
OF_CLIENTS = """{
  plan: {kind: label, names: [free, gold], key: p},
  born: {dtype: int64, date: days, default: 0, with_missing: true, key: b},
  visits: {dtype: int64, default: 7, with_missing: true},
  score: {dtype: float32, default: 2.0},
  seen: {kind: var_len, dtype: int64, key: s},
  mood: {dtype: string, key: m}}"""


def test_a_client_knows_only_names(small, tmp_path):
    """It names classes, writes dates, and leaves out what may be missing; nothing is stored as it says it."""
    rows = [
        {"plan": "gold", "born": "1990-05-17", "visits": 3, "seen": [], "mood": "sad"},
        {"plan": "free", "visits": 4, "score": 0.5, "seen": [1, 2], "mood": "glad"},
        {"plan": "gold", "born": "1980-01-01", "score": 1.0, "seen": [], "mood": "sad"},
    ]
    fit = (
        "{inputs: [plan, born, visits, score, seen], targets: mood,"
        " encode: {plan: one_hot, born: normalize, visits: normalize, mood: index}}"
    )
    made = small(fit, OF_CLIENTS, rows)
    keras = tf.keras
    types, _ = made.dataset("train").element_spec
    inputs = {name: keras.Input(spec.shape[1:], dtype=spec.dtype, name=name) for name, spec in types.items()}
    flat = [inputs["plan"], *(keras.ops.expand_dims(inputs[name], 1) for name in ("born", "visits", "score"))]
    flat.append(keras.ops.cast(keras.ops.sum(inputs["seen"], 1, keepdims=True), "float32"))
    model = keras.Model(inputs, keras.layers.Dense(1, "sigmoid")(keras.layers.Concatenate()(flat)))
    model.compile("adam", "binary_crossentropy")
    named = made.export_model(model, tmp_path / "m")
    assert named == {name: name for name in ("plan", "born", "visits", "score", "seen")}

    ((batch, _),) = made.dataset("train")
    in_graph = tf.function(model)  # as in training; without a graph, kernels are not fused
    second = in_graph(batch).numpy()[:, 0]
    signatures = tf.saved_model.load(str(tmp_path / "m")).signatures
    request = made.schema.without("mood")
    given = [{name: value for name, value in row.items() if name != "mood"} for row in rows]
    records = tf.constant([request.encode(row) for row in given])
    found = signatures["examples"](examples=records)
    np.testing.assert_array_equal(found["probabilities"], np.stack([1 - second, second], 1))
    assert found["classes"].numpy().tolist() == [[b"glad", b"sad"]] * 3
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, tmp_path / "m"], capture_output=True, text=True, check=True
    )
    features = {"plan": [1, 0], "visits": [3, 4], "score": [2.0, 2.0], "seen": [[], []]}
    born = (np.array(["1990-05-17", "1970-01-01"], "M8[D]")).astype(int)
    layers = made.layers()
    encoded = {
        "plan": tf.one_hot(features["plan"], 2),
        "born": tf.where([False, True], 0.0, layers["born"](born)),
        "visits": layers["visits"](np.array(features["visits"])),
        "score": tf.constant(features["score"]),
        "seen": tf.zeros([2, 0], tf.int64),
    }
    chances = in_graph(encoded).numpy()[:, 0]
    classes = [b"sad" if one > 0.5 else b"glad" for one in chances]
    highest = np.maximum(chances, np.float32(1) - chances)
    assert done.stdout.splitlines() == [
        f"{classes} {highest.tolist()}",
        "plan: expected one of `free`, `gold`, got `silver`",
        "born: expected a date or a time as 2026-01-31 or 2026-01-31T12:00:00Z, got `17.5.1990`",
        "visits: expected as many rows as other inputs have",
    ]


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
    assert found["y"].numpy().tolist() == [4.5]
    assert signatures["serving_default"](x=tf.constant([2.0]))["y"].numpy().tolist() == [6.0]
    assert set(signatures["serving_default"].structured_input_signature[1]) == {"x"}
    with pytest.raises(rs.SpecError) as error:
        made.schema.without("z")
    assert str(error.value) == "expected one of x, y, got `z`"


def test_a_missing_number_is_left_out_or_nan(small, tmp_path):
    features = "{x: {dtype: float32, default: 7.0, with_missing: true}, z: float32, y: int64}"
    some = [{"x": 1.0, "z": 1.0, "y": 1}, {"x": 3.0, "z": 1.0, "y": 1}, {"z": 1.0, "y": 2}]
    cases = [
        ("inputs: [x, z]", 7.0),
        ("inputs: [x, x_missing, z]", 7.0),
        ("inputs: [x, z], encode: {x: normalize}", 0.0),
        ("inputs: [x, z], encode: {x: {as: discretize, bins: 2}}", 1),
    ]
    for place, (options, expected) in enumerate(cases):
        made = small(f"{{{options}, targets: y}}", features, some)
        folder = tmp_path / str(place)

        def model(given):
            missing = given.get("x_missing", tf.zeros_like(given["z"], tf.bool))
            return tf.stack([tf.cast(given["x"], tf.float32), tf.cast(missing, tf.float32)], 1)

        made.export_model(model, folder)
        loaded = tf.saved_model.load(str(folder))
        signature = loaded.signatures["serving_default"]
        assert set(signature.structured_input_signature[1]) == {"x", "z"}
        records = tf.constant([made.schema.without("y").encode({"z": 1.0})])
        row = [expected, float("x_missing" in options)]
        assert loaded.signatures["examples"](examples=records)["y"].numpy().tolist() == [row]
        found = signature(x=tf.constant([np.nan, 1.0]), z=tf.ones([2]))["y"].numpy()
        assert found[0].tolist() == row
        one = tf.constant([1.0])
        assert found[1].tolist() == [float((one if expected == 7.0 else made.layers()["x"](one))[0]), 0.0]
        assert loaded.predict(z=tf.ones([2]))["y"].numpy().tolist() == [row] * 2


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
        assert found["outputs"].numpy().tolist() == expected


def compiled(loss, *layers) -> tf.keras.Model:
    model = tf.keras.Sequential([tf.keras.layers.Reshape((1,)), *layers])
    model.compile("adam", loss)
    model(tf.zeros([1]))
    return model


@pytest.mark.parametrize(
    ("loss", "units", "activation", "function"),
    [
        ("sparse_categorical_crossentropy", 3, "softmax", tf.identity),
        (None, 3, "softmax", tf.identity),
        (tf.keras.losses.CategoricalCrossentropy(from_logits=True), 3, None, tf.nn.softmax),
        (tf.keras.losses.BinaryCrossentropy(from_logits=True), 3, None, tf.sigmoid),
        ([tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)], 3, None, tf.nn.softmax),
        ({"y": tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)}, 3, "relu", tf.nn.softmax),
    ],
)
def test_probabilities_by_the_activation_or_the_loss(loss, units, activation, function):
    model = compiled(loss, tf.keras.layers.Dense(units, activation))
    classes = TargetClasses(target="y", names=("a", "b", "c"))
    outputs, one_by_one = outputs_of(model)
    numbers = tf.constant([[0.125, 0.5, 0.375], [0.75, 0.25, 0.0]])
    found = classes.answer(numbers, outputs, one_by_one=one_by_one)
    np.testing.assert_array_equal(found["probabilities"], function(numbers))
    assert found["class"].numpy().tolist() == [b"b", b"a"]
    np.testing.assert_array_equal(found["probability"], tf.reduce_max(function(numbers), 1))


def test_the_last_layer_may_be_an_activation_or_a_model():
    keras = tf.keras
    inner = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(2, "softmax")])
    for last in keras.layers.Softmax(), keras.layers.Activation("sigmoid"), inner:
        assert outputs_of(compiled(None, last)) == ("probabilities", False)
    given = keras.Input((2,))
    assert outputs_of(keras.Model(given, keras.ops.softmax(given)))[0] == "probabilities"
    assert outputs_of(compiled("bce", keras.layers.Reshape((1,)))) == ("probabilities", True)


def test_a_model_that_does_not_say_what_its_numbers_are():
    dense, from_logits = (
        tf.keras.layers.Dense,
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    nothing = "neither an activation nor a loss that tells the kind"
    cases = [
        (lambda inputs: inputs, nothing),
        (compiled(None, dense(2)), nothing),
        (compiled("mse", dense(2)), nothing),
        (compiled("sparse_categorical_crossentropy", dense(2)), "a last activation of logits, and a loss of probabilities"),
        (compiled(from_logits, dense(2, "softmax")), "a last activation of probabilities, and a loss of logits"),
    ]  # fmt: skip
    for model, got in cases:
        with pytest.raises(rs.SpecError) as error:
            outputs_of(model)
        assert str(error.value) == (
            f"outputs: expected `logits` or `probabilities`, for numbers of classes, got {got} "
            '(`outputs="raw"` exports the numbers as they are)'
        )


def test_answers_of_two_classes_and_of_several_at_once():
    two = TargetClasses(target="y", names=("no", "yes"))
    for numbers in ([[0.25], [0.75]], [0.25, 0.75]):
        found = two.answer(tf.constant(numbers), "probabilities", one_by_one=True)
        assert found["probabilities"].numpy().tolist() == [[0.75, 0.25], [0.25, 0.75]]
        assert found["class"].numpy().tolist() == [b"no", b"yes"]
    logits = tf.constant([[-1.0], [2.0]])
    found = two.answer(logits, "logits", one_by_one=False)
    np.testing.assert_array_equal(found["probabilities"][:, 1], tf.sigmoid(logits)[:, 0])
    several = TargetClasses(target="y", names=("no", "yes"), several=True)
    found = several.answer(tf.constant([[-1.0, 2.0]]), "logits", one_by_one=False)
    assert found.keys() == {"classes", "probabilities"}
    np.testing.assert_array_equal(found["probabilities"], tf.sigmoid([[-1.0, 2.0]]))


def test_what_is_no_answer_of_the_classes(small, tmp_path):
    features = "{x: float32, y: {kind: label, names: [a, b]}, z: int64}"
    some = [{"x": 1.0, "y": "a", "z": 1}]
    made = small("{inputs: x, targets: y}", features, some)
    for numbers, shape in {3: "(None, 3)", None: "dict"}.items():
        wrong = (lambda x: {"a": x}) if numbers is None else (lambda x: tf.stack([x] * 3, 1))
        with pytest.raises(rs.SpecError) as error:
            made.export_model(wrong, tmp_path / "m", outputs="logits")
        assert str(error.value) == (
            f"model.outputs: expected [n, 2], a number for each class of `y`, got {shape} "
            '(`outputs="raw"` exports them as they are)'
        )
    made.export_model(lambda x: tf.stack([x] * 3, 1), tmp_path / "raw", outputs="raw")
    signatures = tf.saved_model.load(str(tmp_path / "raw")).signatures
    assert {*signatures} == {"serving_default", "examples"}
    assert signatures["serving_default"](x=tf.constant([1.0]))["outputs"].numpy().tolist() == [[1.0] * 3]
    for fit, outputs in {"{inputs: x, targets: z}": "probabilities", "{inputs: x}": "logits"}.items():
        with pytest.raises(rs.SpecError) as error:
            small(fit, features, some).export_model(lambda x: x, tmp_path / "n", outputs=outputs)
        assert str(error.value) == f"outputs: expected none for a target without classes, got `{outputs}`"


def test_several_labels_are_answered_one_by_one(small, tmp_path):
    features = "{x: float32, y: {kind: var_len, dtype: string}}"
    some = [{"x": 1.0, "y": ["b", "a"]}, {"x": 2.0, "y": []}]
    made = small("{inputs: x, targets: y, encode: {y: multi_hot}}", features, some)
    model = compiled("bce", tf.keras.layers.Dense(2, "sigmoid"))
    made.export_model(model, tmp_path / "m")
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    found = loaded.predict(x=tf.constant([1.0, 2.0]))
    np.testing.assert_array_equal(found["probabilities"], tf.function(model)(tf.constant([1.0, 2.0])))
    assert found["classes"].numpy().tolist() == [[b"a", b"b"]] * 2
