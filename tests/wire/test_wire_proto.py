"""An ExampleListWithContext is told from Examples and SequenceExamples."""

from __future__ import annotations

import pytest
from google.protobuf.empty_pb2 import Empty
from hypothesis import given
from hypothesis import strategies as st

from examples import example
from fields_by_hand import entry, ints, listed, packed, sized
from fields_by_hand import example as of_entries
from recordspec.errors import RecordError
from recordspec.wire import proto
from recordspec.wire.proto import ListWithContext, list_with_context

VALUES = st.one_of(
    st.just(("none", [])),
    st.tuples(st.just("bytes"), st.lists(st.binary(max_size=9), max_size=3)),
    st.tuples(st.just("float32"), st.lists(st.floats(width=32), max_size=3)),
    st.tuples(st.just("int64"), st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=3)),
)
# Also keys that are, byte for byte, entries of a map, or Features.
NAMED = entry("i", ints(5)).decode("latin-1")
KEYS = st.sampled_from(["a", "query", NAMED, sized(1, entry("i")).decode()]) | st.text(min_size=1, max_size=4)
MAPS = st.dictionaries(KEYS, VALUES, max_size=3)
STEPS = st.dictionaries(KEYS, st.lists(VALUES, max_size=3), max_size=2)


def elwc(context: bytes | None, examples: list[bytes]) -> bytes:
    return b"".join(sized(1, one) for one in examples) + (b"" if context is None else sized(2, context))


@given(MAPS, STEPS)
def test_no_example_is_taken_for_one(features, steps):
    record = example(features, steps)
    assert list_with_context(record) is None
    found = proto.entries(record, sequence=None)
    assert ({key for key, _ in found.features}, found.conflicts) == (features.keys(), ())


@given(st.none() | MAPS, st.lists(MAPS, max_size=4))
def test_every_one_with_a_feature_is_found(context, examples):
    parts = [example(one) for one in examples]
    whole = None if context is None else example(context)
    record = elwc(whole, parts)
    if not context and not any(examples):
        assert list_with_context(record) is None
        return
    found = list_with_context(record)
    assert found is not None
    assert [dict(proto.entries(one, sequence=None).features).keys() for one in found.examples] == [
        one.keys() for one in examples
    ]
    assert (found.context is None) == (context is None)
    for sequence in (False, True, None):
        with pytest.raises(RecordError) as error:
            proto.entries(record, sequence=sequence)
        assert str(error.value) == str(found.problem)


@given(st.binary(max_size=30))
def test_of_other_bytes_none_is(data):
    found = list_with_context(data)
    if found is not None:
        for part in (*found.examples, found.context or b""):
            Empty.FromString(part)  # raises if it is no message


@pytest.mark.parametrize(
    "record",
    [
        b"",
        sized(1),  # one Example without features, or an Example with none
        sized(1) + sized(2),
        sized(1, sized(1)),
        sized(1, sized(1, sized(1, sized(1, b"i")))),  # an entry without a value
        elwc(None, [example({"a": ("int64", [1])})]) + sized(3, b"x"),
        sized(1, sized(1, entry("i", ints(5))), sized(2, b"")),
    ],
)
def test_what_may_be_another_message_is_not_one(record):
    assert list_with_context(record) is None


def test_what_is_said():
    record = elwc(example({"q": ("bytes", [b"x"])}), [example({"a": ("int64", [n])}) for n in range(2)])
    found = list_with_context(record)
    assert found == ListWithContext(
        example({"q": ("bytes", [b"x"])}), tuple(example({"a": ("int64", [n])}) for n in range(2))
    )
    for sequence in (False, True):
        with pytest.raises(RecordError) as error:
            proto.entries(record, sequence=sequence)
        assert str(error.value) == (
            "expected an Example or a SequenceExample, "
            "got an ExampleListWithContext of 2 Examples (a record of TF-Ranking: "
            "`recordspec build` with the source `tfrecord` writes it as a SequenceExample)"
        )


def test_the_examples_of_a_list_are_steps():
    one, other = example({"a": ("int64", [1, 2]), "b": ("bytes", [b"x"])}), example({"b": ("none", [])})
    found = list_with_context(elwc(example({"q": ("int64", [7])}), [one, other]))
    lacks = ("none", [])
    assert proto.entries(found.sequence_example(["a", "c"]), sequence=True) == proto.entries(
        example(
            {"q": ("int64", [7])},
            {
                "a": [("int64", [1, 2]), lacks],
                "b": [("bytes", [b"x"]), lacks],
                "c": [lacks, lacks],
            },
        ),
        sequence=True,
    )


def test_an_example_that_tensorflow_reads_otherwise_is_no_step():
    twice = of_entries(entry("n", listed("int64", packed("int64", 5), packed("int64", 6))))
    found = ListWithContext(None, (twice,))
    with pytest.raises(RecordError) as error:
        found.sequence_example()
    assert str(error.value) == (
        "features.n: expected 2 int64, as protobuf reads the record, got 1 int64 in TensorFlow "
        "(TensorFlow reads other values than protobuf)"
    )
