"""What a model takes of ragged and sparse features: dense to the longest, to a length, or as they are; and masks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs

SCHEMA = """\
schema: s
features:
  n: int64
  words: {kind: var_len, dtype: string}
  points: {kind: ragged, dtype: float32, shape: [null, 2]}
  nested: {kind: ragged, dtype: int64, shape: [null, null]}
  gaps: {kind: sparse, dtype: float32, size: 4}
"""
CONFIG = """\
schema: s.yaml
data: data
write: {layout: LAYOUT}
read: {batch: 4}
fit:
  inputs: [words, points, nested, gaps]
  targets: n
"""
ROWS = [
    {
        "n": n,
        "words": ["w"] * (n % 3),
        "points": [[n, 1.0]] * (n % 4),
        "nested": [[n] * size for size in range(n % 3)],
        "gaps": ([n % 4], [1.0]),
    }
    for n in range(10)
]


@pytest.fixture(params=["rows", "{blocks: 3}"], ids=["rows", "blocks"])
def make(tmp_path: Path, request):
    def pipeline(more: str = "", rows: list = ROWS) -> rs.Pipeline:
        (tmp_path / "s.yaml").write_text(SCHEMA)
        (tmp_path / "config.yaml").write_text(CONFIG.replace("LAYOUT", request.param) + more)
        made = rs.Pipeline.load(tmp_path / "config.yaml")
        made.build(rows, force=True)
        return made

    return pipeline


def shapes(dataset) -> dict[str, list]:
    inputs, _ = dataset.element_spec
    return {name: spec.shape.as_list() for name, spec in inputs.items()}


def test_dense_is_as_long_as_the_longest_row_of_a_batch(make):
    inputs, numbers = next(iter(make().dataset("train")))
    assert {type(value).__name__ for value in inputs.values()} == {"EagerTensor"}
    assert numbers.numpy().tolist() == [0, 1, 2, 3]
    assert inputs["words"].numpy().tolist() == [[b"", b""], [b"w", b""], [b"w", b"w"], [b"", b""]]
    assert inputs["points"].shape == (4, 3, 2)


def test_what_is_padded_has_static_shapes(make):
    dataset = make("  pad_to: {words: 3, points: 4, nested: 2}\n").dataset("train")
    assert shapes(dataset) == {
        "words": [None, 3],
        "points": [None, 4, 2],
        "nested": [None, 2, None],
        "gaps": [None, 4],
    }
    inputs, _ = next(iter(dataset))
    assert inputs["words"].numpy().tolist() == [
        [b"", b"", b""],
        [b"w", b"", b""],
        [b"w", b"w", b""],
        [b""] * 3,
    ]
    np.testing.assert_array_equal(inputs["points"][3].numpy(), [[3, 1], [3, 1], [3, 1], [0, 0]])
    np.testing.assert_array_equal(inputs["nested"][2].numpy(), [[0], [2]])


def test_kept_is_as_it_was_decoded(make):
    inputs, _ = next(iter(make("  ragged: keep\n  pad_to: {words: 2}\n").dataset("train")))
    assert inputs["words"].shape == (4, 2)
    assert inputs["points"].to_list() == [[[n, 1.0]] * (n % 4) for n in range(4)]
    assert inputs["nested"].to_list() == [row["nested"] for row in ROWS[:4]]
    assert isinstance(inputs["gaps"], tf.SparseTensor)


def test_a_row_that_is_too_long_is_an_error_and_never_cut(make):
    dataset = make("  pad_to: {points: 2}\n").dataset("train")
    message = r"fit\.pad_to\.points: expected at most 2 values in a row, got 3"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(dataset)


def test_what_is_not_ragged_is_not_padded(make):
    made = make("  pad_to: {gaps: 4}\n")
    with pytest.raises(rs.SpecError) as caught:
        made.dataset("train")
    expected = "fit.pad_to.gaps: expected a batch of a ragged feature, got float32 (None, 4)"
    assert str(caught.value) == expected


def test_lengths_and_names_that_are_none_have_their_place(make, tmp_path):
    make()
    for more, expected in [
        ("  pad_to: {words: 0}\n", "8:19: fit.pad_to.words: expected a length of at least 1, got 0"),
        (
            "  ragged: kept\n",
            "8:11: fit.ragged: expected one of dense, keep, got `kept` (did you mean `keep`?)",
        ),
        (
            "  pad_to: {wards: 3}\n",
            "8:19: fit.pad_to.wards: expected one of words, points, nested, gaps, n, got `wards` "
            "(did you mean `words`?)",
        ),
        (
            "  pad: {words: 3}\n",
            "8:3: fit.pad: expected one of inputs, targets, weights, ragged, pad_to, derived, encode, got `pad` "
            "(did you mean `pad_to`?)",
        ),
    ]:
        with pytest.raises(rs.SpecError) as caught:
            make(more)
        assert str(caught.value) == f"{tmp_path}/config.yaml:{expected}"


STEPS = """\
schema: steps
record: sequence_example
context:
  row: int64
  weight: float32
  size: {kind: tensor, dtype: int64}
