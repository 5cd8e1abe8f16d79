"""Files of records as any program may write them; rows and schemas of datasets."""

from __future__ import annotations

from pathlib import Path

import pytest

import recordspec as rs
from recordspec.tables.query import Query
from recordspec.tables.show import RecordViewer
from recordspec.wire import tfrecord
from recordspec.wire.framing import framed
from recordspec.wire.proto import _classes

SCHEMA = rs.Schema.loads(
    """
schema: s
features:
  id: {dtype: int64, key: number}
  text: {dtype: string, default: ""}
  many: {kind: var_len, dtype: float32}
  side: {kind: label, names: [left, right]}
"""
)
ROWS = [
    {"id": n, "many": [0.1] * (n % 20), "side": n % 2, **({"text": f"t{n}"} if n % 3 else {})}
    for n in range(50)
]


def example(**features) -> bytes:
    made = _classes()["SequenceExample"]()
    for key, values in features.items():
        _fill(made.context.feature.add(key=key).value, values)
    return made.SerializeToString()


def _fill(feature, values) -> None:
    if values:
        name = {bytes: "bytes_list", float: "float_list", int: "int64_list"}[type(values[0])]
        getattr(feature, name).value.extend(values)
    else:
        feature.SetInParent()


def write(path: Path, *records: bytes) -> Path:
    path.write_bytes(b"".join(map(framed, records)))
    return path


BLOCKED = rs.Schema.loads(
    """
schema: b
record: sequence_example
context: {n: int64, name: {dtype: string, default: ""}}
sequence: {s: {kind: fixed_len_sequence, dtype: int64}}
"""
)


def sequence_example(steps: dict, **context) -> bytes:
    made = _classes()["SequenceExample"].FromString(example(**context))
    for key, lists in steps.items():
        many = made.feature_lists.feature_list.add(key=key).value
        for values in lists:
            _fill(many.feature.add(), values)
    return made.SerializeToString()


def found(path: Path, where: str, **how) -> list[int]:
    """The numbers of the records for which a condition holds."""
    return [record["record"] for record in RecordViewer(path, Query(where=where, **how)).head(1000)]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "d"
    rs.write(ROWS, SCHEMA, folder, shards=3)
    return folder


@pytest.fixture(params=[None, 60])
def chunks(request, monkeypatch) -> None:
    """Reads all records at once, or a few: the results must be equal."""
    if request.param is not None:
        monkeypatch.setattr(tfrecord.salvage, "__defaults__", (None, request.param))


@pytest.fixture
def small_chunks(monkeypatch):
    """Reads a few records at once, so that their form changes from batch to batch."""
    monkeypatch.setattr(tfrecord.salvage, "__defaults__", (None, 200))
