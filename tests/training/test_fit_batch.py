"""`Pipeline.iterate` yields, without TensorFlow, what `Pipeline.dataset` yields: `training.encoding_arrays` and
`training.encoding_tensors` encode alike."""

from __future__ import annotations

import itertools
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import rows_to_encode
import tensorflow as tf

import recordspec as rs
from recordspec.errors import RecordError, SpecError, StoreError
from recordspec.schema.ragged_array import RaggedArray, SparseArray

SCHEMA = """
schema: s
features:
  n: int64
  picture: {dtype: float32, shape: [2, 3]}
  words: {kind: var_len, dtype: string}
  pairs: {kind: var_len, dtype: float32, pad: -1.0}
  lists: {kind: ragged, dtype: int64, shape: [null, null], pad: -7}
  gaps: {kind: sparse, dtype: float32, size: 30}
  padded: {kind: var_len, dtype: int64, as: dense, pad: -1, with_length: true}
  photo: {kind: image, shape: [2, 3, 3]}
  side: {kind: label, names: [left, right]}
  sides: {kind: label, names: [left, right], shape: [null]}
  text: {dtype: string, default: "", with_missing: true}
  number: {dtype: int64, default: 0, with_missing: true}
"""
GLOBAL = "shuffle: {global: true, seed: 5}"
ALL = "[n, picture, words, pairs, lists, gaps, padded, side, sides, text, number]"
FITS = {
    "features": "",
    "all": f"fit: {{inputs: {ALL}}}",
    "kept": f"fit: {{inputs: {ALL}, ragged: keep}}",
    "one": "fit: {inputs: picture}",
    "lengths": "fit: {inputs: [words, pairs, lists], targets: side, pad_to: {pairs: 5, words: 3}}",
    "padded": "fit: {inputs: [n, padded, padded_length], targets: side}",
    "weights": "fit: {inputs: [n, pairs, gaps], targets: sides, weights: [n, sides_mask]}",
    "a weight": "fit: {inputs: n, targets: side, weights: n}",
    "by target": "fit: {inputs: [n, pairs_mask, padded_mask, lists_mask, gaps_mask], targets: [side, n],"
    " weights: {side: n}}",
    "encoded": "fit: {inputs: [text, words, number, pairs, lists, side], targets: sides, encode: {text: words,"
    " words: {as: index, max_tokens: 4}, number: one_hot, pairs: normalize, lists: count, side: one_hot,"
    " sides: multi_hot}, pad_to: {words: 4}}",
    "encoded and kept": "fit: {inputs: [text, words, number], ragged: keep, encode: {text: words, words: index,"
    " number: {as: discretize, bins: 3}}}",
    "cut words": "fit: {inputs: text, targets: n, encode: {text: {as: words, length: 2, max_tokens: 6,"
    " standardize: lower}, n: index}}",
    "encoded targets": "fit: {inputs: n, targets: [text, words], encode: {text: {as: one_hot, max_tokens: 4},"
    " words: index, n: normalize}}",
}


def row(n: int) -> dict[str, object]:
    made = {
        "n": n,
        "picture": np.full((2, 3), n / 100, np.float32),
        "words": ["né", "b", "c"][: n % 4],
        "pairs": [0.1 * n, 2, -1][: n % 4],
        "lists": [[n % 3] * k for k in range(n % 3)],
        "gaps": ([n % 30], [0.5]) if n % 2 else ([], []),
        "padded": [n % 5] * (n % 4),
        "photo": np.full((2, 3, 3), n, np.uint8),
        "side": n % 2,
        "sides": [1, 0, 1][: n % 4],
        "text": ["Né, a!", "", " b  a ", "[UNK] c.c", "tab\tA"][n % 5],
        "number": n % 7 - 3,
    }
    for name in ("text", "number") if n % 6 == 0 else ():
        del made[name]
    return made


