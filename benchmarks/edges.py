"""Sources, statistics, sorting, wide tables and many shards, compared with an older checkout in one run.

    python benchmarks/edges.py [--cases build_csv read_csv] [--runs 5] [--against CHECKOUT]

Each run is a separate process, which makes its data in a memory folder, and measures one case after its
imports; some cases have a warm-up. Wall and CPU time, of all threads and child processes, are reported in
microseconds per unit, such as a row or a shard: the best of the runs. Runs of the checkouts are interleaved.
Cases in brackets are the libraries below, such as pyarrow; the older checkout is not asked for them.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

HERE = Path(__file__).parent

# What is measured: it returns the number of units.
Run = Callable[[], int]


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is measured.

    Attributes:
        prepare: makes the data in a folder, and returns what is measured.
        unit: what the time is divided by.
        peer: whether it measures a library that the case above it is compared with.
        warm: whether a first run is not counted.
        newer: whether older checkouts cannot do it.
    """

    prepare: Callable[[Path], Run]
    unit: str = "row"
    peer: bool = False
    warm: bool = False
    newer: bool = False


CASES: dict[str, Case] = {}


def case(unit: str = "row", **options: bool) -> Callable[[Any], Any]:
    """A function that prepares a case of its name; `options` are those of a Case."""

    def listed(prepare: Callable[[Path], Run]) -> Callable[[Path], Run]:
        CASES[prepare.__name__] = Case(prepare=prepare, unit=unit, **options)
        return prepare

    return listed


# ---- the data ----

ROWS = 100_000
# Distinct values of each column of texts, of which some are frequent.
DISTINCT = 20_000


def click_rows(rows: int = ROWS) -> dict[str, Any]:
    """A number, a label, 13 float32 and 26 texts, of which few are frequent: 41 columns."""
    import numpy as np

    from writing.data import STRINGS, criteo

    rng, table = np.random.default_rng(1), criteo(rows)
    names = np.array([b"%08x" % (number * 2654435761 % 2**32) for number in range(DISTINCT)])
    texts = {name: names[np.minimum(rng.zipf(1.3, rows), DISTINCT) - 1] for name in STRINGS}
    return {"id": np.arange(rows), **table, **texts}


def click_table(rows: int = ROWS) -> Any:
    """The same as a table of Arrow."""
    import pyarrow

    columns = click_rows(rows)
    return pyarrow.table(
        {
            name: values.astype(str).tolist() if values.dtype.kind == "S" else values
            for name, values in columns.items()
        }
    )


def click_schema() -> Any:
    from recordspec import Schema
    from writing.data import DATASETS

    return Schema.loads(DATASETS["criteo"].schema.replace("features:\n", "features:\n  id: int64\n", 1))


def click_file(folder: Path, suffix: str) -> Path:
    from pyarrow import csv, parquet

    path = folder / f"clicks.{suffix}"
    if path.exists():
        return path
    table = click_table()
    if suffix == "csv":
        csv.write_csv(table, path)
    elif suffix == "parquet":
        parquet.write_table(table, path)
    else:
        with path.open("w") as file:
            for row in table.to_pylist():
                file.write(json.dumps(row) + "\n")
    return path


def click_pipeline(folder: Path, more: str, source: str = "") -> Any:
    import recordspec as rs

    click_schema().dump(folder / "clicks.yaml")
    config = folder / "config.yaml"
    config.write_text(f"schema: clicks.yaml\ndata: data\n{source}\n{more}\n")
    return rs.Pipeline.load(config)


# ---- statistics of a split ----


@case(warm=True)
def layers(folder: Path) -> Run:
    """26 vocabularies, 13 means and variances."""
    import recordspec as rs
    from writing.data import FLOATS, STRINGS

    encode = dict.fromkeys(FLOATS, "normalize") | dict.fromkeys(STRINGS, "index")
    listed = ", ".join(f"{name}: {how}" for name, how in encode.items())
    fit = f"fit: {{inputs: [{', '.join(encode)}], targets: label, encode: {{{listed}}}}}"
    pipeline = click_pipeline(folder, f"read: {{batch: 128}}\n{fit}")
    if not (folder / "data").exists():
        rs.write(click_rows(3 * ROWS), click_schema(), folder / "data", progress=False)
    import tensorflow as tf

    tf.keras.layers.StringLookup()

    def run() -> int:
        (folder / "data/layers.json").unlink(missing_ok=True)
        pipeline.layers()
        return 3 * ROWS

    return run


