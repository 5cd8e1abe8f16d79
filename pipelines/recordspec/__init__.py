"""Writes records, reads them and trains on them, from one YAML spec.

Public names are loaded on first use, so that importing the package is fast, and loads neither
TensorFlow nor any extra.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "ExistsError": "errors",
    "Interrupted": "errors",
    "MissingExtra": "errors",
    "Problem": "errors",
    "RecordError": "errors",
    "RecordspecError": "errors",
    "SpecError": "errors",
    "StoreError": "errors",
    "Feature": "schema.features",
    "KINDS": "schema.features",
    "RaggedArray": "schema.ragged_array",
    "Rows": "arrays.random_access",
    "Schema": "schema.schema",
    "SparseArray": "schema.ragged_array",
    "WriteError": "errors",
    "Manifest": "store.manifest",
    "adopt": "writing.adopt",
    "check": "integrity.check",
    "diff": "statistics.diff",
    "export": "interop.export",
    "leaks": "statistics.leaks",
    "lint": "linting",
    "query": "tables.query",
    "verify": "integrity.verify",
    "ShardedWriter": "writing.writer",
    "write": "writing.write",
    "reshard": "writing.reshard",
    "scan": "tables.table",
    "stats": "statistics.stats",
    "infer": "inferring.infer",
    "InferredConfig": "inferring.inferred_config",
    "iterate": "arrays.iterate",
    "read": "reading.dataset",
    "locating": "reading.corrupt_records",
    "mix": "pipeline.mixture",
    "open": "arrays.random_access",
    "Backup": "training.backup",
    "Position": "order.position",
    "Pipeline": "pipeline",
    "SegmentMask": "training.segment_mask",
}

__all__ = [
    "KINDS",
    "Backup",
    "ExistsError",
    "Feature",
    "InferredConfig",
    "Interrupted",
    "Manifest",
    "MissingExtra",
    "Pipeline",
    "Position",
    "Problem",
    "RaggedArray",
    "RecordError",
    "RecordspecError",
    "Rows",
    "Schema",
    "SegmentMask",
    "ShardedWriter",
    "SparseArray",
    "SpecError",
    "StoreError",
    "WriteError",
    "__version__",
    "adopt",
    "check",
    "diff",
    "export",
    "infer",
    "iterate",
    "leaks",
    "lint",
    "locating",
    "mix",
    "open",
    "query",
    "read",
    "reshard",
    "scan",
    "stats",
    "verify",
    "write",
]

if TYPE_CHECKING:
    from recordspec.arrays.iterate import iterate
    from recordspec.arrays.random_access import Rows, open
    from recordspec.errors import (
        ExistsError,
        Interrupted,
        MissingExtra,
        Problem,
        RecordError,
        RecordspecError,
        SpecError,
        StoreError,
        WriteError,
    )
    from recordspec.inferring.infer import infer
    from recordspec.inferring.inferred_config import InferredConfig
    from recordspec.integrity.check import check
    from recordspec.integrity.verify import verify
    from recordspec.interop.export import export
    from recordspec.linting import lint
    from recordspec.order.position import Position
    from recordspec.pipeline import Pipeline
    from recordspec.pipeline.mixture import mix
    from recordspec.reading.corrupt_records import locating
    from recordspec.reading.dataset import read
    from recordspec.schema.features import KINDS, Feature
    from recordspec.schema.ragged_array import RaggedArray, SparseArray
    from recordspec.schema.schema import Schema
    from recordspec.statistics.diff import diff
    from recordspec.statistics.leaks import leaks
    from recordspec.statistics.stats import stats
    from recordspec.store.manifest import Manifest
    from recordspec.tables.query import query
    from recordspec.tables.table import scan
    from recordspec.training.backup import Backup
    from recordspec.writing.adopt import adopt
    from recordspec.writing.reshard import reshard
    from recordspec.writing.write import write
    from recordspec.writing.writer import ShardedWriter


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'recordspec' has no attribute {name!r}")
    module = importlib.import_module(f"recordspec.{_HOMES[name]}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__