@pytest.fixture(scope="module", params=["rows", "{blocks: 7}"])
def home(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("home")
    (folder / "s.yaml").write_text(SCHEMA)
    pipeline(folder, layout=request.param).build([row(n) for n in range(100)], progress=False)
    return folder


def pipeline(folder, read="batch: 8", fit="features", layout="rows") -> rs.Pipeline:
    (folder / "config.yaml").write_text(
        f"schema: s.yaml\ndata: data\nwrite: {{shards: 3, shuffle: null, layout: {layout},"
        f" splits: {{train: 80, test: 20}}}}\nread: {{{read}}}\n{FITS.get(fit, fit)}\n"
    )
    return rs.Pipeline.load(folder / "config.yaml")


def in_numpy(tensor):
    """A tensor as `iterate` yields it."""
    if isinstance(tensor, tf.RaggedTensor):
        return RaggedArray(in_numpy(tensor.values), tensor.row_lengths().numpy())
    if isinstance(tensor, tf.sparse.SparseTensor):
        return SparseArray(tensor.indices.numpy(), tensor.values.numpy(), tuple(tensor.dense_shape.numpy()))
    return tensor.numpy()


def differences(yielded, expected, path=()) -> list:
    """The paths of values that are not equal, in type, shape and each item."""
    if isinstance(expected, dict):
        assert list(yielded) == list(expected)
        pairs = [(name, yielded[name], expected[name]) for name in expected]
        return [one for name, *both in pairs for one in differences(*both, (*path, name))]
    if isinstance(expected, tuple):
        pairs = enumerate(zip(yielded, expected, strict=True))
        return [one for place, both in pairs for one in differences(*both, (*path, place))]
    made = in_numpy(expected)
    if isinstance(made, RaggedArray):
        parts = [(yielded.lengths, made.lengths), (yielded.flat, made.flat)]
        values, others = yielded.values, made.values
        while isinstance(others, RaggedArray):
            parts.append((values.lengths, others.lengths))
            values, others = values.values, others.values
    elif isinstance(made, SparseArray):
        assert yielded.shape == made.shape
        parts = [(yielded.indices, made.indices), (yielded.values, made.values)]
    else:
        parts = [(yielded, made)]
    same = all(a.dtype == b.dtype and a.shape == b.shape and (a == b).all() for a, b in parts)
    return [] if same else [(path, yielded, made)]


def check(made: rs.Pipeline, split="train", **options) -> int:
    """Every batch of both is the same. Returns how many there are."""
    count = 0
    for yielded, expected in itertools.zip_longest(
        made.iterate(split, **options), made.dataset(split, **options)
    ):
        assert differences(yielded, expected) == []
        count += 1
    return count


@pytest.mark.parametrize("fit", FITS)
def test_batches_are_those_of_the_dataset(home, fit):
    made = pipeline(home, f"batch: 8, {GLOBAL}", fit)
    assert check(made) == made.steps("train")


@pytest.mark.parametrize(
    "read",
    [
        "batch: 8",
        "batch: {size: 9, drop_remainder: true}, repeat: 3",
        f"batch: 8, {GLOBAL}, repeat: 2, prefetch: null",
        "batch: 4, bucket: {by: pairs, boundaries: [1, 2]}",
        f"batch: {{size: 3, drop_remainder: true}}, {GLOBAL}, bucket: {{by: text, boundaries: [1, 6]}}, repeat: 2",
        "batch: 4, bucket: {by: n, boundaries: [20, 50]}",
        "batch: 4, bucket: {by: gaps, boundaries: [1]}, features: [n, gaps]",
        f"batch: 8, {GLOBAL}, features: [text, n], prefetch: 5",
    ],
)
def test_options_of_reading_mean_the_same(home, read):
    if "features" not in read:  # some of them, as each takes a while to trace
        read += ", features: [n, pairs, text]"
    assert check(pipeline(home, read)) > 2
    every = lambda features: features["n"] % 3 > 0  # noqa: E731
    assert check(pipeline(home, read), filter=every) > 2


def test_words_are_what_a_bucket_of_texts_compares(home):
    fit = "fit: {inputs: text, encode: {text: words}}"
    assert check(pipeline(home, "batch: 4, bucket: {by: text, boundaries: [1, 2]}", fit)) > 20


def test_it_begins_at_any_position(home):
    for read in (f"batch: 8, {GLOBAL}, repeat: 2", "batch: 4, bucket: {by: pairs, boundaries: [1, 2]}"):
        made = pipeline(home, read, "fit: {inputs: [n, pairs]}")
        for start in ((0, 3), (1, 0), (1, 9)):
            assert check(made, start=start) > 0
    made = pipeline(home, f"batch: 8, {GLOBAL}")
    steps = made.steps("train")
    with pytest.raises(SpecError, match=rf"^start.step: expected at most {steps}, the steps of an epoch"):
        made.iterate("train", start=(0, steps + 1))
    with pytest.raises(SpecError, match=r"^start.batch: expected 8, the rows per batch that are read, got 4"):
        made.iterate("train", start=made.position(0, 1, batch=4))
    assert len(list(made.iterate("train", start=made.position(0, 4)))) == steps - 4


def test_functions_take_and_return_values_of_numpy(home):
    made = pipeline(home, "batch: 8", "fit: {inputs: [n, twice], targets: side, derived: [twice]}")
    plain = [inputs["n"] for inputs, _ in made.iterate("train", map=lambda f: {**f, "twice": 2 * f["n"]})]
    assert np.concatenate(plain).tolist() == sorted(np.concatenate(plain).tolist())
    mapped = made.iterate(
        "train",
        map=lambda features: {**features, "twice": 2 * features["n"]},
        filter=lambda features: (features["n"] > 9) & (features["pairs"].lengths > 0),
        map_fit=lambda inputs, targets: (inputs["twice"] - inputs["n"], targets),
    )
    kept = np.concatenate([inputs for inputs, _ in mapped])
    assert kept.tolist() == [n for n in np.concatenate(plain) if n > 9 and n % 4]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ({"filter": lambda features: features["m"] > 1}, r"^filter: expected one of n, .*, got `m`"),
        ({"filter": lambda features: features["n"]}, r"^filter: expected a bool for each row, \[n\], got int64"),
        ({"map": lambda features: features["n"]}, "^map: expected a dict of features from `map`, got ndarray$"),
        ({"map": lambda features: features["m"]}, "^map: expected one of n, .*, got `m`"),
        ({"map_fit": lambda inputs, targets: 1}, "^map_fit: expected .inputs, targets. or .*, got int$"),
        ({"map": lambda features: {**features, "pairs": [1]}}, "^map: expected arrays of NumPy from `map`, got list for `pairs`"),
        ({"encoders": {}}, "^encoders: expected an encoder for each name of `fit.encode`, got none for `pairs`"),
    ],
)  # fmt: skip
def test_functions_are_checked(home, function, message):
    fit = "fit: {inputs: [n, pairs], targets: side, encode: {pairs: normalize}}"
    with pytest.raises(SpecError, match=message):
        list(pipeline(home, "batch: 8", fit).iterate("train", **function))


