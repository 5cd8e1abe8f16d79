"""The language: what a spec compiles to (`wire.columns`), and every problem with its place."""

from __future__ import annotations

import gzip

import pytest
from spec_problems import problems

from frames_by_hand import frame
from recordspec import Schema, SpecError
from recordspec._tf import tf
from recordspec.config import load_any
from recordspec.schema.features.fixed_len import FixedLen

MOVIES = """\
schema: movie_ratings
features:
  Age: int64
  Movie: {kind: var_len, dtype: string}
  Movie Ratings: {kind: var_len, dtype: float32}
  Purchase Price: {dtype: float32, default: 0.0}
  Pixels: {dtype: float32, shape: [28, 28], key: image/pixels}
  Words: {kind: fixed_len_sequence, dtype: int64, shape: [2], pad: -1}
"""
SENTENCES = """\
schema: tagged_sentences
record: sequence_example
context:
  length: int64
sequence:
  tokens: {kind: fixed_len_sequence, dtype: int64}
"""


def test_an_example_compiles_to_the_tf_io_objects():
    assert Schema.loads(MOVIES).parse_dict() == {
        "Age": tf.io.FixedLenFeature([], tf.int64),
        "Movie": tf.io.VarLenFeature(tf.string),
        "Movie Ratings": tf.io.VarLenFeature(tf.float32),
        "Purchase Price": tf.io.FixedLenFeature([], tf.float32, 0.0),
        "image/pixels": tf.io.FixedLenFeature([28, 28], tf.float32),
        "Words": tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True, default_value=-1),
    }


def test_a_sequence_example_compiles_to_two_dictionaries():
    assert Schema.loads(SENTENCES).parse_dict() == (
        {"length": tf.io.FixedLenFeature([], tf.int64)},
        {"tokens": tf.io.FixedLenSequenceFeature([], tf.int64)},
    )


def test_ragged_and_sparse_compile_to_their_features():
    schema = Schema.loads(
        """\
schema: x
features:
  lists: {kind: ragged, dtype: int64, shape: [null, null]}
  boxes: {kind: ragged, dtype: float32, shape: [null, 4]}
  words: {kind: sparse, dtype: float32, size: [9, 5], index_keys: [row, column], key: weight}
"""
    )
    ragged = tf.io.RaggedFeature
    assert schema.parse_dict() == {
        "lists": ragged(tf.int64, "lists", [ragged.RowLengths("lists/row_lengths")], tf.int64, validate=True),
        "boxes": ragged(tf.float32, "boxes", [ragged.UniformRowLength(4)], tf.int64, validate=True),
        "weight": tf.io.SparseFeature(["row", "column"], "weight", tf.float32, [9, 5]),
    }


