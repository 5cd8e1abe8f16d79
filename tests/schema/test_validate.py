"""Records against a schema without TensorFlow; and here are the tests of `schema.features.stored`."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import recordspec as rs
from examples import example
from fields_by_hand import entry, ints, listed, packed
from fields_by_hand import example as of_entries
from instances import CASES
from recordspec._tf import tf
from recordspec.integrity.check import check_files
from recordspec.schema.decoder import decode_errors, decode_problems
from recordspec.schema.row_blocks import block_of_records
from recordspec.store.dataset import StoredDataset
from recordspec.store.expand import expand
from recordspec.store.scan import FileRange, UnreadableRecord
from recordspec.store.scan import scan as scan_rows
from recordspec.store.shards import File
from recordspec.wire import proto
from recordspec.wire.framing import framed
from recordspec.wire.tfrecord import scan
from selection import scaled
from third_party_data import DATA, needs_data

# Of every kind one instance in every section, of the most keys.
OF_EACH_KIND = list(
    {
        (case.feature.kind, case.section): case
        for case in sorted(CASES, key=lambda case: len(case.feature.columns()))
    }.values()
)
KINDS = {"bytes_list": [b"", b"x", b"yy"], "float_list": [0.5, -1.0], "int64_list": [0, 1, 300, -5]}


def told(report) -> list[str]:
    return [str(fault.problem).partition(": ")[2] for fault in report.examples]


def stored(path: Path, records: list[bytes]) -> File:
    path.write_bytes(b"".join(map(framed, records)))
    return File(path=path)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_was_written_fits(case, tmp_path):
    schema = case.schema
    rs.write(case.rows, schema, tmp_path / "rows", key=None, progress=False)
    report = check_files(StoredDataset.of(tmp_path / "rows", schema).checked_files(), schema)
    assert (told(report), report.rows, report.invalid) == ([], len(case.rows), 0)
    assert report.unknown == {}
    rs.write(case.rows, schema, tmp_path / "blocks", key=None, layout={"blocks": 3}, progress=False)
    report = check_files(StoredDataset.of(tmp_path / "blocks", schema).checked_files(), schema)
    assert (told(report), report.rows, report.invalid) == ([], len(case.rows), 0)


@pytest.mark.tensorflow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_tensorflow_refuses_does_not_fit(case, tmp_path):
    schema = case.schema
    chance = random.Random(str(case))
    records = [
        damaged(schema.record == "sequence_example", record, chance)
        for record in case.records
        for _ in range(scaled(3))
    ]
    refused = refused_by(schema.decode, records)
    report = check_files([stored(tmp_path / "x", records)], schema, examples=1000)
    assert refused <= {fault.record for fault in report.examples}
    assert report.invalid == len({fault.record for fault in report.examples})


@pytest.mark.tensorflow
@pytest.mark.parametrize("case", OF_EACH_KIND, ids=str)
def test_blocks_that_tensorflow_refuses_do_not_fit(case, tmp_path):
    schema, chance = case.schema, random.Random(str(case))
    blocks = [damaged(False, block_of_records(schema, case.records), chance) for _ in range(30)]
    refused = refused_by(schema.decode_block, blocks)
    path = stored(tmp_path / "x", blocks).path
    report = check_files([File(path=path, block=len(case.records))], schema, examples=1000)
    assert refused <= {fault.record for fault in report.examples}
    unreadable = [
        found
        for found in scan_rows(FileRange(path=path, blocks=schema))
        if isinstance(found, UnreadableRecord)
    ]
    found = {str(problem) for one in unreadable for problem in one.problems}
    assert found <= {str(fault.problem) for fault in report.examples}  # check says what other commands say


def refused_by(decode, records: list[bytes]) -> set[int]:
    """Decoded eagerly: tracing a graph takes longer than all the records of a case."""
    return {number for number, data in enumerate(records) if not decodes(decode, data)}


def decodes(decode, record: bytes) -> bool:
    try:
        decode(tf.constant([record]))
    except (
        *decode_errors(),
        ValueError,
    ):  # of a SparseTensor that is not in a graph, and has too few indices
        return False
    return True


def damaged(sequence: bool, record: bytes, chance: random.Random) -> bytes:
    """An Example, or a SequenceExample, of which something was taken away, added or changed."""
    made = proto._classes()["SequenceExample" if sequence else "Example"].FromString(record)
    features = made.context.feature if sequence else made.features.feature
    steps = (
        [step for entry in made.feature_lists.feature_list for step in entry.value.feature]
        if sequence
        else []
    )
    places = [entry.value for entry in features] + steps
    if not places:
        return record
    place = chance.choice(places)
    damage = chance.choice(["none", "empty", "other", "longer", "shorter"])
    kind = next((field.name for field, _ in place.ListFields()), "int64_list")
    if damage == "none":
        place.Clear()
    elif damage == "other":
        other = chance.choice([name for name in KINDS if name != kind])
        place.Clear()
        getattr(place, other).value.extend([chance.choice(KINDS[other])])
    elif damage == "longer":
        getattr(place, kind).value.append(chance.choice(KINDS[kind]))
    else:
        values = list(getattr(place, kind).value)
        getattr(place, kind).SetInParent()
        del getattr(place, kind).value[:]
        getattr(place, kind).value.extend(values[:-1] if damage == "shorter" else [])
    return made.SerializeToString()


SCHEMA = rs.Schema.loads("""
schema: s
features:
  n: int64
  price: {kind: fixed_len, dtype: float32, default: 1.5}
  pair: {kind: fixed_len, dtype: int64, shape: [2]}
  mood: {kind: label, names: [calm, glad]}
  words: {kind: var_len, dtype: string, max_length: 2}
  small: {kind: tensor, dtype: int8, shape: [null]}
  points: {kind: sparse, dtype: float32, size: 10}
  lists: {kind: ragged, dtype: int64, shape: [null, null]}
  odd: {kind: ragged, key: "o{}", dtype: int64, shape: [null, null]}
  said: text