@pytest.mark.parametrize(
    ("read", "message"),
    [
        ("", "read.batch: expected a batch without TensorFlow, got none"),
        ("batch: 8, shuffle: {seed: 1}", "read.shuffle: expected `global: true` without TensorFlow, got a buffer"),
        ("batch: 8, cache: memory", "read.cache: expected none without TensorFlow, got `memory`"),
        ("batch: 8, interleave: {block: 1}", "read.interleave: expected none without TensorFlow, got `interleave`"),
        ("batch: 8, corrupt: skip", "read.corrupt: expected none without TensorFlow, got `skip`"),
        ("batch: 8, balance: {by: side, seed: 1}", "read.balance: expected none without TensorFlow, got `balance`"),
        ("batch: 8, service: 'grpc://localhost:1'", "read.service: expected none without TensorFlow, got `grpc"),
    ],
)  # fmt: skip
def test_what_needs_tensorflow_is_refused(home, read, message):
    with pytest.raises(SpecError, match=f"^{re.escape(message)}"):
        pipeline(home, read).iterate("train")


def test_values_that_do_not_fit_are_refused(home):
    with pytest.raises(RecordError, match=r"^fit.pad_to.pairs: expected at most 2 values in a row, got 3$"):
        list(pipeline(home, "batch: 8", "fit: {inputs: pairs, pad_to: {pairs: 2}}").iterate("train"))
    made = pipeline(home, "batch: 8", "fit: {inputs: n, targets: text, encode: {text: index}}")
    encoders = made.encoders("test")
    state = {"vocabulary": [text for text in encoders["text"].vocabulary if text]}
    encoders["text"] = type(encoders["text"])(**{**vars(encoders["text"]), "state": state})
    message = r"^fit.encode.text: expected one of .*, as in the training split, got `` "
    with pytest.raises(RecordError, match=message):
        list(made.iterate("train", encoders=encoders))
    with pytest.raises(
        SpecError, match=r"^workers: expected 1, as batches depend on the values of rows, got 2"
    ):
        made.iterate("train", filter=lambda features: features["n"] > 1, workers=2)
    with pytest.raises(StoreError, match="none"):
        made.iterate("none")
    looked_at: list[int] = []
    endless = made.iterate(
        "train", filter=lambda some: looked_at.extend(some["n"]) or some["n"] < 0, repeat="forever"
    )
    with pytest.raises(
        SpecError, match=r"^read.repeat: expected a batch in every pass, which `forever` repeats"
    ):
        next(endless)
    assert len(looked_at) == len(made.open("train"))  # once