def test_a_file_loads_and_dumps_to_itself(tmp_path):
    schema = Schema.loads(MOVIES)
    path = tmp_path / "movies.yaml"
    text = schema.dump(path)
    assert path.read_text() == text
    assert Schema.load(path) == schema
    assert Schema.load(str(path)).dump() == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["x.yaml: expected a mapping, got an empty file"]),
        ("- a", ["x.yaml:1:1: expected a mapping, got a list"]),
        ("a: [", ["x.yaml:2:1: expected YAML, got did not find expected node content"]),
        (
            "features: {a: int64}",
            ["x.yaml:1:1: expected the key `schema`, a name, got none"],
        ),
        (
            "schema: 1\nfeatures: {a: int64}",
            ['x.yaml:1:9: schema: expected text, got int `1` (quote it: "1")'],
        ),
        (
            "schema: x\nfeatures: {}",
            ["x.yaml:2:11: features: expected at least one feature, got none"],
        ),
        (
            "schema: x\nfeature: {a: int64}\nfeatures: {a: int64}",
            [
                "x.yaml:2:1: feature: expected one of schema, version, description, record, features, "
                "context, sequence, got `feature` (did you mean `features`?)"
            ],
        ),
        (
            "schema: x\nfeatures:\n  a: int46\n",
            [
                "x.yaml:3:6: features.a: expected a dtype, a kind, or a mapping of options, got `int46` "
                "(did you mean `int64`?)"
            ],
        ),
        (
            "schema: x\nfeatures:\n  a b: {kind: vra_len, dtype: int64}\n",
            [
                'x.yaml:3:15: features."a b".kind: expected one of fixed_len, var_len, fixed_len_sequence, '
                "ragged, sparse, tensor, label, text, image, audio, video, box, got `vra_len` (did you mean `var_len`?)"
            ],
        ),
        (
            "schema: x\nfeatures:\n  a: {dtype: uint8}\n",
            [
                "x.yaml:3:14: features.a.dtype: expected one of float32, int64, string, got `uint8` "
                "(`kind: tensor` stores it exactly)"
            ],
        ),
        (
            "schema: x\nfeatures:\n  a: {dtype: str}\n",
            [
                "x.yaml:3:14: features.a.dtype: expected one of float32, int64, string, got `str` "
                "(write `string`)"
            ],
        ),
        (
            "schema: x\nfeatures:\n  a: {dtype: int64, shape: [3, null]}\n",
            [
                "x.yaml:3:28: features.a.shape: expected sizes that are fixed, got null "
                "(any number of values is `kind: var_len`)"
            ],
        ),
        (
            "schema: x\nfeatures:\n  a: {dtype: float32, shape: [2], default: 0.0}\n",
            ["x.yaml:3:44: features.a.default: expected float32 of shape [2], got shape []"],
        ),
        (
            "schema: x\nfeatures:\n  a: {dtype: int64, default: 1.5}\n",
            ["x.yaml:3:30: features.a.default: expected int64, got float 1.5 (`float32` holds fractions)"],
        ),
        (
            "schema: x\nfeatures:\n  a: {dtype: int64, shape: [2, 0], default: [[], []]}\n",
            [
                "x.yaml:3:45: features.a.default: expected no default of a shape without values, "
                "got shape [2, 0] (tf.io reads an empty default as no default)"
            ],
        ),
        (
            "schema: x\nfeatures:\n  a: {dtype: string, default: 7}\n",
            ["x.yaml:3:31: features.a.default: expected string, got int 7 (quote it)"],
        ),
        (
            "schema: x\nfeatures:\n  a: {kind: label, names: [yes, no]}\n",
            [
                'x.yaml:3:28: features.a.names[0]: expected text, got bool `yes` (quote it: "yes")',
                'x.yaml:3:33: features.a.names[1]: expected text, got bool `no` (quote it: "no")',
            ],
        ),
        (
            "schema: x\nfeatures:\n  a: {kind: label, names: [cat, dog, cat]}\n",
            [
                "x.yaml:3:38: features.a.names[2]: expected every name once, got `cat` again "
                "(it is name 0 already)"
            ],
        ),
        (
            "schema: x\nfeatures:\n  a: int64\n  b: int64\n  a: float32\n",
            ["x.yaml:5:3: expected every key once, got `a` again (it is also at line 3)"],
        ),
        (
            "schema: x\nfeatures:\n  a: {kind: tensor, dtype: uint8, shape: [3, null]}\n",
            [
                "x.yaml:3:42: features.a.shape: expected sizes that are fixed, got null "
                "(only the first may be null)"
            ],
        ),
        (
            "schema: x\nfeatures:\n  a: {kind: tensor, dtype: float64, encoding: list}\n",
            [
                "x.yaml:3:47: features.a.encoding: expected raw or zlib for float64, got `list` "
                "(no list of an Example holds it exactly)"
            ],
        ),
        (
            "schema: x\nfeatures:\n  a: {kind: image, encoding: pgn}\n",
            [
                "x.yaml:3:30: features.a.encoding: expected one of png, jpeg, webp, bmp, gif, raw, got `pgn` "
                "(did you mean `png`?)"
            ],
        ),
        (
            "schema: x\nfeatures:\n  a: {kind: image, encoding: jpeg, shape: [8, 8, 4]}\n",
            ["x.yaml:3:43: features.a.shape: expected one of 1, 3 channels for jpeg, got 4"],
        ),
        (
            "schema: x\nfeatures:\n  a: {kind: ragged, dtype: int64, shape: [4, null]}\n",
            [
                "x.yaml:3:42: features.a.shape: expected one null for each ragged level, then sizes of "
                "at least 1, got [4, null]"
            ],
        ),
        (
            "schema: x\nfeatures:\n  a: {kind: sparse, dtype: int64, size: [3, 4], index_keys: [i]}\n",
            ["x.yaml:3:61: features.a.index_keys: expected 2 keys, one for each dimension, got 1"],
        ),
        (
            "schema: x\nfeatures:\n"
            "  a: {kind: var_len, dtype: int64, pad: 0.5}\n"
            "  b: {kind: label, names: [x, y], pad: none}\n"
            "  c: {kind: text, pad: 0}\n"
            "  d: {kind: tensor, dtype: uint8, shape: [null], pad: -1}\n"
            "  e: {kind: tensor, dtype: bool, shape: [null], pad: 2}\n"
            "  f: {kind: ragged, dtype: string, shape: [null], pad: 0}\n"
            "  g: {kind: sparse, dtype: float32, size: 3, pad: [1]}\n"
            "  h: {kind: box, format: xyxy, pad: 1.0e+300}\n"
            "  i: {kind: image, pad: 256}\n"
            "  j: {kind: audio, sample_rate: 8000, dtype: int16, pad: 0.5}\n"
            "  k: {kind: video, pad: -1}\n",
            [
                "x.yaml:3:41: features.a.pad: expected int64, got float 0.5 (`float32` holds fractions)",
                "x.yaml:4:40: features.b.pad: expected a whole number, got str `none`",
                'x.yaml:5:24: features.c.pad: expected text or null, got int `0` (quote it: "0")',
                "x.yaml:6:55: features.d.pad: expected uint8 (0 to 255), got -1",
                "x.yaml:7:54: features.e.pad: expected bool (0 to 1), got 2",
                "x.yaml:8:56: features.f.pad: expected string, got int 0 (quote it)",
                "x.yaml:9:51: features.g.pad: expected float32, got shape [1]",
                "x.yaml:10:37: features.h.pad: expected float32, which holds it without overflow, got 1e+300",
                "x.yaml:11:25: features.i.pad: expected uint8 (0 to 255), got 256",
                "x.yaml:12:58: features.j.pad: expected int16, got float 0.5 (`float32` holds fractions)",
                "x.yaml:13:25: features.k.pad: expected uint8 (0 to 255), got -1",
            ],
        ),
        (
            "schema: x\nfeatures:\n  a: int64\n  b: {kind: var_len, dtype: int64, key: a}\n",
            [
                "x.yaml:4:6: features.b: expected one layout for a key, got `a` with another layout than in `a`"
            ],
        ),
        (
            "schema: x\nfeatures:\n"
            "  a: {kind: fixed_len_sequence, dtype: int64, with_length: true}\n  a_length: int64\n",
            [
                "x.yaml:4:13: features.a_length: expected a name of its own, got `a_length`, which `a` "
                "decodes to"
            ],
        ),
        (
            "schema: x\nrecord: sequence_example\n"
            "context:\n  a: {kind: fixed_len_sequence, dtype: int64}\n"
            "sequence:\n  b: int64\n  c: {kind: sparse, dtype: int64, size: 3}\n",
            [
                "x.yaml:4:6: context.a: expected a kind without steps in the context, got fixed_len_sequence "
                "(put it under sequence)",
                "x.yaml:6:6: sequence.b: expected a kind for steps, got fixed_len (fixed_len_sequence has "
                "one value of its shape in each step)",
                "x.yaml:7:6: sequence.c: expected a kind that tf.io parses in a sequence, got sparse (it has "
                "no SparseFeature there)",
            ],
        ),
        (
            "schema: x\nrecord: example\nsequence:\n  b: int64\n",
            [
                "x.yaml:1:1: features: expected at least one feature, got none",
                "x.yaml:4:3: sequence: expected features, got `sequence` (record is example)",
            ],
        ),
    ],
)
def test_each_problem_has_its_place(text, expected):
    assert problems(text) == expected


