"""Mixtures of datasets: shares, passes, the same global batches for all, and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recordspec as rs
from selection import scaled
from shell import run

SIZES = {"books": 100, "wiki": 57, "web": 23}
READ = {"batch": 10}


def written(folder: Path, name: str, rows: int, layout: str = "rows", more: str = "") -> rs.Pipeline:
    (folder / f"{name}_schema.yaml").write_text(f"schema: s\nfeatures: {{id: int64, x: float32{more}}}")
    (folder / f"{name}.yaml").write_text(
        f"schema: {name}_schema.yaml\ndata: data/{name}\n"
        f"write: {{key: id, splits: {{train: 1}}, shards: 2, layout: {layout}}}\n"
    )
    pipeline = rs.Pipeline.load(folder / f"{name}.yaml")
    base = 1000 * [*SIZES, name].index(name)
    pipeline.build([{"id": base + row, "x": row / 2} | ({"y": 1} if more else {}) for row in range(rows)])
    return pipeline


@pytest.fixture(scope="module", params=["rows", "{blocks: 16}"])
def pipelines(request, tmp_path_factory) -> dict[str, rs.Pipeline]:
    folder = tmp_path_factory.mktemp("mixed")
    return {name: written(folder, name, rows, request.param) for name, rows in SIZES.items()}


def ids(batches) -> list[list[int]]:
    return [np.asarray(batch["id"]).tolist() for batch in batches]


MIXES = [
    {"weights": {"books": 3, "wiki": 1, "web": 0.5}, "end": "all"},
    {"weights": {"books": 5, "wiki": 4, "web": 1}},
    {"end": "without_replacement", "weights": {"books": 1, "wiki": 1, "web": 4}},
    {"repetitions": {"web": 2.5, "books": 0.5}},
    {"temperature": 3, "end": "never", "steps": 13},
    {"temperature": 1, "batch": "one"},
    {"end": "never", "steps": 9, "cap": {"web": 1.5, "wiki": 1}},
    {
        "end": "never",
        "steps": 7,
        "stages": [
            {"from": 0, "weights": {"books": 1}},
            {"from": 3, "weights": {"books": 1, "wiki": 2}},
            {"from": 10, "weights": {"web": 1, "wiki": 1}},
        ],
    },
]


@given(
    mixed=st.sampled_from(MIXES),
    seed=st.integers(-3, 1 << 40),
    chain=st.lists(st.tuples(st.sampled_from([1, 2, 3, 5, 8]), st.integers(1, 6)), min_size=1, max_size=4),
    drop=st.booleans(),
)
@settings(max_examples=scaled(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_workers_and_any_chain_of_resumptions_have_the_same_global_batches(
    pipelines, mixed, seed, chain, drop
):
    read = {"batch": {"size": 10, "drop_remainder": drop or "repetitions" in mixed}}
    mixture = rs.mix(pipelines, seed=seed, read=read, **mixed)
    steps = mixture.steps("train")
    wanted = [batch for epoch in (0, 1) for batch in ids(mixture.iterate("train", start=(epoch, 0)))]
    got, at = [], 0
    for workers, count in [*chain, (1, 2 * steps)]:
        count = min(count, 2 * steps - at)
        parts = [
            ids(
                batch
                for epoch in (at // steps, 1)[: 1 + (at < steps)]
                for batch in mixture.iterate(
                    "train",
                    worker=worker,
                    workers=workers,
                    start=(epoch, at % steps if epoch == at // steps else 0),
                )
            )[:count]
            for worker in range(workers)
        ]
        for number in range(count):
            batch = np.empty(sum(len(part[number]) for part in parts), np.int64)
            for worker, part in enumerate(parts):
                batch[worker::workers] = part[number]
            got.append(batch.tolist())
        at += count
    assert got == wanted


@pytest.mark.parametrize(
    "mixed",
    [
        {"weights": {"books": 3, "wiki": 1, "web": 0.5}, "end": "all"},
        {"weights": {"books": 5, "wiki": 4, "web": 1}, "end": "never", "steps": 8},
        {"temperature": 2},
    ],
)
def test_lanes_are_mixed_each_by_itself(pipelines, mixed):
    read = {"batch": 10, "shuffle": {"lanes": 20, "window": 2}}
    mixture = rs.mix(pipelines, seed=4, read=read, **mixed)
    whole, plan = ids(mixture.iterate("train", repeat=2)), mixture.plan("train")
    steps = mixture.steps("train")
    assert plan.epoch_rows % 20 == 0
    assert len(whole) == 2 * steps
    rows = [row for batch in whole for row in batch]
    counts = np.bincount([row // 1000 for row in rows], minlength=3)
    assert counts.tolist() == plan.counts(2)
    shares = np.array(plan.stages[0].weights) / sum(plan.stages[0].weights)
    assert (np.abs(counts - len(rows) * shares) <= 2 * 20).all()
    lanes = np.array(rows).reshape(-1, 20).T
    for lane in lanes:
        assert (np.abs(np.bincount(lane // 1000, minlength=3) - len(lane) * shares) <= 2).all()
        for dataset, size in enumerate(SIZES.values()):
            own = [row for row in lane if row // 1000 == dataset]
            held = len(set(own)) if len(own) >= size // 20 + 1 else 0
            if held:  # a pass of a lane has each of its rows once
                assert len(set(own[: size // 20])) == size // 20
    if mixed.get("end") == "all":
        assert len({row for batch in whole[:steps] for row in batch}) == sum(SIZES.values())
    if "temperature" in mixed:
        first = [row for batch in whole[:steps] for row in batch]
        assert len(set(first)) == len(first)
    for workers in (2, 5, 10):
        parts = [ids(mixture.iterate("train", worker=one, workers=workers)) for one in range(workers)]
        for step, batch in enumerate(whole[:steps]):
            assert [part[step] for part in parts] == [batch[one::workers] for one in range(workers)]
    assert ids(mixture.iterate("train", start=(1, 2))) == whole[steps + 2 :]
    assert [row["dataset"] for row in mixture.which(1, 2)] == [
        list(SIZES)[row // 1000] for row in whole[steps + 2]
    ]


@pytest.mark.tensorflow
def test_tensorflow_has_the_same_batches_of_lanes(pipelines):
    read = {"batch": 10, "shuffle": {"lanes": 20, "window": 2}}
    mixture = rs.mix(pipelines, {"books": 3, "wiki": 1, "web": 0.5}, seed=4, end="all", read=read)
    assert ids(mixture.dataset("train")) == ids(mixture.iterate("train"))
    assert ids(mixture.dataset("train", start=(1, 3))) == ids(mixture.iterate("train", start=(1, 3)))


def test_what_lanes_do_not_mix(pipelines):
    read = {"batch": 10, "shuffle": {"lanes": 20}}
    for options, message in (
        ({"repetitions": {"web": 2}}, r"^mix.repetitions: expected none with `shuffle.lanes`, got some"),
        ({"end": "without_replacement"}, r"^mix.end: expected another value with `shuffle.lanes`"),
        ({"batch": "one"}, r"^mix.batch: expected another value with `shuffle.lanes`, got `one`"),
        ({"read": {**read, "pack": 8}, "packs": "mixed"}, r"^mix.packs: expected `one` with `shuffle.lanes`"),
        (
            {"end": "never", "steps": 3},
            r"^mix.steps: expected a multiple of 2, so that 20 lanes have equally many rows, got 3$",
        ),
        ({"read": {"batch": 10, "shuffle": {"lanes": 24}}}, r"^mix.web: expected at least 24 rows, one for"),
        (
            {"read": {"batch": 10, "shuffle": {"lanes": 20, "seed": 1}}},
            r"^read.shuffle: expected `global` or `lanes`, as `seed` is given, got",
        ),
    ):
        with pytest.raises(rs.SpecError, match=message):
            rs.mix(pipelines, seed=1, **{"read": read, **options}).steps("train")


def datasets_of(batch: list[int]) -> list[int]:
    return [number // 1000 for number in batch]


def test_an_epoch_ends_as_it_should(pipelines):
    def counts(epochs=1, **mixed):
        mixture = rs.mix(pipelines, seed=5, read=READ, **mixed)
        batches = [
            batch for epoch in range(epochs) for batch in ids(mixture.iterate("train", start=(epoch, 0)))
        ]
        assert len(batches) == epochs * mixture.steps("train")
        rows = [row for batch in batches for row in batch]
        found = np.bincount(datasets_of(rows), minlength=3).tolist()
        assert mixture.plan().counts(epochs) == found
        return found, rows

    found, rows = counts(weights={"books": 5, "wiki": 4, "web": 1})
    assert found == [70, 56, 14]  # with whole batches, before the 58th row of wiki
    assert len(set(rows)) == 140
    found, rows = counts(weights={"books": 1, "wiki": 1, "web": 1}, end="all")
    assert found == [100, 100, 100]
    assert len(set(rows)) == sum(SIZES.values())
    found, rows = counts(weights={"books": 1, "wiki": 1, "web": 4}, end="without_replacement")
    assert found == [*SIZES.values()]
    assert sorted(set(rows)) == sorted(rows)
    assert datasets_of(rows[:30]).count(2) == 20  # its share, until it leaves
    found, rows = counts(repetitions={"web": 2.5, "books": 0.5}, epochs=2)
    assert found == [100, 114, 114]
    assert all(rows.count(1000 * 2 + row) in (4, 5) for row in range(SIZES["web"]))
    assert len({row for row in rows if row < 1000}) == 100  # the second half in the second epoch
    found, rows = counts(end="never", steps=9, cap={"web": 1.5, "wiki": 1}, epochs=4)
    assert found == [360 - 57 - 34, 57, 34]
    found, _ = counts(temperature=1, batch="one")
    assert all(count % 10 == 0 for count in found)


def test_stages_begin_at_their_step_and_counts_go_on(pipelines):
    stages = [
        {"from": 0, "weights": {"books": 1}},
        {"from": 3, "weights": {"books": 1, "wiki": 1}},
        {"from": 9, "weights": {"wiki": 1}},
    ]
    mixture = rs.mix(pipelines, seed=5, read=READ, end="never", steps=4, stages=stages)
    batches = [batch for epoch in range(3) for batch in ids(mixture.iterate("train", start=(epoch, 0)))]
    found = [np.bincount(datasets_of(batch), minlength=2).tolist() for batch in batches]
    assert found == [[10, 0]] * 3 + [[5, 5]] * 6 + [[0, 10]] * 3
    rows = [row for batch in batches for row in batch]
    assert len({row for row in rows if row < 1000}) == 60  # no row of the first stage comes again in the next
    assert all(rows.count(row) == 1 for row in rows if row < 1000)


def test_a_batch_of_one_dataset(pipelines):
    mixture = rs.mix(pipelines, {"books": 2, "wiki": 1, "web": 1}, seed=5, read=READ, batch="one")
    batches = ids(mixture.iterate("train"))
    assert all(len(set(datasets_of(batch))) == 1 for batch in batches)
    assert [datasets_of(batch)[0] for batch in batches].count(0) in (4, 5)


@pytest.mark.slow
def test_tensorflow_has_the_same_batches(pipelines):
    for mixed in MIXES[::3]:
        mixture = rs.mix(pipelines, seed=7, read=READ, name_as="source", **mixed)
        data = mixture.dataset("train", start=(0, 2))
        for start in ((0, 2), (1, 0)):
            wanted = list(mixture.iterate("train", start=start))
            got = [{name: value.numpy() for name, value in batch.items()} for batch in data]
            assert len(got) == len(wanted) == mixture.steps("train") - start[1]
            for one, other in zip(got, wanted, strict=True):
                assert list(one) == list(other) == ["id", "x", "source"]
                for name in one:
                    np.testing.assert_array_equal(one[name], other[name], strict=True)
                assert one["source"].tolist() == datasets_of(one["id"].tolist())

    class Context:
        num_input_pipelines, num_replicas_in_sync = 2, 2

        def __init__(self, worker):
            self.input_pipeline_id = worker

    parts = [
        [batch["id"].numpy().tolist() for batch in mixture.input_fn("train")(Context(worker))]
        for worker in range(2)
    ]
    for whole, *divided in zip(ids(mixture.iterate("train")), *parts, strict=True):
        assert divided == [whole[0::2], whole[1::2]]


def test_a_row_alone_and_the_name_alone(pipelines):
    mixture = rs.mix(pipelines, seed=7, name_as="source")
    rows = [{name: value.numpy() for name, value in row.items()} for row in mixture.dataset("train").take(30)]
    assert [int(row["source"]) for row in rows] == datasets_of([int(row["id"]) for row in rows])
    named = rs.mix(pipelines, seed=7, name_as="source", read={"batch": 10, "features": ["source"]})
    first = next(named.iterate("train"))
    assert list(first) == ["source"]
    assert next(iter(named.dataset("train")))["source"].numpy().tolist() == first["source"].tolist()
    assert named.class_names("source") == tuple(SIZES)


def test_which_rows_a_step_had(pipelines):
    mixture = rs.mix(pipelines, seed=7, read=READ, end="never", steps=20)
    told = mixture.which(epoch=1, step=4)
    batch = ids(mixture.iterate("train", start=(1, 4)))[0]
    assert [row["id"] for row in told] == batch
    assert [row["dataset"] for row in told] == [[*SIZES][number] for number in datasets_of(batch)]
    one = told[3]
    pipeline = pipelines[one["dataset"]]
    place = [(str(path), *others) for path, *others in pipeline.open("train").places(range(23))]
    if (found := (one["file"], one["record"], one.get("row", 0))) in place:
        assert pipeline.open("train")[place.index(found)]["id"] == one["id"]
    assert [row["id"] for row in mixture.which(1, 4, worker=1, workers=3)] == batch[1::3]


def test_a_position_of_another_mixture_is_refused(pipelines):
    mixture = rs.mix(pipelines, seed=7, read=READ, end="never", steps=20)
    position = mixture.position(1, 3)
    assert position.order["mix"] == {
        "version": 1,
        "datasets": [*SIZES],
        "end": "never",
        "steps": 20,
    }
    assert ids(mixture.iterate("train", start=position)) == ids(mixture.iterate("train", start=(1, 3)))
    assert len(list(mixture.dataset("train", start=position))) == 17
    for other in (
        rs.mix(pipelines, {"books": 2, "wiki": 1, "web": 1}, seed=7, read=READ, end="never", steps=20),
        rs.mix(dict(reversed(pipelines.items())), seed=7, read=READ, end="never", steps=20),
    ):
        for open_it in (other.iterate, other.dataset):
            with pytest.raises(rs.SpecError, match=r"start\.order\.mix: expected"):
                open_it("train", start=position)


def test_rows_are_pickled(pipelines):
    import pickle

    rows = rs.mix(pipelines, seed=7, read=READ, name_as="source").open("train")
    again = pickle.loads(pickle.dumps(rows))
    assert again[[5, 150]]["source"].tolist() == [0, 1]
    order = [one._in_epoch(1, 3).rows_at(np.arange(30)).tolist() for one in (rows, again)]
    assert order[0] == order[1]


CONFIG = """
mix:
  datasets: {books: books.yaml, wiki: wiki.yaml}
  weights: {books: 3, wiki: 0.7}
  end: all
  name_as: source