def test_large_integers_keep_their_indices(small):
    fit = "{inputs: x, targets: y, encode: {x: index}}"
    features = "{x: {kind: tensor, dtype: uint64, shape: []}, y: int64}"
    some = [{"x": np.uint64((1 << 60) + n % 5), "y": n} for n in range(8)]
    assert check(small(fit, features, some)) == 2


def test_an_input_that_is_changed_in_place_is_no_target(home):
    def noisy(inputs, targets):
        for name in ("n", "picture"):
            inputs[name] += 1
        inputs["pairs"].flat[:] = 0
        return inputs, targets

    names = "[n, picture, pairs]"
    made = pipeline(home, "batch: 8", f"fit: {{inputs: {names}, targets: {names}, ragged: keep}}")
    plain = [targets for _, targets in made.iterate("train")]
    changed = list(made.iterate("train", map_fit=noisy))
    for (inputs, targets), expected in zip(changed, plain, strict=True):
        for name in ("n", "picture"):
            np.testing.assert_array_equal(targets[name], expected[name])
            np.testing.assert_array_equal(inputs[name], expected[name] + 1)
        np.testing.assert_array_equal(targets["pairs"].flat, expected["pairs"].flat)


@pytest.mark.parametrize("how", ["index", "one_hot"])
def test_a_target_of_any_integers_is_encoded(small, how):
    some = [{"x": n, "y": (7, 5, 6)[n % 3]} for n in range(8)]
    classes = [7, 5, 6]
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"):
        features = f"{{x: float32, y: {{kind: tensor, dtype: {dtype}}}}}"
        made = small(f"{{inputs: x, targets: y, encode: {{y: {how}}}}}", features, some)
        assert sorted(made.class_names()) == sorted(map(str, classes))
        order = [int(name) for name in made.class_names()]
        for inputs, targets in made.iterate("train"):
            wanted = [order.index(classes[int(x) % 3]) for x in inputs]
            assert (targets if how == "index" else targets.argmax(1)).tolist() == wanted
        assert check(made) == 2