def test_problems_of_all_sorts_are_told_at_once():
    text = (
        "schema: x\nrecord: sequence_example\nnotes: here\n"
        "context:\n  a: {kind: fixed_len_sequence, dtype: int64}\n  b: int33\n"
        "sequence:\n  c: {kind: fixed_len_sequence, dtype: int33, shap: [2]}\n"
    )
    assert [line.split(": expected")[0] for line in problems(text)] == [
        "x.yaml:3:1: notes",
        "x.yaml:5:6: context.a",
        "x.yaml:6:6: context.b",
        "x.yaml:8:40: sequence.c.dtype",
        "x.yaml:8:47: sequence.c.shap",
    ]


def test_what_python_gives_as_lists_and_nan_loads_again():
    feature = FixedLen(name="x", dtype="float32", shape=[2], default=[float("nan"), 1e-7])
    schema = Schema(name="s", features=[feature])
    assert Schema.loads(schema.dump()) == schema
    assert hash(schema) == hash(Schema.loads(schema.dump()))


def test_all_problems_are_told_at_once():
    text = "schema: x\nversoin: 2\nfeatures:\n  a: int46\n  b: {dtype: int64, shap: [2]}\n  b: int64\n"
    assert [line.split(": ")[0] for line in problems(text)] == [
        "x.yaml:2:1",
        "x.yaml:4:6",
        "x.yaml:5:21",
        "x.yaml:6:3",
    ]


