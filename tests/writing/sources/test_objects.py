"""Objects in rows as dotted columns: of JSON lines, Python, Arrow and Parquet, and what `infer` makes of them."""

from __future__ import annotations

import datetime
import decimal
import json
import re

import pyarrow
import pytest
import yaml
from pyarrow import parquet

import recordspec as rs
from recordspec.schema.ragged_array import RaggedArray
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.objects import members_in, plain_table, unnested
from recordspec.writing.sources.parquet import Parquet

NESTED = rs.Schema.loads("""
schema: nested
features:
  id: int64
  meta.votes: {dtype: int64, default: -1}
  meta.by.name: {kind: text}
  items.sku: {kind: var_len, dtype: string, missing: empty}
  items.n: {kind: var_len, dtype: int64, missing: empty}
""")
ROWS = [
    {
        "id": 0,
        "meta": {"votes": 3, "by": {"name": "ann"}},
        "items": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}],
    },
    {"id": 1, "meta": {"by": {"name": "bob"}}, "items": []},
    {"id": 2, "meta": {"votes": None, "by": {"name": ""}}, "items": None},
]
PLAIN = [
    {"id": 0, "meta.votes": 3, "meta.by.name": "ann", "items.sku": ["a", "b"], "items.n": [1, 2]},
    {"id": 1, "meta.votes": -1, "meta.by.name": "bob", "items.sku": [], "items.n": []},
    {"id": 2, "meta.votes": -1, "meta.by.name": "", "items.sku": [], "items.n": []},
]


def written(folder, rows, schema=NESTED, **options):
    rs.write(rows, schema, folder, progress=False, **options)
    return [plain(row) for row in rs.open(folder, schema)]


def plain(row):
    return {name: text(value.tolist() if hasattr(value, "tolist") else value) for name, value in row.items()}


def text(value):
    if isinstance(value, list | RaggedArray):
        return [text(value[place]) for place in range(len(value))]
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.parametrize("layout", ["rows", {"blocks": 2}])
def test_members_are_dotted_columns_of_every_source(tmp_path, layout):
    table = pyarrow.Table.from_pylist(ROWS)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    parquet.write_table(table, tmp_path / "rows.parquet")
    sources = {
        "dicts": ROWS,
        "one by one": iter(ROWS),
        "table": table,
        "slices": pyarrow.concat_tables([table.slice(0, 1), table.slice(1)]),
        "reader": table.to_reader(),
        "jsonl": Jsonl(files=str(tmp_path / "rows.jsonl")),
        "parquet": Parquet(files=str(tmp_path / "rows.parquet")),
    }
    for name, rows in sources.items():
        assert written(tmp_path / name, rows, layout=layout) == PLAIN, name


def test_columns_and_ignore_take_dotted_names(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64, votes: {dtype: int64, default: -1}}")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    columns = {"votes": "meta.votes"}
    jsonl = Jsonl(files=str(tmp_path / "rows.jsonl"), columns=columns, ignore=("meta.by", "items"))
    expected = [{"id": 0, "votes": 3}, {"id": 1, "votes": -1}, {"id": 2, "votes": -1}]
    assert written(tmp_path / "j", jsonl, schema) == expected
    source = Parquet(files=str(tmp_path / "rows.parquet"), columns=columns)
    assert written(tmp_path / "p", source, schema) == expected
    (note,) = source.notes  # pyarrow sorts the members in some versions
    assert sorted(note.partition(": ")[2].split(", ")) == ["items.n", "items.sku", "meta.by.name"]
    with pytest.raises(rs.RecordError) as caught:
        written(tmp_path / "no", Jsonl(files=str(tmp_path / "rows.jsonl"), columns=columns), schema)
    assert str(caught.value) == (
        f"{tmp_path}/rows.jsonl:1: expected names of `s`, got `meta.by` "
        "(`ignore` of the source lists names to leave out)"
    )


def test_names_to_ignore_are_those_without_a_feature(tmp_path):
    """In every source: an object with its members, but for the members that have features."""
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64, meta.votes: {dtype: int64, default: -1}}")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    ignored, table = ("meta", "items"), pyarrow.Table.from_pylist(ROWS)
    flat = {
        "id": [0, 1, 2],
        "meta.votes": [3, None, None],
        "meta.by.name": ["ann", "bob", ""],
        "items": [0] * 3,
    }
    sources = {
        "dicts": ROWS,
        "one by one": iter(ROWS),
        "table": table,
        "reader": table.to_reader(),
        "arrays": {name: pyarrow.array(column) for name, column in flat.items()},
        "dotted": [dict(zip(flat, row, strict=True)) for row in zip(*flat.values(), strict=True)],
        "jsonl": Jsonl(files=str(tmp_path / "rows.jsonl"), ignore=ignored),
    }
    expected = [{"id": 0, "meta.votes": 3}, {"id": 1, "meta.votes": -1}, {"id": 2, "meta.votes": -1}]
    for name, rows in sources.items():
        assert written(tmp_path / name, rows, schema, ignore=ignored) == expected, name
    for name, rows in (("dicts", ROWS), ("table", table), ("arrays", sources["arrays"])):
        with pytest.raises(rs.RecordspecError, match=r"got `?(meta\.by|items)"):
            written(tmp_path / f"no-{name}", rows, schema, ignore=ignored[:1])