def test_a_missing_label_is_zeros_as_an_input_and_refused_as_a_target(small):
    label = "{kind: label, names: [a, b], missing: true}"
    some = [{"x": n, "c": (0, 1, None)[n % 3], "y": None if n == 5 else n % 2} for n in range(8)]
    features = f"{{x: float32, c: {label}, y: {label}}}"
    made = small("{inputs: c, encode: {c: one_hot}}", features, some)
    assert check(made) == 2
    assert next(made.iterate("train"))[:3].tolist() == [[1, 0], [0, 1], [0, 0]]
    made = small("{inputs: x, targets: y, encode: {y: one_hot}}", features, some)
    message = "expected a class of `y` in every row, got a row without one"
    with pytest.raises(
        RecordError, match=rf"^fit.targets: {message} .`targets=False` leaves the targets out"
    ):
        list(made.iterate("train"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(made.dataset("train"))
    for read in (made.preview, partial(made.bench, seconds=0.01)):
        with pytest.raises(RecordError, match=f"^fit.targets: {message}"), made.locating():
            read("train")
    assert made.preview("train", 3, targets=False).tolist() == [0, 1, 2]
    assert next(iter(made.input_fn("train", targets=False)())).shape == (4,)
    assert made.bench("train", seconds=0.01, targets=False).stages[-1].name == "whole"
    labelled = {"filter": lambda features: features["y"] >= 0}
    assert check(made, **labelled) == 2
    assert sum(len(targets) for _, targets in made.iterate("train", **labelled)) == 7
    weighed = small("{inputs: x, targets: y, weights: x}", features, some)
    assert next(weighed.iterate("train"))[1].tolist() == [0, 1, 0, 1]


def test_rows_may_lack_the_targets(small):
    """As those of a test set do: `t` has no class for them, and `y` a default that is no target."""
    features = (
        '{x: float32, t: {dtype: string, default: ""}, y: {dtype: float32, default: 0.0, with_missing: true}}'
    )
    some = [{"x": n} for n in range(8)]
    fit = "{inputs: x, targets: [t, y], weights: {y: x}, pad_to: {}, encode: {x: normalize, t: index}}"
    made = small(fit, features, some)
    encoders = made.encoders()
    encoders["t"] = replace(encoders["t"], state={"vocabulary": ["a", "b"]})  # those of a training split
    with pytest.raises(
        RecordError, match=r"^fit.encode.t: expected one of `a`, `b`, as in the training split, got `` "
    ):
        list(made.iterate("train", encoders=encoders))
    for mapped in (None, lambda features: features):
        assert check(made, targets=False, map=mapped, encoders=encoders) == 2
    inputs = np.concatenate(list(made.iterate("train", targets=False)))
    np.testing.assert_allclose(inputs.std(), 1, 1e-6)
    assert isinstance(next(made.keras_dataset("train", targets=False).as_numpy_iterator()), np.ndarray)
    plain = rs.Pipeline(replace(made.config, fit=None), made.schema, made.folder)
    with pytest.raises(SpecError, match=r"^targets: expected true without `fit` in the config, got false$"):
        plain.dataset("train", targets=False)


TRANSLATIONS = [
    ("Go now!", "Geh jetzt!"),
    ("a cat", "eine Katze"),
    ("", "x"),
    ("Who?", ""),
    ("b", "[END] geh geh x"),
]


@pytest.mark.parametrize("length", [None, 3])
@pytest.mark.parametrize("end", [True, False])
def test_a_target_of_words_begins_and_ends(small, length, end):
    """The shifted target is one step behind it, and masks come from the numbers of words."""
    options = f"{{as: words, max_tokens: {7 + end}{f', length: {length}' if length else ''}{'' if end else ', end: false'}}}"
    fit = (
        "{inputs: [en, en_mask, de_shifted], targets: de, weights: [w, de_mask], encode: {en: words, de: %s}}"
    )
    some = [{"en": en, "de": de, "w": 0.5} for en, de in TRANSLATIONS]
    made = small(fit % options, "{en: text, de: text, w: float32}", some)
    encoder = made.encoders()["de"]
    words = encoder.vocabulary
    assert made.class_names() == ("", "[UNK]", *words, "[START]", "[END]")[: 7 + end]
    assert len(words) == 4
    start, of = len(words) + 2, {word: 2 + index for index, word in enumerate(words)}
    split = {
        "Geh jetzt!": ["geh", "jetzt"],
        "eine Katze": ["eine", "katze"],
        "[END] geh geh x": ["end", *["geh"] * 2, "x"],
    }
    for batches in (made.iterate("train"), made.dataset("train").as_numpy_iterator()):
        number = 0
        for inputs, targets, weights in batches:
            for row in range(len(targets)):
                en, de = TRANSLATIONS[number]
                number += 1
                ids = [of.get(word, 1) for word in split.get(de, de.split())]
                wanted = ([*ids, start + 1] if end else ids)[:length]
                before = [start, *ids][: len(wanted)]
                rest = [0] * (targets.shape[1] - len(wanted))
                assert targets[row].tolist() == wanted + rest
                assert inputs["de_shifted"][row].tolist() == before + rest
                assert weights[row].tolist() == [0.5] * len(wanted) + rest
                assert int(inputs["en_mask"][row].sum()) == len(en.split())
                assert bool(inputs["en_mask"][row].all()) == (len(en.split()) == inputs["en"].shape[1])
        assert number == len(TRANSLATIONS)
    assert check(made) == 2
    assert check(made, targets=False) == 2
    assert check(small((fit % options).replace(", en_mask", "").replace("weights: [w, de_mask]", "ragged: keep"),
                       "{en: text, de: text, w: float32}", some)) == 2  # fmt: skip


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (
            "inputs: [x, y_shifted], targets: y, encode: {y: index}",
            "fit.inputs: expected `y` as a target, encoded as words, for `y_shifted`, got none",
        ),
        (
            "inputs: x, targets: y, weights: y_shifted, encode: {y: words}",
            "fit.weights: expected an input, for `y_shifted`, got none",
        ),
        (
            "inputs: x, targets: y, encode: {x: {as: words, end: false}, y: words}",
            "fit.encode.x.end: expected none for an input, got false",
        ),
        ("inputs: x, encode: {x: {as: index, end: false}}", "fit.encode.x.end: expected none with `as: index`, got false"),
        (
            "inputs: x_mask, targets: y, ragged: keep, encode: {x: words, y: words}",
            "fit.encode.x: expected y, got `x`",
        ),
        (
            "inputs: x, targets: y, encode: {y: {as: words, max_tokens: 4}}",
            "fit.encode.y: expected `max_tokens` of at least 5, as 4 are no words, got 4",
        ),
    ],
)  # fmt: skip
def test_words_of_targets_that_cannot_be_are_refused(small, fit, message):
    with pytest.raises(SpecError) as caught:
        small(f"{{{fit}}}", "{x: text, y: text}", [{"x": "a", "y": "b"}]).iterate("train")
    assert str(caught.value).endswith(message)


