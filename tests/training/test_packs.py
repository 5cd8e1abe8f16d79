"""Packs of the values that `fit` selects: against a loop over the rows that `which` names, on NumPy and TensorFlow."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

import recordspec as rs
from recordspec.errors import RecordError, SpecError
from shell import run

SCHEMA = """
schema: docs
features:
  tokens: {kind: ragged, dtype: int64, shape: [null]}
  tags: {kind: var_len, dtype: int64}
  steps: {kind: fixed_len_sequence, dtype: float32, shape: [2]}
  summary: {kind: ragged, dtype: int64, shape: [null]}
  weight: float32
  topic: {kind: label, names: [a, b, c]}
  text: string
"""
CONFIG = """
schema: s.yaml
data: {data}
write: {{splits: {{train: 4, eval: 1}}, layout: {layout}, shards: 2}}
read: {{batch: 3, shuffle: {{global: true, seed: 5}}, pack: {{length: 48, most: 9}}}}
fit: {fit}
"""
FITS = {
    "next": "{inputs: tokens, targets: tokens_next}",
    "tags": "{inputs: [tokens, steps, topic], targets: [tags, topic], weights: {topic: weight}}",
    "two lengths": "{inputs: [tokens, topic], targets: summary, weights: weight}",
    "words": "{inputs: text, targets: text_next, encode: {text: words}}",
}
IN_LANES = {"batch": 6, "shuffle": {"lanes": 12, "window": 10, "seed": 5}}
OPTIONS = {
    "plain": {},
    "separator": {"separator": 99},
    "split": {"length": 16, "longer": "split", "weights": "document"},
    "truncate": {"length": 16, "longer": "truncate", "separator": 99},
    "drop": {"length": 16, "longer": "drop", "align": 8},
}


def row(n: int) -> dict[str, object]:
    rng = np.random.default_rng(n)
    size = int(rng.integers(0, 40)) if n % 17 else 0
    return {
        "tokens": rng.integers(1, 90, size),
        "tags": rng.integers(1, 5, size),
        "steps": rng.normal(size=(size, 2)).astype(np.float32),
        "summary": rng.integers(1, 90, int(rng.integers(0, 12))),
        "weight": n / 8,
        "topic": n % 3,
        "text": " ".join(f"w{i % 7}" for i in range(size)),
    }


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    (folder / "s.yaml").write_text(SCHEMA)
    for layout in ("rows", "{blocks: 16}"):
        name = "rows" if layout == "rows" else "blocks"
        (folder / "c.yaml").write_text(CONFIG.format(data=name, layout=layout, fit=FITS["next"]))
        rs.Pipeline.load(folder / "c.yaml").build([row(n) for n in range(200)])
    return folder


@pytest.fixture
def made(home):
    """The pipeline of a selection."""

    def make(fit: str = "next", data: str = "rows") -> rs.Pipeline:
        layout = "rows" if data == "rows" else "{blocks: 16}"
        (home / "c.yaml").write_text(CONFIG.format(data=data, layout=layout, fit=FITS.get(fit, fit)))
        return rs.Pipeline.load(home / "c.yaml")

    return make


def by_hand(pipeline: rs.Pipeline, epoch: int, step: int, pack: dict, **options) -> dict[str, np.ndarray]:
    """Tokens, their segments, places, next tokens and weights, of a batch of packs."""
    rows = pipeline.open("train")
    numbers = {
        (path, record, at): n for n, (path, record, at) in enumerate(rows.places(np.arange(len(rows))))
    }
    length, separator = pack.get("length", 48), pack.get("separator")
    longer, align = pack.get("longer", "error"), pack.get("align", 1)
    names = ("tokens", "segments", "places", "next")
    found = {name: np.zeros((3, length), np.int64) for name in names} | {"weights": np.zeros((3, length))}
    ends = [0, 0, 0]
    for one in pipeline.which(epoch, step, pack={"length": 48, "most": 9, **pack}, **options):
        place = next(
            n
            for (path, record, at), n in numbers.items()
            if (str(path), record, at) == (one["file"], one["record"], one.get("row", 0))
        )
        values = [*rows[place]["tokens"].tolist(), *([] if separator is None else [separator])]
        if longer == "truncate":
            values = values[:length]
        part = values[one["start"] : one["start"] + length]
        weight = 1 / max(1, len(values) - 1) if pack.get("weights") == "document" else 1
        for within, token in enumerate(part):
            at = (one["pack"], ends[one["pack"]] + within)
            following = one["start"] + within + 1
            found["tokens"][at], found["segments"][at], found["places"][at] = token, one["segment"], within
            if following < len(values):
                found["next"][at], found["weights"][at] = values[following], weight
        ends[one["pack"]] += -(-len(part) // align) * align
    return found


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("data", ["rows", "blocks"])
def test_packs_are_those_of_a_loop(data, options, made):
    pipeline, pack = made(data=data), OPTIONS[options]
    for shuffle in ({"global": True, "seed": 5}, None):
        chosen = {"pack": {"length": 48, "most": 9, **pack}, "shuffle": shuffle}
        batches = list(pipeline.iterate("train", start=(1, 0), **chosen))
        assert len(batches) == pipeline.steps("train", **chosen) == pipeline.packs("train", **chosen).steps
        for step in (0, 1, len(batches) - 1):
            inputs, targets, weights = batches[step]
            wanted = by_hand(pipeline, 1, step, pack, shuffle=shuffle)
            np.testing.assert_array_equal(inputs["tokens"], wanted["tokens"])
            np.testing.assert_array_equal(inputs["tokens_segment_ids"], wanted["segments"])
            np.testing.assert_array_equal(inputs["tokens_positions"], wanted["places"])
            # a target without a weight is not the next value of its row
            np.testing.assert_array_equal(np.where(weights > 0, targets, 0), wanted["next"])
            np.testing.assert_allclose(weights, wanted["weights"], rtol=1e-6)


@pytest.mark.parametrize(
    ("data", "read"),
    [("rows", {}), ("rows", IN_LANES), ("blocks", IN_LANES)],
)
def test_every_row_of_a_pass_is_seen_once_by_any_workers_and_resumptions(data, read, made):
    pipeline = made(data=data)
    whole = list(pipeline.iterate("train", **read))
    held = sum(len(row["tokens"]) > 0 for row in pipeline.open("train"))
    places = [
        (one["file"], one["record"], one.get("row"))
        for step in range(len(whole))
        for one in pipeline.which(0, step, **read)
    ]
    assert len(set(places)) == len(places) == held
    assert pipeline.steps("train", **read) == len(whole) == pipeline.packs("train", **read).steps
    for workers in (1, 2, 3):
        parts = [
            list(pipeline.iterate("train", worker=worker, workers=workers, **read))
            for worker in range(workers)
        ]
        for step, (inputs, targets, weights) in enumerate(whole):
            for worker, part in enumerate(parts):
                assert_same(
                    part[step],
                    (
                        {name: value[worker::workers] for name, value in inputs.items()},
                        targets[worker::workers],
                        weights[worker::workers],
                    ),
                )
                own = pipeline.which(0, step, worker=worker, workers=workers, **read)
                names, every = [one["record"] for one in own], pipeline.which(0, step, **read)
                assert names == [one["record"] for one in every if one["pack"] % workers == worker]
    rng = np.random.default_rng(1)
    for start in rng.integers(0, len(whole), 3).tolist():
        resumed = pipeline.iterate("train", start=(0, start), **read)
        for one, other in zip(resumed, whole[start:], strict=True):
            assert_same(one, other)


def assert_same(one, other) -> None:
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_same(one[name], other[name])
    elif isinstance(one, tuple):
        for some in zip(one, other, strict=True):
            assert_same(*some)
    else:
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_features_of_rows_are_in_the_order_of_the_segments(made):
    pipeline = made("tags")
    for step, (inputs, targets, weights) in enumerate(pipeline.iterate("train")):
        rows = pipeline.open("train")
        numbers = {
            (str(path), record): n for n, (path, record, _) in enumerate(rows.places(np.arange(len(rows))))
        }
        assert inputs["topic"].shape == weights["topic"].shape == (3, 9)
        seen = np.zeros((3, 9), bool)
        for one in pipeline.which(0, step):
            values, at = rows[numbers[one["file"], one["record"]]], (one["pack"], one["segment"] - 1)
            seen[at] = True
            own = inputs["tokens_segment_ids"][one["pack"]] == one["segment"]
            assert (inputs["topic"][at], weights["topic"][at]) == (values["topic"], values["weight"])
            np.testing.assert_array_equal(inputs["steps"][one["pack"]][own], values["steps"])
            np.testing.assert_array_equal(targets["tags"][one["pack"]][own], row_tags(values))
        assert (weights["topic"][~seen] == 0).all()
        np.testing.assert_array_equal(weights["tags"], inputs["tokens_segment_ids"] > 0)
        # one set of segments for features whose rows have the same lengths
        assert set(inputs) == {"tokens", "steps", "topic"} | {
            f"{name}_{end}" for name in ("tokens", "steps") for end in ("segment_ids", "positions")
        }


def row_tags(values: dict) -> np.ndarray:
    tags = values["tags"]
    return tags.values if isinstance(tags, rs.SparseArray) else tags


def test_a_target_of_other_lengths_has_segments_of_its_own(made):
    pack = {"length": {"tokens": 48, "summary": 20}, "most": 9}
    for inputs, targets, weights in made("two lengths").iterate("train", pack=pack):
        assert inputs["tokens"].shape == (3, 48)
        assert inputs["summary_segment_ids"].shape == targets.shape == weights.shape == (3, 20)
        np.testing.assert_array_equal(weights > 0, (inputs["summary_segment_ids"] > 0) & (weights > 0))
    with pytest.raises(SpecError, match=r"pack.length: expected the length of `summary` in a pack, got none"):
        next(made("two lengths").iterate("train", pack={"length": {"tokens": 48}, "most": 9}))


def test_the_sums_of_losses_are_those_of_the_unpacked_rows(made):
    """For evaluation, over all workers: the last packs are empty, with weight 0."""
    pipeline = made()
    parts = [
        (int((targets * (weights > 0)).sum()), int(weights.sum()), len(weights))
        for worker in range(3)
        for _, targets, weights in pipeline.iterate("eval", shuffle=None, worker=worker, workers=3)
    ]
    rows = [row["tokens"] for row in pipeline.open("eval")]
    assert sum(total for total, _, _ in parts) == sum(int(tokens[1:].sum()) for tokens in rows)
    assert sum(weight for _, weight, _ in parts) == sum(max(0, len(tokens) - 1) for tokens in rows)
    assert {size for _, _, size in parts} == {1}


def test_the_names_of_other_trainers(made):
    pipeline = made()
    inputs, targets, weights = next(pipeline.iterate("train"))

    def packed(names: str):
        return next(pipeline.iterate("train", pack={"length": 48, "most": 9, "names": names}))

    maxtext = packed("maxtext")
    np.testing.assert_array_equal(maxtext["tokens_segmentation"], inputs["tokens_segment_ids"])
    np.testing.assert_array_equal(maxtext["tokens_next_segmentation"] > 0, weights > 0)
    t5x = packed("t5x")
    assert sorted(t5x) == [
        "decoder_input_tokens",
        "decoder_loss_weights",
        "decoder_positions",
        "decoder_segment_ids",
        "decoder_target_tokens",
    ]
    np.testing.assert_array_equal(t5x["decoder_target_tokens"], targets)
    given, labels = packed("torchtitan")
    assert sorted(given) == ["input", "positions"]
    np.testing.assert_array_equal(labels, np.where(weights > 0, targets, -100))
    hf = packed("hf")
    assert hf["input_ids"].shape == (1, 144)
    ends = hf["cu_seq_lens_q"]
    assert (ends[0], ends[-1]) == (0, 144)
    segments = inputs["tokens_segment_ids"].reshape(-1)
    for start, stop in pairwise(ends.tolist()):  # one row, or padding
        assert len(np.unique(segments[start:stop])) == 1
        assert hf["labels"][0, start] == -100
    later = hf["labels"][0] != -100
    np.testing.assert_array_equal(hf["labels"][0][later], inputs["tokens"].reshape(-1)[later])
    assert later.sum() == weights.sum()


def test_the_lengths_are_counted_once(made, home, monkeypatch):
    pipeline = made()
    pipeline.packs("train")
    monkeypatch.setattr(rs.Pipeline, "_batches", None)
    assert pipeline.packs("train").packs == made().packs("train").packs
    (home / "rows/lengths.npz").write_bytes(b"PK")
    monkeypatch.undo()
    with pytest.warns(UserWarning, match=r"the lengths for `read.pack` are counted again: .*lengths.npz"):
        assert made().packs("train").rows == len(pipeline.open("train"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"pack": {"length": 30}},
            r"read.pack: expected at most 30 values of `tokens` in a row, got 3\d in row",
        ),
        ({"shuffle": {"buffer": 10}}, "shuffle.buffer: expected none with packs, got a buffer"),
        ({"bucket": {"by": "tokens", "boundaries": [8]}}, "bucket: expected none with packs"),
        ({"batch": None}, "pack: expected a batch of packs, got none"),
        (
            {"filter": lambda features: features["topic"] > 0},
            "filter: expected none with packs, got a filter",
        ),
        ({"pack": {"length": 30, "align": 4}}, "pack.length: expected a multiple of `align`, 4, got 30"),
        ({"pack": None}, "read.pack: expected `read.pack`, for the target `tokens_next`, got none"),
        ({"pack": {"length": {"tokens": 48, "topics": 4}}}, "length.topics: expected tokens, got `topics`"),
    ],
)
def test_what_packs_refuse(options, message, made):
    with pytest.raises(SpecError, match=message):
        next(made().iterate("train", **options))


def test_features_that_need_the_rows_of_a_pack(made):
    with pytest.raises(
        SpecError, match=r"read.pack.most: expected the largest number of rows in a pack, for `topic`"
    ):
        next(made("{inputs: [tokens, topic]}").iterate("train", pack=48))
    with pytest.raises(
        SpecError, match=r"read.pack: expected a feature whose rows differ in length to pack, got none"
    ):
        next(made("{inputs: topic}").iterate("train"))


def test_a_map_that_changes_the_lengths_each_time_is_refused(made):
    rng = np.random.default_rng(1)

    def cut(features):
        return {**features, "tokens": rs.RaggedArray(*cut_rows(features["tokens"], rng))}

    with pytest.raises(
        RecordError, match=r"row \d+: read.pack: expected \d+ values of `tokens`, as counted for the packs"
    ):
        list(made().iterate("train", map=cut))


def cut_rows(tokens, rng):
    lengths = np.minimum(tokens.lengths, rng.integers(1, 40, len(tokens)))
    rows = [one[:size] for one, size in zip(tokens, lengths, strict=True)]
    return np.concatenate(rows), lengths


@pytest.mark.parametrize("data", ["rows", "blocks"])
@pytest.mark.parametrize("fit", FITS)
def test_tensors_are_the_arrays(fit, data, made):
    tf = pytest.importorskip("tensorflow")
    pipeline, several = made(fit, data), {"start": (0, 20), "repeat": 2}
    for options in ({}, several, IN_LANES, {"pack": {"length": 48, "most": 9, "names": "hf"}}):
        if "pack" in options and fit != "next":
            continue
        dataset = pipeline.dataset("train", **options)
        arrays = list(pipeline.iterate("train", **options))
        assert options is several or len(arrays) == int(dataset.cardinality())
        for one, other in zip(dataset.as_numpy_iterator(), arrays, strict=True):
            assert_same(one, other)
        if "pack" not in options:
            tf.nest.map_structure(lambda spec: spec.shape.assert_is_fully_defined(), dataset.element_spec[0])


def test_tensors_of_a_worker_a_map_and_a_preview(made):
    tf = pytest.importorskip("tensorflow")
    pipeline = made()

    def longer(features):
        return {**features, "tokens": tf.concat([features["tokens"], features["tokens"][:, :1]], 1)}

    dataset = pipeline.dataset(
        "train", map=longer, map_fit=lambda inputs, targets, weights: (inputs, targets, weights * 2)
    )
    found = [weights.numpy().sum() for _, _, weights in dataset]
    held = [len(row["tokens"]) for row in pipeline.open("train") if len(row["tokens"])]
    assert sum(found) == 2 * sum(held)  # one more value in each row, and all but the last weigh 2
    context = tf.distribute.InputContext(num_input_pipelines=3, input_pipeline_id=1, num_replicas_in_sync=3)
    for one, other in zip(
        pipeline.input_fn("train")(context).as_numpy_iterator(),
        pipeline.iterate("train", worker=1, workers=3),
        strict=True,
    ):
        assert_same(one, other)
    assert pipeline.preview("train", rows=2)[0]["tokens"].shape == (2, 48)
    assert pipeline.bench("train", seconds=0.01).stages[-1].rows > 0


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """The folder of three datasets, of which the tokens of each are of its own."""
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "s.yaml").write_text(SCHEMA)
    for number, (name, rows) in enumerate({"books": 90, "wiki": 40, "code": 15}.items()):
        (folder / f"{name}.yaml").write_text(f"schema: s.yaml\ndata: {name}\nwrite: {{shards: 2}}\n")
        made = [{**row(n), "tokens": np.full(1 + n % 30, 1000 * (number + 1) + n)} for n in range(rows)]
        rs.Pipeline.load(folder / f"{name}.yaml").build(made)
    for name, packs in (("mix", "one"), ("rows", "mixed")):
        (folder / f"{name}.yaml").write_text(
            "mix: {datasets: {books: books.yaml, wiki: wiki.yaml, code: code.yaml},"
            f" weights: {{books: 5, wiki: 2, code: 1}}, end: all, packs: {packs}}}\n"
            "read: {batch: 4, shuffle: {global: true, seed: 3}, pack: 48}\n"
            "fit: {inputs: tokens, targets: tokens_next}\n"
        )
    return folder


def test_packs_are_mixed_by_their_weights(several):
    mixture = rs.Pipeline.load(several / "mix.yaml")
    batches = list(mixture.iterate("train"))
    plan = mixture.plan("train")
    assert len(batches) == mixture.steps("train") == mixture.packs("train").steps
    packs = np.concatenate([inputs["tokens"].max(1) // 1000 for inputs, _, _ in batches])
    whole = np.concatenate(
        [inputs["tokens"].min(1, where=inputs["tokens"] > 0, initial=9999) for inputs, _, _ in batches]
    )
    assert (whole // 1000 == packs).all()  # a pack is of one dataset
    counts = np.bincount(packs)[1:]
    assert counts.tolist() == plan.counts()
    found = mixture.packs("train")
    assert found.packs == len(packs)
    filled = np.mean([(inputs["tokens_segment_ids"] > 0).mean() for inputs, _, _ in batches])
    assert found.fill["tokens"] == pytest.approx(filled, abs=0.02)
    assert (np.abs(counts - len(packs) * np.array([5, 2, 1]) / 8) <= 2).all()
    # each row of a dataset comes once in each of its passes
    for number, size in enumerate(plan.rows):
        own = [inputs["tokens"] for inputs, _, _ in batches]
        rows = [np.unique(pack) for batch in own for pack in batch if pack.max() // 1000 == number + 1]
        first = np.concatenate(rows[:size])
        first = first[first > 0]
        assert len(np.unique(first)) == len(first) == len(mixture.pipelines[plan.names[number]].open("train"))
    named = mixture.which(1, 2)
    assert {"dataset", "pack", "segment", "record"} <= named[0].keys()
    inputs = next(mixture.iterate("train", start=(1, 2)))[0]
    for one in named:
        values = inputs["tokens"][one["pack"]][inputs["tokens_segment_ids"][one["pack"]] == one["segment"]]
        assert plan.names[values[0] // 1000 - 1] == one["dataset"]
    with pytest.raises(
        SpecError, match=r"`books`: read.pack: expected at most 20 values of `tokens` in a row"
    ):
        mixture.iterate("train", pack=20)
    parts = [list(mixture.iterate("train", worker=worker, workers=2)) for worker in range(2)]
    for step, (inputs, _, _) in enumerate(batches):
        for worker, part in enumerate(parts):
            np.testing.assert_array_equal(part[step][0]["tokens"], inputs["tokens"][worker::2])


def test_packs_are_mixed_in_lanes(several):
    mixture = rs.Pipeline.load(several / "mix.yaml")
    read = {"shuffle": {"lanes": 2, "window": 20, "seed": 3}}
    batches = list(mixture.iterate("train", **read))
    plan, found = mixture.plan("train", **read), mixture.packs("train", **read)
    packs = np.concatenate([inputs["tokens"] for inputs, _, _ in batches])
    assert len(packs) == plan.epoch_rows == found.packs == 4 * mixture.steps("train", **read)
    datasets = packs.max(1) // 1000
    assert ((packs // 1000 == datasets[:, None]) | (packs == 0)).all()  # a pack is of one dataset
    for number, (own, name) in enumerate(zip(plan.counts(), plan.names, strict=True), 1):
        assert abs(own - len(packs) * [5, 2, 1][number - 1] / 8) <= 4  # two packs in each lane
        # lanes with fewer packs have empty ones
        assert own - 2 * own // 3 <= (datasets == number).sum() <= own
        firsts = np.concatenate([np.unique(pack) for pack in packs[datasets == number]])
        rows, times = np.unique(firsts[firsts > 0], return_counts=True)
        assert len(rows) == len(mixture.pipelines[name].open("train"))
        assert times.max() - times.min() <= 1
    parts = [list(mixture.iterate("train", worker=worker, workers=2, **read)) for worker in range(2)]
    for step, (inputs, _, _) in enumerate(batches):
        for worker, part in enumerate(parts):
            np.testing.assert_array_equal(part[step][0]["tokens"], inputs["tokens"][worker::2])
    (inputs, _, _), *_ = mixture.iterate("train", start=(0, 3), **read)
    np.testing.assert_array_equal(inputs["tokens"], batches[3][0]["tokens"])
    assert {one["dataset"] for one in mixture.which(0, 3, **read)} <= {*plan.names}


def test_rows_are_mixed_before_they_are_packed(several):
    """Packs have rows of several datasets, of which each epoch has the same numbers."""
    mixture = rs.Pipeline.load(several / "rows.yaml")
    plan, found = mixture.plan("train"), mixture.packs("train")
    held = [sum(len(row["tokens"]) > 0 for row in one.open("train")) for one in mixture.pipelines.values()]
    assert list(plan.rows) == held
    counts = np.array(plan.counts())
    assert (np.abs(counts - counts.sum() * np.array([5, 2, 1]) / 8) <= 2).all()
    batches = list(mixture.iterate("train", repeat=3))
    assert len(batches) == 3 * found.steps == mixture.steps("train", repeat=3)
    rows, several_in_a_pack = [], 0
    for inputs, _, _ in batches:
        tokens, segments = inputs["tokens"], inputs["tokens_segment_ids"]
        for pack, own in zip(tokens, segments, strict=True):
            values = [pack[own == segment] for segment in range(1, own.max() + 1)]
            assert all((one == one[0]).all() and len(one) == 1 + one[0] % 1000 % 30 for one in values)
            rows.extend(int(one[0]) for one in values)
            several_in_a_pack += len({one[0] // 1000 for one in values}) > 1
    assert np.bincount(np.array(rows) // 1000)[1:].tolist() == (3 * counts).tolist()
    assert several_in_a_pack > len(batches)
    for number, (size, read) in enumerate(zip(held, counts.tolist(), strict=True), 1):
        times = np.unique([row for row in rows if row // 1000 == number], return_counts=True)[1]
        assert len(times) == size
        assert times.max() - times.min() <= 1
        assert times.sum() == 3 * read
    named = mixture.which(1, 2)
    inputs = next(mixture.iterate("train", start=(1, 2)))[0]
    assert len({one["dataset"] for one in named}) > 1
    for one in named:
        values = inputs["tokens"][one["pack"]][inputs["tokens_segment_ids"][one["pack"]] == one["segment"]]
        assert plan.names[values[0] // 1000 - 1] == one["dataset"]
    for workers in (2, 4):
        parts = [list(mixture.iterate("train", worker=one, workers=workers)) for one in range(workers)]
        for step, (inputs, _, _) in enumerate(batches[: found.steps]):
            for worker, part in enumerate(parts):
                np.testing.assert_array_equal(part[step][0]["tokens"], inputs["tokens"][worker::workers])
    table, steps, epoch_rows = mixture.explain()
    assert (steps, epoch_rows) == (found.steps, counts.sum())
    told = [json.loads(line) for line in run("explain", several / "rows.yaml").stdout.splitlines()]
    assert [one["rows"] for one in told[:3]] == held
    assert told[3] == {"steps": found.steps, "rows": int(counts.sum())}
    assert (told[4]["packs"], told[4]["steps"]) == (found.packs, found.steps)
    assert [one["read"] for one in table] == counts.tolist()
    of_tokens = rs.mix(
        mixture.pipelines,
        {"books": 1, "wiki": 1, "code": 1},
        seed=3,
        end="all",
        packs="mixed",
        count="tokens",
        read={"batch": 4, "pack": 48},
        fit={"inputs": "tokens"},
    )
    assert [one["share"] for one in of_tokens.explain()[0]] == pytest.approx([1 / 3] * 3, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"cap": 2},
            r"^cap: expected none with `packs: mixed`, got some \(each epoch has the same number of",
        ),
        ({"end": "never", "steps": 3}, r"^steps: expected none with `packs: mixed`, got some"),
        ({"batch": "one"}, r"^batch: expected `mixed` with `packs: mixed`, got `one`$"),
        ({"count": "packs"}, r"^count: expected `rows` or `tokens` with `packs: mixed`, got packs$"),
        ({"read": {}}, r"^mix.packs: expected none without `read.pack`, got mixed$"),
    ],
)
def test_what_mixed_rows_in_packs_refuse(options, message, several):
    pipelines = rs.Pipeline.load(several / "mix.yaml").pipelines
    with pytest.raises(SpecError, match=message):
        rs.mix(pipelines, seed=1, packs="mixed", **{"read": {"batch": 4, "pack": 48}, **options})


def test_rows_in_blocks_are_not_mixed_before_they_are_packed(several):
    for name in ("books", "wiki"):
        text = (several / f"{name}.yaml").read_text().replace(f"data: {name}", f"data: blocks/{name}")
        (several / f"{name}_blocks.yaml").write_text(text.replace("{shards: 2}", "{layout: {blocks: 4}}"))
        rs.Pipeline.load(several / f"{name}_blocks.yaml").build([row(n) for n in range(9)])
    pipelines = {name: several / f"{name}_blocks.yaml" for name in ("books", "wiki")}
    mixture = rs.mix(
        pipelines, seed=1, packs="mixed", read={"batch": 4, "pack": 48}, fit={"inputs": "tokens"}
    )
    message = "mix.packs: expected datasets of the layout `rows`, got blocks .a pack would have rows of many"
    with pytest.raises(SpecError, match=message):
        mixture.packs("train")


@pytest.mark.parametrize("name", ["mix.yaml", "rows.yaml"])
def test_tensors_of_mixed_packs_are_the_arrays(name, several):
    pytest.importorskip("tensorflow")
    mixture = rs.Pipeline.load(several / name)
    for options in ({}, {"start": (1, 3)}):
        arrays = list(mixture.iterate("train", **options))
        for one, other in zip(mixture.dataset("train", **options).as_numpy_iterator(), arrays, strict=True):
            assert_same(one, other)
    with pytest.raises(SpecError, match="map: expected none of tensors in a mixture of packs"):
        mixture.dataset("train", map=lambda features: features)
