"""A build on Spark gives the bytes of a local build: `spark.engine`, `spark.tasks`."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

import recordspec as rs
from recordspec.store.manifest import Manifest
from recordspec.writing.sources import base, ranges, tfrecord

pytestmark = pytest.mark.services

SCHEMA = rs.Schema.loads(
    """
schema: s
features:
  id: int64
  name: string
  many: {kind: var_len, dtype: float32}
  class: {kind: label, names: [a, b, c]}
"""
)
TYPES = "id long, name string, many array<float>, class string"
CONFIG = """\
schema: schema.yaml
data: {data}
write:
  source: {{csv: rows.csv}}
"""


def rows(count: int) -> list[dict]:
    draw = random.Random(count)
    return [
        {
            "id": number,
            "name": "x" * draw.randrange(600),
            "many": [0.5 * draw.randrange(9) for _ in range(draw.randrange(4))],
            "class": draw.choice("abc"),
        }
        for number in range(count)
    ]


def frame_of(session, some, types=TYPES, partitions=3):
    """A frame whose partitions have the rows in their order."""
    return session.createDataFrame(session.sparkContext.parallelize(some, partitions), types)


OF_CONTENT = {
    "rows": {"shuffle": 1, "shards": 5},
    "in order": {"shards": 4},
    "in order, auto": {},
    "in order, split": {"shards": 2, "split": {"one": 1, "two": 3}},
    "blocks, gzip": {"shuffle": 1, "shards": 2, "layout": {"blocks": 16}, "compression": "gzip"},
    "blocks in order": {"shards": 3, "layout": {"blocks": 64}},
    "weights, key": {"shuffle": 7, "shards": 3, "split": {"train": 8, "test": 1}, "key": "id"},
    "key, in order": {"shards": 3, "key": ("id", "name")},
    "group": {"shuffle": 7, "shards": 2, "split": {"a": 1, "b": 1}, "key": "id", "group_by": "class"},
    "folds": {"shuffle": 7, "split": {"folds": 5}, "shards": {"size": "8KiB"}},
    "column": {"shuffle": 7, "split": {"column": "class"}, "shards": 2},
    "ties": {"shuffle": 3, "shards": 7, "key": {"names": "class", "unique": False}},
    "a split without rows": {"shuffle": 3, "shards": 2, "split": {"a": 1, "b": 1e-18}},
}


# With the oldest Spark: every step of a build, once.
OLDEST = ("rows", "in order, auto", "blocks, gzip", "weights, key", "ties")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(options, id=name, marks=[] if name in OLDEST else pytest.mark.newest)
        for name, options in OF_CONTENT.items()
    ],
)
def test_a_frame_with_each_option(session, tmp_path, same, options):
    from recordspec import spark

    some = rows(900)
    rs.write(some, SCHEMA, tmp_path / "local", **options)
    manifest = spark.write(frame_of(session, some), SCHEMA, tmp_path / "spark", **options)
    assert same(tmp_path / "spark", tmp_path / "local") == manifest


@pytest.mark.parametrize(
    ("options", "broadcast"),
    [
        ({"shuffle": 7}, "-1"),
        pytest.param({}, "10MB", marks=pytest.mark.newest),
        pytest.param({"shuffle": 7, "key": {"unique": False}}, "10MB", marks=pytest.mark.newest),
    ],
    ids=str,
)
def test_copies_of_rows(session, tmp_path, same, options, broadcast):
    """Their splits, their order and the counts of their classes; with and without a shuffle of the records."""
    from recordspec import spark

    draw = random.Random(1)
    some = [{"id": draw.randrange(9), "name": "x", "many": [], "class": "a"} for _ in range(900)]
    how = {"split": {"a": 3, "b": 1}, "shards": 2, **options}
    rs.write(some, SCHEMA, tmp_path / "local", **how)
    before = session.conf.get("spark.sql.autoBroadcastJoinThreshold")
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", broadcast)
    try:
        made = spark.write(frame_of(session, some, partitions=5), SCHEMA, tmp_path / "spark", **how)
    finally:
        session.conf.set("spark.sql.autoBroadcastJoinThreshold", before)
    assert same(tmp_path / "spark", tmp_path / "local") == made


@pytest.mark.newest
def test_any_partitions_of_a_shuffled_frame(session, tmp_path, same):
    from recordspec import spark

    some = rows(2000)
    rs.write(some, SCHEMA, tmp_path / "local", shuffle=1, shards=5)
    frame = frame_of(session, random.Random(0).sample(some, len(some)), partitions=1).repartition(11)
    spark.write(frame, SCHEMA, tmp_path / "spark", shuffle=1, shards=5)
    same(tmp_path / "spark", tmp_path / "local")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_fewer_rows_than_shards(session, tmp_path, same, count):
    from recordspec import spark

    options = {"shuffle": 1, "shards": 5, "allow_empty": True, "key": "id"}
    rs.write(rows(count), SCHEMA, tmp_path / "local", **options)
    spark.write(frame_of(session, rows(count)), SCHEMA, tmp_path / "spark", **options)
    same(tmp_path / "spark", tmp_path / "local")


@pytest.mark.newest
def test_equal_rows_on_both_sides_of_a_bound(session, tmp_path, same):
    from recordspec import spark

    some = [rows(3)[number % 3] for number in range(600)]
    rs.write(some, SCHEMA, tmp_path / "local", shuffle=1, shards=8)
    spark.write(frame_of(session, some), SCHEMA, tmp_path / "spark", shuffle=1, shards=8)
    same(tmp_path / "spark", tmp_path / "local")


def test_append_and_force(session, tmp_path, same):
    from recordspec import spark

    some, options = rows(900), {"shuffle": 1, "shards": 2, "key": "id", "split": {"a": 9, "b": 1}}
    for folder, write in (("local", rs.write), ("spark", None)):
        for start, how in ((600, {}), (0, {"force": True}), (300, {"append": True}), (600, {"append": True})):
            part, place = some[start : start + 300], tmp_path / folder
            if write is not None:
                write(part, SCHEMA, place, **options, **how)
            else:
                spark.write(frame_of(session, part), SCHEMA, place, **options, **how)
    assert same(tmp_path / "spark", tmp_path / "local").rows("a") > 700
    with pytest.raises(rs.RecordError) as error:
        spark.write(frame_of(session, some[250:]), SCHEMA, tmp_path / "spark", **options, append=True)
    found = re.fullmatch(
        r"partition (\d), row (\d+): id: expected a key that no other row has, got that of (.*): row \d+",
        str(error.value),
    )
    assert found
    assert Path(found[3]).parent == tmp_path / "spark"
    same(tmp_path / "spark", tmp_path / "local")


@pytest.fixture
def pipelines(tmp_path, monkeypatch):
    """A config for Spark and one for a local build of the same CSV file, in several parts and chunks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(base, "PART_BYTES", 4096)
    monkeypatch.setattr(ranges, "_CHUNK", 6000)
    Path("schema.yaml").write_text("schema: s\nfeatures: {id: int64, name: string}\n")

    def make(lines: list[str], *options: str) -> tuple[rs.Pipeline, rs.Pipeline]:
        Path("rows.csv").write_text("\n".join(["id,name", *lines]) + "\n")
        for name in ("local", "spark"):
            text = CONFIG.format(data=name) + "".join(f"  {option}\n" for option in options)
            Path(f"{name}.yaml").write_text(text)
        return rs.Pipeline.load("local.yaml"), rs.Pipeline.load("spark.yaml")

    return make