@pytest.mark.parametrize("first", [None, {}, []])
def test_objects_that_begin_late_are_inferred_and_written(tmp_path, first):
    """Where Arrow has a column of nothing in a whole batch of rows, beside those of the members in others."""
    late = [{"v": 7}] if first == [] else {"v": 7}
    rows = [{"id": n, "m": first} for n in range(65_536)] + [{"id": n, "m": late} for n in range(3)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, given in {"rows": rows, "jsonl": tmp_path / "rows.jsonl"}.items():
        found = rs.infer(given)
        assert (list(found.schema.names), found.left_out) == (["id", "m.v"], ())
        source = given if name == "rows" else Jsonl(files=str(given))
        rs.write(source, found, tmp_path / name, progress=False)
        read = rs.open(tmp_path / name)[-3:]["m.v"]
        assert text(read) == ([[7]] * 3 if first == [] else [7] * 3)
        assert text(rs.open(tmp_path / name)[:2]["m.v"]) == ([[]] * 2 if first == [] else [0] * 2)


def test_two_values_of_one_name_are_an_error(tmp_path):
    row = {"id": 1, "meta.votes": 4, "meta": {"votes": 3, "by": {"name": "ann"}}, "items": []}
    with pytest.raises(rs.RecordError) as caught:
        written(tmp_path / "no", [row])
    assert str(caught.value) == "row 0: expected every name once, got `meta.votes` again"
    assert unnested({"meta.votes": 4}, members_in(["meta.votes"])) == {"meta.votes": 4}


def test_missing_objects_are_missing_members():
    table = pyarrow.table(
        {
            "one": pyarrow.array([{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}]),
            "many": pyarrow.array([[{"p": 1, "q": "u"}, {"p": None, "q": "v"}], [], None]),
            "map": pyarrow.array([[("k", 1)], [], None], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
        }
    )
    expected = {
        "one.a": [1, None, None],
        "one.b.c": ["x", None, None],
        "many.p": [[1, None], [], None],
        "many.q": [["u", "v"], [], None],
        "map.key": [["k"], [], None],
        "map.value": [[1], [], None],
    }
    assert plain_table(table, ()).to_pydict() == expected
    assert plain_table(table.slice(1), ()).to_pydict() == {name: some[1:] for name, some in expected.items()}
    assert plain_table(table, {"one", "many", "map"}) is table


COUNT = 60
WAREHOUSE = {
    "price": pyarrow.array([decimal.Decimal(n) / 4 for n in range(COUNT)], pyarrow.decimal128(10, 2)),
    "ok": pyarrow.array([[True, False, None][n % 3] for n in range(COUNT)]),
    "at": pyarrow.array([datetime.time(n % 24) for n in range(COUNT)]),
    "took": pyarrow.array([datetime.timedelta(seconds=n) for n in range(COUNT)], pyarrow.duration("s")),
    "hash": pyarrow.array([b"%016d" % n for n in range(COUNT)], pyarrow.binary(16)),
    "points": pyarrow.array(
        [[[1.0, 2.0, 3.0]] * (n % 3) for n in range(COUNT)],
        pyarrow.list_(pyarrow.list_(pyarrow.float32(), 3)),
    ),
    "deep": pyarrow.array([[[n], []][: n % 3] for n in range(COUNT)]),
    "tags": pyarrow.array([None if n % 5 == 0 else ["a", "b"][: n % 3] for n in range(COUNT)]),
    "numbers": pyarrow.array([None if n % 5 == 0 else [n] * (n % 3) for n in range(COUNT)]),
    "flags": pyarrow.array([[True, False][: n % 3] for n in range(COUNT)]),
    "size": pyarrow.array(
        [[1, 2] if n % 2 else None for n in range(COUNT)], pyarrow.list_(pyarrow.int64(), 2)
    ),
    "large": pyarrow.array([None if n % 3 else 2**63 + n for n in range(COUNT)], pyarrow.uint64()),
}
INFERRED = """
schema: rows
features:
  price: float32
  ok: {kind: tensor, description: missing in 20 of 60, dtype: bool, default: false, with_missing: true}
  at: int64
  took: int64
  hash: string
  points: {kind: ragged, dtype: float32, shape: [null, 3]}
  deep: {kind: ragged, dtype: int64, shape: [null, null]}
  tags: {kind: label, description: missing in 12 of 60, missing: empty, names: [a, b], shape: [null]}
  numbers: {kind: var_len, description: missing in 12 of 60, missing: empty, dtype: int64}
  flags: {kind: tensor, dtype: bool, shape: [null], encoding: raw}
  size: {dtype: int64, description: missing in 30 of 60, shape: [2], default: [0, 0], with_missing: true}
  large: {kind: tensor, description: missing in 40 of 60, dtype: uint64, default: 0, with_missing: true}
"""


@pytest.mark.parametrize("source", ["table", "parquet"])
def test_the_types_of_a_warehouse_are_inferred_and_built(tmp_path, source):
    """Arrow writes lists of one size to Parquet, and does not read those of which some are null."""
    table = given = pyarrow.table(WAREHOUSE)
    schema = rs.Schema.loads(INFERRED)
    if source == "parquet":
        table, schema = table.drop_columns("size"), schema.without("size")
        parquet.write_table(table, tmp_path / "rows.parquet")
        given = tmp_path / "rows.parquet"
    inferred = rs.infer(given, "rows")
    assert inferred.schema == schema
    assert inferred.left_out == ()
    assert {
        "price: decimal128(10, 2), kept as numbers: `kind: text` keeps all digits",
        "at: microseconds since midnight",
        "took: seconds of a duration",
        "hash: 16 bytes each: `kind: tensor` with `encoding: raw`, if these are numbers",
        "tags: missing in 12 of 60 rows and reads as empty",
    } <= {*inferred.notes}
    rows = written(tmp_path / "data", table if source == "table" else Parquet(files=str(given)), schema)
    size = {"size": [1, 2], "size_missing": False} if source == "table" else {}
    assert rows[7] == size | {
        "price": 1.75,
        "ok": False,
        "ok_missing": False,
        "at": 7 * 3600 * 10**6,
        "took": 7,
        "hash": "0000000000000007",
        "points": [[1.0, 2.0, 3.0]],
        "deep": [[7]],
        "tags": [0],
        "numbers": [7],
        "flags": [True],
        "large": 0,
        "large_missing": True,
    }
    assert [row["tags"] for row in rows[:3]] == [[], [0], [0, 1]]
    assert (rows[2]["ok_missing"], rows[0]["large"], rows[0].get("size_missing", True)) == (True, 2**63, True)


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        ("text", ["0.25", "1.50"]),
        ("float32", [0.25, 1.5]),
        ("{kind: tensor, dtype: float64}", [0.25, 1.5]),
    ],
)
def test_decimals_are_text_or_numbers_by_choice(tmp_path, feature, expected):
    schema = rs.Schema.loads(f"schema: s\nfeatures: {{x: {feature}}}")
    table = pyarrow.table({"x": pyarrow.array([decimal.Decimal("0.25"), decimal.Decimal("1.50")])})
    assert [row["x"] for row in written(tmp_path / "data", table, schema)] == expected
    whole = pyarrow.table({"x": table.column("x").cast(pyarrow.decimal128(9, 2))})
    with pytest.raises(rs.RecordError) as caught:
        written(tmp_path / "no", whole, rs.Schema.loads("schema: s\nfeatures: {x: int64}"))
    assert (
        str(caught.value) == "row 0: features.x: expected int64, got float 0.25 (`float32` holds fractions)"
    )