@case(peer=True)
def value_counts(folder: Path) -> Run:
    """Arrow's value_counts of the 26 columns of texts."""
    import pyarrow.compute

    from writing.data import STRINGS

    table = click_table()

    def run() -> int:
        for name in STRINGS:
            pyarrow.compute.value_counts(table[name])
        return ROWS

    return run


# ---- building from files ----


def _build(folder: Path, suffix: str, source: str, **options: Any) -> Run:
    path = click_file(folder, suffix)
    pipeline = click_pipeline(folder, "", f"write: {{source: {{{source}: {path.name}}}}}")

    def run() -> int:
        pipeline.build(progress=False, force=True, **options)
        return ROWS

    return run


@case(warm=True)
def build_csv(folder: Path) -> Run:
    return _build(folder, "csv", "csv")


@case(peer=True, warm=True)
def read_csv(folder: Path) -> Run:
    """pyarrow.csv.read_csv, with its own types."""
    from pyarrow import csv

    path = click_file(folder, "csv")
    return lambda: int(csv.read_csv(path).num_rows)


@case(warm=True)
def build_jsonl(folder: Path) -> Run:
    return _build(folder, "jsonl", "jsonl")


@case(peer=True, warm=True)
def json_loads(folder: Path) -> Run:
    path = click_file(folder, "jsonl")

    def run() -> int:
        with path.open("rb") as file:
            return sum(1 for line in file if json.loads(line))

    return run


@case(peer=True, warm=True)
def read_json(folder: Path) -> Run:
    """pyarrow.json.read_json."""
    from pyarrow import json as arrow_json

    path = click_file(folder, "jsonl")
    return lambda: int(arrow_json.read_json(path).num_rows)


@case(warm=True)
def build_parquet(folder: Path) -> Run:
    return _build(folder, "parquet", "parquet")


@case(peer=True, warm=True)
def read_parquet(folder: Path) -> Run:
    from pyarrow import parquet

    path = click_file(folder, "parquet")
    return lambda: int(parquet.read_table(path).num_rows)


@case(peer=True, warm=True)
def write_table(folder: Path) -> Run:
    """`rs.write` of the table of Arrow."""
    import recordspec as rs

    table, schema = click_table(), click_schema()

    def run() -> int:
        rs.write(table, schema, folder / "data", force=True, progress=False)
        return ROWS

    return run


@case(warm=True)
def infer_csv(folder: Path) -> Run:
    import recordspec as rs

    path = click_file(folder, "csv")

    def run() -> int:
        rs.infer(path)
        return ROWS

    return run


def _command(folder: Path, jobs: int) -> Run:
    path = click_file(folder, "csv")
    click_pipeline(folder, "", f"write: {{source: {{csv: {path.name}}}}}")

    def run() -> int:
        command = ["recordspec", "build", "config.yaml", "--force", "--jobs", str(jobs)]
        subprocess.run([sys.executable, "-m", *command], cwd=folder, check=True, capture_output=True)
        return ROWS

    return run


@case()
def command_csv(folder: Path) -> Run:
    """`recordspec build --jobs 1`, the whole process."""
    return _command(folder, 1)


@case()
def command_csv_2(folder: Path) -> Run:
    """`recordspec build --jobs 2`."""
    return _command(folder, 2)


# ---- sorting ----


def _sorted(folder: Path, name: str, rows: int, *, shuffled: bool) -> Run:
    import numpy as np

    import recordspec as rs
    from writing.data import jpegs

    if name == "short":
        schema = rs.Schema.loads("schema: s\nfeatures: {text: string}")
        columns: dict[str, Any] = {"text": np.array([b"%012d" % n for n in range(rows)])}
    elif name == "taxi":
        names = [f"n{number}" for number in range(9)]
        features = ", ".join(f"{one}: float32" for one in names)
        schema = rs.Schema.loads(f"schema: s\nfeatures: {{{features}, company: string, payment: string}}")
        rng = np.random.default_rng(0)
        columns = {one: rng.random(rows, np.float32) for one in names}
        columns |= {one: rng.choice([b"Cash", b"Card", b"Mobile"], rows) for one in ("company", "payment")}
    else:
        schema, columns = rs.Schema.loads("schema: s\nfeatures: {image: string}"), jpegs(rows)
        # a number after the end of each image: copies of a row cost more, and few rows are copies
        columns["image"] = [data + b"%08d" % row for row, data in enumerate(columns["image"])]
    options = {"shuffle": {"seed": 1}} if shuffled else {}

    def run() -> int:
        rs.write(columns, schema, folder / "data", shards=4, force=True, progress=False, **options)
        return rows

    return run


