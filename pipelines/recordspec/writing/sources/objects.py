"""Objects in rows: their members are columns with dotted names, `meta.votes`; members of lists of objects are
columns of lists.

The same holds for the structs of Arrow and Parquet, and for their lists and maps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, RecordError
from recordspec.schema.arrow_values import is_file, is_list, item_type
from recordspec.schema.media import FILE_NAMES
from recordspec.wire.arrays import Ints, list_array, offsets, present_in, to_numpy

Row = Mapping[str, Any]
# The dotted names of members, by the name of the column with the objects.
DottedNames = Mapping[str, frozenset[str]]

_LISTS = (list, tuple, np.ndarray)


# ---- in Python ----


def members_in(names: Iterable[str], left_out: Iterable[str] = ()) -> DottedNames:
    """The dotted names among the names of columns, and among names to leave out, by each of their beginnings
    (which may have dots itself), unless the beginning is a column.
    """
    names = frozenset(names)
    parts: dict[str, set[str]] = {}
    for name in names.union(left_out):
        for first in beginnings(name):
            if first not in names:
                parts.setdefault(first, set()).add(name)
    return {first: frozenset(dotted) for first, dotted in parts.items()}


def unnested(row: Row, members: DottedNames, left_out: Collection[str] = ()) -> Row:
    """Replaces the objects of a row by their members, for the objects in `members`.

    Raises RecordError for two values of one name, unless the name is left out.
    """
    if members.keys().isdisjoint(row):
        return row
    made: dict[str, Any] = {}
    for name, value in row.items():
        wanted = members.get(name, frozenset())
        for column, item in _flat(name, value, wanted) if wanted else ((name, value),):
            if column in made and column not in left_out:
                raise RecordError(Problem(expected="every name once", got=f"`{column}` again"), 0)
            made[column] = item
    return made


def _flat(name: str, value: Any, wanted: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """Yields the members of an object, or of objects in lists; any other value under its own name."""
    below = {column for column in wanted if column.startswith(f"{name}.")}
    if below and isinstance(value, Mapping):
        for member, item in value.items():
            yield from _flat(f"{name}.{member}", item, wanted)
    elif below and isinstance(value, _LISTS) and all(map(_may_have_members, value)):
        items = [dict(_flat(name, item, wanted)) for item in value]
        for column in sorted(below.union(*items)):
            yield column, [item.get(column) for item in items]
    elif not below or value is not None:
        yield name, value


def _may_have_members(item: Any) -> bool:
    return item is None or isinstance(item, (Mapping, *_LISTS))


@dataclass(frozen=True)
class PythonColumn:
    """A column of Python values, perhaps a member of objects.

    Attributes:
        name: the name, dotted for a member.
        values: the values; None is missing. For members of objects in lists, those of all lists in one.
        lists: the sizes of the lists that had the objects, the outermost first; -1 for a missing list.
    """

    name: str
    values: list[Any]
    lists: tuple[Ints, ...] = ()

    def nested(self) -> list[Any]:
        """The values in their lists, one for each row."""
        nested = self.values
        for sizes in reversed(self.lists):
            ends = np.cumsum(np.maximum(sizes, 0)).tolist()
            pairs = zip(sizes.tolist(), ends, strict=True)
            nested = [None if size < 0 else nested[end - size : end] for size, end in pairs]
        return nested


def divided(
    name: str, values: list[Any], kept: Collection[str] = (), lists: tuple[Ints, ...] = ()
) -> Iterator[PythonColumn]:
    """Yields a column of Python values; if all values are objects, or lists of objects, a column for each
    member.

    Args:
        name: the name of the column.
        values: the values; None is missing.
        kept: the names of columns that are not divided.
        lists: the sizes of the lists that had the values, as in `PythonColumn`.
    """
    kinds = set() if name in kept else set(map(type, values))
    some = values if type(None) not in kinds else [value for value in values if value is not None]
    kinds.discard(type(None))
    if kinds and all(issubclass(kind, Mapping) for kind in kinds):
        members = dict.fromkeys(chain.from_iterable(some))
        if members and members.keys() != FILE_NAMES:
            for member in members:
                yield from divided(f"{name}.{member}", _members_of(values, member), kept, lists)
            return
    elif kinds and all(issubclass(kind, _LISTS) for kind in kinds):
        # arrays of numbers have no objects
        has_arrays = np.ndarray in kinds and any(
            one.dtype != object for one in some if isinstance(one, np.ndarray)
        )
        items = [] if has_arrays else [*chain.from_iterable(some)]
        if any(issubclass(kind, (Mapping, *_LISTS)) for kind in set(map(type, items))):
            sizes = np.fromiter((-1 if one is None else len(one) for one in values), np.int64, len(values))
            columns = [*divided(name, items, kept, (*lists, sizes))]
            if [column.name for column in columns] != [name]:
                yield from columns
                return
    yield PythonColumn(name, values, lists)


def _members_of(values: list[Any], member: str) -> list[Any]:
    try:
        return [*map(itemgetter(member), values)]  # half the time, if no object is missing, or lacks it
    except (KeyError, TypeError):
        return [None if value is None else value.get(member) for value in values]


# ---- in Arrow ----


def plain_types(columns: Iterable[Any], kept: Iterable[str] = ()) -> dict[str, Any]:
    """The types of a table's columns by name, with the members of objects in place of the objects.

    Args:
        columns: the fields of an Arrow schema.
        kept: the names of columns that are not divided.
    """
    kinds: dict[str, Any] = {}
    for column in columns:
        whole = column.name in kept
        kinds |= {column.name: column.type} if whole else dict(_leaves(column.name, column.type))
    return kinds


def names_in(columns: Iterable[Any], kept: Iterable[str] = ()) -> list[str]:
    """The names of a table's columns, and of the members of objects in them. If a member has the name of
    a column, the name occurs twice.
    """
    members = [name for column in columns for name in plain_types([column], kept) if name != column.name]
    return [*(column.name for column in columns), *members]


def _leaves(name: str, kind: Any) -> Iterator[tuple[str, Any]]:
    levels, item = 0, kind
    while is_list(item):
        levels, item = levels + 1, item.value_type
    levels += arrow().types.is_map(item)
    members = _members(item)
    for member, own in members.items():
        for _ in range(levels):
            own = arrow().list_(own)
        yield from _leaves(f"{name}.{member}", own)
    if not members:
        yield name, kind


def _members(kind: Any) -> dict[str, Any]:
    """The types of the members of objects and maps; empty for other types."""
    types = arrow().types
    if types.is_map(kind):
        return {"key": kind.key_type, "value": kind.item_type}
    return {} if not types.is_struct(kind) or is_file(kind) else {field.name: field.type for field in kind}


def column_of(table: Any, name: str) -> Any:
    """A column of a table or record batch, or of `plain_types`; chunked for a table."""
    if name in table.schema.names:
        return table.column(name)
    first = next(column for column in beginnings(name) if column in table.schema.names)
    column, rest = table.column(first), name[len(first) + 1 :]
    if isinstance(column, arrow().ChunkedArray):
        chunks = [_member(chunk, rest) for chunk in column.chunks]
        return arrow().chunked_array(chunks) if chunks else _member(arrow().nulls(0, column.type), rest)
    return _member(column, rest)


def top_level(name: str, names: Iterable[str]) -> str:
    """The column among `names` that contains a column of `plain_types`."""
    return next((column for column in (name, *beginnings(name)) if column in names), name)


def beginnings(name: str) -> Iterator[str]:
    """Yields the part of a name before each dot, the longest first."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _member(array: Any, name: str) -> Any:
    if not name:
        return array
    kind = array.type
    if is_list(kind) or arrow().types.is_map(kind):
        lengths = arrow().compute.list_value_length(array.cast(_as_list(kind)))
        counts = to_numpy(lengths.fill_null(0) if lengths.null_count else lengths).astype(np.int64)
        items = array.cast(_as_list(kind)).flatten()
        return list_array(_member(items, name), offsets(counts), present_in(array))
    own = [member for member in _members(kind) if name == member or name.startswith(f"{member}.")]
    member = max(own, key=len)
    return _member(arrow().compute.struct_field(array, member), name[len(member) + 1 :])


