"""Records that TensorFlow refuses, or reads otherwise than protobuf: all of them are found, and no others."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from fields_by_hand import (
    KEYS,
    any_record,
    entry,
    example,
    ints,
    listed,
    packed,
    single,
    sized,
    tag,
    unknown,
)
from recordspec.errors import RecordError
from recordspec.wire import proto
from recordspec.wire.columns import TF_DTYPES
from recordspec.wire.proto import Entries
from selection import scaled

REFUSED = "TensorFlow refuses the record"
OTHERWISE = "TensorFlow reads other values than protobuf"
FIVE = entry("i", ints(5))

# What stands where, and what is said of it: nothing where both read the same.
EXAMPLES = {
    "as usual": (example(FIVE), ""),
    "nothing": (b"", ""),
    "no features": (sized(1), ""),
    "an unknown field in an Example": (example(FIVE) + unknown(9, 0), ""),
    "unknown fields before it": (unknown(9, 1) + unknown(9, 2) + unknown(9, 5) + example(FIVE), ""),
    "feature lists in an Example": (example(FIVE) + sized(2, b""), ""),
    "a group in an Example": (
        example(FIVE) + unknown(9, 3),
        f"expected no groups, got field 9, a group ({REFUSED})",
    ),
    "two features fields": (
        example(FIVE) + example(entry("f", listed("float32", packed("float32", 0.5)))),
        "",
    ),
    "a long tag in an Example": (
        sized(1, FIVE, width=2),
        f"features.i: expected 1 int64, as protobuf reads the record, got no list in TensorFlow ({OTHERWISE})",
    ),
    "an unknown field in Features": (
        example(FIVE, unknown(9, 0)),
        f"expected only map entries in Features, got field 9, a varint ({REFUSED})",
    ),
    "a long tag in Features": (
        example(sized(1, sized(1, b"i"), sized(2, ints(5)), width=2)),
        f"expected only map entries in Features, got field 1 with a tag of 2 bytes ({REFUSED})",
    ),
    "an unknown field in an entry": (
        example(sized(1, sized(1, b"i"), sized(2, ints(5)), unknown(9, 2))),
        f"expected only a key and a value in a map entry, got field 9, length-delimited ({REFUSED})",
    ),
    "an entry without a key": (
        example(sized(1, sized(2, ints(5)))),
        f"expected a key and a value in a map entry, got no more fields ({REFUSED})",
    ),
    "an entry without a value": (
        example(sized(1, sized(1, b"i"))),
        f"expected a key and a value in a map entry, got no more fields ({REFUSED})",
    ),
    "an empty key": (example(entry("", ints(5))), ""),
    "the value before the key": (example(sized(1, sized(2, ints(5)), sized(1, b"i"))), ""),
    "a key in a long tag": (example(sized(1, sized(1, b"i", width=3), sized(2, ints(5)))), ""),
    "two values in an entry": (
        example(sized(1, sized(1, b"i"), sized(2, ints(5)), sized(2, ints(6)))),
        f"expected only a key and a value in a map entry, got field 2, length-delimited ({REFUSED})",
    ),
    "a key twice": (example(entry("i", ints(5)), entry("i", ints(6))), ""),
    "a key twice, the last without a list": (
        example(FIVE, entry("i")),
        f"features.i: expected no list, as protobuf reads the record, got 1 int64 in TensorFlow ({OTHERWISE})",
    ),
    "an empty list, then none": (
        example(entry("i", listed("int64")), entry("i")),
        f"features.i: expected no list, as protobuf reads the record, got 0 int64 in TensorFlow ({OTHERWISE})",
    ),
    "no list": (example(entry("i")), ""),
    "an empty list": (example(entry("i", listed("int64"))), ""),
    "an unknown field in a Feature": (
        example(entry("i", unknown(9, 0), ints(5))),
        f"features.i: expected a bytes, float or int64 list in a Feature, got field 9, a varint ({REFUSED})",
    ),
    "an unknown field behind the list": (example(entry("i", ints(5), unknown(9, 0))), ""),
    "two lists": (
        example(entry("i", ints(5), ints(6))),
        f"features.i: expected 2 int64, as protobuf reads the record, got 1 int64 in TensorFlow ({OTHERWISE})",
    ),
    "two lists, the second empty": (example(entry("i", ints(5), listed("int64"))), ""),
    "lists of two kinds": (
        example(entry("f", ints(5), listed("float32", packed("float32", 0.5)))),
        f"features.f: expected 1 float32, as protobuf reads the record, got 1 int64 in TensorFlow ({OTHERWISE})",
    ),
    "not packed": (example(entry("i", listed("int64", single("int64", 5), single("int64", -1)))), ""),
    "floats that are not packed": (example(entry("f", listed("float32", single("float32", 0.5)))), ""),
    "packed twice": (
        example(entry("i", listed("int64", packed("int64", 5), packed("int64", 6)))),
        f"features.i: expected 2 int64, as protobuf reads the record, got 1 int64 in TensorFlow ({OTHERWISE})",
    ),
    "packed twice, the second empty": (
        example(entry("i", listed("int64", packed("int64", 5), packed("int64")))),
        "",
    ),
    "packed with an unknown field behind": (
        example(entry("i", listed("int64", packed("int64", 5), unknown(9, 0)))),
        "",
    ),
    "packed, then not": (
        example(entry("f", listed("float32", packed("float32", 0.5), single("float32", 1.5)))),
        f"features.f: expected 2 float32, as protobuf reads the record, got 1 float32 in TensorFlow ({OTHERWISE})",
    ),
    "not packed, then packed": (
        example(entry("i", listed("int64", single("int64", 5), packed("int64", 6)))),
        "features.i: expected only values in an int64 list, all packed or none, "
        f"got field 1, length-delimited ({REFUSED})",
    ),
    "an unknown field before the values": (
        example(entry("i", listed("int64", unknown(9, 0), packed("int64", 5)))),
        f"features.i: expected only values in an int64 list, all packed or none, got field 9, a varint ({REFUSED})",
    ),
    "an unknown field among strings": (
        example(entry("b", listed("bytes", single("bytes", b"x"), unknown(9, 5), single("bytes", b"y")))),
        f"features.b: expected only values in a bytes list, got field 9, 4 bytes ({REFUSED})",
    ),
    "integers in varints of ten bytes": (
        example(entry("i", listed("int64", sized(1, b"\x85" + b"\x80" * 8 + b"\x00")))),
        "",
    ),
    "a length of more bytes than it needs": (example(sized(1, b"\x0a\x81\x00i", sized(2, ints(5)))), ""),
    "a long tag of packed values": (
        example(entry("i", listed("int64", packed("int64", 5, width=2)))),
        "features.i: expected only values in an int64 list, all packed or none, "
        f"got field 1 with a tag of 2 bytes ({REFUSED})",
    ),
    "an unused key": (example(FIVE, entry("other", unknown(9, 0), ints(5))), "other"),
}


def steps(*features: bytes, key: str = "i") -> bytes:
    """A SequenceExample of one feature list."""
    return sized(2, entry(key, *(sized(1, feature) for feature in features)))


REST = "expected an int64 list and no more in a step, got"
SEQUENCES = {
    "as usual": (example(FIVE) + steps(ints(5), ints(6, 7)), ""),
    "the lists before the context": (steps(ints(5)) + example(FIVE), ""),
    "an unknown field": (steps(ints(5)) + unknown(9, 2), ""),
    "steps without a list, and empty ones": (steps(b"", listed("int64"), ints(5)), ""),
    "not packed": (steps(listed("int64", single("int64", 5), single("int64", 6))), ""),
    "a key twice": (steps(ints(5)) + steps(ints(6), ints(7)), ""),
    "a long tag of the lists": (
        sized(2, entry("i", sized(1, ints(5))), width=2),
        f"sequence.i: expected 1 steps, as protobuf reads the record, got no list in TensorFlow ({OTHERWISE})",
    ),
    "a key twice, the last in a long tag": (
        steps(ints(5)) + sized(2, entry("i", sized(1, ints(6)), sized(1, ints(7))), width=2),
        f"sequence.i: expected 2 steps, as protobuf reads the record, got 1 steps in TensorFlow ({OTHERWISE})",
    ),
    "the value before the key": (
        sized(2, sized(1, sized(2, sized(1, ints(5))), sized(1, b"i"))),
        f"expected a key and then a value in a map entry, got field 2, length-delimited ({REFUSED})",
    ),
    "the value before the key in the context": (
        example(sized(1, sized(2, ints(5)), sized(1, b"i"))) + steps(ints(5)),
        f"expected a key and then a value in a map entry, got field 2, length-delimited ({REFUSED})",
    ),
    "an entry without a value": (
        sized(2, sized(1, sized(1, b"i"))),
        f"expected a key and then a value in a map entry, got no more fields ({REFUSED})",
    ),
    "an unknown field in FeatureLists": (
        sized(2, entry("i", sized(1, ints(5))), unknown(9, 0)),
        f"expected only map entries in FeatureLists, got field 9, a varint ({REFUSED})",
    ),
    "an unknown field in a FeatureList": (
        sized(2, entry("i", sized(1, ints(5)), unknown(9, 0))),
        f"sequence.i: expected only steps in a FeatureList, got field 9, a varint ({REFUSED})",
    ),
    "an unknown field behind the list of a step": (
        steps(ints(5) + unknown(9, 0)),
        f"sequence.i: {REST} field 9, a varint ({REFUSED}, or reads other steps)",
    ),
    "two lists in a step": (
        steps(ints(5) + ints(6)),
        f"sequence.i: {REST} field 3, length-delimited ({REFUSED}, or reads other steps)",
    ),
    "packed twice in a step": (
        steps(listed("int64", packed("int64", 5), packed("int64"))),
        f"sequence.i: {REST} field 1, length-delimited ({REFUSED}, or reads other steps)",
    ),
    "a step of an unknown field": (
        steps(unknown(9, 0)),
        f"sequence.i: expected a bytes, float or int64 list in a Feature, got field 9, a varint ({REFUSED})",
    ),
    "a group": (steps(ints(5)) + unknown(9, 3), f"expected no groups, got field 9, a group ({REFUSED})"),
    "two lists in the context": (
        example(entry("i", ints(5), ints(6))) + steps(ints(5)),
        f"context.i: expected 2 int64, as protobuf reads the record, got 1 int64 in TensorFlow ({OTHERWISE})",
    ),
}


@cache
def reader(sequence: bool):
    """What TensorFlow reads of one record: of features with a dense and with a sparse parser."""
    dtypes = {key: tf.as_dtype(TF_DTYPES[kind]) for kind, key in KEYS.items()}
    dense = {
        key: tf.io.FixedLenSequenceFeature([], dtype, allow_missing=True) for key, dtype in dtypes.items()
    }
    sparse = {key: tf.io.VarLenFeature(dtype) for key, dtype in dtypes.items()}
    ragged = {key: tf.io.RaggedFeature(dtype, row_splits_dtype=tf.int64) for key, dtype in dtypes.items()}

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def read(record):
        records = record[None]
        found = [tf.io.parse_example(records, dense)]
        found.append({key: one.values for key, one in tf.io.parse_example(records, sparse).items()})
        if not sequence:
            return found, {}
        lists = tf.io.parse_sequence_example(records, {}, ragged)[1]
        return found, {key: (one[0].values, one[0].row_lengths()) for key, one in lists.items()}

    return read


def of_tensorflow(record: bytes, sequence: bool):
    """The values and steps by key; None where it refuses."""
    try:
        features, lists = reader(sequence)(record)
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):  # the message quotes the record
        return None
    read = [{key: plain(value) for key, value in one.items()} for one in features]
    return read, {key: (plain(values), plain(lengths)) for key, (values, lengths) in lists.items()}


def plain(tensor) -> list:
    return [np.float32(one) if isinstance(one, float) else one for one in tensor.numpy().ravel().tolist()]


def of_protobuf(found: Entries):
    """The same of protobuf; None where a list is of another kind than is asked for."""
    features = {key: [] for key in KEYS.values()}
    for key, value in dict(found.features).items():
        if key not in features:
            continue
        if value.kind not in ("none", kind_of(key)):
            return None
        features[key] = value.values
    lists = {key: ([], []) for key in KEYS.values()}
    for key, many in dict(found.lists).items():
        if key not in lists:
            continue
        if any(one.kind not in ("none", kind_of(key)) for one in many):
            return None
        lists[key] = ([value for one in many for value in one.values], [len(one.values) for one in many])
    return features, lists


def kind_of(key: str) -> str:
    return {key: kind for kind, key in KEYS.items()}[key]


# To a feature with a default, an empty list is not what no list is; those that are asked for here have none.
NO_VALUES = re.compile(r"expected (no list|0 \w+), as .*, got (no list|0 \w+) in TensorFlow")


def check(record: bytes, sequence: bool) -> str:
    """What is said of a record is what TensorFlow does with it."""
    found = proto.entries(record, sequence=sequence)
    theirs, ours = of_tensorflow(record, sequence), of_protobuf(found)
    asked = [one for one in found.conflicts if one.problem.path[1:] in [(), *zip(KEYS.values())]]
    said = [str(conflict.problem) for conflict in asked]
    if ours is not None:
        read_alike = theirs is not None and all(one == ours[0] for one in theirs[0])
        alike = read_alike and (not sequence or theirs[1] == ours[1])
        assert alike == (not [one for one in said if not NO_VALUES.search(one)]), (record, said, theirs, ours)
    elif theirs is not None:  # then a list that is not asked for is passed over, or taken for another
        assert said, (record, theirs)
    if any(conflict.refused for conflict in asked) and "reads other steps" not in str(said):
        assert theirs is None
    return "\n".join(said)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(name):
    record, said = EXAMPLES[name]
    if name == "an unused key":
        assert of_tensorflow(record, False)[0] == [{"b": [], "f": [], "i": [5]}] * 2
        ((refused, problem),) = proto.entries(record, sequence=False).conflicts
        assert (refused, problem.path) == (True, ("features", said))
        return
    assert check(record, sequence=False) == said
    parsed = [*proto.entries(record, sequence=False).features]
    if said:
        with pytest.raises(RecordError) as error:
            proto.parse_example(record)
        assert str(error.value) == said
    else:
        assert proto.parse_example(record).keys() == dict(parsed).keys()


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_sequence_example(name):
    record, said = SEQUENCES[name]
    assert check(record, sequence=True) == said


@given(st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=scaled(300))
def test_any_record(draw, sequence):
    record = any_record(draw, sequence=sequence)
    try:
        check(record, sequence)
    except RecordError:  # no record for protobuf, or an ExampleListWithContext
        if proto.list_with_context(record) is None:
            with pytest.raises(DecodeError):
                Empty.FromString(record)


@given(st.sampled_from([*EXAMPLES.values(), *SEQUENCES.values()]) | st.randoms(use_true_random=False))
@settings(max_examples=scaled(300))
def test_long_values_make_no_difference(given):
    """Marks stand for them while protobuf parses: here for every value of bytes."""
    if isinstance(given, tuple):
        records = [given[0]]
    else:
        records = [any_record(given, sequence=True), values_of_bytes(given)]
    for record in records:
        for sequence in (False, True, None):
            found = []
            for long in (0, 1 << 40):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(proto, "_LONG", long)
                    try:
                        found.append(repr(proto.entries(record, sequence=sequence)))
                    except RecordError as error:
                        found.append(str(error))
            assert found[0] == found[1]


def values_of_bytes(draw) -> bytes:
    """A record as usual of many values of bytes, or with one byte changed."""
    lists = [listed("bytes", *(sized(1, draw.randbytes(draw.choice([0, 1, 16, 200]))) for _ in range(3)))]
    lists += [ints(5), b"", *lists]
    record = example(*(entry(key, draw.choice(lists)) for key in "abb")) + steps(*lists) * draw.randrange(2)
    if draw.randrange(2):
        place = draw.randrange(len(record))
        record = record[:place] + draw.randbytes(1) + record[place + 1 :]
    return record


@pytest.mark.parametrize("key", [b"\xff", b"i\xc3"])
def test_a_key_that_is_no_text_is_refused_by_protobuf_alone(key):
    record = example(sized(1, sized(1, key), sized(2, ints(5))))
    assert of_tensorflow(record, False) is not None
    with pytest.raises(
        RecordError, match=rf"^expected an Example, got {len(record)} bytes that do not parse$"
    ):
        proto.entries(record, sequence=False)


def test_floats_that_are_cut_and_field_0_are_refused_by_protobuf():
    cut = example(entry("f", listed("float32", sized(1, bytes(6)))))
    assert of_tensorflow(cut, False)[0][0]["f"] == [0.0]  # the bytes behind it are passed over
    for record in (cut, example(FIVE) + tag(0, 0) + b"\x05", example(FIVE) + b"\xff", example(FIVE)[:-1]):
        with pytest.raises(RecordError, match="bytes that do not parse"):
            proto.entries(record, sequence=False)


def test_to_a_feature_with_a_default_an_empty_list_is_not_what_no_list_is():
    wanted = {"i": tf.io.FixedLenFeature([], tf.int64, default_value=7)}
    assert tf.io.parse_example([example(entry("i"))], wanted)["i"].numpy().tolist() == [7]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.parse_example([EXAMPLES["an empty list, then none"][0]], wanted)