GAPS = {
    "int64": [[1, None], [None, 3], [], [None]],
    "float32": [[1.5, None], [2.0]],
    "string": [["a", None], None, [None]],
    "bool": [[True, None], [None]],
    "float64": [[1e300, None]],
    "uint64": [[2**64 - 1, None]],
    "ragged": [[[1, None], []], [[-2]]],
}


@pytest.mark.parametrize("name", GAPS)
@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "rows"])
def test_missing_items_are_stored_as_the_note_proposes(tmp_path, name, suffix):
    kind = {"bool": pyarrow.bool_(), "uint64": pyarrow.uint64()}.get(name)
    table = pyarrow.table(
        {"n": range(len(GAPS[name])), "x": pyarrow.array(GAPS[name], kind and pyarrow.list_(kind))}
    )
    rows, path = table.to_pylist(), tmp_path / f"rows.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == "parquet":
        parquet.write_table(table, path)
    given = (
        rows
        if suffix == "rows"
        else {"jsonl": Jsonl, "parquet": Parquet}[suffix](files=path.name).open(tmp_path)
    )
    (note,) = rs.infer(rows if suffix == "rows" else path).notes
    proposed = re.search("`({kind: .*, missing_item: (.*)})`", note)
    feature, item = proposed.group(1), yaml.safe_load(proposed.group(2))
    schema = rs.Schema.loads(f"schema: s\nfeatures: {{n: int64, x: {feature}}}")
    filled = [json.loads(json.dumps(row["x"] or []).replace("null", json.dumps(item))) for row in rows]
    assert str([row["x"] for row in written(tmp_path / "data", given, schema)]) == str(filled)
    refused = rs.Schema.loads(f"schema: s\nfeatures: {{n: int64, x: {feature.partition(', missing')[0]}}}}}")
    with pytest.raises(
        rs.RecordError, match=r"got nothing at item .* \(`missing_item` of the feature gives a value"
    ):
        written(tmp_path / "no", given, refused)
