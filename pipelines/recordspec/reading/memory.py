"""What buffers and caches take, and whether this machine has it."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from recordspec.errors import Problem, SpecError, StoreError
from recordspec.locations import local
from recordspec.reading.options import Read
from recordspec.reading.order import Seeds
from recordspec.reading.plan import Plan
from recordspec.reading.pools import Mix
from recordspec.spec.options import format_bytes

Dataset = Any

# What tf.data keeps for a string beside its bytes: the tensor, its buffer, and a place in the queue.
_ROW_OVERHEAD = 160
# Of what is free, the part that buffers may take: the model wants memory too.
_MOST = 0.8


def check(how: Read, what: Plan) -> None:
    """Raises SpecError where the shuffle buffer or the cache would take more memory than there is."""
    if how.shuffle is None and how.cache != "memory":
        return
    free = available()
    room = int(free * _MOST)
    each = what.row_bytes + _ROW_OVERHEAD
    wanted = 0.0
    mix = None if how.shuffle is None else Mix.of(what, how.shuffle, Seeds())
    if mix is not None:
        wanted = min(mix.buffers * mix.buffer, what.rows or 1 << 62) * each
    if mix is not None and wanted > room:
        hint = f"a buffer of {int(room / each / mix.buffers):,} rows fits"
        raise _too_large(("read", "shuffle", "buffer"), wanted, free, hint)
    if how.cache == "memory" and what.rows is not None and wanted + what.rows * each > room:
        hint = "leave it to the page cache, or name a folder"
        raise _too_large(("read", "cache"), wanted + what.rows * each, free, hint)


def _too_large(path: tuple[str, ...], wanted: float, free: int, hint: str) -> SpecError:
    expected = f"at most {format_bytes(free * _MOST)} of memory, of {format_bytes(free)} free"
    return SpecError(Problem(path=path, expected=expected, got=format_bytes(wanted), hint=hint))


def available() -> int:
    """Bytes of memory that this process could still have: what is free, or left of a container's limit."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
        limit, used = (Path(f"/sys/fs/cgroup/memory.{name}").read_text() for name in ("max", "current"))
        found += [] if limit.strip() == "max" else [int(limit) - int(used)]
    except (OSError, ValueError):  # not Linux, or without cgroups of version 2
        pass
    return max(0, min(found))


def cached(records: Dataset, how: Read, what: Plan) -> Dataset:
    """The records, kept in memory or in a folder after the first pass. Raises StoreError for a full disk."""
    if how.cache == "memory":
        return records.cache()
    folder = local(how.cache)
    folder.mkdir(parents=True, exist_ok=True)
    name = folder / f"recordspec-{_fingerprint(how, what)}"
    size = sum(piece.path.stat().st_size for piece in what.pieces)
    free = shutil.disk_usage(folder).free
    if not name.with_name(f"{name.name}.index").exists() and size > free:
        expected = f"{format_bytes(size)} free for the cache"
        raise StoreError(Problem(where=str(folder), expected=expected, got=format_bytes(free)))
    return records.cache(str(name))


def _fingerprint(how: Read, what: Plan) -> str:
    """Of what is read and in which order: a cache of other files is another cache."""
    stats = [(piece.path, piece.path.stat()) for piece in what.pieces]
    files = [(os.path.abspath(path), stat.st_size, stat.st_mtime_ns) for path, stat in stats]
    parts = [(piece.first, piece.count) for piece in what.pieces]
    return hashlib.sha256(repr((files, parts, how.interleave, what.large)).encode()).hexdigest()[:16]
