"""What a file is found to hold as it is read, and what is lost of it: told by `verify`, and by `repair`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from recordspec.errors import Problem, StoreError, system_problem
from recordspec.locations import open_file
from recordspec.progress import Progress
from recordspec.store.manifest import Manifest, Shard
from recordspec.store.shards import File
from recordspec.wire.compression import CODECS, Compression
from recordspec.wire.file_types import likely_compression
from recordspec.wire.hashes import HashedFile
from recordspec.wire.recovery import rescue
from recordspec.wire.streams import Readable
from recordspec.wire.tfrecord import Chunk, Damage

# Losses of a file that are named one by one; a file of nothing else has millions.
MOST_NAMED = 10_000
_BY_SUFFIX = {codec.suffix: name for name, codec in CODECS.items() if codec.suffix}


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Bytes of a file that are no whole record.

    Attributes:
        record: the number of the record that should be there. Behind a bad length it is counted from what
            was found again, as if one were lost.
        offset: the byte where they begin; in a compressed file, of the uncompressed ones.
        stop: the byte behind them; None where they go on to the end of a compressed file.
        problem: what is wrong.
    """

    record: int
    offset: int
    stop: int | None
    problem: Problem


@dataclass(kw_only=True)
class Tally:
    """Of one file.

    Attributes:
        file: it, and what its manifest says.
        said: how it is compressed, as its manifest says; None without one.
        compression: how it is, once it is read.
        size: its bytes, once it is read; None where it is compressed.
        records: that are whole, and that every reader comes to.
        bad: with wrong data, which a reader can step over.
        found_again: that are whole, but behind a bad length, where only `repair` finds them.
        losses: the first MOST_NAMED of them.
        lost: how many there are.
        rows_lost: that a reader does not come to; None where nobody knows.
        bytes_lost: of no whole record; None where nobody knows.
        sha256: of the whole file, once it is read; empty where no manifest says what it should be.
    """

    file: File
    said: Compression | None
    compression: Compression = "none"
    size: int | None = None
    records: int = 0
    bad: int = 0
    found_again: int = 0
    losses: list[Loss] = field(default_factory=list)
    lost: int = 0
    rows_lost: int | None = 0
    bytes_lost: int | None = 0
    sha256: str = ""
    _open: Damage | None = None  # damage that nothing follows as yet
    _behind: bool = False  # whether there was such damage

    @classmethod
    def of(cls, path: Path, manifest: Manifest | None) -> Tally:
        """Before the file is read."""
        shards = () if manifest is None else manifest.all_shards
        shard = next((shard for shard in shards if shard.file == path.name), None)
        file = File(path=path, shard=shard, block=None if manifest is None else manifest.block)
        return cls(file=file, said=None if manifest is None or shard is None else manifest.compression)

    def read(self, progress: Progress) -> Iterator[Chunk]:
        """Reads the file to its end. Gives what is whole of it. Raises StoreError where the disk fails."""
        try:
            yield from self._read_all(progress)
        except OSError as error:
            raise StoreError(system_problem("read", error, str(self.path))) from error

    def _read_all(self, progress: Progress) -> Iterator[Chunk]:
        with open_file(self.path) as file:
            self.compression = likely_compression(self.path)
            self.size = self.path.stat().st_size if self.compression == "none" else None
            if self.shard is None:
                yield from self._read(file, progress)
                return
            with HashedFile(file) as hashed:
                yield from self._read(hashed, progress)
                self.sha256 = hashed.sha256()

    def _read(self, file: Readable, progress: Progress) -> Iterator[Chunk]:
        for found in rescue(self.path, file):
            self._add(found)
            if isinstance(found, Chunk):
                progress.advance(len(found), len(found.frames))
                yield found
        self._close()

    @property
    def path(self) -> Path:
        """Of the file."""
        return self.file.path

    @property
    def shard(self) -> Shard | None:
        """What its manifest says; None without one."""
        return self.file.shard

    @property
    def reaches_end(self) -> bool:
        """Whether a reader comes to the end of the file."""
        return not self._behind

    @property
    def saved(self) -> int:
        """Records that are whole."""
        return self.records + self.found_again

    @property
    def unchanged(self) -> bool:
        """Whether it is what its manifest says, to the byte."""
        shard = self.shard
        return shard is not None and self.sha256 == shard.sha256 and self._all_there and not self.lost

    @property
    def rows_saved(self) -> int | None:
        """Rows in the records that are whole. None where nobody knows: of records of many rows, any may be
        the last, which has fewer, unless all are there as they were written, but for wrong data."""
        shard = self.shard
        if shard is None or shard.records != self.file.records_needed:
            return None
        if self.file.block is None or not self.saved:
            return self.saved
        numbered = self._all_there and (self.bad > 0 or self.unchanged)
        return shard.rows - (self.rows_lost or 0) if numbered else None

    @property
    def _all_there(self) -> bool:
        """Whether a reader comes to as many records as the manifest counts."""
        shard = self.shard
        return shard is not None and self.reaches_end and self.records + self.bad == shard.records

    def _add(self, found: Chunk | Damage) -> None:
        if isinstance(found, Damage):
            self._lose(found)
            return
        if self._open is not None:
            self._name(self._open, found.offset_of(0))
            self._open = None
        if self._behind:
            self.found_again += len(found)
        else:
            self.records += len(found)

    def _close(self) -> None:
        if self._open is not None:
            self._name(self._open, self.size)
            self._open = None
        elif not self._behind and self.shard is not None:
            self._lose_uncounted(self.records + self.bad)  # cut between two records, it looks whole

    def _lose(self, damage: Damage) -> None:
        if not self._behind:
            self._lose_rows(damage.number, rest=damage.stop is None)
        if damage.stop is not None:
            self.bad += 1
            self._name(damage, damage.stop)
        else:
            self._open, self._behind = damage, True

    def _lose_uncounted(self, found: int) -> None:
        """The rows of the records that are not there, of which the manifest tells no more than the number."""
        if self.file.block is None or not found:
            self._lose_rows(found, rest=True)
        elif not self._all_there:
            self.rows_lost = None  # the last record, which has fewer, may be missing, or another

    def _lose_rows(self, record: int, *, rest: bool) -> None:
        rows = self.file.rows_from(record) if rest else self.file.rows_of(record)
        known = None not in (rows, self.rows_lost, self.shard)
        self.rows_lost = (self.rows_lost or 0) + (rows or 0) if known else None

    def _name(self, damage: Damage, stop: int | None) -> None:
        if stop is None or self.bytes_lost is None:
            self.bytes_lost = None
        else:
            self.bytes_lost += stop - damage.offset
        self.lost += 1
        if len(self.losses) < MOST_NAMED:
            problem = damage.problem if damage.offset else self._with_hint(damage.problem)
            self.losses.append(Loss(record=damage.number, offset=damage.offset, stop=stop, problem=problem))

    def _with_hint(self, problem: Problem) -> Problem:
        """What is wrong at the first byte, with what else tells that the file was compressed."""
        named = _BY_SUFFIX.get(self.path.suffix)
        told = f"its name says {named}" if named else f"its manifest says {self.said}"
        if problem.hint or self.compression != "none" or (named or self.said or "none") == "none":
            return problem
        return replace(problem, hint=f"{told}, its first bytes do not: perhaps they are damaged")


def described(tally: Tally) -> dict[str, Any]:
    """What was read of a file, as JSON has it."""
    named = [
        {
            "record": loss.record,
            "byte": loss.offset,
            "to": loss.stop,
            "expected": loss.problem.expected,
            "got": loss.problem.got,
        }
        for loss in tally.losses
    ]
    return {
        "file": str(tally.path),
        "records": tally.records,
        "bad": tally.bad,
        "found again": tally.found_again,
        "bytes lost": tally.bytes_lost,
        "rows lost": tally.rows_lost,
        "losses": named,
        "not named": tally.lost - len(named),
    }