def test_classes_of_an_encoded_target_are_weighed(small):
    some = [{"x": n, "y": "abbb"[n % 4]} for n in range(8)]
    made = small("{inputs: x, targets: y, encode: {y: index}}", "{x: float32, y: text}", some)
    assert made.class_weights("train") == {0: 8 / (2 * 2), 1: 8 / (2 * 6)}  # scikit-learn's "balanced"


def test_another_training_split_is_named(small):
    made = small("{inputs: x, targets: y, encode: {x: normalize}}")
    config = made.folder / "c.yaml"
    config.write_text(config.read_text() + "write: {splits: {fold: 1}}\n")
    made = rs.Pipeline.load(config)
    made.build([{"x": n / 2, "y": n} for n in range(8)], force=True, progress=False)
    with pytest.raises(StoreError, match=r"^encoders: .*`encoders=pipeline.encoders\(SPLIT\)` takes another"):
        made.iterate("fold")
    assert len(list(made.iterate("fold", encoders=made.encoders("fold")))) == 2


def test_workers_share_each_batch(home):
    made = pipeline(home, f"batch: 8, {GLOBAL}", "one")
    whole = list(made.iterate("train", start=(3, 0)))
    parts = [list(made.iterate("train", start=(3, 0), worker=worker, workers=3)) for worker in range(3)]
    for step, batch in enumerate(whole):
        for worker in range(3):
            np.testing.assert_array_equal(parts[worker][step], batch[worker::3])