""")
ROW = {
    "n": 1,
    "price": 2.0,
    "pair": [1, 2],
    "mood": "glad",
    "words": ["a"],
    "small": [1],
    "points": ([3], [0.5]),
    "lists": [[1], [2, 3]],
    "odd": [[1], [2, 3]],
    "said": "é",
}


def changed(**values) -> bytes:
    """The row's record with other values under some keys; None takes a key away."""
    message = proto._classes()["Example"].FromString(SCHEMA.encode(ROW))
    entries = [entry for entry in message.features.feature if entry.key not in values]
    made = proto._classes()["Example"]()
    made.features.feature.extend(entries)
    for key, given in values.items():
        if given is not None:
            value = made.features.feature.add(key=key).value
            first = given[0] if given else {"words": b"", "price": 0.5}.get(key, 0)
            kind = {bytes: "bytes_list", float: "float_list"}.get(type(first), "int64_list")
            getattr(value, kind).value.extend(given)
            getattr(value, kind).SetInParent()
    return made.SerializeToString()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n": None}, "features.n: expected 1 int64, got none"),
        ({"n": [0.5]}, "features.n: expected 1 int64, got 1 float32"),
        ({"n": [1, 2]}, "features.n: expected 1 int64, got 2 int64"),
        ({"price": []}, "features.price: expected values, got an empty list (without the key it would have its default)"),
        ({"pair": [1]}, "features.pair: expected 2 int64, got 1 int64"),
        ({"mood": [2]}, "features.mood: expected an index from 0 to 1, got 2"),
        ({"mood": [7, 7]}, "features.mood: expected 1 int64, got 2 int64"),
        ({"words": [b"a", b"b", b"c"]}, "features.words: expected at most 2 items (max_length), got 3"),
        ({"words": [1]}, "features.words: expected any number of string, got 1 int64"),
        ({"small": [1, 128]}, "features.small: expected int8, got 128"),
        ({"points/indices": [10]}, "features.points: expected indices from 0 to 9 under `points/indices`, got 10"),
        ({"points/indices": [1, 2]}, "features.points: expected 1 indices under `points/indices`, one for each value, got 2"),
        ({"lists/row_lengths": [1, 1]}, "features.lists: expected 2 items, as `lists/row_lengths` says, got 3"),
        ({"o{}/row_lengths": [1, 1]}, "features.odd: expected 2 items, as `o{}/row_lengths` says, got 3"),
        ({"said": [b"\xff"]}, "features.said: expected UTF-8 text, got the byte 0xff at position 0"),
    ],
)  # fmt: skip
def test_every_misfit_is_told(tmp_path, values, message):
    good = SCHEMA.encode(ROW)
    report = check_files([stored(tmp_path / "x", [good, changed(**values), good])], SCHEMA)
    where = f"record 1 at byte {len(good) + 16:,}: "
    assert told(report) == [where + message]
    assert (report.rows, report.invalid, report.valid) == (3, 1, False)


