"""Edits of a schema that make records valid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import singledispatch

from recordspec.errors import Path, show_path
from recordspec.integrity.check import TITLES, CheckReport, UnknownKey, ViolationGroup
from recordspec.schema.features import Feature
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.var_len import VariableLen
from recordspec.schema.options import to_builtins
from recordspec.schema.schema import Schema
from recordspec.schema.validate import Code
from recordspec.wire.columns import TF_DTYPES

# The violations of one feature.
Groups = dict[Code, ViolationGroup]

_ZEROS = {"int64": 0, "float32": 0.0, "string": ""}


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """One edit of a schema.

    Attributes:
        path: the path of the feature.
        edit: what to write there, in YAML.
        why: what was found.
    """

    path: Path
    edit: str
    why: str

    def __str__(self) -> str:
        return f"{show_path(self.path)}: {self.edit} ({self.why})"


def proposals(schema: Schema, report: CheckReport) -> Iterator[Proposal]:
    """Edits that make records valid, where the schema may be wrong, and not the data.

    Where a feature needs several, a check with the first edit proposes the next.
    """
    features: dict[Path, Feature] = {(section, feature.name): feature for section, feature in schema.placed}
    violations: dict[Path, Groups] = {}
    absent = {problem.path for problem in report.absent}  # nothing shows what these should be
    for (path, code), group in report.groups.items():
        if path in features and path not in absent:
            violations.setdefault(path, {})[code] = group
    for path, groups in violations.items():
        feature = features[path]
        other = _edit(feature, groups, report.rows, (path[0], feature.stored) in report.empty)
        edit = _advice(feature, groups) if other is None else _edit_text(feature, other)
        if edit is not None:
            titles = (f"{TITLES[code]} in {group.count:,}" for code, group in groups.items())
            yield Proposal(path=path, edit=edit, why=f"{', '.join(titles)} of {report.rows:,} rows")
    names = set(schema.outputs)
    for path, key in report.unknown.items():
        edit = _new_feature(key)
        if edit is not None and path[-1] and path[-1] not in names:
            names.add(str(path[-1]))
            yield Proposal(path=path, edit=edit, why=f"in {key.rows:,} of {report.rows:,} rows")


@singledispatch
def _edit(feature: Feature, groups: Groups, rows: int, empty: bool) -> Feature | None:
    """The feature as its records have it; None of kinds without a rule here."""
    return None


@_edit.register
def _edit_fixed_len(feature: FixedLen, groups: Groups, rows: int, empty: bool) -> Feature | None:
    """The feature that the records have; None if the records are wrong, not the spec.

    Args:
        groups: the feature's violations.
        rows: the number of rows.
        empty: whether any has its key without values.
    """
    kind, missing, count = (groups.get(code) for code in ("kind", "missing", "count"))
    if kind is not None:
        without = 0 if missing is None else missing.count
        if len(kind.found) > 1 or kind.count + without < rows or (without and empty):
            return None  # rows of several kinds: no dtype is that of all
        (dtype,) = kind.found
        return replace(feature, dtype=TF_DTYPES[str(dtype)], default=None)
    if count is not None and count.count == rows and len(count.found) == 1:
        return replace(feature, shape=tuple(map(int, count.found)), default=None)
    if count is not None or (missing is not None and empty):
        return VariableLen(
            name=feature.name, key=feature.key, description=feature.description, dtype=feature.dtype
        )
    if missing is not None and feature.shape == ():
        return replace(feature, default=_ZEROS[feature.dtype])
    return None


def _edit_text(old: Feature, new: Feature) -> str:
    """The change of a feature, as an edit of its YAML."""
    before, after = to_builtins(old), to_builtins(new)
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    if old.kind != new.kind:
        changed = {"kind": new.kind, "dtype": after["dtype"], **changed}
    written = [
        f"{name}: {value if isinstance(value, str) and value else json.dumps(value)}"
        for name, value in changed.items()
    ]
    gone = [name for name in before if name not in after]
    return ", ".join(written) + (f", without {' and '.join(gone)}" if gone else "")


def _advice(feature: Feature, groups: Groups) -> str | None:
    if "value" in groups and feature.class_names:
        return "more names, or `oov: index` and a new build of the rows"
    return None


def _new_feature(key: UnknownKey) -> str | None:
    """The feature that would read an unknown key."""
    kinds = key.kinds - {"none"}
    if len(kinds) != 1:
        return None
    return f"{{kind: var_len, dtype: {TF_DTYPES[kinds.pop()]}}}"