def test_threads_end_with_the_loop(home):
    before = set(threading.enumerate())  # threads of earlier tests may not have ended

    def ours() -> list[str]:
        names = [thread.name for thread in threading.enumerate() if thread not in before]
        return sorted(name for name in names if name in ("decode", "prefetch"))

    processors = len(os.sched_getaffinity(0))
    for fit, count in (("features", processors), ("lengths", 1)):  # several for what has a picture
        iterator = pipeline(home, "batch: 1", fit).iterate("train")
        next(iterator)
        assert ours().count("decode") == count
        del iterator
    iterator = pipeline(home, f"batch: 1, {GLOBAL}, repeat: forever").iterate("train")
    for _ in range(3):
        next(iterator)
    assert set(ours()) == {"decode", "prefetch"}
    del iterator
    assert ours() == []
    broken = pipeline(home, "batch: 1").iterate("train", map=lambda features: {**features, "n": 1 / 0})
    with pytest.raises(ZeroDivisionError) as caught:
        next(broken)
    assert ours() == []
    assert caught.traceback


@pytest.fixture
def ctrl_c():
    """Sends SIGINT to this process. It raises KeyboardInterrupt here, even if the shell that started pytest ignores it,
    and system calls are restarted after its handler, as they are once Polars is imported."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.siginterrupt(signal.SIGINT, False)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_ends_a_filter_that_finds_no_rows(home, monkeypatch, ctrl_c):
    """The filter sees no row after the interrupt; a pass has 86."""
    looked_at, stopped, was_stopped = itertools.count(), threading.Event(), []
    monkeypatch.setattr("recordspec.arrays.iterate._SHAPED", 1)
    monkeypatch.setattr("recordspec.arrays.iterate.Event", lambda: stopped)

    def none(features):
        if next(looked_at) == 3:
            ctrl_c()
            was_stopped.append(stopped.wait(60))
        return features["n"] < 0

    with pytest.raises(KeyboardInterrupt):
        next(pipeline(home, "batch: 8, repeat: forever").iterate("train", filter=none))
    assert was_stopped == [True]
    assert next(looked_at) == 4


def test_a_derived_input_needs_a_function_that_adds_it(home):
    derived = pipeline(home, "batch: 8", "fit: {inputs: [n, z], derived: [z]}")
    with pytest.raises(
        SpecError, match=r"fit.inputs: expected one of n, .*text.*, got `z` \(`map` must add it\)"
    ):
        next(derived.iterate("train"))


def test_encoders_are_data(home):
    made = pipeline(home, "batch: 8", "encoded")
    encoders = pickle.loads(pickle.dumps(made.encoders()))
    assert encoders == made.encoders()
    for one, other in zip(made.iterate("test", encoders=encoders), made.iterate("test"), strict=True):
        np.testing.assert_equal(one, other)


def test_inputs_are_encoded_without_tensorflow(pipeline_to_encode):
    program = (
        "import pickle, sys; import recordspec as rs;"
        "made = rs.Pipeline.load('c.yaml'); (made.data / 'layers.json').unlink(missing_ok=True);"
        "print(pickle.dumps(list(made.iterate('test'))).hex()); assert 'tensorflow' not in sys.modules"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=pipeline_to_encode.folder, capture_output=True, text=True
    )
    assert run.stderr == ""
    batches = pickle.loads(bytes.fromhex(run.stdout))
    for yielded, expected in zip(batches, pipeline_to_encode.dataset("test"), strict=True):
        assert differences(yielded, expected) == []


@pytest.fixture
def pipeline_to_encode(tmp_path):
    (tmp_path / "s.yaml").write_text(rows_to_encode.SCHEMA)
    (tmp_path / "c.yaml").write_text(rows_to_encode.CONFIG)
    made = rs.Pipeline.load(tmp_path / "c.yaml")
    made.build(rows_to_encode.rows(600), progress=False)
    return made


@pytest.mark.parametrize(("name", "package"), [("torch_dataset", "PyTorch"), ("jax_dataset", "JAX")])
def test_a_framework_that_is_not_installed_is_named(home, monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, name.partition("_")[0], None)
    with pytest.raises(rs.MissingExtra, match=rf"^expected {package} for .*\(pip install 'recordspec\["):
        getattr(pipeline(home), name)("train")
