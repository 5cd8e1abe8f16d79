"""Shuffled epochs from an object store: recordspec in lanes, MosaicML's streaming and litData, in one run.

    make .venvs/bench-streaming/ready .venvs/moto/ready
    python benchmarks/store_readers.py [--rows 100000] [--epochs 3] [--disk 0.3]
    python benchmarks/store_readers.py --rows 20000 --resume 4 2

Rows are a label and 512 tokens, int32, in files of about 8 MB. The store is moto, in another process, whose
CPU time is not counted. Each way runs in a process of its own, in batches of 256, with a disk of a share of
the dataset. Bytes are those of the loopback device, with the headers of requests; the memory is the largest
resident size of the process; every row must come once an epoch.

With `--resume`, no time is taken: four processes read an epoch, four others its first half, and two the rest
from the position of the four. Told are the global batches that are those of the whole epoch, the rows that
come again, and the rows that never come.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "remote"))

TOKENS, BATCH, SHARD = 512, 256, 8 << 20
# The longest time of a way.
SECONDS = 600
SCHEMA = (
    f"schema: tokens\nfeatures:\n  tokens: {{kind: tensor, dtype: int32, shape: [{TOKENS}]}}\n  row: int64\n"
)


def rows(count: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(0)
    for row in range(count):
        yield {"tokens": rng.integers(0, 50_000, TOKENS, np.int32), "row": row}


def write_recordspec(count: int, folder: Path) -> None:
    import recordspec as rs

    shards = max(1, count * TOKENS * 4 // SHARD)
    rs.write(rows(count), rs.Schema.loads(SCHEMA), folder, shards=shards, progress=False)


def without_torchvision() -> None:
    """Lets `streaming` be imported, which needs torchvision for datasets of images alone, if it cannot be
    loaded: its wheels may be built for another torch.
    """
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError):
        for name in ("torchvision", "torchvision.datasets", "torchvision.transforms.functional"):
            sys.modules[name] = made = ModuleType(name)
            made.__spec__ = ModuleSpec(name, None)
            vars(made).update(dict.fromkeys(("VisionDataset", "CIFAR10", "to_tensor"), object))


def write_mosaicml(count: int, folder: Path) -> None:
    without_torchvision()
    from streaming import MDSWriter

    columns = {"tokens": f"ndarray:int32:{TOKENS}", "row": "int"}
    with MDSWriter(out=str(folder), columns=columns, size_limit=SHARD) as writer:
        for row in rows(count):
            writer.write(row)


def write_litdata(count: int, folder: Path) -> None:
    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(str(folder), chunk_bytes=SHARD)
    for number, row in enumerate(rows(count)):
        writer[number] = row
    writer.done()
    writer.merge()


def read_recordspec(url: str, disk: int, folder: Path) -> Callable[[int], Iterable[Any]]:
    import recordspec as rs

    made = folder / "config.yaml"
    (folder / "schema.yaml").write_text(SCHEMA)
    made.write_text(
        f"schema: schema.yaml\ndata: {url}\nread:\n  batch: {BATCH}\n  shuffle: {{lanes: 240, seed: 1}}\n"
        f"  staging: {{folder: {folder / 'kept'}, size: {disk >> 10}KiB}}\n"
    )
    pipeline = rs.Pipeline.load(made)
    split = next(iter(pipeline.manifest.splits))
    return lambda epoch: (batch["row"] for batch in pipeline.iterate(split, start=(epoch, 0), repeat=1))


def read_mosaicml(url: str, disk: int, folder: Path) -> Callable[[int], Iterable[Any]]:
    without_torchvision()
    from streaming import StreamingDataset

    dataset = StreamingDataset(
        remote=url,
        local=str(folder / "kept"),
        shuffle=True,
        batch_size=BATCH,
        cache_limit=max(disk, 4 * SHARD),
    )
    return lambda epoch: batched(dataset)


def read_litdata(url: str, disk: int, folder: Path) -> Callable[[int], Iterable[Any]]:
    from litdata import StreamingDataset
    from litdata.streaming import downloader

    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = "true"  # as the store here has no certificate
    dataset = StreamingDataset(
        url,
        cache_dir=str(folder / "kept"),
        shuffle=True,
        max_cache_size=max(disk, 4 * SHARD),
        storage_options={"endpoint_url": os.environ["AWS_ENDPOINT_URL"]},
    )
    return lambda epoch: batched(dataset)


def batched(dataset: Iterable[dict[str, Any]]) -> Iterator[Any]:
    """The numbers of the rows of each batch, whose tokens are stacked, as a loader does."""
    some = []
    for sample in dataset:  # never asked again after its end: litData would start another epoch
        some.append(sample)
        if len(some) == BATCH:
            yield stacked(some)
            some = []
    if some:
        yield stacked(some)


def stacked(rows: list[dict[str, Any]]) -> Any:
    np.stack([np.asarray(row["tokens"]) for row in rows])
    return np.array([row["row"] for row in rows])


WAYS = {
    "recordspec, lanes": (write_recordspec, read_recordspec),
    "MosaicML streaming": (write_mosaicml, read_mosaicml),
    "litData": (write_litdata, read_litdata),
}


# Of each way: the batches of one worker from a position, and the position after a number of batches.
Resumed = tuple[Iterator[Any], Callable[[int], Any]]


def resume_recordspec(url: str, folder: Path, worker: int, workers: int, position: Any) -> Resumed:
    import recordspec as rs

    read_recordspec(url, 64 << 20, folder)
    pipeline = rs.Pipeline.load(folder / "config.yaml")
    split = next(iter(pipeline.manifest.splits))
    start = tuple(position or (0, 0))
    batches = pipeline.iterate(split, worker=worker, workers=workers, start=start, repeat=1)
    return (batch["row"] for batch in batches), lambda batches: (0, batches)


def resume_mosaicml(url: str, folder: Path, worker: int, workers: int, position: Any) -> Resumed:
    without_torchvision()
    from streaming import StreamingDataLoader, StreamingDataset

    size = BATCH // workers
    dataset = StreamingDataset(
        remote=url, local=str(folder / "kept"), shuffle=True, batch_size=size, num_canonical_nodes=1
    )
    if position:
        dataset.load_state_dict(position)
    batches = (batch["row"].numpy() for batch in StreamingDataLoader(dataset, batch_size=size, num_workers=0))
    return batches, lambda batches: dataset.state_dict(batches * BATCH, True)


def resume_litdata(url: str, folder: Path, worker: int, workers: int, position: Any) -> Resumed:
    from litdata import StreamingDataLoader, StreamingDataset
    from litdata.streaming import downloader

    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = "true"
    dataset = StreamingDataset(
        url,
        cache_dir=str(folder / "kept"),
        shuffle=True,
        storage_options={"endpoint_url": os.environ["AWS_ENDPOINT_URL"]},
    )
    loader = StreamingDataLoader(dataset, batch_size=BATCH // workers, num_workers=0)
    if position:
        loader.load_state_dict(position)
    return (np.asarray(batch["row"]) for batch in loader), lambda batches: loader.state_dict()


RESUMED = dict(zip(WAYS, (resume_recordspec, resume_mosaicml, resume_litdata), strict=True))


def read_as_worker(way: str, url: str, folder: Path, half: int | None) -> None:
    """Prints the rows of each batch of one worker, and its position; RANK and WORLD_SIZE say of which."""
    import torch.distributed

    worker, workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if way != "recordspec, lanes":
        torch.distributed.init_process_group("gloo", rank=worker, world_size=workers)
    position = folder / "position.json"
    start = json.loads(position.read_text()) if position.exists() else None
    own = folder / str(worker) if way == "recordspec, lanes" else folder  # the others share it on a machine
    own.mkdir(exist_ok=True)
    batches, after = RESUMED[way](url, own, worker, workers, start)
    print(json.dumps({"batches": [rows.tolist() for rows in itertools.islice(batches, half)]}), flush=True)
    if half and worker == 0:
        position.write_text(json.dumps(after(half)))
    if way != "recordspec, lanes":
        torch.distributed.barrier()


def by_workers(way: str, url: str, workers: int, folder: Path, half: int | None) -> list[list[int]]:
    """The rows of each global batch, sorted, as read by some processes."""
    command = [sys.executable, __file__, "--worker", way, url, str(folder), str(half or "")]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ranks = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    ranks |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(workers))
    runs = [
        subprocess.Popen(
            command,
            env=os.environ | ranks | dict.fromkeys(("RANK", "LOCAL_RANK", "GLOBAL_RANK"), str(rank)),
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(workers)
    ]
    told = [run.communicate(timeout=SECONDS)[0] for run in runs]
    lines = [next(line for line in out.splitlines() if line.startswith('{"batches"')) for out in told]
    parts = itertools.zip_longest(*(json.loads(line)["batches"] for line in lines), fillvalue=[])
    return [sorted(itertools.chain.from_iterable(batch)) for batch in parts]


def resume(way: str, url: str, count: int, before: int, after: int) -> None:
    half = count // BATCH // 2
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        for part in ("whole", "halves"):
            (Path(name) / part).mkdir()
        whole = by_workers(way, url, before, Path(name) / "whole", None)
        first = by_workers(way, url, before, Path(name) / "halves", half)
        rest = by_workers(way, url, after, Path(name) / "halves", None)
    equal = sum(left == right for left, right in zip(whole[half:], rest, strict=False))
    seen = list(itertools.chain.from_iterable(first + rest))
    again, never = len(seen) - len(set(seen)), count - len(set(seen))
    print(
        f"{way}: {before} workers, resumed by {after}: {equal} of {len(whole) - half} global batches are "
        f"those of the whole epoch; {again} rows came again, {never} never",
        flush=True,
    )


def received() -> int:
    """The bytes that came over the loopback device since the machine started."""
    line = next(
        line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:")
    )
    return int(line.split()[1])


def measure(way: str, url: str, count: int, epochs: int, disk: int) -> None:
    """Prints a line of JSON for each epoch, and its first batch."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        begin = time.perf_counter()
        read = WAYS[way][1](url, disk, Path(folder))
        for epoch in range(epochs):
            first, bytes_before, cpu = 0.0, received(), time.process_time()
            begin = begin if epoch == 0 else time.perf_counter()
            seen = []
            for numbers in read(epoch):
                first = first or time.perf_counter() - begin
                seen.append(np.asarray(numbers))
            wall = time.perf_counter() - begin
            found = np.sort(np.concatenate(seen))
            assert np.array_equal(found, np.arange(count)), (way, epoch, len(found))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            told = {
                "way": way,
                "epoch": epoch,
                "first batch s": round(first, 2),
                "rows/s": round(count / wall),
                "rows/CPU s": round(count / (time.process_time() - cpu)),
                "bytes": received() - bytes_before,
                "MiB of memory": round(memory),
            }
            print(json.dumps(told), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--disk", type=float, default=0.3, help="of the dataset's bytes")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--resume", nargs=2, type=int, metavar="WORKERS", help="before and after")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        way, url, name, half = options.worker
        read_as_worker(way, url, Path(name), int(half) if half else None)
        return
    if options.one:
        way, url, disk = options.one
        measure(way, url, options.rows, options.epochs, int(disk))
        return
    import servers

    from recordspec import remote
    from recordspec.locations import location

    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        port, close = servers.moto(Path(name))
        os.environ.update(servers.s3_environment(f"http://127.0.0.1:{port}"))
        os.environ["S3_ENDPOINT_URL"] = os.environ["AWS_ENDPOINT_URL"]
        try:
            for number, way in enumerate(options.ways):
                folder = Path(name) / str(number)
                WAYS[way][0](options.rows, folder)
                url = f"s3://{servers.BUCKET}/{number}"
                for path in folder.iterdir():
                    remote.create(location(f"{url}/{path.name}"), path.read_bytes())
                if options.resume:
                    resume(way, url, options.rows, *options.resume)
                    continue
                total = sum(path.stat().st_size for path in folder.iterdir())
                command = [sys.executable, __file__, "--rows", str(options.rows)]
                command += ["--epochs", str(options.epochs)]
                command += ["--one", way, url, str(int(options.disk * total))]
                try:
                    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
                except subprocess.TimeoutExpired:
                    print(f"{way}: not ready after {SECONDS} s", flush=True)
                    continue
                for line in done.stdout.splitlines():
                    if line.startswith("{"):
                        told = json.loads(line)
                        told["of the dataset"] = round(told.pop("bytes") / total, 2)
                        print(told, flush=True)
                if done.returncode:
                    print(f"{way}: {done.stderr.strip()[-2000:]}", flush=True)
        finally:
            close()


if __name__ == "__main__":
    main()
