"""Fuzz tests: on corrupt input, readers must report an error, and must not crash, hang or exhaust memory.

    python benchmarks/fuzz.py [--inputs 100000] [--seed 0] [--targets framing records yaml]

Each input is a valid one with flipped bits, truncated, missing, repeated or inserted bytes, or overwritten
lengths; or it is random. The targets:

- framing: a file, plain or compressed, is read by `salvage` in small and in large chunks, and by `rescue`;
  they must find the same intact records.
- records: Examples and SequenceExamples are decoded to columns; invalid are those that protobuf refuses.
- yaml: `Schema.loads` returns a schema or raises SpecError.

Any other error, an input that takes 10 seconds, or a growth of 1 GiB of memory ends the run with exit code 1
and prints the seed. Prints the number of inputs and their outcomes.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from recordspec import RecordError, Schema, SpecError
from recordspec.wire import proto
from recordspec.wire.arrays import data_of, strings_array
from recordspec.wire.compression import CODECS
from recordspec.wire.framing import framed, masked_crc
from recordspec.wire.record_batch import decode
from recordspec.wire.recovery import rescue
from recordspec.wire.tfrecord import Chunk, salvage

SECONDS, MEMORY = 10, 1 << 30
# Records in a batch.
TOGETHER = 64
SCHEMAS = Path(__file__).parents[1] / "schemas"
WORDS = (
    "kind:",
    "null",
    "[",
    "]",
    "{",
    "}",
    "&a",
    "*a",
    "<<: *a",
    "- ",
    "\t",
    "!!python/object:x",
    "1e999",
    "'",
    "\x00",
)

Target = Callable[[random.Random, Path], Counter[str]]


def main() -> None:
    options = arguments()
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    for name in options.targets:
        start, became = time.perf_counter(), Counter[str]()
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            seed = options.seed
            while became.total() < options.inputs:
                became += tried(name, seed, Path(folder) / "input")
                seed += 1
        seconds = time.perf_counter() - start
        told = ", ".join(f"{what}: {count:,}" for what, count in sorted(became.items()))
        print(f"{name}: {became.total():,} inputs in {seconds:,.0f} s; {told}", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=100_000, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    shared = Path("/dev/shm")  # a RAM disk: creating a file on disk takes longer than reading it
    parser.add_argument("--folder", type=Path, default=shared if shared.is_dir() else None)
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), choices=TARGETS)
    return parser.parse_args()


def tried(name: str, seed: int, path: Path) -> Counter[str]:
    """Calls a target once, with inputs made from the seed. Exits if it fails."""
    try:
        with in_time():
            return TARGETS[name](random.Random(seed), path)
    except Exception as error:
        print(f"{name}: seed {seed}: {type(error).__name__}: {error}", file=sys.stderr)
        print(f"once more: --targets {name} --seed {seed} --inputs 1", file=sys.stderr)
        raise SystemExit(1) from error


@contextmanager
def in_time() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS} seconds")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def framing(draw: random.Random, path: Path) -> Counter[str]:
    """A corrupt file."""
    records = [draw.randbytes(draw.choice([0, 1, 20, 20, 20, 300])) for _ in range(draw.randrange(20))]
    data = broken(draw, b"".join(framed(one) * draw.choice([1, 1, 30]) for one in records))
    stream = CODECS[draw.choice(["none", "none", "gzip", "zlib"])].compressor()
    data = bytes(stream.compress(data)) + stream.flush()
    data = broken(draw, data) if draw.random() < 0.2 else data
    return judged_file(data, path, draw.choice([1, 30, 200, 1000]))


def judged_file(data: bytes, path: Path, size: int) -> Counter[str]:
    """The outcome of reading a file; the readers must agree."""
    path.write_bytes(data)
    small, large = read(salvage(path, None, size)), read(salvage(path))
    with path.open("rb") as file:
        found = read(rescue(path, file))
    whole = [one for one in small if isinstance(one, bytes)]
    if small != large or [one for one in found if isinstance(one, bytes)][: len(whole)] != whole:
        raise AssertionError("readers that do not agree")
    if len(small) == len(whole):
        return Counter(whole=1)
    return Counter({"damaged, all behind is lost" if found == small else "damaged, found again": 1})


def read(found: Iterator[object]) -> list[object]:
    """The data of each record, and the problems."""
    each: list[object] = []
    for one in found:
        if isinstance(one, Chunk):
            bounds = zip(one.starts.tolist(), one.stops.tolist(), strict=True)
            each += [one.buffer[start:stop].tobytes() for start, stop in bounds]
        else:
            each.append(one)
    return each


def records(draw: random.Random, path: Path) -> Counter[str]:
    """A batch of corrupt records."""
    made = [broken(draw, draw.choice(examples())) for _ in range(TOGETHER)]
    path.write_bytes(b"".join(map(framed, made)))
    return judged_records(made, sequence=draw.random() < 0.5)


def judged_records(made: list[bytes], *, sequence: bool) -> Counter[str]:
    """The outcome of decoding records; protobuf must refuse the same ones."""
    data, places = data_of(strings_array(made))
    found = decode(data, places[:-1], places[1:], sequence=sequence)
    refused = {row for row, data in enumerate(made) if not parses(data, sequence=sequence)}
    if set(found.broken) != refused:
        raise AssertionError(f"expected rows {sorted(refused)} to be broken, got {sorted(found.broken)}")
    return Counter({"decoded": len(made) - len(refused), "broken": len(refused)})


def parses(data: bytes, *, sequence: bool) -> bool:
    try:
        proto.entries(data, sequence=sequence)
    except RecordError:
        return False
    return True


def yaml(draw: random.Random, path: Path) -> Counter[str]:
    """A corrupt spec."""
    data = draw.choice([schema.read_bytes() for schema in sorted(SCHEMAS.glob("*.yaml"))])
    text = broken(draw, data).decode("utf-8", draw.choice(["replace", "surrogateescape"]))
    for _ in range(draw.randrange(3)):
        at = draw.randrange(len(text) + 1)
        text = text[:at] + draw.choice(WORDS) * draw.choice([1, 1, 1, 2000]) + text[at:]
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return judged_spec(text)


def judged_spec(text: str) -> Counter[str]:
    """The outcome of loading a text as a schema."""
    try:
        Schema.loads(text)
    except SpecError:
        return Counter(refused=1)
    return Counter(loaded=1)


TARGETS: dict[str, Target] = {"framing": framing, "records": records, "yaml": yaml}


def examples() -> list[bytes]:
    """Valid records."""
    if not _EXAMPLES:
        schema = Schema.loads(
            "schema: s\nfeatures: {i: int64, f: {dtype: float32, shape: [4]}, s: string,"
            " many: {kind: var_len, dtype: int64}, names: {kind: var_len, dtype: string}}"
        )
        rows = [
            {
                "i": (-1) ** row * 7**row,
                "f": [row] * 4,
                "s": "x" * row,
                "many": [row] * row,
                "names": ["n"] * row,
            }
            for row in range(20)
        ]
        steps = Schema.loads(
            "schema: s\nrecord: sequence_example\ncontext: {i: int64}\n"
            "sequence: {n: {kind: fixed_len_sequence, dtype: int64}}"
        )
        _EXAMPLES.extend(schema.encode(row) for row in rows)
        _EXAMPLES.extend(steps.encode({"i": row, "n": list(range(row))}) for row in range(10))
    return _EXAMPLES


_EXAMPLES: list[bytes] = []


def broken(draw: random.Random, data: bytes) -> bytes:
    """The input, corrupted at random."""
    if draw.random() < 0.05:
        return draw.randbytes(draw.randrange(200))
    changed = bytearray(data)
    for _ in range(draw.choice([0, 1, 1, 1, 2, 5])):
        draw.choice(CHANGES)(draw, changed, draw.randrange(len(changed) + 1))
    return bytes(changed)


def _flip(draw: random.Random, data: bytearray, at: int) -> None:
    if at < len(data):
        data[at] ^= 1 << draw.randrange(8)


def _cut(draw: random.Random, data: bytearray, at: int) -> None:
    del data[at:]


def _lose(draw: random.Random, data: bytearray, at: int) -> None:
    del data[at : at + draw.randrange(1, 60)]


def _put(draw: random.Random, data: bytearray, at: int) -> None:
    data[at:at] = draw.choice([draw.randbytes(draw.randrange(40)), bytes(draw.randrange(40)), b"\xff" * 11])


def _double(draw: random.Random, data: bytearray, at: int) -> None:
    data[at:at] = data[at : at + draw.randrange(100)] * draw.choice([1, 1, 100])


def _lie(draw: random.Random, data: bytearray, at: int) -> None:
    length = draw.choice([0, 1, len(data), 2**31 - 1, 2**31, 2**60, 2**63 - 1])
    size = struct.pack("<Q", length)
    data[at : at + 12] = size + struct.pack("<I", masked_crc([size]))


def _number(draw: random.Random, data: bytearray, at: int) -> None:
    data[at : at + 8] = struct.pack("<Q", draw.choice([2**31 - 1, 2**32 - 1, 2**63, 2**64 - 1]))


CHANGES = (_flip, _flip, _flip, _cut, _lose, _put, _double, _lie, _number)

if __name__ == "__main__":
    main()
