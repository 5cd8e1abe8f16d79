"""The manifest: what it says, what is refused, and the hash that protects it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

import recordspec as rs
from examples import sealed
from recordspec import Manifest, StoreError
from recordspec.store.expand import expand
from recordspec.store.manifest import Shard
from shell import run_here

SHARD = "a-00000-of-00001.tfrecord"
FORMAT1 = Path(__file__).parents[1] / "golden/format1"


def manifest(**options) -> Manifest:
    shard = Shard(file=SHARD, rows=3, records=3, bytes=4, sha256="0")
    known = {"schema": "s", "fingerprint": "f", "record": "example", "compression": "none"}
    return Manifest(**known, splits={"a": (shard,)}, labels={"l": ("x", "é")}, key=("id",), **options)


def test_a_manifest_loads_as_it_was_dumped(tmp_path):
    written = manifest(shuffle_seed=7)
    (tmp_path / "manifest.json").write_text(written.dump())
    assert Manifest.load(tmp_path) == written
    assert written.rows("a") == 3
    with pytest.raises(StoreError) as caught:
        written.rows("aa")
    assert str(caught.value) == "split: expected a, got `aa` (did you mean `a`?)"


def test_a_manifest_that_would_be_too_large_to_read_is_not_written(monkeypatch):
    size = len(manifest().dump().encode())
    monkeypatch.setattr("recordspec.store.manifest._MOST_BYTES", size)
    assert len(manifest().dump().encode()) == size
    with pytest.raises(rs.SpecError) as caught:
        manifest(shuffle_seed=77777).dump()
    expected = f"shards: expected a manifest of at most 0 MiB, got {size + 1:,} bytes (write fewer shards)"
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("{", "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", "TypeError: list indices must be integers or slices, not str"),
        ('{"format": 9}', "ValueError: format 9"),
        ('{"format": true}', "ValueError: format true"),
        ('{"format": 1.0}', "ValueError: format 1.0"),
        ('{"format": 1, "splits": {}, "splits": {}}', "ValueError: two values of `splits`"),
        ('{"format": 1, "splits": {"a": [{"rows": 1, "rows": 2}]}}', "ValueError: two values of `rows`"),
        ('{"format": 1}', "KeyError: 'splits'"),
    ],
)
def test_a_broken_manifest_is_named(tmp_path, text, got):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(StoreError) as caught:
        Manifest.load(tmp_path)
    assert str(caught.value) == f"{tmp_path}/manifest.json: expected a manifest of format 3, got {got}"


@pytest.mark.parametrize(
    ("place", "value", "got"),
    [
        ((), {"schema": 1}, "`schema` that is int 1"),
        ((), {"record": "examples"}, "`record` that is str 'examples'"),
        ((), {"compression": []}, "`compression` that is list []"),
        ((), {"key": "id"}, "`key` that is str 'id'"),
        ((), {"labels": {"l": "ab"}}, "`labels` that is dict {'l': 'ab'}"),
        ((), {"rejected": "many"}, "`rejected` that is str 'many'"),
        ((), {"rejected": -1}, "`rejected` that is int -1"),
        ((), {"block": 0}, "`block` that is int 0"),
        ((), {"beside": {"x": 1}}, "`beside` that is dict {'x': 1}"),
        ((), {"beside": {"../x": ""}}, "`beside` that is dict {'../x': ''}"),
        ((), {"beside": {"repair.json": ""}}, "`beside` that is dict {'repair.json': ''}"),
        ((), {"rejected": 1 << 63}, "`rejected` that is int 9223372036854775808"),
        (
            (),
            {"label_counts": {"a": {"l": [float("inf")]}}},
            "`label_counts` that is dict {'a': {'l': [inf]}}",
        ),
        ((), {"label_counts": {"a": {"l": "12"}}}, "`label_counts` that is dict {'a': {'l': '12'}}"),
        ((), {"label_counts": {"a": {"l": [-1]}}}, "`label_counts` that is dict {'a': {'l': [-1]}}"),
        (("splits", "a", 0), {"file": "."}, "a shard whose name is str '.'"),
        (("splits", "a", 0), {"file": "x" * 256}, f"a shard whose name is str '{'x' * 56}..."),
        (
            ("splits", "a", 0),
            {"rows": 10**4299},
            "counts of a-00000-of-00001.tfrecord that are not whole numbers",
        ),
        (("splits", "a", 0), {"file": 1}, "a shard whose name is int 1"),
        (("splits", "a", 0), {"file": "../x"}, "a shard whose name is str '../x'"),
        (("splits", "a", 0), {"rows": 1.5}, "counts of a-00000-of-00001.tfrecord that are not whole numbers"),
        (("splits", "a", 0), {"bytes": -1}, "counts of a-00000-of-00001.tfrecord that are not whole numbers"),
        ((), {"keys_sha256": "x" * 65}, f"`keys_sha256` that is str '{'x' * 56}..."),
        (("splits", "a", 0), {"sha256": "x" * 65}, f"a sha256 of {SHARD} that is str '{'x' * 56}..."),
        (("splits", "a", 0), {"sha256": None}, "a sha256 of a-00000-of-00001.tfrecord that is nothing"),
    ],
)
def test_a_manifest_that_says_what_none_can_is_named(tmp_path, place, value, got):
    data = json.loads(manifest().dump())
    part = data
    for key in place:
        part = part[key]
    part.update(value)
    (tmp_path / "manifest.json").write_text(sealed(data))
    with pytest.raises(StoreError) as caught:
        Manifest.load(tmp_path)
    expected = f"expected a manifest of format 3, got TypeError: {got}"
    assert str(caught.value) == f"{tmp_path}/manifest.json: {expected}"


@pytest.mark.parametrize("splits", [{"a": 2}, {"a": 1, "b": 1}])
def test_a_shard_that_a_manifest_names_twice_is_refused(tmp_path, splits):
    data = json.loads(manifest().dump())
    shards = data["splits"]["a"]
    data["splits"] = {split: shards * count for split, count in splits.items()}
    (tmp_path / "manifest.json").write_text(sealed(data))
    with pytest.raises(StoreError, match=f"got ValueError: 2 shards of the name {SHARD}$"):
        Manifest.load(tmp_path)


@pytest.mark.parametrize("name", ['"a":', '"l":', '"x"', '"id"', "a-00000"])
def test_text_that_cannot_be_written_again_is_refused(tmp_path, name):
    text = manifest().dump()
    assert name in text
    (tmp_path / "manifest.json").write_text(text.replace(name, name[0] + r"\ud800" + name[1:]))
    with pytest.raises(StoreError, match="expected a manifest of format 3, got UnicodeEncodeError: "):
        Manifest.load(tmp_path)
    changed = json.loads(text.replace("é", r"\ud83d\ude00"))
    (tmp_path / "manifest.json").write_text(sealed(changed))
    assert Manifest.load(tmp_path).labels["l"] == ("x", "😀")


def test_the_hash_is_that_of_the_canonical_json(tmp_path):
    text = manifest().dump()
    values = json.loads(text)
    said = values.pop("sha256")
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert said == hashlib.sha256(canonical.encode()).hexdigest()
    # white space and the order of fields are free
    (tmp_path / "manifest.json").write_text(json.dumps({"sha256": said, **values}, indent=3, sort_keys=True))
    assert Manifest.load(tmp_path) == manifest()


def test_sidecars_and_indices_do_not_change_the_identity():
    for other in (
        manifest(index_sha256="1"),
        manifest(beside={"features.json": "0"}),
        manifest(format=1),
        manifest(format=2),
    ):
        assert other.identity == manifest().identity
    assert manifest(shuffle_seed=7).identity != manifest().identity


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    data = tmp_path_factory.mktemp("manifest") / "data"
    rs.write(({"id": n} for n in range(767)), rs.Schema.loads("schema: s\nfeatures: {id: int64}"), data)
    return data


def test_a_changed_digit_is_an_error_of_every_command_and_reader(dataset, tmp_path):
    shutil.copytree(dataset, tmp_path / "data")
    file = tmp_path / "data/manifest.json"
    file.write_text(file.read_text().replace('"rows": 767', '"rows": 667'))
    message = (
        f"{file}: the manifest was changed after it was written: its values cannot be trusted"
        " (restore it, or build the dataset again)"
    )
    for command in ("count", "info", "head", "stats", "index", "show"):
        asked = run_here(command, tmp_path / "data", *([1] if command == "show" else []))
        assert (asked.returncode, asked.stdout) == (3, ""), command
        assert message in asked.stderr, command
    verified = run_here("verify", tmp_path / "data")
    assert verified.returncode == 1
    assert "the manifest was changed after it was written: its values cannot be trusted" in verified.stdout


@pytest.mark.parametrize("rows", ['"rows": 3', '"rows": 8'])
def test_a_changed_number_of_the_format_is_an_error(tmp_path, rows):
    text = manifest().dump().replace('"format": 3', '"format": 1').replace('"rows": 3', rows)
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(StoreError, match="the manifest was changed after it was written"):
        Manifest.load(tmp_path)


def test_a_manifest_of_format_2_without_its_hash_is_an_error(tmp_path):
    values = json.loads(manifest().dump())
    del values["sha256"]
    (tmp_path / "manifest.json").write_text(json.dumps(values))
    with pytest.raises(StoreError) as caught:
        Manifest.load(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/manifest.json: the manifest has no `sha256`: its values cannot be trusted"
        " (restore it, or build the dataset again)"
    )


@pytest.mark.parametrize("place", [(), ("splits", "a", 0)])
@pytest.mark.parametrize("format_", [1, 2, 3])
def test_an_unknown_field_is_refused_by_name(tmp_path, place, format_):
    values = json.loads(manifest().dump())
    values["format"] = part = format_
    part = values
    for key in place:
        part = part[key]
    part["turned"] = True
    (tmp_path / "manifest.json").write_text(sealed(values))
    with pytest.raises(StoreError) as caught:
        Manifest.load(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/manifest.json: expected a field of format {format_}, got `turned`"
        " (a later release of recordspec may have written it)"
    )


def test_a_manifest_of_format_2_names_no_index(tmp_path):
    values = json.loads(manifest().dump())
    values["format"] = 2
    del values["index_sha256"]
    (tmp_path / "manifest.json").write_text(sealed(values))
    assert Manifest.load(tmp_path) == manifest(format=2)


# Datasets of format 1, which commit 1f35623 wrote.


@pytest.mark.parametrize("name", ["keyed", "blocks"])
def test_every_command_reads_a_dataset_of_format_1(tmp_path, name):
    data = tmp_path / name
    shutil.copytree(FORMAT1 / name, data)
    rows = {"train": 28, "test": 12} if name == "blocks" else {"train": 32, "test": 8}
    assert {split: Manifest.load(data).rows(split) for split in rows} == rows
    total = sum(rows.values())
    commands = {
        "count": (data,),
        "info": (data,),
        "head": (data, "-n", 2),
        "show": (data, 1),
        "check": (data,),
        "stats": (data,),
        "diff": (data, data),
        "index": (data,) if name == "keyed" else None,
        "export": (data, "--out", tmp_path / "rows.jsonl"),
        "reshard": (data, tmp_path / "again", "--shards", 1),
        "repair": (data, "--out", tmp_path / "saved"),
        "infer": (data,),
        "explain": (data / "schema.yaml",),
    }
    for command, arguments in commands.items():
        if arguments is not None:
            asked = run_here(command, *arguments)
            assert asked.returncode == 0, (command, asked.stderr)
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == total
    again = Manifest.load(tmp_path / "again")
    assert ({split: again.rows(split) for split in rows}, again.format) == (rows, 3)
    batches = rs.read(expand(data), rs.Schema.load(data / "schema.yaml"), batch=8)
    assert sum(len(batch["kind"]) for batch in batches) == total


def test_verify_says_that_format_1_has_no_hash(tmp_path, caplog):
    shutil.copytree(FORMAT1 / "keyed", tmp_path / "data")
    verified = run_here("verify", tmp_path / "data")
    assert verified.returncode == 0
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}/data/manifest.json has format 1: without a SHA-256 of its own, a change of it is not noticed"
    ]