@case(warm=True)
def short_in_order(folder: Path) -> Run:
    return _sorted(folder, "short", 500_000, shuffled=False)


@case(warm=True)
def short_shuffled(folder: Path) -> Run:
    """Texts of 12 bytes."""
    return _sorted(folder, "short", 500_000, shuffled=True)


@case(warm=True)
def taxi_in_order(folder: Path) -> Run:
    return _sorted(folder, "taxi", 300_000, shuffled=False)


@case(warm=True)
def taxi_shuffled(folder: Path) -> Run:
    """9 numbers and 2 texts."""
    return _sorted(folder, "taxi", 300_000, shuffled=True)


@case(warm=True)
def large_in_order(folder: Path) -> Run:
    return _sorted(folder, "large", 2000, shuffled=False)


@case(warm=True)
def large_shuffled(folder: Path) -> Run:
    """JPEG files of 100 KB."""
    return _sorted(folder, "large", 2000, shuffled=True)


# ---- wide tables ----


def _wide_schema(columns: int) -> Any:
    import recordspec as rs

    return rs.Schema.loads(
        "schema: s\nfeatures:\n" + "".join(f"  c{number}: float32\n" for number in range(columns))
    )


def _wide(folder: Path, columns: int, rows: int, layout: Any, *, read: bool) -> Run:
    import numpy as np

    import recordspec as rs

    schema, rng = _wide_schema(columns), np.random.default_rng(0)
    table = {name: rng.random(rows, np.float32) for name in schema.names}

    def write() -> int:
        rs.write(table, schema, folder / "data", force=True, progress=False, layout=layout)
        return rows

    if not read:
        return write
    write()
    import tensorflow as tf

    tf.data.Dataset.range(1)

    def first() -> int:
        next(iter(rs.read(folder / "data", schema, batch=128)))
        return 1

    return first


def _add_wide() -> None:
    """The cases of wide tables."""
    for columns in (1000, 2000):
        for name, layout in (("rows", "rows"), ("blocks", {"blocks": 256})):

            def first(folder: Path, columns: int = columns, layout: Any = layout) -> Run:
                return _wide(folder, columns, 2048, layout, read=True)

            def written(folder: Path, columns: int = columns, layout: Any = layout) -> Run:
                return _wide(folder, columns, 10_000, layout, read=False)

            CASES[f"first_batch_{columns}_{name}"] = Case(prepare=first, unit="batch")
            CASES[f"write_{columns}_{name}"] = Case(prepare=written)


_add_wide()


# ---- rows of large numbers ----


def _numbers(folder: Path, name: str, layout: Any, *, shuffle: bool, to_tensorflow: bool = False) -> Run:
    """A pass over 512 tokens a row, or 784 floats."""
    import numpy as np

    import recordspec as rs

    rng, rows = np.random.default_rng(1), 40_000
    dtype, shape = {"tokens": ("int64", 512), "floats": ("float32", 784)}[name]
    schema = rs.Schema.loads(f"schema: s\nfeatures:\n  x: {{dtype: {dtype}, shape: [{shape}]}}\n")
    if not (folder / "data").exists():
        values = rng.integers(0, 50_257, (rows, shape)).astype(dtype)
        rs.write({"x": values}, schema, folder / "data", layout=layout, shards=2, progress=False)

    def run() -> int:
        if to_tensorflow:
            batches = rs.read(folder / "data", schema, batch=256, shuffle=shuffle)
        else:
            batches = rs.iterate(folder / "data", schema, batch=256, shuffle=shuffle)
        return sum(len(batch["x"]) for batch in batches)

    return run