@pytest.mark.parametrize(
    "options",
    [
        ("shuffle: 4", "shards: 3", "invalid: quarantine", "key: id", "splits: {a: 1, b: 1}"),
        pytest.param(("shards: 3", "invalid: quarantine"), marks=pytest.mark.newest),
    ],
)
def test_a_config_and_its_rejects(session, pipelines, same, options, monkeypatch):
    from recordspec import spark

    lines = [f"{number},{'n' * (1 + number % 7)}" for number in range(2000)]
    lines[3] = lines[1700] = lines[1999] = "x,y"
    local, on_spark = pipelines(lines, *options)
    local.build(jobs=2)
    monkeypatch.setattr(ranges._TextFile, "scan", None)  # executors scan the file, not the driver
    assert spark.build(on_spark, session).rejected == 3
    same(Path("spark"), Path("local"))
    rejects = [json.loads(line) for line in Path("spark/rejects.jsonl").read_text().splitlines()]
    assert [(line["row"], line["place"]) for line in rejects] == [
        (3, "rows.csv:5"),
        (1700, "rows.csv:1702"),
        (1999, "rows.csv:2001"),
    ]
    assert on_spark.manifest == Manifest.load(Path("local"))


@pytest.mark.newest
def test_records_of_another_dataset(session, pipelines, same, monkeypatch):
    from recordspec import spark

    local, _ = pipelines([f"{number},{'n' * (1 + number % 7)}" for number in range(2000)])
    local.build(progress=False)
    for name in ("again", "spark"):
        text = CONFIG.format(data=name).replace("{csv: rows.csv}", "{tfrecord: local}")
        Path(f"{name}.yaml").write_text(f"{text}  key: id\n  shuffle: 4\n  shards: 3\n")
    rs.Pipeline.load("again.yaml").build(progress=False)
    monkeypatch.setattr(tfrecord, "record_ranges", None)  # executors find ranges, not the driver
    spark.build(rs.Pipeline.load("spark.yaml"), session)
    same(Path("spark"), Path("again"))


