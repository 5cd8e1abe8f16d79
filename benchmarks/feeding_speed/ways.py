"""The variants, by name.

A variant is `prepare(fed, folder) -> begin`, where `begin()` starts the next pass over all rows in a random
order and returns its batches: inputs, by name unless there is only one, and targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ways import Way

Batch = tuple[Any, Any]
Begin = Callable[[], Iterable[Batch]]

_HERE, _ENVIRONMENT = "feeding_speed", "bench-frameworks"


def _ours(title: str, function: str, *packages: str) -> Way:
    return Way(
        title=title,
        module=f"{_HERE}.ours",
        function=function,
        environment=_ENVIRONMENT,
        packages=("recordspec", *packages),
        side="ours",
    )


def _peer(title: str, module: str, function: str, *packages: str) -> Way:
    return Way(
        title=title,
        module=f"{_HERE}.{module}",
        function=function,
        environment=_ENVIRONMENT,
        packages=packages,
    )


WAYS = {
    "dataset": _ours("`pipeline.dataset`, TensorFlow", "dataset", "tensorflow"),
    "iterate": _ours("`pipeline.iterate`", "iterate", "numpy"),
    "keras": _ours("`pipeline.keras_dataset`, JAX", "keras_dataset", "keras", "jax"),
    "torch": _ours("`pipeline.torch_dataset`", "torch_dataset", "torch"),
    "torch_workers": _ours("`pipeline.torch_dataset`, 2 workers", "torch_workers", "torch"),
    "jax": _ours("`pipeline.jax_dataset`", "jax_dataset", "jax"),
    "files": _peer("PyTorch's DataLoader, files", "torch_files", "loader", "torch"),
    "files_workers": _peer("PyTorch's DataLoader, files, 2 workers", "torch_files", "workers", "torch"),
    "datasets": _peer("Hugging Face datasets, NumPy", "hugging_face", "arrays", "datasets"),
    "datasets_torch": _peer(
        "Hugging Face datasets, DataLoader", "hugging_face", "loader", "datasets", "torch"
    ),
    "grain": _peer("Grain over ArrayRecord", "grain_records", "threads", "grain", "array_record"),
    "grain_workers": _peer(
        "Grain over ArrayRecord, 2 workers", "grain_records", "workers", "grain", "array_record"
    ),
}