def _as_list(kind: Any) -> Any:
    """The list type for a list type or a map type; a map is a list of pairs."""
    if not arrow().types.is_map(kind):
        return kind
    pairs = arrow().struct([("key", kind.key_type), ("value", kind.item_type)])
    return arrow().list_(pairs)


def plain_columns(name: str, array: Any) -> dict[str, Any]:
    """An Arrow array under its name; for objects, each member under its dotted name."""
    empty = {leaf for leaf, kind in _leaves(name, array.type) if leaf != name and _is_null(item_type(kind))}
    # without values: pyarrow 25 takes the wrong items from a slice of a map of nulls
    return {
        leaf: arrow().nulls(len(array)) if leaf in empty else _member(array, leaf[len(name) + 1 :])
        for leaf, _ in _leaves(name, array.type)
    }


def _is_null(kind: Any) -> bool:
    return bool(arrow().types.is_null(kind))


def plain_table(table: Any, kept: Iterable[str]) -> Any:
    """A table or record batch with the members of objects as columns, except the columns in `kept`."""
    names = [*plain_types(table.schema, kept)]
    if names == table.schema.names:
        return table
    arrays = [column_of(table, name) for name in names]
    fields = [(name, array.type) for name, array in zip(names, arrays, strict=True)]
    schema = arrow().schema(fields, metadata=table.schema.metadata)
    return type(table).from_arrays(arrays, schema=schema)