sequence:
  words: {kind: text, pad: <pad>}
  tags: {kind: label, names: [a, b, c]}
  spans: {kind: var_len, dtype: int64, pad: -2}
  bags: {kind: var_len, dtype: int64, as: dense, max_length: 3, pad: -3, with_length: true}
  counted: {kind: fixed_len_sequence, dtype: float32, pad: -4.0, with_length: true}
  uncounted: {kind: fixed_len_sequence, dtype: int64}
  sound: {kind: tensor, dtype: int16, shape: [null], encoding: raw, pad: -5}
"""
# The second row has no value that its padding could not be taken for.
STEP_ROWS = [
    {
        "row": row,
        "weight": weight,
        "size": steps,
        "words": ["w"] * steps,
        "tags": ["c"] * steps,
        "spans": [[1] * step for step in range(steps)],
        "bags": [[-3] * (step % 2) for step in range(steps)],
        "counted": [-4.0] * steps,
        "uncounted": [1] * steps,
        "sound": [[-5]] * steps,
    }
    for row, (steps, weight) in enumerate([(1, 0.5), (4, 2.0), (0, 1.0)])
]


def in_steps(folder: Path, layout: str):
    """Makes pipelines that read the rows above in one batch, by what their `fit` says."""
    (folder / "s.yaml").write_text(STEPS)
    config = f"schema: s.yaml\ndata: data\nwrite: {{layout: {layout}}}\nread: {{batch: 3}}\nfit: "

    def pipeline(fit: str) -> rs.Pipeline:
        (folder / "config.yaml").write_text(config + fit + "\n")
        return rs.Pipeline.load(folder / "config.yaml")

    pipeline("{inputs: row}").build(STEP_ROWS)
    return pipeline


@pytest.fixture(scope="module", params=["rows", "{blocks: 2}"], ids=["rows", "blocks"])
def of_steps(tmp_path_factory, request):
    return in_steps(tmp_path_factory.mktemp("steps"), request.param)


@pytest.fixture(scope="module")
def of_rows(tmp_path_factory):
    return in_steps(tmp_path_factory.mktemp("rows"), "rows")


def listed(value):
    return tf.nest.map_structure(lambda one: one.numpy().tolist(), value)


def test_every_kind_is_filled_with_its_padding(of_steps):
    names = "[words, tags, spans, bags, counted, uncounted, sound]"
    (found,) = of_steps(f"{{inputs: {names}}}").dataset("train").map(lambda inputs: inputs)
    assert listed(found) == {
        "words": [[b"w"] + [b"<pad>"] * 3, [b"w"] * 4, [b"<pad>"] * 4],
        "tags": [[2, -1, -1, -1], [2, 2, 2, 2], [-1] * 4],
        "spans": [[[-2] * 3] * 4, [[-2] * 3, [1, -2, -2], [1, 1, -2], [1] * 3], [[-2] * 3] * 4],
        "bags": [[[-3] * 3] * 4] * 3,
        "counted": [[-4.0] * 4] * 3,
        "uncounted": [[1, 0, 0, 0], [1] * 4, [0] * 4],
        "sound": [[[-5]] * 4] * 3,
    }


def test_masks_come_from_lengths_and_not_from_values(of_steps):
    masks = [f"{name}_mask" for name in ("words", "spans", "bags", "counted", "sound")]
    pipeline = of_steps(
        f"{{inputs: [{', '.join(masks)}], targets: tags, weights: [weight, tags_mask], pad_to: {{tags: 5}}}}"
    )
    dataset = pipeline.dataset("train")
    ((inputs, _, weights),) = dataset
    first, second, none = [True, False, False, False], [True] * 4, [False] * 4
    some = [True, False, False]
    assert listed(inputs) == {
        "words_mask": [first, second, none],
        "spans_mask": [
            [[False] * 3] * 4,
            [[False] * 3, some, [True, True, False], [True] * 3],
            [[False] * 3] * 4,
        ],
        "bags_mask": [[[False] * 3] * 4, [[False] * 3, some, [False] * 3, some], [[False] * 3] * 4],
        "counted_mask": [first, second, none],
        "sound_mask": [[[one] for one in row] for row in (first, second, none)],
    }
    assert listed(weights) == [[0.5, 0, 0, 0, 0], [2, 2, 2, 2, 0], [0] * 5]
    assert dataset.element_spec[2] == tf.TensorSpec([None, 5], tf.float32)


def test_weights_of_several_targets_are_said_by_target(of_steps):
    pipeline = of_steps(
        "{inputs: words, targets: [tags, row, size], weights: {tags: tags_mask, row: weight}}"
    )
    ((_, targets, weights),) = pipeline.dataset("train")
    assert listed(targets)["row"] == [0, 1, 2]
    assert listed(weights) == {
        "tags": [[1, 0, 0, 0], [1] * 4, [0] * 4],
        "row": [0.5, 2, 1],
        "size": [1, 1, 1],
    }


@pytest.mark.parametrize(
    ("fit", "expected"),
    [
        (
            "{inputs: wards_mask}",
            "inputs: expected one of row, weight, size, words, tags, spans, bags, bags_length, counted, "
            "counted_length, uncounted, sound, got `wards_mask` (did you mean `words_mask`?)",
        ),
        (
            "{inputs: row, targets: tags_mask}",
            "targets: expected one of row, weight, size, words, tags, spans, bags, bags_length, counted, "
            "counted_length, uncounted, sound, got `tags_mask` (did you mean `tags`?)",
        ),
        (
            "{inputs: [uncounted, uncounted_mask]}",
            "inputs: expected the lengths of `uncounted`, to mask it, got none (give it `with_length: true`)",
        ),
        (
            "{inputs: row, targets: [row, tags], weights: tags_mask}",
            "weights: expected a mapping from targets to their weights, got `tags_mask` for 2 targets",
        ),
        (
            "{inputs: row, targets: [row, tags], weights: {tag: tags_mask}}",
            "weights.tag: expected one of row, tags, got `tag` (did you mean `tags`?)",
        ),
        ("{inputs: row, targets: tags, weights: []}", "weights: expected at least one feature, got none"),
        ("{inputs: row, weights: {tags: tags_mask}}", "weights: expected targets to weigh, got none"),
        (
            "{inputs: row, targets: words}",
            "targets: expected a label or numbers, which a model can learn, got the text `words` "
            "(`encode: {words: index}` learns its classes; or `map` replaces it)",
        ),
        (
            "{inputs: row, targets: [tags, words]}",
            "targets[1]: expected a label or numbers, which a model can learn, got the text `words` "
            "(`encode: {words: index}` learns its classes; or `map` replaces it)",
        ),
    ],
)
def test_masks_and_weights_that_cannot_be_made_have_their_place(of_rows, fit, expected):
    with pytest.raises(rs.SpecError) as caught:
        of_rows(fit)
    assert str(caught.value).partition(": fit.")[2] == expected


@pytest.mark.parametrize(
    ("fit", "mapped", "expected"),
    [
        (
            "{inputs: row_mask}",
            None,
            "fit.inputs: expected a padded feature to mask, got `row`, int64 (None,)",
        ),
        # another feature that is called so says nothing of it
        (
            "{inputs: size_mask}",
            None,
            "fit.inputs: expected a padded feature to mask, got `size`, int64 (None,)",
        ),
        (
            "{inputs: [words, words_mask], ragged: keep}",
            None,
            "fit.inputs: expected a padded feature to mask, got `words`, which is kept ragged",
        ),
        (
            "{inputs: words, targets: tags, weights: [weight, tags], ragged: keep}",
            None,
            "fit.weights: expected dense weights to multiply, got ragged ones (ragged: keep)",
        ),
        (
            "{inputs: words, targets: row, weights: tags_mask}",
            None,
            "fit.weights: expected weights of no more dimensions than `row` has (1), got 2",
        ),
        (
            "{inputs: words, targets: tags}",
            lambda features: {**features, "tags": tf.cast(features["tags"], tf.uint8)},
            "fit.targets: expected a dtype for the padding -1 of `tags`, got uint8 from `map` "
            "(pad it there, or give it another `pad`)",
        ),
        (
            "{inputs: words, targets: tags}",
            lambda features: {"words": features["words"]},
            "fit.targets: expected words, got `tags` (`map` and `features` must leave it)",
        ),
        (
            "{inputs: words_mask}",
            lambda features: {**features, "words": features["words"].to_tensor()},
            "fit.inputs: expected a padded feature to mask, got `words`, string (None, None)",
        ),
    ],
)
def test_what_only_tensors_show_is_refused_before_the_first_batch(of_rows, fit, mapped, expected):
    with pytest.raises(rs.SpecError) as caught:
        of_rows(fit).dataset("train", map=mapped)
    assert str(caught.value) == expected


def test_what_map_makes_is_padded_in_its_own_dtype(of_rows):
    def mapped(features):
        more = tf.strings.length(features["words"])
        return {**features, "tags": tf.cast(features["tags"], tf.float32), "row": more}

    ((numbers, tags),) = of_rows("{inputs: row, targets: tags}").dataset("train", map=mapped)
    assert listed(numbers) == [[1, 0, 0, 0], [1] * 4, [0] * 4]
    assert tags.dtype == tf.float32
    assert listed(tags) == [[2, -1, -1, -1], [2] * 4, [-1] * 4]


def test_a_sparse_feature_that_is_shown_is_filled_with_its_padding(make, tmp_path):
    made = make("  ragged: keep\n")
    padded = SCHEMA.replace("size: 4}", "size: 4, pad: -1.0}")
    (tmp_path / "s.yaml").write_text(padded)
    expected = [[1, -1, -1, -1], [-1, 1, -1, -1]]
    for path in ("config.yaml", "all.yaml"):
        text = (tmp_path / "config.yaml").read_text()
        (tmp_path / "all.yaml").write_text(text.partition("fit:")[0])
        seen = rs.Pipeline.load(tmp_path / path).preview("train", 2)
        inputs = seen[0] if isinstance(seen, tuple) else seen
        assert inputs["gaps"].tolist() == expected
    assert made.schema.fingerprint == rs.Schema.loads(padded).fingerprint


SENTENCES = """\
schema: sentences
features:
  tokens: {kind: var_len, dtype: int64}
  tags: {kind: label, names: [a, b, c], shape: [null]PAD}