def test_raw_media_of_another_size_are_told(tmp_path):
    schema = rs.Schema.loads("""
schema: s
features:
  image: {kind: image, shape: [2, 2, 3], encoding: raw}
  audio: {kind: audio, sample_rate: 8, channels: 2, dtype: int16, encoding: raw}
  video: {kind: video, shape: [null, 1, 1, 3], encoding: raw}
""")
    good = {"image": [bytes(12)], "audio": [bytes(8)], "video": [b"abc", b"def"]}
    bad = {"image": [bytes(11)], "audio": [bytes(9)], "video": [b"abc", b"de"]}
    rows = (good, bad, good | {"video": []})
    records = [example({key: ("bytes", values) for key, values in row.items()}) for row in rows]
    report = check_files([stored(tmp_path / "x", records)], schema)
    assert sorted(message.partition(": ")[2] for message in told(report)) == [
        "features.audio: expected a multiple of 4 bytes, got 9",
        "features.image: expected 12 bytes, got 11",
        "features.video: expected 3 bytes, got 2",
    ]


def test_no_example_and_a_key_twice(tmp_path, command):
    good, other = SCHEMA.encode(ROW), SCHEMA.encode(ROW | {"n": 9})
    report = check_files([stored(tmp_path / "x", [b"\xff" * 9, good + other + good])], SCHEMA, examples=20)
    keys = [key for key, _ in proto.entries(good, sequence=False).features]
    assert told(report) == ["record 0 at byte 0: expected an Example, got 9 bytes that do not parse"]
    assert (report.invalid, report.repeated) == (1, dict.fromkeys(keys, 1))
    assert report.dump()["duplicate keys"] == report.repeated
    assert int(SCHEMA.decode(good + other)["n"]) == 9  # as TensorFlow reads it
    SCHEMA.dump(tmp_path / "s.yaml")
    status, _, err = command(
        "check", stored(tmp_path / "y", [good + good]).path, "--schema", tmp_path / "s.yaml"
    )
    assert status == 0
    assert "n: twice or more in 1 of 1 rows, of which the last counts" in err.splitlines()


STEPS = [
    "kind: fixed_len_sequence, dtype: int64",
    "kind: fixed_len_sequence, dtype: int64, pad: -1",
    "kind: fixed_len_sequence, dtype: string, with_length: true",
    "kind: fixed_len_sequence, dtype: float32, shape: [2], max_length: 3",
    "kind: var_len, dtype: int64",
    "kind: ragged, dtype: int64, shape: [null, null]",
    "kind: label, names: [a, b]",
    "kind: text",
    "kind: tensor, dtype: uint8, shape: [2]",
    "kind: box, format: xyxy",
]


@pytest.mark.parametrize("options", STEPS)
def test_a_list_of_steps_may_be_missing_if_the_option_says_so(options, tmp_path):
    for missing, invalid in (("error", 1), ("empty", 0)):
        schema = rs.Schema.loads(
            "schema: s\nrecord: sequence_example\ncontext: {n: int64}\n"
            f"sequence: {{s: {{{options}, missing: {missing}}}}}"
        )
        records = [schema.encode({"n": 1, "s": []}), example({"n": ("int64", [2])})]
        report = check_files([stored(tmp_path / "x", records)], schema)
        said = {problem.rpartition("byte ")[2].partition(": ")[2] for problem in told(report)}
        problem = "sequence.s: expected a list of steps, got none (`missing: empty` accepts it)"
        assert (said, report.invalid) == ({problem} if invalid else set(), invalid)
        assert decodes(schema.decode, records[0])
        assert decodes(schema.decode, records[1]) == (not invalid)
        if invalid:
            assert {str(one) for one in decode_problems(schema, records[1], in_blocks=False)} == {problem}
            with pytest.raises(decode_errors()):
                schema.decode(records)
            with pytest.raises(rs.RecordError, match="expected a list of steps"):
                block_of_records(schema, records)
            continue
        block = schema.decode_block([block_of_records(schema, records)])
        for name, batch in schema.decode(tf.constant(records)).items():
            empty, alone = (schema.decode(record)[name] for record in records)
            for one, other in ((empty, alone), (batch, block[name])):
                assert (one.shape, one.dtype) == (other.shape, other.dtype)
                if name != "n":
                    tf.nest.map_structure(
                        np.testing.assert_array_equal,
                        *(tf.nest.flatten(each, expand_composites=True) for each in (one, other)),
                    )