@pytest.mark.newest
def test_given_splits(session, pipelines, same):
    from recordspec import spark

    pipelines([f"{number},n" for number in range(1000)])
    Path("more.csv").write_text("id,name\n" + "".join(f"{number},m\n" for number in range(1000, 1500)))
    for name in ("local", "spark"):
        source = "source: {train: {csv: rows.csv}, test: {csv: more.csv}}"
        text = Path(f"{name}.yaml").read_text().replace("source: {csv: rows.csv}", source)
        Path(f"{name}.yaml").write_text(f"{text}  key: id\n  shuffle: 4\n")
    local, on_spark = rs.Pipeline.load("local.yaml"), rs.Pipeline.load("spark.yaml")
    local.build(progress=False)
    manifest = spark.build(on_spark, session)
    assert (manifest.rows("train"), manifest.rows("test")) == (1000, 500)
    same(Path("spark"), Path("local"))


def test_errors_are_those_of_a_local_build(session, pipelines, tmp_path):
    from recordspec import spark

    lines = [f"{number},n" for number in range(2000)]
    cases = {
        "an invalid row": ([*lines[:1500], "x,y", *lines[1500:], "z,y"], (), rs.RecordError),
        "a key twice": ([*lines, "7,m"], ("key: id",), rs.RecordError),
        "too many": (["x,y", *lines, "x,y"], ("invalid: {max_invalid: 1}",), rs.RecordError),
        "too many of all": ([*lines, *["x,y"] * 106], ("invalid: quarantine",), rs.RecordError),
        "no row": ([], (), rs.RecordError),
        "no valid row": (["x,y"], ("invalid: quarantine",), rs.RecordError),
    }
    for name, (given, options, kind) in cases.items():
        local, on_spark = pipelines(given, *options)
        errors = []
        for make in (lambda: local.build(), lambda: spark.build(on_spark, session)):  # noqa: B023
            with pytest.raises(kind) as error:
                make()
            errors.append((str(error.value), error.value.row, getattr(error.value, "__notes__", [])))
        assert [*errors[1]] == json.loads(json.dumps(errors[0]).replace("local", "spark")), name
        if name == "too many of all":
            listed = [tmp_path / f"{data}.rejects.jsonl" for data in ("local", "spark")]
            assert len(listed[0].read_text().splitlines()) == 106
            assert listed[1].read_bytes() == listed[0].read_bytes()
            for path in listed:
                path.unlink()
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "local.yaml",
            "rows.csv",
            "schema.yaml",
            "spark.yaml",
        ]


