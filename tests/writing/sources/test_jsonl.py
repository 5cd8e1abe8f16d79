"""JSON lines: cut anywhere they are the same rows, and a line that does not fit is one bad row."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_parts import MANY, NUMBER, TEXTS, batches_of, error_of, parts_of, records, rows_in, rows_of, schema
from in_parts import records as all_records

import recordspec as rs
from recordspec.writing.sources import base, json_array, jsonl, ranges
from recordspec.writing.sources.jsonl import Jsonl, JsonList
from selection import scaled

VALUES = st.one_of(st.none(), st.text(max_size=6))


@pytest.mark.slow
@given(
    rows=st.lists(st.dictionaries(st.sampled_from("ab"), VALUES), max_size=12),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\n\n", " \n"]), min_size=12, max_size=12),
    ascii_only=st.booleans(),
    bom=st.booleans(),
    size=st.integers(1, 60),
    block=st.integers(1, 50),
)
@MANY
def test_json_lines_cut_anywhere_are_the_rows(tmp_path_factory, rows, ends, ascii_only, bom, size, block):
    path = tmp_path_factory.mktemp("jsonl") / "rows.jsonl"
    lines = [json.dumps(row, ensure_ascii=ascii_only) + end for row, end in zip(rows, ends, strict=False)]
    path.write_bytes(b"\xef\xbb\xbf" * bom + "".join(lines).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "PART_BYTES", size)
        patch.setattr(ranges, "_BLOCK", block)
        source = Jsonl(files="rows.jsonl").open(path.parent)
        parts = parts_of(source, TEXTS)
        counts = [rows_in(part.batches(TEXTS, ())) for part in parts]
        places = [part.place(row) for part, count in zip(parts, counts, strict=True) for row in range(count)]
        assert records(source, TEXTS) == [TEXTS.encode(row) for row in rows]
    numbers = np.cumsum([1, *(line.count("\n") for line in lines)])[:-1]
    assert places == [f"{path}:{number}" for number in numbers]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"n": 1', "expected JSON, got the end of the line at column 8 (a line has a whole object)"),
        (b'{"n": 1, "o": [{"\\uDfAa": 2}]}', "expected names that UTF-8 can encode, got `\\udfaa`"),
        (b"  nope", "expected JSON, got other text at column 3 (expecting value)"),
        (b'{"n": 1} {"n": 2}', "expected JSON, got other text at column 10 (extra data)"),
        (b'{"n": {"b64": "*"}}', "expected base64, got str '*'"),
        (b'{"n": [{"b64": 1}]}', "expected base64, got int 1"),
        (b'{"n": 1e999}', "expected a number that float64 holds without overflow, got 1e999"),
        (b'{"n": 1, "n": 2}', "expected every name once, got `n` again"),
        (b"[1]", "expected a JSON object, got list [1]"),
        (b'{"n": "\xff"}', "expected UTF-8 text, got the byte 0xff at byte 8 of the line"),
        (b'{"N": 1}', "expected names of `s`, got `N` (did you mean `n`?)"),
        (b'{"n": 1, "other": 2}', "expected names of `s`, got `other` (`ignore` of the source lists names to leave out)"),
        (b'{"n": 9223372036854775808}', "features.n: expected int64 (-9223372036854775808 to 9223372036854775807), got 9223372036854775808"),
        (b'{"n": ' + b"9" * 5000 + b"}", "expected JSON, got a number of thousands of digits"),
        (b'{"n": ' + b"[" * 100_000, "expected JSON, got lists in lists without end"),
        (b'{"n": [1]}', "features.n: expected int64, got shape [1]"),
        (b'{"n": true}', "features.n: expected int64, got bool True (write 1, or store it as `kind: tensor` with `dtype: bool`)"),
        (b'{"n": 1.0}', "features.n: expected int64, got float 1.0 (write 1)"),
        (b"{}", "features.n: expected int64, got nothing (only a feature with a default may be missing)"),
        (b'{"n": null, "old": 3}', "features.n: expected int64, got nothing (only a feature with a default may be missing)"),
    ],
    ids=lambda value: value[:20] if isinstance(value, bytes) else "",
)  # fmt: skip
def test_a_line_that_does_not_fit_is_one_bad_row(tmp_path, part_bytes, line, expected):
    (tmp_path / "rows.jsonl").write_bytes(b'{"n": 1}\n\r\n{"n": 2, "old": null}\n' + line + b'\n{"n": 3}\n')
    for size in (1, 1 << 20):
        part_bytes(size)
        source = Jsonl(files="rows.jsonl", ignore=("old",)).open(tmp_path)
        assert error_of(source, NUMBER) == [f"{tmp_path}/rows.jsonl:4: {expected}"]
    batches = list(batches_of(source, NUMBER))
    assert rows_in(batches) == 4
    assert batches[-1].part(batches[-1].rows - 1, batches[-1].rows).values == {"n": [3]}


def test_json_lines_give_every_kind_of_value(tmp_path):
    one = schema(
        "t: {kind: tensor, dtype: uint64, shape: [2, 1]}\n  v: {kind: var_len, dtype: string}\n"
        "  b: {kind: tensor, dtype: bool}\n  l: {kind: label, names: [x, y]}\n  m: {kind: label, names: [x, y], shape: [null]}\n"
        "  f: float32\n  s: {kind: sparse, dtype: float32, size: 9}"
    )
    row = {
        "t": [[2**64 - 1], [0]],
        "v": ["é", ""],
        "b": True,
        "l": "y",
        "m": [1, "x"],
        "f": 3,
        "s": [[4], [0.5]],
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    assert records(Jsonl(files="rows.jsonl").open(tmp_path), one) == [one.encode(row)]


def test_json_names_may_be_others(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"x y": 5}\n')
    assert rows_of(Jsonl(files="rows.jsonl", columns={"n": "x y"}).open(tmp_path), NUMBER) == [{"n": 5}]
    with pytest.raises(rs.SpecError) as caught:
        parts_of(Jsonl(files="rows.jsonl", columns={"N": "x"}).open(tmp_path), NUMBER)
    assert str(caught.value) == (
        f"{tmp_path}/rows.jsonl: columns: expected features of `s`, got `N` (did you mean `n`?)"
    )
    with pytest.raises(rs.StoreError) as missing:
        parts_of(Jsonl(files="no.jsonl").open(tmp_path), NUMBER)
    assert str(missing.value) == (f"`{tmp_path}/no.jsonl` does not exist: {tmp_path} has rows.jsonl")


ODD = rs.Schema.loads(
    """\