def test_a_record_of_the_other_message_is_named(tmp_path):
    of_steps = rs.Schema.loads("""
schema: s
record: sequence_example
context: {id: int64}
sequence: {n: {kind: fixed_len_sequence, dtype: int64}, t: text}
""")
    rows = rs.Schema.loads("schema: s\nfeatures: {id: int64, n: {kind: var_len, dtype: int64}, t: text}")
    steps, plain = (
        of_steps.encode({"id": 1, "n": [1], "t": ["x"]}),
        rows.encode({"id": 1, "n": [1], "t": "x"}),
    )
    for schema, record, expected, got, other in (
        (rows, steps, "an Example", "a SequenceExample", "sequence_example"),
        (of_steps, plain, "a SequenceExample", "an Example", "example"),
    ):
        problem = (
            f"expected {expected}, as the spec has it, got {got} (a spec with `record: {other}` reads it)"
        )
        report = check_files([stored(tmp_path / "x", [record])], schema)
        assert told(report) == [f"record 0 at byte 0: {problem}"]
        assert report.invalid == 1
        assert not decodes(schema.decode, record)
        (found,) = decode_problems(schema, record, in_blocks=False)
        assert str(found) == problem
    context = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
    assert check_files([stored(tmp_path / "x", [steps])], context).valid  # as for TensorFlow


def test_faults_are_counted_and_the_first_are_shown(tmp_path):
    records = [changed(n=[0.5])] * 5000
    report = check_files([stored(tmp_path / "x", records)], SCHEMA, examples=3)
    (group,) = report.groups.values()
    assert (group.code, group.count, len(group.examples)) == ("kind", 5000, 3)
    assert [fault.record for fault in group.examples] == [0, 1, 2]


def test_what_is_there_beside_the_spec_is_no_fault(tmp_path):
    records = [changed(other=[1, 2], words=[]), changed(other=[3])]
    report = check_files([stored(tmp_path / "x", records)], SCHEMA)
    assert report.valid
    assert report.empty == {("features", "words"): 1}
    assert {path: (key.rows, key.kinds) for path, key in report.unknown.items()} == {
        ("features", "other"): (2, {"int64"})
    }


@pytest.mark.slow
def test_any_number_of_keys_takes_bounded_memory(tmp_path):
    records = [changed(**{f"other{number}": [number]}) for number in range(1500)]
    records += [b""] * 5000 + [changed(other0=[0])]  # in another chunk
    report = check_files([stored(tmp_path / "x", records)], SCHEMA)
    assert (len(report.unknown), report.more, report.dump()["more unknown"]) == (1000, True, True)
    assert report.unknown["features", "other0"].rows == 2
    assert [group.count for group in report.groups.values()] == [5000] * len(report.groups)


def test_damage_is_told_with_what_is_lost(tmp_path):
    rs.write([ROW] * 40, SCHEMA, tmp_path / "data", shards=1, key=None, progress=False)
    (path,) = expand(tmp_path / "data")
    size = len(framed(SCHEMA.encode(ROW)))
    data = bytearray(path.read_bytes())
    data[3 * size + 20] ^= 1
    data[9 * size] ^= 1
    path.write_bytes(data)
    report = check_files(StoredDataset((path,), None, SCHEMA).checked_files(), SCHEMA)
    assert told(report) == [
        f"record 3 at byte {3 * size:,}: expected data that matches its CRC, got other bytes",
        f"record 9 at byte {9 * size:,}: expected a length that matches its CRC, got other bytes",
    ]
    assert (report.rows, report.invalid, report.lost) == (10, 2, 30)


