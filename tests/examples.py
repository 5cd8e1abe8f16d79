"""Records as any program may write them, without a schema."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from recordspec.wire import proto
from recordspec.wire.framing import framed

_LISTS = {"bytes": "bytes_list", "float32": "float_list", "int64": "int64_list"}
Value = tuple[str, list[Any]]


def example(features: Mapping[str, Value], steps: Mapping[str, list[Value]] | None = None) -> bytes:
    """An Example or a SequenceExample. Each key has a kind of list (or `none`) and values."""
    made = proto._classes()["SequenceExample"]()
    for key, value in features.items():
        _fill(made.context.feature.add(key=key).value, value)
    for key, many in (steps or {}).items():
        entry = made.feature_lists.feature_list.add(key=key)
        entry.value.SetInParent()
        for value in many:
            _fill(entry.value.feature.add(), value)
    return made.SerializeToString()


def _fill(feature: Any, value: Value) -> None:
    kind, values = value
    feature.SetInParent()
    if kind != "none":
        held = getattr(feature, _LISTS[kind])
        held.SetInParent()
        held.value.extend(values)


def file_of(path: Path, records: Iterable[bytes]) -> Path:
    """A TFRecord file of the records."""
    path.write_bytes(b"".join(map(framed, records)))
    return path


def sealed(manifest: Mapping[str, Any]) -> str:
    """A manifest (format 2 or later) that a test has changed, with the SHA-256 of its new values."""
    values = {name: value for name, value in manifest.items() if name != "sha256"}
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return json.dumps({**values, "sha256": hashlib.sha256(text.encode()).hexdigest()})
