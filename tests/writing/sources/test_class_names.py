"""Names of classes travel with their indices, in every form that Hugging Face has."""

from __future__ import annotations

import datasets
import numpy as np
import pyarrow as pa
import pytest
from hugging_face_data import INNER, read
from in_parts import error_of, records, rows_of

import recordspec as rs
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.python_rows import source_of

CLASSES = datasets.Features(
    {
        "one": datasets.ClassLabel(names=["cat", "dog", "bird"]),
        "some": datasets.Sequence(INNER),
        "pair": datasets.Sequence(INNER, length=2),
        "plain": datasets.Value("int64"),
    }
)
INDICES = {
    "one": [0, 1, 2, 1],
    "some": [[0, 2], [0, 1], [1], [2, 2, 0]],
    "pair": [[0, 1], [2, 2], [1, 0], [0, 2]],
    "plain": [1, 0, 1, 1],
}
# Other orders, more names, and text; `plain` has no names in the dataset.
OTHER_ORDER = rs.Schema.loads("""
schema: s
features:
  one: {kind: label, names: [horse, bird, dog, cat]}
  some: {kind: label, names: [c, a, b], shape: [null]}
  pair: {dtype: string, shape: [2]}
  plain: {kind: label, names: ['no', 'yes']}
""")


def classes(**columns) -> datasets.Dataset:
    given = INDICES | columns
    return datasets.Dataset.from_dict(given, features=CLASSES)


def arrays(batch: dict) -> dict:
    """Lists as arrays, and indices as numbers of NumPy."""
    return {name: [np.array(value, np.int64)[()] for value in values] for name, values in batch.items()}


def forms_of(given: datasets.Dataset, folder) -> dict:
    """The same examples in every form that has the names of their classes."""
    streamed, table = given.to_iterable_dataset(), given.data.table
    given.to_parquet(str(folder / "rows.parquet"))
    place = table.schema.get_field_index("some")
    large = table.schema.set(place, pa.field("some", pa.large_list(pa.int32())))
    mapped = streamed.map(lambda row: row, features=given.features)
    return {
        "mapped stream with features": mapped,
        "dataset": given,
        "with a format": given.with_format("numpy"),
        "transformed": given.with_transform(lambda batch: batch),
        "arrays": given.with_transform(arrays),
        "stream": streamed,
        "table": table,
        "data": given.data,
        "data from a file": datasets.Dataset.from_parquet(str(folder / "rows.parquet"), cache_dir=str(folder)).data,
        "data in pieces": datasets.concatenate_datasets([given.select([0]), given.select(range(1, len(given)))]).data,
        "slices": pa.concat_tables([table.slice(0, 1), table.slice(1, 2), table.slice(3)]),
        "batch": table.combine_chunks().to_batches()[0],
        "reader": table.to_reader(2),
        "large lists": table.cast(large),
        "Parquet": Parquet(files="rows.parquet").open(folder),
    }  # fmt: skip


def test_the_names_of_classes_travel_with_their_indices(tmp_path):
    given = classes()
    name, item = CLASSES["one"].int2str, INNER.int2str
    named = [
        row | {"one": name(row["one"]), "some": [*map(item, row["some"])], "pair": [*map(item, row["pair"])]}
        for row in given
    ]
    expected = [OTHER_ORDER.encode(row) for row in named]
    in_order = OTHER_ORDER.dump().replace("[horse, bird, dog, cat]", "[cat, dog, bird]")
    same_order = rs.Schema.loads(in_order.replace("[c, a, b]", "[a, b, c]"))
    numbers = rs.Schema.loads(
        "schema: s\nfeatures: {one: int64, some: {kind: var_len, dtype: int64}, "
        "pair: {dtype: int64, shape: [2]}, plain: int64}"
    )
    for form, rows in forms_of(given, tmp_path).items():
        assert records(source_of(rows), OTHER_ORDER) == expected, form
        if form != "reader":
            assert records(source_of(rows), same_order) == [same_order.encode(row) for row in named], form
            assert records(source_of(rows), numbers) == [numbers.encode(row) for row in given], form
    rs.write(forms_of(given, tmp_path)["transformed"], OTHER_ORDER, tmp_path / "data", key=None)
    assert [row["one"] for row in read(OTHER_ORDER, tmp_path / "data")] == [3, 2, 1, 2]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"one": [0, 1, 2, 0]}, "row 2: features.one: expected one of `dog`, `cat`, or an index, got `bird`"),
        ({"some": [[0], [1, 2]] * 2}, "row 1: features.some: expected one of `a`, `b`, or an index, got `c` at item 1"),
        ({"one": [0, -1, 1, 1]}, "row 1: features.one: expected one of `dog`, `cat`, or an index, got nothing"),
        ({"some": [[], [0, -1]] * 2}, "row 1: features.some: expected one of `a`, `b`, or an index, got nothing at item 1"),
        ({"one": [0, 1, 1, 7]}, "row 3: features.one: expected one of `dog`, `cat`, or an index, got ClassIndex 7, which has no name"),
        ({"some": [[0], [-2]] * 2}, "row 1: features.some: expected one of `a`, `b`, or an index, got ClassIndex -2, which has no name at item 0"),
    ],
)  # fmt: skip
def test_a_class_that_the_schema_lacks_is_an_invalid_value(tmp_path, changed, message):
    text = (
        "schema: s\nfeatures:\n"
        "  one: {kind: label, names: [dog, cat]}\n  some: {kind: label, names: [a, b], shape: [null]}\n"
        "  pair: {dtype: string, shape: [2]}\n  plain: int64\n"
    )
    schema, unknown = rs.Schema.loads(text), rs.Schema.loads(text.replace("cat]", "cat], oov: index"))
    # as a table, since Hugging Face itself refuses other indices in a list
    good = {"one": [0, 1, 0, 1], "some": [[0], [1], [0], [0, 1]]}
    table = pa.table(INDICES | good | changed).cast(CLASSES.arrow_schema)
    forms = {"table": table} if "ClassIndex" in message else forms_of(datasets.Dataset(table), tmp_path)
    for form, rows in forms.items():
        (line, *_) = error_of(source_of(rows), schema)
        assert line.removeprefix(f"{tmp_path}/rows.parquet: ").partition(" (")[0] == message, form
        if "bird" in message and form != "reader":
            assert [row["one"] for row in rows_of(source_of(rows), unknown)] == [1, 0, 2, 1], form