def _add_numbers() -> None:
    for name in ("tokens", "floats"):
        for layout, option in (("rows", "rows"), ("blocks", {"blocks": 256})):
            for shuffle in (False, True):

                def iterated(folder: Path, how: Any = (name, option), shuffle: bool = shuffle) -> Run:
                    return _numbers(folder, *how, shuffle=shuffle)

                order = "shuffled" if shuffle else "in_order"
                CASES[f"iterate_{name}_{layout}_{order}"] = Case(prepare=iterated, warm=True, newer=True)

            def read(folder: Path, how: Any = (name, option)) -> Run:
                return _numbers(folder, *how, shuffle=True, to_tensorflow=True)

            CASES[f"read_{name}_{layout}_shuffled"] = Case(prepare=read, warm=True, newer=True)


_add_numbers()


# ---- many shards ----


def _shards(folder: Path, shards: int, rows: int, row_bytes: int = 100, *, shuffled: bool = True) -> Run:
    import numpy as np

    import recordspec as rs

    schema = rs.Schema.loads("schema: s\nfeatures: {x: int64, text: string}")
    text = np.array([os.urandom(row_bytes) for _ in range(min(rows, 1000))], object)
    columns = {"x": np.arange(rows), "text": text[np.arange(rows) % len(text)]}
    options = {"shuffle": {"seed": 1}} if shuffled else {}

    def run() -> int:
        rs.write(columns, schema, folder / "data", shards=shards, force=True, progress=False, **options)
        return shards

    return run


@case("shard")
def shuffled_1000_shards(folder: Path) -> Run:
    """20 rows each."""
    return _shards(folder, 1000, 20_000)


@case("shard")
def shuffled_10000_shards(folder: Path) -> Run:
    return _shards(folder, 10_000, 200_000)


@case("shard")
def shuffled_2_of_50_MB(folder: Path) -> Run:  # noqa: N802
    return _shards(folder, 2, 100_000, 1000)


@case("shard")
def shuffled_200_of_half_MB(folder: Path) -> Run:  # noqa: N802
    return _shards(folder, 200, 100_000, 1000)


@case("shard")
def ordered_2000_shards(folder: Path) -> Run:
    return _shards(folder, 2000, 40_000, shuffled=False)


SHARDS = 5000


def _many(folder: Path) -> Any:
    import recordspec as rs

    if not (folder / "data").exists():
        _shards(folder, SHARDS, 2 * SHARDS, shuffled=False)()
    return rs.Schema.load(folder / "data/schema.yaml")


@case("batch", warm=True)
def first_batch_5000_shards(folder: Path) -> Run:
    import recordspec as rs

    schema = _many(folder)

    def run() -> int:
        next(iter(rs.read(folder / "data/train-*", schema, batch=32)))
        return 1

    return run


def _inspecting(name: str) -> Callable[[Path], Run]:
    def prepare(folder: Path) -> Run:
        _many(folder)

        def run() -> int:
            command = ["recordspec", name, "data"]
            subprocess.run([sys.executable, "-m", *command], cwd=folder, check=True, capture_output=True)
            return SHARDS

        return run

    return prepare


for _name in ("info", "verify", "check"):
    CASES[f"{_name}_5000_shards"] = Case(prepare=_inspecting(_name), unit="shard")

FOREIGN = 2000


def _foreign(folder: Path) -> Path:
    """Files of another writer, with a few records each."""
    import tensorflow as tf

    if not (folder / "foreign").exists():
        (folder / "foreign").mkdir()
        for number in range(FOREIGN):
            with tf.io.TFRecordWriter(str(folder / f"foreign/{number:05d}.tfrecord")) as writer:
                for row in range(10):
                    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[10 * number + row]))
                    example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
                    writer.write(example.SerializeToString())
    return folder / "foreign"


@case("batch", warm=True)
def first_batch_foreign(folder: Path) -> Run:
    import recordspec as rs

    files, schema = _foreign(folder), rs.Schema.loads("schema: s\nfeatures: {x: int64}")

    def run() -> int:
        next(iter(rs.read(f"{files}/*.tfrecord", schema, batch=32)))
        return 1

    return run


@case("batch", peer=True, warm=True)
def first_batch_plain(folder: Path) -> Run:
    """list_files, interleave, batch, parse_example."""
    import tensorflow as tf

    files = _foreign(folder)

    def run() -> int:
        names = tf.data.Dataset.list_files(f"{files}/*.tfrecord", shuffle=False)
        records = names.interleave(tf.data.TFRecordDataset, cycle_length=16)
        parse = {"x": tf.io.FixedLenFeature([], tf.int64)}
        next(iter(records.batch(32).map(lambda some: tf.io.parse_example(some, parse))))
        return 1

    return run


