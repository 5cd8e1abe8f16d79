"""Custom kinds, exported to other formats and inferred from records: by their columns, with notes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs
from recordspec.inferring.record_schemas import infer_records as infer
from recordspec.interop import tfds, tfmd
from recordspec.kinds import (
    Column,
    Feature,
    Fixed,
    Ragged,
    Sparse,
    Traits,
    items,
    numbers,
    ragged_spec,
    to_arrow,
)
from recordspec.schema.explain import features, python_source


@dataclass(frozen=True, kw_only=True)
class Mesh(Feature):
    """Vertices and triangles: two columns."""

    kind: ClassVar[str] = "mesh"

    closed: bool = False

    def columns(self):
        vertices = Column(key=f"{self.stored}/vertices", storage="float32", layout=Ragged(shape=(3,)))
        return vertices, Column(key=f"{self.stored}/triangles", storage="int64", layout=Ragged(shape=(3,)))

    def encode(self, values):
        both = [
            items([value[index] for value in values], dtype, (3,))
            for index, dtype in enumerate(["float32", "int64"])
        ]
        return tuple(to_arrow(flat, lengths * 3, len(values)) for flat, lengths in both)

    def decode(self, columns):
        vertices, triangles = (columns[column.key] for column in self.columns())
        return {self.name: vertices, f"{self.name}_triangles": triangles}

    def spec(self):
        return {
            self.name: ragged_spec((None, 3), "float32"),
            f"{self.name}_triangles": ragged_spec((None, 3), "int64"),
        }

    @property
    def traits(self):
        return Traits(outputs=(self.name, f"{self.name}_triangles"))

    def sample(self, rng):
        return rng.normal(size=(3, 3)).astype(np.float32), np.array([[0, 1, 2]])


@dataclass(frozen=True, kw_only=True)
class Weekday(Feature):
    """An index of a class, which is not a `label`."""

    kind: ClassVar[str] = "weekday"

    def columns(self):
        return (Column(key=self.stored, storage="int64", layout=Fixed()),)

    @property
    def traits(self):
        return Traits(class_names=("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"))

    def encode(self, values):
        return (to_arrow(numbers(list(values), "int64")),)

    def decode(self, columns):
        return columns[self.stored]

    def spec(self):
        return tf.TensorSpec([], tf.int64)

    def sample(self, rng):
        return int(rng.integers(7))


@dataclass(frozen=True, kw_only=True)
class Graph(Mesh):
    """A layout that TFDS lacks."""

    kind: ClassVar[str] = "graph"

    def columns(self):
        layout = Sparse(index_keys=(f"{self.stored}/from",), size=(9,))
        return (Column(key=self.stored, storage="int64", layout=layout),)


KINDS = rs.KINDS | {kind.kind: kind for kind in (Mesh, Weekday, Graph)}
SCHEMA = rs.Schema.loads(
    "schema: scans\nfeatures: {id: int64, shape: {kind: mesh, closed: true}, day: {kind: weekday}}",
    kinds=KINDS,
)


def row(number: int) -> dict:
    mesh = SCHEMA.names["shape"].sample(np.random.default_rng(number))
    return {"id": number, "shape": mesh, "day": number % 7}


def test_tensorflow_metadata_has_the_columns_of_a_custom_kind():
    text, notes = tfmd.dumps(SCHEMA)
    assert [str(note) for note in notes] == [
        "schema: not expressed",
        "features.shape: kind mesh is exported as ragged, by its columns, without name, closed",
        "features.day: kind weekday is exported as label, by its columns",
    ]
    back, unsupported = tfmd.loads(text, name="scans")
    assert back == rs.Schema.loads("""
schema: scans
features:
  id: int64
  shape/vertices: {kind: ragged, dtype: float32, shape: [null, 3]}
  shape/triangles: {kind: ragged, dtype: int64, shape: [null, 3]}
  day: {kind: label, names: [Mon, Tue, Wed, Thu, Fri, Sat, Sun]}
""")
    assert unsupported == ()


def test_tfds_has_the_columns_of_a_custom_kind_and_its_classes(tmp_path):
    rs.write(map(row, range(9)), SCHEMA, tmp_path / "data", progress=False)
    done = rs.export(tmp_path / "data", as_="tfds", schema=SCHEMA)
    assert tuple(Path(file).name for file in done.files) == (
        "features.json",
        "day.labels.txt",
        "dataset_info.json",
    )
    expected = [
        "features.shape: kind mesh is exported as ragged, by its columns, without name, closed",
        "features.day: kind weekday is exported as label, by its columns",
    ]
    text, notes = tfds.dumps(SCHEMA)
    assert [str(note) for note in notes] == ["schema: not expressed", *expected]
    assert list(json.loads(text)["featuresDict"]["features"]) == [
        "id",
        "shape/vertices",
        "shape/triangles",
        "day",
    ]
    back, _ = tfds.load(tmp_path / "data")
    assert back.names["day"].traits.class_names == SCHEMA.names["day"].traits.class_names
    (shard,) = (tmp_path / "data").glob("*.tfrecord")
    (batch,) = rs.read(shard.rename(tmp_path / "x.tfrecord"), back, batch=9)
    assert batch["shape/vertices"].shape.as_list() == [9, None, 3]


def test_what_tfds_cannot_express_is_noted():
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64, net: {kind: graph}}", kinds=KINDS)
    _, notes = tfds.dumps(schema)
    assert str(notes[0]) == "features.net: left out: kind graph cannot be expressed in TFDS"
    with pytest.raises(rs.SpecError) as caught:
        tfds.dumps(rs.Schema.loads("schema: s\nfeatures: {net: {kind: graph}}", kinds=KINDS))
    assert str(caught.value) == (
        "s: features.net: expected a feature that TFDS can read, "
        "got left out: kind graph cannot be expressed in TFDS"
    )


def test_records_of_a_custom_kind_are_inferred_by_their_columns(tmp_path):
    rs.write(map(row, range(70)), SCHEMA, tmp_path / "data", progress=False)
    found = infer(tmp_path / "data", "scans")  # though nothing here can load its schema
    assert rs.Schema.loads(found.schema.dump()) == found.schema
    assert found.schema == rs.Schema.loads("""
schema: scans
features:
  day: int64
  id: int64
  shape/triangles: {dtype: int64, shape: [3]}
  shape/vertices: {dtype: float32, shape: [9]}
""")
    assert found.notes == ("day: integers from 0 to 6: if they are classes, `kind: label` takes their names",)


def test_a_custom_kind_is_explained():
    rows = features(SCHEMA)
    assert [(line["feature"], line["kind"]) for line in rows] == [
        ("id", "fixed_len"),
        ("shape", "mesh"),
        ("day", "weekday"),
    ]
    assert "'shape/triangles'" in python_source(SCHEMA)