TAKEN = {
    "tinyint": ("cast(1 as tinyint)", "int64", 1),
    "smallint": ("cast(1 as smallint)", "int64", 1),
    "int": ("1", "int64", 1),
    "bigint": ("1L", "int64", 1),
    "float": ("cast(0.5 as float)", "float32", 0.5),
    "double": ("0.5D", "float32", 0.5),
    "boolean": ("true", "{kind: tensor, dtype: bool}", True),
    "string": ("'a'", "string", "a"),
    "binary": ("cast('a' as binary)", "string", "a"),
    "date": ("date'1970-01-02'", "{dtype: int64, date: days}", 1),
    "timestamp": ("timestamp'1970-01-01 02:00:00+01:00'", "{dtype: int64, date: seconds}", 3600),
    "timestamp_ntz": ("timestamp_ntz'1970-01-01 00:00:01'", "{dtype: int64, date: seconds}", 1),
    "array": ("array(1, 2)", "{kind: var_len, dtype: int64}", [1, 2]),
    "decimal": ("cast(1 as decimal(5,2))", "int64", 1),
    "interval": ("interval '1' day", "int64", 86_400_000_000),
    "void": ("null", "{dtype: int64, default: 7}", None),
}
REFUSED = {
    "a timestamp as a number": ("timestamp'1970-01-01 00:00:00Z'", "float32"),
    "interval day": ("interval '1' day", "float32"),
    "interval month": ("interval '1' month", "int64"),
    "interval": ("make_interval(1, 2, 3)", "string"),
    "map": ("map('a', 1)", "int64"),
    "struct": ("struct(1 as a)", "int64"),
    "array of structs": ("array(struct(1 as a))", "{kind: var_len, dtype: int64}"),
}
REFUSED_SINCE_4 = {
    "variant": ("parse_json('1')", "int64"),
    "time": ("time'12:00:00'", "float32"),
    "geometry": ("st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')", "string"),
}


def test_each_type_of_spark_is_written_as_that_of_arrow_is(session, tmp_path, same):
    from recordspec import spark

    names = {name.replace(" ", "_"): one for name, one in TAKEN.items()}
    features = "\n".join(f"  {name}: {feature}" for name, (_, feature, _) in names.items())
    schema = rs.Schema.loads(f"schema: s\nfeatures:\n{features}")
    frame = session.sql(f"select {', '.join(f'{text} as `{name}`' for name, (text, _, _) in names.items())}")
    spark.write(frame, schema, tmp_path / "spark")
    rs.write([{name: value for name, (_, _, value) in names.items()}], schema, tmp_path / "local")
    same(tmp_path / "spark", tmp_path / "local")


def test_each_other_type_of_spark_is_refused_with_a_way_out(session, tmp_path):
    from pyspark import __version__

    from recordspec import spark

    refused = REFUSED | (REFUSED_SINCE_4 if int(__version__[0]) >= 4 else {})
    for name, (text, feature) in refused.items():
        try:
            frame = session.sql(f"select {text} as x")
        except Exception:
            assert name in REFUSED_SINCE_4  # a later Spark has it
            continue
        with pytest.raises(rs.SpecError) as error:
            spark.write(frame, rs.Schema.loads(f"schema: s\nfeatures: {{x: {feature}}}"), tmp_path / "data")
        assert re.fullmatch(
            r"(x: expected a column|rows: expected columns) .+, got \S.* \(.+\)", str(error.value)
        ), (
            name,
            error.value,
        )


def test_a_vector_is_refused_with_the_function_that_makes_an_array_of_it(session, tmp_path):
    from pyspark.ml.linalg import Vectors

    from recordspec import spark

    frame = session.createDataFrame([(Vectors.dense([1.0, 2.0]),)], ["x"])
    schema = rs.Schema.loads("schema: s\nfeatures: {x: {dtype: float32, shape: [2]}}")
    with pytest.raises(rs.SpecError) as error:
        spark.write(frame, schema, tmp_path / "data")
    assert str(error.value) == (
        "x: expected a column of numbers, text, bytes, dates, or arrays of these, got VectorUDT"
        " (`vector_to_array` of pyspark.ml.functions makes an array of it)"
    )