read: {batch: 10, shuffle: {global: true, seed: 3}}
fit: {inputs: x, targets: source}
"""


@pytest.fixture
def mixed(tmp_path) -> Path:
    for name, rows in {"books": 100, "wiki": 57}.items():
        written(tmp_path, name, rows)
    (tmp_path / "mix.yaml").write_text(CONFIG)
    return tmp_path / "mix.yaml"


@pytest.mark.slow
def test_a_config_is_what_python_says(mixed, monkeypatch):
    config = rs.Pipeline.load(mixed)
    monkeypatch.chdir(mixed.parent)
    datasets = {"books": "books.yaml", "wiki": rs.Pipeline.load("wiki.yaml")}
    made = rs.mix(
        datasets,
        {"books": 3, "wiki": 0.7},
        seed=3,
        end="all",
        name_as="source",
        read=READ,
        fit={"inputs": "x", "targets": "source"},
    )
    assert repr(config) == repr(made) == "Mixture(books, wiki)"
    assert config.position(2, 3) == made.position(2, 3)
    for one, other in zip(config.iterate("train"), made.iterate("train"), strict=True):
        np.testing.assert_array_equal(one, other)
    assert config.explain() == (
        [
            {
                "dataset": "books",
                "rows": 100,
                "weight": "30",
                "share": 0.810810810811,
                "read": 243,
                "passes": 2.43,
                "short by": 143,
            },
            {
                "dataset": "wiki",
                "rows": 57,
                "weight": "7",
                "share": 0.189189189189,
                "read": 57,
                "passes": 1.0,
                "short by": 0,
            },
        ],
        30,
        300,
    )
    inputs, targets = config.preview("train", 3)
    assert (len(inputs), len(targets)) == (3, 3)
    done = run("explain", mixed)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        *config.explain()[0],
        {"steps": 30, "rows": 300},
    ]
    told = [json.loads(line) for line in run("which", mixed, "--step", "4").stdout.splitlines()]
    assert [(row["dataset"], row["id"]) for row in told] == [
        (row["dataset"], row["id"]) for row in config.which(0, 4)
    ]
    assert run("lint", mixed).stdout == f"{mixed}: no problems\n"


REFUSED = {
    "wiki: 0.7": (
        "wik: 1",
        "4:12: mix.weights: expected a weight for each dataset, got none for wiki\n"
        "4:28: mix.weights.wik: expected one of books, wiki, got `wik` (did you mean `wiki`?)",
    ),
    "wiki: wiki.yaml": (
        "wiki: wika.yaml",
        "3:39: mix.datasets.wiki: `FOLDER/wika.yaml` does not exist (did you mean `wiki.yaml`?)",
    ),
    "end: all": (
        "end: never",
        "3:3: mix.steps: expected a number with `end: never`, got none (it is how long an epoch is)",
    ),
    "books.yaml": (
        "mix.yaml",
        "3:21: mix.datasets.books: expected the config of one dataset, got a mixture (name its datasets)",
    ),
    "wiki.yaml": (
        "books.yaml",
        "3:39: mix.datasets.wiki: expected other data than that of `books`, got `FOLDER/data/books` "
        "(`weights` say how often it is read)",
    ),
    "global: true": (
        "buffer: 10",
        "7:28: read.shuffle: expected `global: true` or `lanes` in a mixture, got a buffer "
        "(write `shuffle: {global: true, seed: 1}`)",
    ),
    "batch: 10": (
        "batch: 10, bucket: {by: x, boundaries: [1]}, cache: memory",
        "7:27: read.bucket: expected none in a mixture, got `bucket` "
        "(the values of rows would decide batches, and not the weights)\n"
        "7:60: read.cache: expected none in a mixture, got `cache` (files are mapped into memory)",
    ),
    "seed: 3}": (
        "seed: 3}, pack: {length: 8}",
        "6:12: mix.name_as: expected none with `read.pack`, got one",
    ),
    "inputs: x": ("inputs: z", "8:15: fit.inputs: expected one of id, x, source, got `z`"),
    "name_as: source": ("name_as: x", "6:12: mix.name_as: expected a name that no feature has, got `x`"),
    "mix:\n": (
        "data: d\nmix:\n",
        "2:1: data: expected no `data` beside `mix`, got one (the configs of its datasets have it)",
    ),
    "end: all\n": (
        "end: all\n  stages: [{from: 1, weights: {books: 1}}, {from: 0, weights: {}}]\n",
        "6:11: mix.stages: expected none with `weights`, got some\n"
        "6:19: mix.stages[0].from: expected 0, the first step, got 1\n"
        "6:51: mix.stages[1].from: expected more than 1, the step before, got 0\n"
        "6:63: mix.stages[1].weights: expected at least one, got none",
    ),
    "weights: {books: 3, wiki: 0.7}\n": (
        "repetitions: {books: 0, wiki: -1}\n  cap: 3\n  batch: one\n",
        "4:24: mix.repetitions.books: expected a number above 0, got 0\n"
        "4:33: mix.repetitions.wiki: expected a number above 0, got -1\n"
        "5:8: mix.cap: expected none with `repetitions`, got some (it says how often a dataset is read)\n"
        "6:10: mix.batch: expected none with `repetitions`, got some "
        "(the rows that do not fill a batch would be left out)\n"
        "7:8: mix.end: expected none with `repetitions`, got `all` "
        "(an epoch ends when each dataset is read as often)",
    ),
}


def test_a_config_is_refused_with_the_place_and_a_hint(mixed):
    bad = mixed.parent / "bad.yaml"
    for old, (new, problems) in REFUSED.items():
        bad.write_text(CONFIG.replace(old, new))
        with pytest.raises(rs.SpecError) as error:
            rs.Pipeline.load(bad)
        wanted = [f"{bad}:{line}" for line in problems.replace("FOLDER", str(mixed.parent)).split("\n")]
        assert str(error.value).split("\n") == wanted


def test_only_features_in_common_are_read(tmp_path):
    books = written(tmp_path, "books", 100)
    web = written(tmp_path, "web", 23, more=", y: int64")
    mixture = rs.mix({"books": books, "web": web}, seed=1, read=READ)
    assert list(mixture.schema.names) == ["id", "x"]
    assert list(next(mixture.iterate("train"))) == ["id", "x"]
    other = rs.Schema.loads("schema: s\nfeatures: {id: string, x: float32}")
    another = rs.Pipeline(rs.Pipeline.load(tmp_path / "web.yaml").config, other, tmp_path)
    with pytest.raises(
        rs.SpecError, match=r"mix\.datasets\.web: expected `id` as in `books`, got another one \(`read: "
    ):
        rs.mix({"books": books, "web": another}, seed=1)
    only_x = rs.mix({"books": books, "web": another}, seed=1, read={"features": ["x"]})
    assert list(only_x.schema.names) == ["x"]


def test_what_cannot_be_read_says_what_is_missing(pipelines):
    def mixture(**options):
        return rs.mix(pipelines, seed=1, **{"read": READ, **options})

    for made, problem in (
        (
            lambda: mixture(end="never", steps=100, cap=1).plan(),
            "mix: expected 1,000 rows in an epoch, got 180, 820 too few; the smallest dataset, `web`, has 23 rows "
            "(a higher cap, fewer steps or a smaller batch)",
        ),
        (
            lambda: mixture(end="all", stages=[{"from": 0, "weights": {"books": 1, "wiki": 1}}]).plan(),
            "mix.end: expected all rows of each dataset, got the last stage, in which `web` has no weight "
            "(`end: first`, or a stage that reads it)",
        ),
        (
            lambda: list(mixture(end="never", steps=10, cap=1).iterate("train", start=(1, 0))),
            "epoch: expected an epoch below 1, as datasets have reached their `cap`, got 1",
        ),
        (
            lambda: mixture(end="never", steps=10, cap=1, read={"batch": 10, "repeat": 2}).open("train"),
            "read.repeat: expected at most 1, as all datasets have reached their `cap` then, got 2",
        ),
        (
            lambda: mixture().dataset("train", filter=lambda features: features["x"] > 1),
            "filter: expected none in a mixture, got one "
            "(the values of rows would decide batches; write the rows to read into a dataset)",
        ),
        (
            lambda: mixture().build(),
            "build: expected the pipeline of one dataset, got a mixture (build each of its datasets)",
        ),
        (
            lambda: rs.mix([1, 2], seed=1, cap=1),
            "cap: expected none for tf.data datasets, got some (a mapping of pipelines has it)",
        ),
    ):
        with pytest.raises(rs.SpecError) as error:
            made()
        assert str(error.value) == problem


def listed(folder: Path, name: str, low: int, high: int, rows: int) -> rs.Pipeline:
    (folder / "lists.yaml").write_text(
        "schema: s\nfeatures: {id: int64, tokens: {kind: var_len, dtype: int64}, side: {kind: label, names: [a, b]}}"
    )
    (folder / f"{name}.yaml").write_text(
        f"schema: lists.yaml\ndata: data/{name}\nwrite: {{splits: {{train: 1}}, shards: 2}}\n"
    )
    pipeline = rs.Pipeline.load(folder / f"{name}.yaml")
    rng = np.random.default_rng(low)
    lengths = rng.integers(low, high, rows)
    pipeline.build(
        [{"id": high, "tokens": np.full(length, high), "side": row % 2} for row, length in enumerate(lengths)]
    )
    return pipeline


def test_weights_count_rows_packs_or_tokens(tmp_path):
    pipelines = {"short": listed(tmp_path, "short", 1, 6, 900), "long": listed(tmp_path, "long", 20, 31, 500)}
    weights = {"short": 2, "long": 1}

    def shares(count, **read):
        mixture = rs.mix(pipelines, weights, seed=3, end="never", steps=40, count=count, read=read)
        batches = list(mixture.iterate("train"))
        tokens = np.concatenate(
            [np.asarray(getattr(one["tokens"], "values", one["tokens"])).ravel() for one in batches]
        )
        of_rows = sum(row["dataset"] == "short" for step in range(40) for row in mixture.which(0, step))
        rows = sum(len(mixture.which(0, step)) for step in range(40))
        report, steps, units = mixture.explain()
        assert (steps, report[0]["share"]) == (40, pytest.approx(2 / 3, abs=1e-9))
        return of_rows / rows, (tokens == 6).sum() / (tokens > 0).sum(), report[0]["read"] / units

    assert shares(None, batch=30)[0] == pytest.approx(2 / 3, abs=0.002)
    assert shares("rows", batch=30) == shares(None, batch=30)
    # one pass has the share of its rows; 40 steps are parts of passes, whose rows are longer or shorter
    assert shares("tokens", batch=30)[1] == pytest.approx(2 / 3, abs=0.01)
    pack = {"length": 64, "most": 64}
    assert shares("packs", batch=4, pack=pack)[2] == pytest.approx(2 / 3, abs=0.01)
    assert shares("rows", batch=4, pack=pack)[0] == pytest.approx(2 / 3, abs=0.03)
    assert shares("tokens", batch=4, pack=pack)[1] == pytest.approx(2 / 3, abs=0.01)
    for options, message in (
        ({"count": "packs"}, r"^mix.count: expected `rows` or `tokens`, got packs \(without `read.pack`\)$"),
        (
            {"count": "rows", "repetitions": {"long": 2}},
            r"^count: expected none with `repetitions`, got rows",
        ),
    ):
        with pytest.raises(rs.SpecError, match=message):
            rs.mix(pipelines, seed=3, **options)
    without = rs.mix(pipelines, seed=3, count="tokens", read={"batch": 4}, fit={"inputs": "side"})
    with pytest.raises(rs.SpecError, match=r"^mix\.count: expected an input whose rows differ in length"):
        without.plan()
