"""What to change in a schema so that records fit it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from recordspec.errors import Path, show_path
from recordspec.inspect.fitting import SORTS
from recordspec.inspect.report import Group, Key, Report
from recordspec.spec.features import Feature
from recordspec.spec.features.fixed_len import FixedLen
from recordspec.spec.features.label import Label
from recordspec.spec.schema import Schema
from recordspec.wire.columns import TF_DTYPES

_ZEROS = {"int64": 0, "float32": 0.0, "string": ""}


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """One edit of a schema.

    Attributes:
        path: of the feature.
        edit: what to write there, in YAML.
        why: what was found.
    """

    path: Path
    edit: str
    why: str

    def __str__(self) -> str:
        return f"{show_path(self.path)}: {self.edit} ({self.why})"


def proposals(schema: Schema, report: Report) -> Iterator[Proposal]:
    """Edits that would make what was found fit, where the schema and not the data may be wrong."""
    features: dict[Path, Feature] = {(section, feature.name): feature for section, feature in schema.placed}
    for group in report.groups.values():
        feature = features.get(group.path)
        edit = None if feature is None else _edit(feature, group, report.rows)
        if edit is not None:
            why = f"{SORTS[group.code]} in {group.count:,} of {report.rows:,} rows"
            yield Proposal(path=group.path, edit=edit, why=why)
    for path, key in report.unknown.items():
        edit = _added(key)
        if edit is not None:
            yield Proposal(path=path, edit=edit, why=f"in {key.rows:,} of {report.rows:,} rows")


def _edit(feature: Feature, group: Group, rows: int) -> str | None:
    """Of one feature; None where its data is to be mended, not its spec."""
    dtype = getattr(feature, "dtype", None)
    if group.code == "kind" and isinstance(feature, FixedLen) and len(group.found) == 1:
        (kind,) = group.found
        return f"dtype: {TF_DTYPES[str(kind)]}"
    if group.code == "missing" and isinstance(feature, FixedLen) and feature.shape == () and dtype in _ZEROS:
        return f"default: {json.dumps(_ZEROS[dtype])}"
    if group.code == "count" and isinstance(feature, FixedLen):
        one = len(group.found) == 1 and group.count == rows
        return f"shape: {sorted(group.found)}" if one else f"kind: var_len, dtype: {dtype}, without shape"
    if group.code == "value" and isinstance(feature, Label):
        return "more names, or `oov: index` and a build of the rows anew"
    return None


def _added(key: Key) -> str | None:
    """The feature that would read an unknown key."""
    kinds = key.kinds - {"none"}
    if len(kinds) != 1:
        return None
    return f"{{kind: var_len, dtype: {TF_DTYPES[kinds.pop()]}}}"