def test_metadata_that_is_damaged_is_an_error():
    table = pa.table({"n": [1]}).replace_schema_metadata({"huggingface": '{"info": {"features": {"n": 3}}}'})
    with pytest.raises(rs.SpecError) as caught:
        source_of(table)
    assert str(caught.value) == (
        "huggingface: expected the features of a dataset of Hugging Face, got AttributeError: 'int' object has no attribute 'get'"
    )


def test_indices_whose_names_are_unknown_are_refused(tmp_path):
    hint = "(give names, or `features=` to `map`)"
    streamed, given = classes().to_iterable_dataset(), classes()
    added = given.select_columns(["plain"]).with_transform(
        lambda rows: {"plain": rows["plain"], "one": [0] * len(rows["plain"])}
    )
    for rows, name in [
        (streamed.map(lambda row: row), "one"),
        (streamed.map(lambda row: row).select_columns(["some"]), "some"),
        (added, "one"),
    ]:
        schema = OTHER_ORDER if name == "one" else OTHER_ORDER.only([name])
        schema = schema.only(["one", "plain"]) if rows is added else schema
        for jobs in (1, 2):
            with pytest.raises(rs.SpecError) as caught:
                rs.write(rows, schema, tmp_path / "data", jobs=jobs)
            assert str(caught.value) == (
                f"{name}: expected class names, or features of the dataset that name the classes, got the index 0 {hint}"
            )
    texts = streamed.map(lambda row: {**row, "one": "dog", "some": ["a"], "pair": ["a", "b"], "plain": "yes"})
    assert [row["one"] for row in rows_of(source_of(texts), OTHER_ORDER)] == [2] * 4


def test_classes_are_inferred_with_their_names(tmp_path):
    given = classes()
    names = {"one": ("cat", "dog", "bird"), "some": ("a", "b", "c"), "pair": ("a", "b", "c")}
    for form, rows in forms_of(given, tmp_path).items():
        data = tmp_path / "rows.parquet" if form == "Parquet" else rows
        schema = rs.infer(data).schema
        assert {
            name: one.traits.class_names for name, one in schema.names.items() if one.traits.class_names
        } == names, form
    missing = classes(one=[0, -1, 1, 2])
    schema = rs.infer(missing).schema
    assert [row["one"] for row in rows_of(source_of(missing), schema)] == [b"cat", b"", b"dog", b"bird"]
    unknown = given.to_iterable_dataset().map(
        lambda row: {"y": row["one"]}, remove_columns=list(given.features)
    )
    schema = rs.infer(unknown).schema
    assert [row["y"] for row in rows_of(source_of(unknown), schema)] == INDICES["one"]
    note = "one: missing in 1 of 4 rows and reads as its default"
    transformed = missing.with_transform(lambda batch: batch)
    for rows in (missing, missing.data.table, missing.to_iterable_dataset(), transformed):
        assert rs.infer(rows).notes == (note,)
    splits = datasets.DatasetDict(train=given, test=missing)
    assert rs.infer(splits).notes == (note.replace("4", "8"),)
    schema = rs.infer(splits).schema
    assert rs.write(splits, schema, tmp_path / "data", progress=False).rows("test") == 4
