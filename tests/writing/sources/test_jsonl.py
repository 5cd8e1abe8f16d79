"""JSON lines: cut anywhere they are the same rows, and a line that does not fit is one bad row."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_parts import MANY, NUMBER, TEXTS, batches_of, error_of, parts_of, records, rows_in, rows_of, schema

import recordspec as rs
from recordspec.writing.sources import base, ranges
from recordspec.writing.sources.jsonl import Jsonl

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
        source = Jsonl(path="rows.jsonl").open(path.parent)
        parts = parts_of(source, TEXTS)
        counts = [rows_in(part.batches(TEXTS, ())) for part in parts]
        places = [part.place(row) for part, count in zip(parts, counts, strict=True) for row in range(count)]
        assert records(source, TEXTS) == [TEXTS.encode(row) for row in rows]
    numbers = np.cumsum([1, *(line.count("\n") for line in lines)])[:-1]
    assert places == [f"{path}:{number}" for number in numbers]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"n": 1', "expected JSON, got other text at column 8 (expecting ',' delimiter)"),
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
        source = Jsonl(path="rows.jsonl", ignore=("old",)).open(tmp_path)
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
    assert records(Jsonl(path="rows.jsonl").open(tmp_path), one) == [one.encode(row)]


def test_json_names_may_be_others(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"x y": 5}\n')
    assert rows_of(Jsonl(path="rows.jsonl", columns={"n": "x y"}).open(tmp_path), NUMBER) == [{"n": 5}]
    with pytest.raises(rs.SpecError) as caught:
        parts_of(Jsonl(path="rows.jsonl", columns={"N": "x"}).open(tmp_path), NUMBER)
    assert str(caught.value) == (
        f"{tmp_path}/rows.jsonl: columns: expected features of `s`, got `N` (did you mean `n`?)"
    )
    with pytest.raises(rs.StoreError) as missing:
        parts_of(Jsonl(path="no.jsonl").open(tmp_path), NUMBER)
    assert str(missing.value) == (f"{tmp_path}/no.jsonl: cannot read: no such file or directory")