def test_records_that_the_manifest_has_and_the_file_has_not(tmp_path):
    rs.write([ROW] * 40, SCHEMA, tmp_path / "data", shards=1, key=None, progress=False)
    files = StoredDataset.of(tmp_path / "data", SCHEMA).checked_files()
    (path,) = (file.path for file in files)
    size = len(framed(SCHEMA.encode(ROW)))
    path.write_bytes(path.read_bytes()[: 30 * size])
    report = check_files(files, SCHEMA)
    assert told(report) == [
        f"record 30 at byte {30 * size:,}: expected 40 records, as the manifest says, "
        "got the end of the file after 30"
    ]
    assert (report.rows, report.lost) == (30, 10)


def test_the_report_is_json(tmp_path):
    report = check_files([stored(tmp_path / "x", [changed(n=None)])], SCHEMA)
    (fault,) = json.loads(json.dumps(report.dump()))["violations"]
    assert (fault["feature"], fault["code"], fault["rows"]) == ("features.n", "missing", 1)
    assert fault["examples"][0]["byte"] == 0


def test_blocks_are_checked_row_by_row(tmp_path):
    rs.write([ROW] * 20, SCHEMA, tmp_path / "data", shards=1, layout={"blocks": 8}, key=None, progress=False)
    (path,) = expand(tmp_path / "data")
    blocks = [record.data for record in scan(path)]
    message = proto._classes()["Example"].FromString(blocks[1])
    (mood,) = (entry for entry in message.features.feature if entry.key == "mood")
    mood.value.int64_list.value[5] = 7
    changed_block = message.SerializeToString()
    path.write_bytes(b"".join(map(framed, [blocks[0], changed_block, blocks[2]])))
    report = check_files([File(path=path, block=8)], SCHEMA)
    assert told(report) == [
        f"record 1 at byte {len(blocks[0]) + 16:,}, row 5: features.mood: expected an index from 0 to 1, got 7"
    ]
    assert (report.rows, report.invalid) == (20, 1)


@needs_data
def test_real_trips(tmp_path):
    schema = rs.Schema.loads("""
schema: trips
features:
  company: {kind: var_len, dtype: string}
  fare: {kind: fixed_len, dtype: float32}
  trip_miles: {kind: fixed_len, dtype: int64}
""")
    report = check_files(StoredDataset.of(DATA / "taxi", schema).checked_files(), schema)
    assert report.rows == 15_000
    assert report.empty[("features", "company")] == 5_140
    (group,) = report.groups.values()
    assert (group.path, group.code, group.count) == (("features", "trip_miles"), "kind", 15_000)
    assert len(report.unknown) == 15


TRIP = {"fare": ("float32", [0.5]), "taxi": ("none", [])}
NEWER = """
schema: s
features:
  fares: {kind: var_len, dtype: float32}
  taxi: {kind: var_len, dtype: string}
  tip: {dtype: float32, default: 0.0}
  box: {kind: sparse, key: box/value, dtype: float32, size: 3}
"""
ABSENT = [
    "features.fares: expected the key `fares` in any row, got none in 3 rows "
    "(did you mean `fare`? otherwise: --allow-absent fares)",
    "features.tip: expected the key `tip` in any row, got none in 3 rows (if that is intended: --allow-absent tip)",
    "features.box: expected the keys `box/value` and `box/value/indices` in any row, got none in 3 rows "
    "(if that is intended: --allow-absent box)",
]


def test_a_feature_that_no_record_has_is_found(tmp_path):
    schema = rs.Schema.loads(NEWER)
    files = [stored(tmp_path / name, [example(TRIP)] * count) for name, count in (("x", 2), ("y", 1))]
    report = check_files(files, schema)
    assert (list(map(str, report.absent)), report.invalid, report.valid) == (ABSENT, 0, False)
    report = check_files(files, schema, allow_absent=["box", "tip", "taxi"])
    assert (list(map(str, report.absent)), report.valid) == (ABSENT[:1], False)
    assert check_files(files, schema, allow_absent=["box", "tip", "fares"]).valid
    with pytest.raises(rs.SpecError) as error:
        check_files(files, schema, allow_absent=["fare"])
    assert str(error.value) == (
        "allow_absent: expected one of fares, taxi, tip, box, got `fare` (did you mean `fares`?)"
    )


