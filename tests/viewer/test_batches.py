"""A batch of `viewer.batches` has the values that `Pipeline.dataset` yields at its step, and the rows that
`Pipeline.which` says."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import recordspec as rs
from instances import CASES
from recordspec.config import config_of
from recordspec.errors import RecordError, SpecError, StoreError
from recordspec.viewer import batches as viewer_batches
from recordspec.viewer.batches import ModelBatches

pytestmark = pytest.mark.tensorflow

SCHEMA = """
schema: s
features:
  n: int64
  picture: {dtype: float32, shape: [9, 12, 3]}
  words: {kind: var_len, dtype: string}
  pairs: {kind: var_len, dtype: float32, pad: -1.0}
  gaps: {kind: sparse, dtype: float32, size: 30}
  side: {kind: label, names: [left, right]}
  sides: {kind: label, names: [left, right], shape: [null]}
  blob: string
  tall: {kind: image, shape: [null, null, 1], encoding: png}
"""
FILES, GLOBAL = "null", "{global: true, seed: 5}"
BUFFER = "{buffer: 40, seed: 5}, cache: cache"
FITS = {
    "features": "",
    "inputs": "fit: {inputs: picture}",
    "targets": "fit: {inputs: words, targets: [side, pairs], ragged: keep}",
    "weights": "fit: {inputs: [n, pairs, gaps], targets: sides, weights: [n, sides_mask]}",
}
# The names of the columns, and of each its role.
COLUMNS = {
    "features": [
        (name, "input")
        for name in ("n", "picture", "words", "pairs", "gaps", "side", "sides", "blob", "tall")
    ],
    "inputs": [("picture", "input")],
    "targets": [("words", "input"), ("side", "target"), ("pairs", "target")],
    "weights": [
        *((name, "input") for name in ("n", "pairs", "gaps")),
        ("sides", "target"),
        ("n * sides_mask", "weight"),
    ],
}


def row(n: int) -> dict[str, object]:
    return {
        "n": n,
        "picture": np.full((9, 12, 3), n / 100, np.float32),
        "words": ["né", "b"][: n % 3],
        "pairs": [0.1 * n] * (n % 4),
        "gaps": ([n % 30], [0.5]) if n % 2 else ([], []),
        "side": n % 2,
        "sides": [1, 0, 1][: n % 4],
        "blob": b"\xff%d\0" % n,
        "tall": np.full((8 + n % 3, 8, 1), n, np.uint8),
    }


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return built(tmp_path_factory.mktemp("rows"), "rows")


@pytest.fixture(scope="module")
def of_blocks(tmp_path_factory):
    return built(tmp_path_factory.mktemp("blocks"), "{blocks: 7}")


def built(folder, layout):
    (folder / "s.yaml").write_text(SCHEMA)
    pipeline(folder, layout=layout).build([row(n) for n in range(100)], progress=False)
    return folder


def pipeline(folder, read="batch: 8", shuffle=FILES, fit="features", layout="rows") -> rs.Pipeline:
    (folder / "config.yaml").write_text(
        f"schema: s.yaml\ndata: data\nwrite: {{shards: 3, shuffle: null, layout: {layout},"
        " splits: {train: 80, test: 20}}\n"
        f"read: {{{read}, shuffle: {shuffle}}}\n{FITS[fit]}\n"
    )
    return rs.Pipeline.load(folder / "config.yaml")


def in_cell(made):
    """What a cell says of its value."""
    if not isinstance(made, dict):
        return made
    if made["is"] == "list":
        assert len(made["items"]) == made["length"]
        return [in_cell(item) for item in made["items"]]
    read = {
        "numbers": lambda: np.reshape(made["some"], made["shape"]).tolist(),
        "label": lambda: made["index"],
        "fields": lambda: {name: in_cell(field) for name, field in made["fields"]},
        "bytes": lambda: bytes.fromhex(made["hex"]),
        "image": lambda: (made["form"], made["height"], made["width"]),
    }
    return read[made["is"]]()


def in_tensor(tensor, index: int, rows: int):
    """The same of a row of a tensor."""
    tensors = sys.modules["tensorflow"]
    if isinstance(tensor, tensors.SparseTensor):
        one = tensors.sparse.split(tensor, rows, axis=0)[index]
        return {"indices": one.indices.numpy()[:, 1].tolist(), "values": one.values.numpy().tolist()}
    value = tensor[index]
    if isinstance(value, tensors.RaggedTensor) or value.shape.rank == 3:
        value = np.array(value.to_list() if isinstance(value, tensors.RaggedTensor) else value)
        return (tensor.dtype.name, *value.shape[:2])
    return value.numpy().tolist() if value.shape.rank else value.numpy()


def same(shown, stored) -> bool:
    """Whether they are equal, with floats as those of 32 bits, and text as its bytes."""
    if isinstance(stored, dict):
        return all(same(shown[name], stored[name]) for name in stored)
    if isinstance(stored, list):
        return len(shown) == len(stored) and all(map(same, shown, stored))
    if isinstance(stored, bytes):
        return (shown.encode() if isinstance(shown, str) else shown) == stored
    if isinstance(stored, float | np.float32):
        return np.float32(shown) == np.float32(stored)
    return shown == stored


@pytest.mark.parametrize(
    ("fit", "shuffle"), [("features", FILES), ("inputs", FILES), ("targets", BUFFER), ("weights", GLOBAL)]
)
def test_cells_are_the_values_that_the_dataset_yields(home, fit, shuffle):
    made = pipeline(home, "batch: 8, repeat: forever", shuffle, fit)
    shown = ModelBatches(made).batch("train", 1, 2)
    json.dumps(shown, allow_nan=False)
    assert not (home / "cache").exists()
    element = next(iter(made.dataset("train", start=(1, 2))))
    shutil.rmtree(home / "cache", ignore_errors=True)
    parts = element if isinstance(element, tuple) else (element,)
    tensors = [t for part in parts for t in (part.values() if isinstance(part, dict) else [part])]
    assert [(column["name"], column["role"]) for column in shown["columns"]] == COLUMNS[fit]
    assert len(shown["rows"]) == shown["of"] == 8
    for place, tensor in enumerate(tensors):
        cells = [in_cell(shown_row["cells"][place]) for shown_row in shown["rows"]]
        stored = [in_tensor(tensor, index, 8) for index in range(8)]
        assert [pair for pair in zip(cells, stored, strict=True) if not same(*pair)] == []


@pytest.mark.parametrize(
    ("folder", "shuffle"), [("home", FILES), ("home", GLOBAL), ("of_blocks", FILES), ("of_blocks", GLOBAL)]
)
def test_rows_are_those_that_the_step_saw(request, folder, shuffle):
    made = pipeline(request.getfixturevalue(folder), shuffle=shuffle)
    shown, last = ModelBatches(made), ModelBatches(made).steps("train") - 1
    for step in (2, last):
        batch = shown.batch("train", 1, step)
        assert (batch["steps"], batch["note"]) == (last + 1, None)
        assert [(row["file"], row["record"], row.get("row_of_block")) for row in batch["rows"]] == [
            (seen["file"], seen["record"], seen.get("row")) for seen in made.which(1, step)
        ]
        numbers = [row["row"] for row in batch["rows"]]
        assert made.open("train")[numbers]["n"].tolist() == [row["cells"][0] for row in batch["rows"]]


@pytest.mark.parametrize(
    ("read", "note"),
    [
        (
            "shuffle: {buffer: 40, seed: 5}",
            "read.shuffle: expected `global: true`, or the order of the files,",
        ),
        ("balance: {by: side, seed: 1}", "read.balance: expected none, got"),
        ("bucket: {by: words, boundaries: [2]}", "read.bucket: expected none, got"),
        ("interleave: {block: 1}", "read.interleave: expected none, got"),
    ],
)
def test_where_it_is_not_known_which_rows_they_are_the_note_says_why(home, read, note):
    config = home / "config.yaml"
    pipeline(home)
    config.write_text(config.read_text().replace("shuffle: null}", f"{read}}}"))
    shown = ModelBatches(rs.Pipeline.load(config)).batch("train", 0, 1)
    assert shown["note"].startswith(f"the stored rows of this batch are unknown: {note}")
    assert ("the rows before it in the epoch were read" in shown["note"]) == ("buffer" in read)
    assert {(row["row"], row["file"], row["record"]) for row in shown["rows"]} == {(None, None, None)}


def test_columns_have_their_types_and_their_padding(home):
    described = ModelBatches(pipeline(home, fit="weights")).batch("train", 0, 0)["columns"]
    assert {column["name"]: (column["type"], column.get("padding")) for column in described} == {
        "n": ("int64", None),
        "pairs": ("float32 [3]", "-1.0"),
        "gaps": ("float32 [30]", "0"),
        "sides": ("int64 [3]", "-1"),
        "n * sides_mask": ("float32 [3]", None),
    }
    kept = ModelBatches(pipeline(home)).batch("train", 0, 0)["columns"]
    assert [column["type"] for column in kept] == [
        "int64",
        "float32 [9, 12, 3]",
        "ragged string [null]",
        "ragged float32 [null]",
        "sparse float32 [30]",
        "int64",
        "ragged int64 [null]",
        "string",
        "ragged uint8 [null, null, 1]",
    ]


def test_what_is_not_there_is_refused(home):
    shown = ModelBatches(pipeline(home))
    steps = shown.steps("train")
    for epoch, step, message in (
        (0, steps, f"^step: expected a number below {steps}, the batches of an epoch, got {steps}$"),
        (0, -1, "^step: expected a whole number of at least 0, got -1$"),
        (1 << 12, 0, "^epoch: expected a number below 4096, got 4096$"),
    ):
        with pytest.raises(SpecError, match=message):
            shown.batch("train", epoch, step)
    with pytest.raises(StoreError, match="none"):
        shown.batch("none", 0, 0)
    balanced = ModelBatches(pipeline(home, "batch: 8, balance: {by: side, seed: 1}"))
    assert (balanced.steps("train"), balanced.batch("train", 0, 0)["steps"]) == (None, None)
    with pytest.raises(SpecError, match=r"^step: expected a batch of the epoch, got 99$"):
        balanced.batch("train", 0, 99)


def test_a_split_without_its_target_has_the_inputs(tmp_path):
    (tmp_path / "s.yaml").write_text(
        "schema: s\nfeatures: {n: int64, y: {kind: label, names: [a, b], missing: true}}"
    )
    (tmp_path / "config.yaml").write_text(
        "schema: s.yaml\ndata: data\nwrite: {splits: {train: 1}, shuffle: null}\nread: {batch: 4}\n"
        "fit: {inputs: n, targets: y}"
    )
    made = rs.Pipeline.load(tmp_path / "config.yaml")
    made.build([{"n": n} if n > 3 else {"n": n, "y": n % 2} for n in range(8)], progress=False)
    first, second = (ModelBatches(made).batch("train", 0, step) for step in (0, 1))
    assert [column["role"] for column in first["columns"]] == ["input", "target"]
    assert ([column["role"] for column in second["columns"]], second["note"]) == (
        ["input"],
        "rows lack the target: the batch has the inputs alone",
    )
    assert [row["cells"] for row in second["rows"]] == [[n] for n in range(4, 8)]


def test_an_image_is_drawn_from_the_least_to_the_most(home, monkeypatch):
    shown, read = ModelBatches(pipeline(home)), []
    plain = viewer_batches._read_batch
    monkeypatch.setattr(
        viewer_batches, "_read_batch", lambda *asked: read.append(asked[1:4]) or plain(*asked)
    )
    monkeypatch.setattr(viewer_batches, "_KEPT", 2)
    for step in (0, 0, 1, 2, 2, 0):
        for column, size in ((1, (12, 9)), (8, (8, 8))):  # of row 3, of which `tall` is 8 high
            made = shown.medium("train", 0, step, column, 3 if step == 0 else 0)
            width, height = Image.open(io.BytesIO(made.data)).size
            assert (made.type, width) == ("image/png", size[0])
            assert height >= size[1]
    assert [asked[2] for asked in read] == [0, 1, 2, 0]
    for column, index in ((9, 0), (-1, 0), (1, 8), (1, -1)):
        with pytest.raises(IndexError):
            shown.medium("train", 0, 0, column, index)
    with pytest.raises(RecordError, match="expected an image or audio, got int64"):
        shown.medium("train", 0, 0, 0, 0)


def test_of_a_large_batch_the_first_rows_are_shown_and_without_a_batch_one(home, monkeypatch):
    whole = ModelBatches(pipeline(home)).batch("train", 0, 1)
    single = ModelBatches(pipeline(home, "batch: null")).batch("train", 0, 11)
    assert ([row["row"] for row in single["rows"]], single["of"]) == ([11], 1)
    assert single["rows"][0]["cells"] == whole["rows"][3]["cells"]
    monkeypatch.setattr(viewer_batches, "MOST_ROWS", 5)
    few = ModelBatches(pipeline(home)).batch("train", 0, 1)
    assert (few["of"], few["rows"]) == (8, whole["rows"][:5])


def test_it_is_described_without_tensorflow(home):
    pipeline(home, shuffle=GLOBAL)
    program = (
        "import json, sys; import recordspec as rs; from recordspec.viewer.batches import ModelBatches;"
        "print(json.dumps(ModelBatches(rs.Pipeline.load('config.yaml')).described()));"
        "assert 'tensorflow' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=home, capture_output=True, text=True)
    assert run.stderr == ""
    described = json.loads(run.stdout)
    assert described == {"splits": ["train", "test"], "batch": 8, "packed": False, "order": "global"}


@pytest.mark.slow
def test_values_of_every_kind_are_cells(tmp_path):
    cases = {next(iter(case.schema.names.values())).kind: case for case in CASES}
    for kind, case in cases.items():
        options = {"schema": "s.yaml", "data": kind, "read": {"batch": 3}}
        made = rs.Pipeline(config_of(options, case.schema), case.schema, tmp_path)
        made.build(case.rows[:4], progress=False)
        shown = ModelBatches(made).batch(*made.manifest.splits, 0, 0)
        json.dumps(shown, allow_nan=False)
        assert [column["name"] for column in shown["columns"]] == list(case.schema.outputs)
        assert {len(row["cells"]) for row in shown["rows"]} == {len(case.schema.outputs)}


LISTS = """
schema: s
features:
  n: int64
  words: {kind: ragged, dtype: int64, shape: [null]}
  tags: {kind: label, names: [left, right], shape: [null]}
  names: {kind: var_len, dtype: string}
