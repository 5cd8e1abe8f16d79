"""Checks the memory of shuffle buffers and caches against the free memory of this machine."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from pathlib import Path
from typing import Any

from recordspec._tf import Dataset
from recordspec.errors import Problem, SpecError, StoreError, system_errors
from recordspec.locations import local, resolved
from recordspec.order.read_options import Interleave, Read
from recordspec.order.read_plan import Piece, Plan
from recordspec.reading.seeds import Seeds
from recordspec.reading.shuffle_buffer import ShufflePlan
from recordspec.schema.options import format_bytes
from recordspec.store.transaction import locked

log = logging.getLogger("recordspec")

# The name of the files of a cache in its folder, and the suffix of TensorFlow's lockfile while it fills them.
_NAME, _LOCKFILE = "records", ".lockfile"
# The most elements of a cache in a folder. For more elements, TensorFlow raises InvalidArgumentError, and
# leaves a cache that looks whole, with the first 10 million elements.
_MOST_ELEMENTS = 9_999_999
# The locks of cache folders, by process and folder. A process holds its locks until it ends.
_claims: dict[tuple[int, Path], int] = {}

# The bytes that tf.data takes for a string besides its own: the tensor, its buffer, and a place in the queue.
_ROW_OVERHEAD = 160
# The part of the free memory that buffers may take: the model needs memory too.
_MOST = 0.8


def check(options: Read, plan: Plan) -> None:
    """Raises SpecError if the shuffle buffer or the cache would take more memory than there is."""
    has_buffer = options.shuffle is not None and not options.is_global
    if not has_buffer and options.cache != "memory":
        return
    free = available()
    room = int(free * _MOST)
    each = plan.row_bytes + _ROW_OVERHEAD
    wanted = 0.0
    shuffle = ShufflePlan.of(plan, options.shuffle, Seeds()) if has_buffer and options.shuffle else None
    if shuffle is not None:
        wanted = min(shuffle.buffers * shuffle.buffer, plan.rows or 1 << 62) * each
    if shuffle is not None and wanted > room:
        hint = f"a buffer of {int(room / each / shuffle.buffers):,} rows fits"
        raise _too_large(("read", "shuffle", "buffer"), wanted, free, hint)
    if options.cache == "memory" and plan.rows is not None and wanted + plan.rows * each > room:
        hint = "leave it to the page cache, or name a folder"
        raise _too_large(("read", "cache"), wanted + plan.rows * each, free, hint)


def _too_large(path: tuple[str, ...], wanted: float, free: int, hint: str) -> SpecError:
    expected = f"at most {format_bytes(free * _MOST)} of memory, of {format_bytes(free)} free"
    return SpecError(Problem(path=path, expected=expected, got=format_bytes(wanted), hint=hint))


def available() -> int:
    """Bytes that this process can still allocate: free memory, or what is left of a container's limit."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits += [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
        limit, used = (Path(f"/sys/fs/cgroup/memory.{name}").read_text() for name in ("max", "current"))
        limits += [] if limit.strip() == "max" else [int(limit) - int(used)]
    except (OSError, ValueError):  # not Linux, or without cgroups of version 2
        pass
    return max(0, min(limits))


def cached(records: Dataset, options: Read, mixed: Interleave | None, plan: Plan) -> Dataset:
    """The records, cached by the first pass in memory or in a folder.

    While another process fills the folder, records are not cached. `mixed` is how files are interleaved.
    Raises StoreError if the disk has too little space, or the folder is not writable; SpecError for more
    elements than a folder can cache.
    """
    if options.cache == "memory":
        return records.cache()
    folder = local(options.cache)
    _check_elements(records, mixed, plan)
    # a hash of the files and their order, so that other files get another cache
    files = [_version(piece, plan.manifest_identity) for piece in plan.pieces]
    parts = [(piece.first, piece.count) for piece in plan.pieces]
    order = (files, parts, mixed, options.deterministic, plan.large)
    digest = hashlib.sha256(repr(order).encode()).hexdigest()
    path = Path(os.path.abspath(folder / f"recordspec-{digest[:16]}"))
    if not _is_whole(path):
        size = sum(piece.path.stat().st_size for piece in plan.pieces)
        with system_errors("write", folder):
            path.mkdir(parents=True, exist_ok=True)
            if not _claimed(path):
                log.warning("%s: another process fills the cache: the dataset is read without it", path)
                return records
            free = shutil.disk_usage(folder).free
        if size > free and not _is_whole(path):
            expected = f"{format_bytes(size)} free for the cache"
            raise StoreError(Problem(where=str(folder), expected=expected, got=format_bytes(free)))
    return records.cache(str(path / _NAME))


def _version(piece: Piece, manifest_identity: str | None) -> tuple[Any, ...]:
    """A version of a file, which changes with its bytes."""
    if piece.copy_sha256:
        return (piece.copy_sha256,)
    stat = piece.path.stat()
    # size and mtime can stay the same when a file is written again: the manifest then differs, or the ctime,
    # which no program can set
    written = manifest_identity or getattr(stat, "st_ctime_ns", "")
    return (str(resolved(piece.path)), stat.st_size, stat.st_mtime_ns, written)


def _check_elements(records: Dataset, mixed: Interleave | None, plan: Plan) -> None:
    """Raises SpecError for more elements than TensorFlow caches in a folder."""
    together = 1 if mixed is None or records.element_spec.shape.rank == 0 else mixed.block
    rows = (plan.block or 1) * together
    count = sum(-(-(piece.rows or 0) // rows) for piece in plan.pieces)
    if count > _MOST_ELEMENTS:
        expected = f"at most {_MOST_ELEMENTS:,} elements in a folder"
        got = f"{count:,}, each of {rows:,} rows" if rows > 1 else f"{count:,} rows"
        hint = "`memory` has no limit; a shuffle or an interleave makes elements of several rows"
        raise SpecError(Problem(path=("read", "cache"), expected=expected, got=got, hint=hint))


def _is_whole(path: Path) -> bool:
    """Whether a cache was filled to its end: TensorFlow removes its lockfile last."""
    return (path / f"{_NAME}.index").exists() and not any(path.glob(f"*{_LOCKFILE}"))


def _claimed(path: Path) -> bool:
    """Whether this process may fill a cache, or another process has filled it in the meantime.

    TensorFlow's lockfile is not enough: it stays when a process is killed, and a second process that finds it
    deletes the files that the first process has written. Here, only files of a killed process are deleted.
    """
    mine = (os.getpid(), path)
    if mine in _claims and os.path.samestat(os.fstat(_claims[mine]), path.stat()):
        return True
    lock = locked(path)
    if lock is None:
        return _is_whole(path)
    _claims[mine] = lock
    if not _is_whole(path):
        for left in sorted(path.iterdir(), key=lambda left: left.name.endswith(_LOCKFILE)):
            left.unlink()  # the lockfile last: without it, a leftover index would look whole
    return True