OTHERS = {
    "table.csv": (b"a,b\n1,2\n" * 500_000, "a CSV file", True),
    "table.tsv": (b"a\tb\n1\t2\n", "a file of tab-separated values", True),
    "rows.jsonl": (b'{"a": 1}\n{"a": 2}\n', "a JSON Lines file", True),
    "schema.pbtxt": (b'feature { name: "n" type: INT }', "a text proto", True),
    "spec.yaml": (frame(b"a"), "a TFRecord file", True),
    "a.tfrecord.gz": (gzip.compress(frame(b"a")), "a TFRecord file in gzip", True),
    "data": (b"PAR1" + bytes(range(64)), "a Parquet file", True),
    "image": (b"\x89PNG\r\n\x1a\n", "a PNG image", False),
    "table.csv.gz": (gzip.compress(b"a,b\n1,2\n"), "gzip data", False),
    "images.tar": (b"a".ljust(257, b"\0") + b"ustar".ljust(255, b"\0"), "a tar archive", False),
    "page": (b"<!DOCTYPE html><title>404</title>", "an HTML page", False),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("load", [Schema.load, load_any])
def test_a_file_of_another_type_is_named(name, load, tmp_path):
    data, got, inferred = OTHERS[name]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(SpecError) as caught:
        load(path)
    hint = f" (`recordspec infer {path}` writes a spec for it)" * inferred
    assert str(caught.value) == f"{path}: expected a feature spec or a config, got {got}{hint}"


def test_texts_in_errors_are_cut():
    long, cut = "x" * 800_000, f"{'x' * 197}..."
    assert problems(long) == [f"x.yaml:1:1: expected a mapping, got str `{cut}`"]
    assert problems(f"schema: s\nfeatures: {{a: {long}}}")[0].endswith(f"got `{cut}`")
    (line,) = problems(f'schema: s\nfeatures: {{a: {{kind: label, names: ["{long}", "{long}"]}}}}')
    assert f"got `{cut}` again" in line
    (line,) = problems(f"schema: s\n? {long}\n: 1\nfeatures: {{a: int64}}")
    assert line.startswith(f'x.yaml:2:3: "{cut}": expected one of')
    assert line.endswith(f"got `{cut}`")
    assert len(problems("x`y" * 100_000)[0]) < 2100  # quotes in quotes


def test_a_kind_of_ones_own_is_passed_in():
    from recordspec.schema.features import KINDS
    from recordspec.schema.features.text import Text

    class Caption(Text):
        kind = "caption"

    text = "schema: x\nfeatures: {a: {kind: caption, max_bytes: 9}, b: caption}"
    schema = Schema.loads(text, kinds=KINDS | {"caption": Caption})
    assert [type(feature) for feature in schema.features] == [Caption, Caption]
    assert "got `caption`" in problems(text)[0]


def test_the_surface_of_a_kind_is_pinned():
    from recordspec import Feature

    public = {name for name in dir(Feature) if not name.startswith("_")}
    assert public == {
        "among",
        "option_problems",
        "columns",
        "decode",
        "decode_numpy",
        "description",
        "encode",
        "encode_one",
        "indicating",
        "invalid_stored",
        "key",
        "missing",
        "outputs",
        "padding",
        "read_options",
        "resolved",
        "restored",
        "restored_type",
        "sample",
        "shortest",
        "spec",
        "stored",
        "stored_options",
        "traits",
        "value_type",
    }


@pytest.mark.parametrize("fact", [True, property(lambda feature: True)])
def test_a_fact_is_refused_as_an_attribute(fact):
    from recordspec import Feature

    with pytest.raises(TypeError) as caught:
        type("Old", (Feature,), {"kind": "old", "per_example": fact})
    assert str(caught.value) == "Old.per_example: expected a fact in `traits`, got an attribute"


def test_very_many_problems_take_no_time_and_are_told_up_to_a_bound():
    with pytest.raises(SpecError) as caught:
        Schema.loads(f"schema: s\nfeatures: {{a: {{kind: label, names: [{'a, ' * 50_000}]}}}}")
    assert len(caught.value.problems) == 1000