def test_a_key_of_one_record_of_one_file_is_enough(tmp_path):
    files = [stored(tmp_path / name, [example({name: ("int64", [1])})]) for name in "xy"]
    schema = rs.Schema.loads(
        "schema: s\nfeatures: {x: {kind: var_len, dtype: int64}, y: {dtype: int64, default: 0}}"
    )
    assert check_files(files, schema).valid


@pytest.mark.parametrize("records", [[], [b"\xff" * 9]])
def test_without_records_to_read_no_feature_is_absent(tmp_path, records):
    assert check_files([stored(tmp_path / "x", records)], rs.Schema.loads(NEWER)).absent == ()


def test_a_missing_key_of_the_other_section_is_named(tmp_path):
    schema = rs.Schema.loads("""
schema: s
record: sequence_example
context: {a: {kind: var_len, dtype: int64}}
sequence: {b: {kind: var_len, dtype: int64}}
""")
    records = [example({"b": ("int64", [1])}, {"a": [("int64", [1])]})]
    report = check_files([stored(tmp_path / "x", records)], schema)
    assert list(map(str, report.absent)) == [
        "context.a: expected the key `a` in any row, got none in 1 row "
        "(`a` is in the sequence; otherwise: --allow-absent a)",
        "sequence.b: expected the key `b` in any row, got none in 1 row "
        "(`b` is in the context; otherwise: give it `missing: empty`)",
    ]


def test_blocks_have_all_features_that_they_were_written_with(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64, new: {dtype: int64, default: 0}}")
    rs.write([{"n": 1}] * 3, schema, tmp_path / "d", layout={"blocks": 2}, progress=False)
    assert check_files(StoredDataset.of(tmp_path / "d", schema).checked_files(), schema).valid


REFUSED = {
    "u_entry": "expected only a key and a value in a map entry, got field 15, a varint (TensorFlow refuses the record)",
    "u_features": "expected only map entries in Features, got field 15, a varint (TensorFlow refuses the record)",
    "u_list": "features.a: expected 2 int64, as protobuf reads the record, got 1 int64 in TensorFlow "
    "(TensorFlow reads other values than protobuf)",
}


@needs_data
@pytest.mark.parametrize("name", REFUSED)
def test_hostile_records_are_said_to_be(name):
    schema = rs.Schema.load(DATA / "hostile/u.yaml")
    files = StoredDataset.of(DATA / f"hostile/{name}.tfrecord", schema).checked_files()
    report = check_files(files, schema)
    assert told(report) == [f"record 0 at byte 0: {REFUSED[name]}"]
    assert [code for _, code in report.groups] == ["misread" if name == "u_list" else "refused"]


TWICE = entry("a", listed("int64", packed("int64", 5), packed("int64", 6)))


def test_what_tensorflow_passes_over_is_no_fault(tmp_path):
    """It looks only at the keys that are asked for."""
    file = stored(tmp_path / "x", [of_entries(TWICE, entry("b", ints(1)))])
    assert check_files([file], rs.Schema.loads("schema: s\nfeatures: {b: int64}")).valid
    report = check_files(
        [file], rs.Schema.loads("schema: s\nfeatures: {c: {kind: var_len, key: a, dtype: int64}, b: int64}")
    )
    assert told(report) == [
        "record 0 at byte 0: features.c: expected 2 int64, as protobuf reads the record, got 1 int64 in TensorFlow "
        "(TensorFlow reads other values than protobuf)"
    ]


def test_a_block_that_tensorflow_reads_otherwise_is_refused(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64}")
    block = of_entries(TWICE, entry("/rows", ints(2)))
    report = check_files([File(path=stored(tmp_path / "x", [block]).path, block=2)], schema)
    assert told(report) == [
        "record 0 at byte 0: features.a: expected 2 int64, as protobuf reads the record, got 1 int64 in TensorFlow "
        "(TensorFlow reads other values than protobuf)"
    ]