@case("file")
def infer_foreign(folder: Path) -> Run:
    import recordspec as rs

    files = _foreign(folder)

    def run() -> int:
        rs.infer(f"{files}/*.tfrecord")
        return FOREIGN

    return run


def _run_command(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "recordspec", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@case("file", newer=True)
def adopt_foreign(folder: Path) -> Run:
    """With the start of the process, as the next."""
    _foreign(folder)
    (folder / "s.yaml").write_text("schema: s\nfeatures: {x: int64}\n")

    def run() -> int:
        _run_command(folder, "adopt", "foreign", "--schema", "s.yaml", "--force")
        return FOREIGN

    return run


@case("file")
def count_foreign(folder: Path) -> Run:
    _foreign(folder)

    def run() -> int:
        _run_command(folder, "count", "foreign")
        return FOREIGN

    return run


@case("file", peer=True, warm=True)
def iterate_foreign(folder: Path) -> Run:
    """Every record of the files, in a process that runs already."""
    import tensorflow as tf

    files = _foreign(folder)

    def run() -> int:
        records = tf.data.TFRecordDataset(sorted(tf.io.gfile.glob(f"{files}/*.tfrecord")))
        records.batch(1024).reduce(0, lambda count, batch: count + tf.size(batch))
        return FOREIGN

    return run


# ---- export and diff ----


def _exported(folder: Path) -> None:
    import recordspec as rs

    for name in ("data", "other"):
        if not (folder / name).exists():
            rs.write(click_rows(), click_schema(), folder / name, progress=False)


def _told(folder: Path, *arguments: str) -> Run:
    _exported(folder)

    def run() -> int:
        _run_command(folder, *arguments)
        return ROWS

    return run


@case()
def export_jsonl(folder: Path) -> Run:
    return _told(folder, "export", "data", "--out", "out.jsonl", "--force")


@case()
def diff(folder: Path) -> Run:
    return _told(folder, "diff", "data", "other")


# ---- records of some size ----


def _sized(folder: Path, size: int) -> Run:
    import recordspec as rs

    count = (200 << 20) // size
    data = os.urandom(count * size)
    records = [data[size * number : size * (number + 1)] for number in range(count)]
    schema = rs.Schema.loads("schema: s\nfeatures: {data: string}")

    def run() -> int:
        rs.write({"data": records}, schema, folder / "data", force=True, progress=False)
        return 200

    return run


@case("MiB", warm=True)
def records_of_1_KB(folder: Path) -> Run:  # noqa: N802
    return _sized(folder, 1 << 10)


@case("MiB", warm=True)
def records_of_10_KB(folder: Path) -> Run:  # noqa: N802
    return _sized(folder, 10 << 10)


# ---- JPEG ----

PHOTOS = 1000
SIDE = 160


def _photos(folder: Path) -> str:
    """JPEG files of 500x375 pixels, written once. Returns the pattern of their files."""
    from media import crop, image_schema, written

    if (folder / "photos").exists():
        return f"{folder}/photos/*.tfrecord"
    return written(image_schema("jpeg", (None, None, 3)), folder / "photos", map(crop, range(PHOTOS)))


def _jpeg(folder: Path, more: str = "") -> Any:
    """The dataset of a schema that resizes photos."""
    import recordspec as rs

    image = f"kind: image, encoding: jpeg, resize: {{size: [{SIDE}, {SIDE}]{more}}}"
    schema = rs.Schema.loads(f"schema: photos\nfeatures:\n  image: {{{image}}}\n  label: int64\n")
    return rs.read(_photos(folder), schema, batch=32)


def _jpeg_by_hand(folder: Path) -> Any:
    """Each record parsed, decoded and resized in a parallel map, then batched."""
    import tensorflow as tf

    from media import one_by_one

    def decode(data: Any, channels: int) -> Any:
        pixels = tf.image.resize(tf.io.decode_jpeg(data, channels), [SIDE, SIDE])
        return tf.saturate_cast(tf.round(pixels), tf.uint8)

    return one_by_one(_photos(folder), 32, decode, (SIDE, SIDE, 3))


def _drained(dataset: Any) -> Run:
    from side_by_side import drain

    def run() -> int:
        drain(dataset)
        return PHOTOS

    return run


def _trained(dataset: Any) -> Run:
    """An epoch of a small CNN."""
    import keras

    layers = keras.layers
    convolutions = [layers.Conv2D(filters, 3, 2, activation="relu") for filters in (16, 32, 64)]
    model = keras.Sequential(
        [layers.Rescaling(1 / 255), *convolutions, layers.GlobalAveragePooling2D(), layers.Dense(10)]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    dataset = dataset.map(lambda row: (row["image"], row["label"]))

    def run() -> int:
        model.fit(dataset, verbose=0)
        return PHOTOS

    return run


@case(warm=True)
def jpeg(folder: Path) -> Run:
    """Photos of 500x375, resized to 160x160."""
    return _drained(_jpeg(folder))


@case(peer=True, warm=True)
def jpeg_by_hand(folder: Path) -> Run:
    return _drained(_jpeg_by_hand(folder))


@case(warm=True, newer=True)
def jpeg_scaled(folder: Path) -> Run:
    """The same with `scaled_decoding`."""
    return _drained(_jpeg(folder, ", scaled_decoding: true"))


@case(warm=True)
def jpeg_training(folder: Path) -> Run:
    return _trained(_jpeg(folder))


@case(peer=True, warm=True)
def jpeg_training_by_hand(folder: Path) -> Run:
    return _trained(_jpeg_by_hand(folder))


@case(peer=True, warm=True)
def jpeg_training_from_memory(folder: Path) -> Run:
    """The training alone: what it takes less than the others is the input's."""
    return _trained(_jpeg_by_hand(folder).cache())


# ---- measuring ----


def measure(name: str, folder: Path) -> None:
    """Measures a case in this process, and prints the seconds of one unit as JSON."""
    from processes import cpu_seconds

    one = CASES[name]
    run = one.prepare(folder)
    if one.warm:
        run()
    gc.collect()  # a full collection of TensorFlow's objects takes .2 s, and falls anywhere
    cpu, wall = cpu_seconds(), time.perf_counter()
    units = run()
    answer = {"wall": (time.perf_counter() - wall) / units, "cpu": (cpu_seconds() - cpu) / units}
    print(json.dumps(answer))


@contextmanager
def folders(checkouts: dict[str, Path]) -> Iterator[dict[str, Path]]:
    """A folder for the data of each checkout, in memory where there is a memory folder."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.exists() else None) as base:
        made = {name: Path(base) / name for name in checkouts}
        for folder in made.values():
            folder.mkdir()
        yield made


def compare(options: argparse.Namespace) -> None:
    checkouts = {"this": HERE.parent}
    if options.against is not None:
        checkouts["older"] = options.against.resolve()
    print("| case | unit | " + " | ".join(f"{name}: wall, CPU us" for name in checkouts) + " |")
    print("|---|---|" + "--:|" * len(checkouts), flush=True)
    for name in options.cases:
        best: dict[str, dict[str, float]] = {}
        with folders(checkouts) as made:
            for _ in range(options.runs):
                for checkout, path in checkouts.items():
                    if checkout == "older" and (CASES[name].peer or CASES[name].newer):
                        continue
                    run = _run(name, path, made[checkout])
                    known = best.setdefault(checkout, run)
                    best[checkout] = {key: min(known[key], run[key]) for key in known}
        title = f"({name})" if CASES[name].peer else name
        times = {one: (1e6 * found["wall"], 1e6 * found["cpu"]) for one, found in best.items()}
        cells = ["{:,.2f}, {:,.2f}".format(*times[one]) if one in times else "" for one in checkouts]
        print(f"| {title} | {CASES[name].unit} | {' | '.join(cells)} |", flush=True)


def _run(name: str, checkout: Path, folder: Path) -> dict[str, float]:
    cases = checkout / "benchmarks" / Path(__file__).name  # its own, as it was called then
    command = [sys.executable, str(cases), "--measure", name, str(folder)]
    environment = {**os.environ, "PYTHONPATH": f"{checkout}/pipelines"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr[-4000:]}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES, metavar="CASE")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--against", type=Path, help="another checkout, with its codec built in place")
    parser.add_argument("--measure", nargs=2, metavar=("CASE", "FOLDER"))
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], Path(options.measure[1]))
    else:
        compare(options)


if __name__ == "__main__":
    main()
