"""Files in a summary: how many records they have, of what type, and with which features."""

from __future__ import annotations

import pytest

from recordspec.errors import SpecError
from recordspec.statistics.info import info
from recordspec.tables.query import Query
from recordspec.tables.show import RecordViewer
from some_records import example, write
from third_party_data import DATA, needs_data


def test_what_files_hold(data):
    found = info(data)
    assert [(one.records, one.compression) for one in found.files] == [
        (16, "none"),
        (17, "none"),
        (17, "none"),
    ]
    assert (found.records, found.looked_at, found.blocks) == (50, 50, False)
    told = {
        one.key: (one.records, list(one.kinds), one.lengths.low, one.lengths.high) for one in found.features
    }
    assert told == {
        "many": (50, ["float32"], 0, 19),
        "number": (50, ["int64"], 1, 1),
        "side": (50, ["int64"], 1, 1),
        "text": (33, ["bytes"], 1, 1),
    }
    assert found.manifest.schema == "s"
    assert info(data, 4).looked_at == 12


@pytest.mark.slow
def test_of_very_many_keys_some_are_told(tmp_path):
    path = write(tmp_path / "f", *(example(**{f"key{n}": [n], "all": [1]}) for n in range(10_050)))
    found = info(path, None)
    assert (len(found.features), found.more_keys) == (10_000, True)
    assert found.features[0].records == 10_050
    with pytest.raises(SpecError) as error:
        RecordViewer(path, Query(columns=("ALL", "key")))
    assert str(error.value).startswith(
        "columns: expected one of 1,001 names, got `ALL` (did you mean `all`?)"
    )


@needs_data
def test_taxi():
    found = info(DATA / "taxi/trips-0000?-of-00002.tfrecord.gz", None)
    assert (found.records, found.looked_at, found.kinds["Example"]) == (15_000, 15_000, 15_000)
    told = {one.key: one for one in found.features}
    assert list(told["pickup_census_tract"].kinds) == ["none"]
    assert told["company"].kinds["bytes"] == 9860
    assert told["company"].kinds["none"] == 5140
    look = RecordViewer(
        DATA / "taxi/trips-0000?-of-00002.tfrecord.gz", Query(where="company IS NULL AND fare > 100")
    )
    assert all(record["features"]["company"] is None for record in look.head(5))


@needs_data
def test_sequences():
    found = info(DATA / "sequence/data-00000-of-00001.tfrecord.gz", None)
    assert found.kinds == {"Example": 0, "SequenceExample": 15_000, "neither": 0}
    (steps,) = [one for one in found.features if one.sequence]
    assert (steps.key, steps.records, steps.steps.low, steps.steps.high) == ("s", 15_000, 2, 2)
    assert (steps.lengths.low, steps.lengths.high) == (1, 1)
    (first,) = RecordViewer(
        DATA / "sequence/data-00000-of-00001.tfrecord.gz", Query(where="'7' IN s AND i = 7")
    ).head(1)
    assert first["sequence"] == {"s": ["7", "8"]}


def test_what_no_record_has_is_not_told(tmp_path):
    """Neither of records that are no Examples, nor of those that protobuf reads otherwise."""
    again = example(ghost=[b"x"], real=[b"x"]) + example(ghost=[], real=[1])
    path = write(
        tmp_path / "f", example(real=[1]), example(ghost=[1]) + b"\x18\x01", b"\x0a\x0a" + b"\xff" * 9, again
    )
    told = {one.key: one.kinds for one in info(path).features}
    assert told == {"real": {"int64": 2}, "ghost": {"none": 1}}