"""


LENGTHS = "{words: 16, tags: 16, names: 32}"


def packed(folder, name, names="grain", fit="", length=f"{LENGTHS}, most: 30"):
    (folder / "s.yaml").write_text(LISTS)
    (folder / f"{name}.yaml").write_text(
        f"schema: s.yaml\ndata: {name}\nwrite: {{shards: 2, splits: {{train: 1}}}}\n"
        "read: {batch: 3, shuffle: {global: true, seed: 5},"
        f" pack: {{length: {length}, align: 2, names: {names}}}}}\n{fit}\n"
    )
    made = rs.Pipeline.load(folder / f"{name}.yaml")
    rows = [
        {
            "n": row,
            "words": range(row, row + row % 12),
            "tags": [row % 2] * (row % 12),
            "names": ["né"] * (row % 7),
        }
        for row in range(90)
    ]
    made.build(rows, progress=False)
    return made


def test_the_rows_of_packs_are_told_with_their_places(tmp_path):
    made = packed(tmp_path, "one")
    shown = ModelBatches(made).batch("train", 1, 2)
    json.dumps(shown, allow_nan=False)
    names = [column["name"] for column in shown["columns"]]
    seen = made.which(1, 2)
    assert [
        {"pack": pack, "segment": segment, "file": one["file"], "record": one["record"]}
        for pack, row in enumerate(shown["rows"])
        for segment, one in enumerate(row["packed"], 1)
    ] == [{name: one[name] for name in ("pack", "segment", "file", "record")} for one in seen]
    stored = made.open("train")
    for row in shown["rows"]:
        cells = dict(zip(names, row["cells"], strict=True))
        for place, one in enumerate(row["packed"]):
            values = stored[one["row"]]
            (n,) = stored[[one["row"]]]["n"].tolist()
            words, ids = (cells[name]["rows"][place] for name in ("words", "words_segment_ids"))
            assert (words["size"], words["first"]) == (n % 12, [*range(n, n + min(6, n % 12))])
            assert ids["first"] == [place + 1] * min(6, n % 12)
            assert cells["tags"]["rows"][place]["first"] == [["left", "right"][n % 2]] * min(6, n % 12)
            assert cells["names"]["rows"][place]["size"] == n % 7 == len(values["names"])
            assert cells["names"]["rows"][place]["first"] == ["né"] * min(6, n % 7)
            assert (words["at"] % 2, cells["words"]["length"]) == (0, 16)


@pytest.mark.parametrize("names", ["hf", "torchtitan", "t5x", "maxtext"])
def test_packs_of_other_trainers_are_shown(tmp_path, names):
    made = packed(tmp_path, "one", names, "fit: {inputs: words, targets: words_next}", "16")
    shown = ModelBatches(made).batch("train", 0, 1)
    json.dumps(shown, allow_nan=False)
    rows = [one["record"] for row in shown["rows"] for one in row["packed"]]
    assert rows == [one["record"] for one in made.which(0, 1)]
    kinds = {cell["is"] for row in shown["rows"] for cell in row["cells"] if isinstance(cell, dict)}
    assert ("pack" in kinds) == (names != "hf")


def test_a_mixture_is_shown_with_the_dataset_of_each_row(tmp_path):
    pipelines = {name: packed(tmp_path, name) for name in ("one", "two")}
    for read in ({"batch": 3, "pack": {"length": 16, "most": 30}}, {"batch": 3}):
        mixture = rs.mix(pipelines, {"one": 2, "two": 1}, seed=5, read=read)
        shown = ModelBatches(mixture)
        assert shown.described()["splits"] == ["train"]
        batch, seen = shown.batch("train", 0, 1), mixture.which(0, 1)
        rows = [one for row in batch["rows"] for one in row.get("packed", [row])]
        assert [(one["dataset"], one["file"], one["record"]) for one in rows] == [
            (one["dataset"], one["file"], one["record"]) for one in seen
        ]
        assert {one["dataset"] for one in rows} == {"one", "two"}