"""
SENTENCE_ROWS = [
    {"tokens": tokens, "tags": [token % 3 for token in tokens]}
    for tokens in ([5], [1, 2, 3, 4], [8, 8], [0, 5, 2, 2, 1, 7])
]


def trained(tmp_path, fit: str, pad: str = "", *, masked: bool = True):
    """The model after two steps of one batch, and its loss and accuracy."""
    import keras

    (tmp_path / "s.yaml").write_text(SENTENCES.replace("PAD", pad))
    (tmp_path / "config.yaml").write_text(f"schema: s.yaml\ndata: data\nread: {{batch: 4}}\nfit: {fit}\n")
    pipeline = rs.Pipeline.load(tmp_path / "config.yaml")
    pipeline.build(SENTENCE_ROWS, force=True)
    model = tagger(masked)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    model.compile(keras.optimizers.SGD(0.5), loss, weighted_metrics=["accuracy"], run_eagerly=True)
    model.fit(pipeline.dataset("train"), epochs=2, verbose=0)
    measured = model.evaluate(pipeline.dataset("train"), verbose=0)
    return model, measured


def tagger(masked: bool = True):
    """Each step looks at all the others, padded ones included, unless they are masked."""
    import keras

    keras.utils.set_random_seed(3)
    tokens = keras.Input([None], dtype="int64", name="tokens")
    mask = keras.Input([None], dtype="bool", name="tokens_mask")
    steps = keras.layers.Embedding(9, 4, embeddings_initializer="normal")(tokens)
    others = mask[:, None, :] if masked else keras.ops.ones_like(mask)[:, None, :]
    read = keras.layers.MultiHeadAttention(1, 4)(steps, steps, attention_mask=others)
    return keras.Model({"tokens": tokens, "tokens_mask": mask}, keras.layers.Dense(3)(steps + read))


def real_steps_alone():
    """The same two steps without Keras' `fit`, and each sentence without any padding: the mean over the real."""
    model = tagger()

    def each_step():
        for row in SENTENCE_ROWS:
            tokens = tf.constant([row["tokens"]], tf.int64)
            logits = model({"tokens": tokens, "tokens_mask": tf.ones_like(tokens, tf.bool)})
            labels = tf.constant([row["tags"]], tf.int64)
            yield (
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)[0],
                tf.argmax(logits, -1) == labels,
            )

    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.concat([losses for losses, _ in each_step()], 0))
        variables = model.trainable_variables
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.5 * tf.convert_to_tensor(gradient))
    losses, right = zip(*each_step(), strict=True)
    keep_rates = tf.cast(tf.concat([one[0] for one in right], 0), tf.float32)
    return model, [float(tf.reduce_mean(tf.concat(losses, 0))), float(tf.reduce_mean(keep_rates))]


def furthest(one, other) -> float:
    pairs = zip(one.get_weights(), other.get_weights(), strict=True)
    return max(float(np.abs(left - right).max()) for left, right in pairs)


def test_a_model_of_sequences_trains_on_real_steps_alone(tmp_path):
    alone, expected = real_steps_alone()
    fit = "{inputs: [tokens, tokens_mask], targets: tags, weights: tags_mask}"
    model, measured = trained(tmp_path, fit)
    assert furthest(model, alone) < 1e-5
    np.testing.assert_allclose(measured, expected, rtol=1e-5)
    # each of mask, padding and weights is needed: without it, what is asserted above fails
    unmasked, _ = trained(tmp_path, fit, masked=False)
    assert furthest(unmasked, alone) > 1e-3
    without_weights = "{inputs: [tokens, tokens_mask], targets: tags}"
    counted, _ = trained(tmp_path, without_weights, pad=", pad: 0")
    assert furthest(counted, alone) > 1e-2
    ignored, measured = trained(tmp_path, without_weights)
    assert furthest(ignored, alone) < 1e-5  # the loss knows -1
    assert abs(measured[1] - expected[1]) > 0.05  # accuracy does not
