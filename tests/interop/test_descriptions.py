"""`rs.export(data, as_=...)`: the files that describe a dataset, against the standards that they follow."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import recordspec as rs
from examples import example, file_of
from instances import CASES
from recordspec.interop import card, croissant
from recordspec.store.manifest import Shard

# https://docs.mlcommons.org/croissant/docs/croissant-spec.html: the properties of each type, and their values.
REQUIRED = {
    "sc:Dataset": {"@context", "name", "description", "conformsTo", "distribution", "recordSet"},
    "cr:FileObject": {"@id", "contentUrl", "encodingFormat", "sha256"},
    "cr:FileSet": {"@id", "includes", "encodingFormat"},
    "cr:RecordSet": {"@id", "field"},
    "cr:Field": {"@id", "name", "dataType"},
}
DATA_TYPES = {"sc:Boolean", "sc:Float", "sc:Integer", "sc:Text", "sc:ImageObject", "sc:AudioObject"}
DATA_TYPES |= {"cr:BoundingBox", "cr:Label", "cr:Split", "sc:Enumeration"}
# Keys of schema.org, to which the vocabulary of the context leads.
SCHEMA_ORG = {"name", "description", "version", "distribution", "contentUrl", "contentSize", "encodingFormat"}
SCHEMA_ORG |= {"sha256"}


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """All objects of a JSON document but for records."""
    if isinstance(value, dict):
        yield value
        for key, below in value.items():
            if key not in ("data", "@context"):
                yield from nodes(below)
    elif isinstance(value, list):
        for item in value:
            yield from nodes(item)


def check_croissant(metadata: dict[str, Any]) -> None:
    assert metadata["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    everything = list(nodes(metadata))
    typed = [node for node in everything if "@type" in node]
    for node in typed:
        assert REQUIRED[node["@type"]] <= node.keys(), node
    ids = [node["@id"] for node in typed if "@id" in node]
    assert len(set(ids)) == len(ids)
    assert not any(set(' "<>\\^`{|}') & set(one) for one in ids)
    for node in everything:
        assert {key for key in node if key[0] != "@"} <= metadata["@context"].keys() | SCHEMA_ORG, node
        if "@type" not in node and "@id" in node:
            assert node["@id"] in ids
        types = node.get("dataType", [])
        assert {types} if isinstance(types, str) else set(types) <= DATA_TYPES
        for row in node.get("data", ()):
            assert row.keys() == {field["@id"] for field in node["field"]}
            assert all(isinstance(value, (str, int)) for value in row.values())


def manifest_of(schema: rs.Schema, **options: Any) -> rs.Manifest:
    labels = {feature.name: feature.traits.class_names for _, feature in schema._placed}
    shard = Shard(file="train-v2-00000-of-00001.tfrecord", rows=5, records=5, bytes=90, sha256="0" * 64)
    return rs.Manifest(
        schema=schema.name,
        fingerprint=schema.fingerprint,
        record=schema.record,
        compression="none",
        labels={name: names for name, names in labels.items() if names},
        **{"splits": {"train": (shard,)}, **options},
    )


def test_every_kind_of_feature_is_described():
    """mlcroissant 1.1.1 accepts the metadata of all datasets of configs/; it needs 240 MB."""
    for case in CASES:
        manifest = manifest_of(case.schema)
        texts, _ = croissant.dataset_files(Path("data"), manifest, case.schema)
        metadata = json.loads(texts["croissant.json"])
        check_croissant(metadata)
        rows = metadata["recordSet"][-1]
        described = [field for field in rows["field"] if "column" in field["source"]["extract"]]
        assert [field["source"]["extract"]["column"] for field in described] == [
            column.key for column in case.feature.columns()
        ]
        texts, notes = card.dataset_files(Path("data"), manifest, case.schema)
        _, head, _ = texts["README.md"].split("---\n", 2)
        listed = yaml.safe_load(head)["dataset_info"]["features"]
        assert len(listed) + len(notes) == 2, case


def test_a_dataset_is_described_by_its_manifest(tmp_path):
    text = (
        "schema: pets\nversion: 2\ndescription: Cats and dogs.\nfeatures:\n"
        "  id: int64\n  kind: {kind: label, names: [cat, dog]}\n  net weight: {dtype: float32, shape: [2]}\n"
    )
    rows = [{"id": number, "kind": number % 2, "net weight": [number, 1.5]} for number in range(20)]
    data = tmp_path / "data"
    rs.write(rows, rs.Schema.loads(text), data, split={"train": 3, "test": 1}, shards=2, key="id")
    manifest = rs.Manifest.load(data)
    assert rs.export(data, as_="croissant").files == (str(data / "croissant.json"),)
    metadata = json.loads((data / "croissant.json").read_text())
    check_croissant(metadata)
    *files, shards = metadata["distribution"]
    assert {file["name"]: file["sha256"] for file in files} == {
        name: hashlib.sha256((data / name).read_bytes()).hexdigest() for name in manifest.files
    }
    assert set(shards["includes"]) == manifest.files
    splits, classes, stored = metadata["recordSet"]
    assert [row["splits/rows"] for row in splits["data"]] == [manifest.rows("train"), manifest.rows("test")]
    counts = manifest.label_counts["train"]["kind"]
    assert [row["classes/features/kind/rows_train"] for row in classes["data"]] == list(counts)
    assert stored["key"] == [{"@id": "rows/features/id"}]
    assert {field["name"]: field["dataType"] for field in stored["field"]} == {
        "split": "sc:Text",
        "id": "sc:Integer",
        "kind": ["sc:Integer", "cr:Label"],
        "net weight": "sc:Float",
    }
    rs.export(data, as_="card")
    (tmp_path / "config.yaml").write_text(f"schema: {data}/schema.yaml\ndata: {data}\n")
    assert rs.export(tmp_path / "config.yaml", as_="card") == rs.export(data, as_="card")
    _, head, body = (data / "README.md").read_text().split("---\n", 2)
    info = yaml.safe_load(head)["dataset_info"]
    assert [(split["name"], split["num_examples"]) for split in info["splits"]] == [
        (split, manifest.rows(split)) for split in manifest.splits
    ]
    assert info["features"] == [
        {"name": "id", "dtype": "int64"},
        {"name": "kind", "dtype": {"class_label": {"names": {"0": "cat", "1": "dog"}}}},
        {"name": "net weight", "list": "float32", "length": 2},
    ]
    assert "| net weight | kind fixed\\_len, dtype float32, shape \\[2\\] |  |" in body
    assert all(file.intact for file in rs.verify(data))
    assert set(rs.Manifest.load(data).beside) == {"croissant.json", "README.md"}


def test_rows_of_appended_and_adopted_shards_have_their_split():
    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64}")
    names = ("train-00000-of-00001.tfrecord", "train-add1-00000-of-00001.tfrecord")
    shards = tuple(Shard(file=name, rows=1, records=1, bytes=9, sha256="0" * 64) for name in names)
    for files, fields in (
        (shards, ["split", "a"]),
        ((*shards, Shard(**vars(shards[0]) | {"file": "x"})), ["a"]),
    ):
        texts, _ = croissant.dataset_files(Path(), manifest_of(schema, splits={"train": files}), schema)
        rows = json.loads(texts["croissant.json"])["recordSet"][-1]
        assert [field["name"] for field in rows["field"]] == fields


def test_a_card_reads_adopted_shards_by_their_split(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64}")
    file_of(tmp_path / "flowers.tfrecord", [example({"a": ("int64", [1])})])
    rs.adopt(tmp_path, schema)
    rs.export(tmp_path, as_="card")
    assert 'rs.read(".", split="train", batch=32)' in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize(
    ("rows", "category"),
    [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (10**12 - 1, "100B<n<1T"), (10**12, "n>1T")],
)
def test_the_size_category_is_that_of_the_hub(rows, category):
    assert card._size_category(rows) == category


def test_an_empty_default_is_seen():
    schema = rs.Schema.loads('schema: s\nfeatures: {a: {dtype: string, default: ""}}')
    texts, _ = card.dataset_files(Path(), manifest_of(schema), schema)
    assert '| a | kind fixed\\_len, dtype string, default "" |  |' in texts["README.md"]


def test_names_are_no_markup_of_a_card():
    schema = rs.Schema.loads('schema: "a|b"\ndescription: "<img>\\n# x"\nfeatures: {"[x](y)": int64}')
    texts, _ = card.dataset_files(Path(), manifest_of(schema), schema)
    body = texts["README.md"].split("---\n", 2)[2]
    assert "# a\\|b\n\n&lt;img&gt;\\\\n\\# x\n" in body
    assert "| \\[x\\](y) | kind fixed\\_len, dtype int64 |  |" in body


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"as_": "cardd"},
            rs.SpecError,
            "as_: expected one of croissant, card, tfds, got `cardd` (did you mean `card`?)",
        ),
        (
            {"as_": "card", "where": "a > 1", "out": "x.csv"},
            rs.SpecError,
            "out: expected no file, since card is written beside the shards, got `x.csv`\n"
            "where: expected no value, since card reads no records, got `a > 1`",
        ),
        (
            {},
            rs.SpecError,
            "out: expected a file, got none (or the format of a description, as_: one of croissant, card, tfds)",
        ),
        (
            {"as_": "card", "schema": rs.Schema.loads("schema: s\nfeatures: {b: int64}")},
            rs.StoreError,
            "data: features.b: expected",
        ),
    ],
)
def test_what_is_not_described_is_an_error(arguments, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rs.write([{"a": 1}], rs.Schema.loads("schema: s\nfeatures: {a: int64}"), "data")
    with pytest.raises(error) as caught:
        rs.export("data", **arguments)
    assert str(caught.value).startswith(message)
    with pytest.raises(rs.SpecError, match=r"^files: expected the folder of one dataset, got list"):
        rs.export(["data", "data"], as_="card")