schema: s
features:
  i: {dtype: int64, default: -1}
  f: {dtype: float32, default: -1.0}
  d: {kind: tensor, dtype: float64, shape: []}
  u: {kind: tensor, dtype: uint8, shape: []}
  t: {dtype: string, default: none}
  label: {kind: label, names: [a, "1", b]}
  ints: {kind: var_len, dtype: int64}
  floats: {kind: var_len, dtype: float32}
  texts: {kind: var_len, dtype: string}
"""
)
TOKENS = [
    *(
        "0",
        "-0",
        "7",
        "-7",
        "255",
        "256",
        "1.0",
        "1.5",
        "-0.0",
        "1e2",
        "1E400",
        "16777217",
        "16777217.0",
        "01",
        ".5",
    ),
    *(
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "123456789012345678901",
        "3e38",
        "4e38",
    ),
    *(
        "NaN",
        "Infinity",
        "-Infinity",
        "Inf",
        "true",
        "null",
        '""',
        '"a"',
        '"1"',
        '"b"',
        '"c"',
        '"7"',
        '"\\u00e9"',
    ),
    *(
        '"\\ud800"',
        '"2020-01-01"',
        "[]",
        "[1]",
        "[1, 2.5]",
        "[null]",
        '["a", ""]',
        "[[1]]",
        "{}",
        '{"b64": "AA=="}',
    ),
    *("[-0]", "[16777217]", '["\\ud83d\\ude00"]', "1 2", ""),
]
USUAL = {
    "i": ["7", "-7", "0"], "f": ["1.5", "7", "-2e-3"], "d": ["0.1", "3"], "u": ["7", "255"], "t": ['"x"', '"\\u00e9"'],
    "label": ['"a"', '"b"'], "ints": ["[]", "[1, 2]"], "floats": ["[0.5, 2]"], "texts": ['["a", ""]'],
}  # fmt: skip


@st.composite
def json_lines(draw) -> str:
    """Lines of usual values, and here and there another one, a name twice, one that is unknown, or white space."""
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        values = {name: draw(st.sampled_from(usual)) for name, usual in USUAL.items()}
        for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
            values[draw(st.sampled_from([*USUAL, *USUAL, "other"]))] = draw(st.sampled_from(TOKENS))
        pairs = [f'"{name}": {value}' for name, value in values.items()]
        if draw(st.integers(0, 9)) == 0:
            del pairs[draw(st.integers(0, len(pairs) - 1))]
        if draw(st.integers(0, 29)) == 0:
            pairs.append(pairs[0])
        line = f"{{{', '.join(pairs)}}}"
        lines.append(
            draw(st.sampled_from([line] * 12 + [f" {line}", f"{line} ", f"{line}\r", f"{line}\n", line * 2]))
        )
    return "\n".join(lines) + draw(st.sampled_from(["\n", "", "\n\n"]))


@pytest.mark.slow
@pytest.mark.newest
@settings(max_examples=scaled(400))
@given(json_lines(), st.booleans())
def test_arrow_reads_what_python_reads(text, ignores):
    """The same records, or the same message."""
    outcomes = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_bytes(text.encode())
        for tries in (0, 2):
            jsonl._TRIES, before = tries, jsonl._TRIES
            try:
                source = jsonl.Jsonl(files=str(path), ignore=("other",) if ignores else ())
                rs.write(source, ODD, Path(folder) / "data", force=True)
                outcomes.append([one.read_bytes() for one in sorted((Path(folder) / "data").glob("train-*"))])
            except rs.RecordspecError as error:
                outcomes.append(str(error))
            finally:
                jsonl._TRIES = before
    assert outcomes[0] == outcomes[1]


def test_usual_lines_are_read_by_arrow(tmp_path):
    line = "{" + ", ".join(f'"{name}": {usual[-1]}' for name, usual in USUAL.items()) + "}\r\n"
    (tmp_path / "rows.jsonl").write_text(2 * line, newline="")
    (part,) = jsonl.Jsonl(files=f"{tmp_path}/rows.jsonl").parts(ODD, ())
    columns = part._by_arrow(ODD, (tmp_path / "rows.jsonl").read_bytes())
    assert columns is not None
    assert columns.rows == 2


def test_lists_with_missing_items_are_read_by_arrow(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {v: {kind: var_len, dtype: float32, missing_item: .nan}}")
    (tmp_path / "rows.jsonl").write_text('{"v": [1, null]}\n{"v": [null]}\n')
    (part,) = jsonl.Jsonl(files=f"{tmp_path}/rows.jsonl").parts(schema, ())
    columns = part._by_arrow(schema, (tmp_path / "rows.jsonl").read_bytes())
    assert columns is not None
    assert str(columns.values["v"].to_pylist()) == "[[1.0, nan], [nan]]"


ITEMS = [{"n": number, "t": f'é "[{{{number}\n', "more": {"v": [number]}} for number in range(40)]
LISTED = rs.Schema.loads("schema: s\nfeatures: {n: int64, t: string, more.v: {kind: var_len, dtype: int64}}")


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("records", ["", "data"])
def test_a_list_of_objects_has_the_rows_of_its_lines(tmp_path, monkeypatch, block, indent, records):
    """Rows have line breaks between members; a piece ends anywhere."""
    monkeypatch.setattr(json_array, "_BLOCK", block)
    monkeypatch.setattr(json_array, "_PIECE_BYTES", block)
    document = {"version": [1, {"data": 2}], "data": ITEMS, "rest": None} if records else ITEMS
    text = json.dumps(document, indent=indent, ensure_ascii=False).replace("\n", "\r\n")
    (tmp_path / "rows.json").write_bytes(gzip.compress(text.encode("utf-8-sig")))
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(item) + "\n" for item in ITEMS))
    source = JsonList(files="rows.json", records=records).open(tmp_path)
    assert all_records(source, LISTED) == all_records(Jsonl(files="rows.jsonl").open(tmp_path), LISTED)
    (part,) = source.parts(LISTED, ())
    assert part.place(39) == f"{tmp_path}/rows.json: row 39"


@pytest.mark.parametrize(
    ("records", "text", "message"),
    [
        ("", '{"data": []}', ": expected a list of objects, got `{\"data\": []}` (`records` of the source names the list in an object)"),
        ("data", "[]", ": expected an object with the list, got `[]` (without `records`, the source reads a list)"),
        ("data", '{"date": []}', ": expected a list `data`, got none (did you mean `date`?)"),
        ("data", '{"data": 1}', ": expected a list `data`, got `1}`"),
        ("", '[{"n": 1}, {"n": 2,}]', ": row 1: expected JSON, got `{\"n\": 2,}]`"),
        ("", '[{"n": 1}, {"n": 2}', ": row 2: expected `,` or the end of the list, got the end of the file"),
        ("data", '{"data": [{"n": 1}], "data": [{"n": 2}]}', ": expected one list `data`, got another one"),
        ("data", '{"data": [{"n": 1}], "x": tru', ": expected JSON, got `tru`"),
        ("data", '{"data": [{"n": 1}]} 5', ": expected the end of the file, got `5`"),
        ("", '[{"n": 1}] 2', ": expected the end of the file, got `2`"),
        ("", '[{"n": 1}, 2]', ": row 1: expected a JSON object, got int 2"),
        ("", '[{"n": "x"}]', ": row 0: features.n: expected int64, got str 'x'"),
    ],
)  # fmt: skip
def test_a_document_without_the_list_is_refused(tmp_path, records, text, message):
    (tmp_path / "rows.json").write_text(text)
    with pytest.raises(rs.RecordError) as caught:
        rs.write(JsonList(files="rows.json", records=records).open(tmp_path), NUMBER, tmp_path / "data")
    assert str(caught.value).startswith(f"{tmp_path}/rows.json{message}")


@pytest.mark.parametrize("document", [ITEMS, {"version": 1, "data": ITEMS, "other": [{"a": 1}]}])
def test_lists_of_objects_are_inferred(tmp_path, document):
    (tmp_path / "rows.json").write_text(json.dumps(document))
    found = rs.infer(tmp_path / "rows.json")
    assert (found.rows, [*found.schema.names]) == (40, ["n", "t", "more.v"])
    found.save(tmp_path / "c.yaml", schema=tmp_path / "s.yaml", data=tmp_path / "data")
    rs.Pipeline.load(tmp_path / "c.yaml").build(progress=False)
    rows = rs.scan(tmp_path / "data").to_table().to_pylist()
    assert sorted(row["t"] for row in rows) == sorted(item["t"] for item in ITEMS)
    notes = [note for note in found.notes if note.startswith("source:")]
    reason = "the list of objects in the object of rows.json, the first of data, other"
    assert notes == ([] if isinstance(document, list) else [f'source: `records: "data"`: {reason}'])
