"""Packs: how full they are, how long the plan takes, and what a token costs, beside other packers.

    python benchmarks/packing.py [--runs 3] [--rows 20000] [--train] [--folder /dev/shm]

Each way reads the same documents from a memory folder in a random order, packs them to `LENGTH` tokens in
batches of 8 packs, and counts the tokens, in a process of its own; the runs take turns, and the best counts.
Real documents are the docstrings of installed packages, in words; the other lengths are drawn. `--train`
trains a small language model on the docstrings, in packs and padded, instead.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from processes import cpu_seconds

LENGTH, BATCH = 2048, 8
DOCUMENTED = ("jax", "keras", "numpy", "scipy", "sklearn", "torch")
SPEC = "schema: documents\nfeatures: {tokens: {kind: ragged, dtype: int64, shape: [null]}}\n"
CONFIG = """
schema: s.yaml
data: data
read: {{batch: {batch}, shuffle: {{global: true, seed: 1}}{pack}}}
fit: {{inputs: tokens{targets}}}
"""


def drawn(rows: int) -> dict[str, tuple[np.ndarray, int]]:
    """Lengths of documents by name, with the length of a pack."""
    rng = np.random.default_rng(0)
    return {
        "lognormal": (np.clip(rng.lognormal(5.5, 1, rows), 1, LENGTH).astype(np.int64), LENGTH),
        "geometric": (np.minimum(512, rng.geometric(1 / 300, rows) + 20), 512),
        "like SQuAD": (np.clip(rng.normal(152, 50, rows), 20, 384).astype(np.int64), 384),
    }


def docstrings() -> list[np.ndarray]:
    """The docstrings of installed packages, as numbers of their words."""
    numbers, found = dict[str, int](), list[np.ndarray]()
    home = Path(sysconfig.get_path("purelib"))
    for path in sorted(path for name in DOCUMENTED for path in (home / name).rglob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError, OSError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (
                text := ast.get_docstring(node)
            ):
                words = re.findall(r"\w+|[^\w\s]", text)[:LENGTH]
                found.append(
                    np.array([1 + numbers.setdefault(word, len(numbers)) for word in words], np.int64)
                )
    return [document for document in found if len(document)]


def ours(folder: Path, *, packed: bool) -> Callable[[], Iterator[np.ndarray]]:
    import recordspec as rs

    pack, targets = (f", pack: {LENGTH}", ", targets: tokens_next") if packed else ("", "")
    config = folder / f"{'packed' if packed else 'padded'}.yaml"
    config.write_text(CONFIG.format(batch=BATCH if packed else 64, pack=pack, targets=targets))
    pipeline = rs.Pipeline.load(config)
    if packed:
        return lambda: (inputs["tokens"] for inputs, _, _ in pipeline.iterate("train"))
    return lambda: iter(pipeline.iterate("train"))


def tensorflow(folder: Path) -> Callable[[], Iterator[np.ndarray]]:
    import recordspec as rs

    ours(folder, packed=True)
    dataset = rs.Pipeline.load(folder / "packed.yaml").dataset("train")
    return lambda: (inputs["tokens"] for inputs, _, _ in dataset.as_numpy_iterator())


def grain(folder: Path, packer: str) -> Callable[[], Iterator[np.ndarray]]:
    import grain
    import grain.experimental as packers
    from array_record.python.array_record_data_source import ArrayRecordDataSource

    source = ArrayRecordDataSource([str(folder / "documents.array_record")])
    more = {} if packer == "ConcatThenSplitIterDataset" else {"num_packing_bins": 64}

    def begin() -> Iterator[np.ndarray]:
        rows = grain.MapDataset.source(source).shuffle(seed=1)
        rows = rows.map(lambda record: {"tokens": np.frombuffer(record, np.int64)})
        read = rows.to_iter_dataset(grain.ReadOptions(num_threads=2, prefetch_buffer_size=16))
        packs = getattr(packers, packer)(read, length_struct={"tokens": LENGTH}, **more).batch(BATCH)
        return (batch["tokens"] for batch in packs)

    return begin


def trl(folder: Path) -> Callable[[], Iterator[np.ndarray]]:
    """Packs all rows in advance; the time includes it."""
    import datasets
    from trl.data_utils import pack_dataset

    datasets.disable_progress_bars()
    datasets.disable_caching()
    rows = datasets.Dataset.from_file(str(folder / "documents.arrow"))

    def begin() -> Iterator[np.ndarray]:
        packs = pack_dataset(rows.shuffle(seed=1), LENGTH, "bfd").with_format("numpy")
        for batch in packs.iter(BATCH):
            tokens = np.zeros((len(batch["tokens"]), LENGTH), np.int64)
            for one, values in zip(tokens, batch["tokens"], strict=True):
                one[: len(values)] = values
            yield tokens

    return begin


WAYS: dict[str, Callable[[Path], Callable[[], Iterator[np.ndarray]]]] = {
    "recordspec, `iterate`": lambda folder: ours(folder, packed=True),
    "recordspec, `dataset`": tensorflow,
    "recordspec, padded to the longest of 64": lambda folder: ours(folder, packed=False),
    "Grain, first fit, 64 bins": lambda folder: grain(folder, "FirstFitPackIterDataset"),
    "Grain, best fit, 64 bins": lambda folder: grain(folder, "BestFitPackIterDataset"),
    "Grain, concatenate and split": lambda folder: grain(folder, "ConcatThenSplitIterDataset"),
    "trl, `pack_dataset`, bfd": trl,
}


def write(documents: list[np.ndarray], folder: Path) -> None:
    """The documents in the format of each way."""
    import datasets
    from array_record.python.array_record_module import ArrayRecordWriter

    import recordspec as rs

    (folder / "s.yaml").write_text(SPEC)
    ours(folder, packed=True)
    rs.Pipeline.load(folder / "packed.yaml").build(({"tokens": one} for one in documents), progress=False)
    writer = ArrayRecordWriter(str(folder / "documents.array_record"), "group_size:1")
    for one in documents:
        writer.write(one.tobytes())
    writer.close()
    rows = datasets.Dataset.from_dict({"tokens": documents})
    rows.save_to_disk(folder / "arrow", num_shards=1)
    next((folder / "arrow").glob("*.arrow")).rename(folder / "documents.arrow")


def run(way: str, folder: Path) -> dict[str, Any]:
    """A pass, after one that is not counted."""
    begin = WAYS[way](folder)
    found: dict[str, Any] = {}
    for _ in range(2):
        places = tokens = 0
        wall, cpu = time.perf_counter(), cpu_seconds()
        for batch in begin():
            places += batch.size
            tokens += int(np.count_nonzero(batch))
        found = {"tokens": tokens, "places": places}
        found |= {"wall": time.perf_counter() - wall, "cpu": cpu_seconds() - cpu}
    return found


# A model of two layers, for sequences of `SHORT` words of which the most frequent `WORDS` are known.
SHORT, WORDS, WIDTH, TOKENS = 256, 5000, 64, 1_500_000


def transformer() -> Any:
    import keras

    import recordspec as rs

    keras.utils.set_random_seed(1)
    names = ("tokens", "tokens_segment_ids", "tokens_positions")
    inputs = {name: keras.Input([SHORT], dtype="int32", name=name) for name in names}
    tokens, segments, places = inputs.values()
    made = keras.layers.Embedding(WORDS, WIDTH)(tokens) + keras.layers.Embedding(SHORT, WIDTH)(places)
    mask = rs.SegmentMask()(segments)
    for _ in range(2):
        normal = keras.layers.LayerNormalization()(made)
        made += keras.layers.MultiHeadAttention(4, WIDTH // 4)(normal, normal, attention_mask=mask)
        wide = keras.layers.Dense(4 * WIDTH, activation="gelu")(keras.layers.LayerNormalization()(made))
        made += keras.layers.Dense(WIDTH)(wide)
    model = keras.Model(inputs, keras.layers.Dense(WORDS)(keras.layers.LayerNormalization()(made)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="mean_with_sample_weight")
    model.compile(keras.optimizers.Adam(1e-3), loss)
    return model


def train(folder: Path) -> None:
    """Trains on packs, and on one padded row in each sequence, until `TOKENS` words have counted."""
    import recordspec as rs

    documents = [np.minimum(one[:SHORT], WORDS - 1) for one in docstrings()]
    (folder / "s.yaml").write_text(SPEC)
    config = CONFIG.format(batch=16, pack=f", pack: {SHORT}", targets=", targets: tokens_next")
    (folder / "c.yaml").write_text(config)
    pipeline = rs.Pipeline.load(folder / "c.yaml")
    pipeline.build(({"tokens": one} for one in documents), progress=False)
    print(f"\n{len(documents):,} docstrings, sequences of {SHORT}, batches of 16, {TOKENS:,} words:\n")
    print("| | words that count a second | loss after a third | after two thirds | after all |")
    print("|---|--:|--:|--:|--:|", flush=True)
    for name, pack in {"packs": {"length": SHORT}, "padded rows": {"length": SHORT, "most": 1}}.items():
        model, seen, losses, parts = transformer(), 0.0, list[float](), list[float]()
        begin, last = 0.0, 0
        for step, (inputs, targets, weights) in enumerate(
            pipeline.iterate("train", pack=pack, repeat="forever")
        ):
            loss = float(model.train_on_batch(inputs, targets, weights))
            if not step:  # the graph is traced
                begin = time.perf_counter()
                continue
            seen += weights.sum()
            losses.append(loss)
            if seen * 3 >= TOKENS * (len(parts) + 1):
                parts.append(float(np.mean(losses[last:][-50:])))
                last = len(losses)
            if seen >= TOKENS:
                break
        speed = seen / (time.perf_counter() - begin)
        print(f"| {name} | {speed:,.0f} | {' | '.join(f'{part:.3f}' for part in parts)} |", flush=True)


def plans(rows: int) -> None:
    from recordspec.order.packing import PackOrder
    from recordspec.order.read_options import Pack

    print(f"\nThe plan of {rows:,} lengths:\n")
    print("| | length | full | no plan is fuller than | s of CPU | M tokens/s |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, (lengths, length) in drawn(rows).items():
        times = []
        for _ in range(5):
            cpu = cpu_seconds()
            order = PackOrder(lengths[None].astype(np.int32), ("tokens",), Pack(length=length), 1)
            times.append(cpu_seconds() - cpu)
        total = int(lengths.sum())
        full = order.plan(1).fill["tokens"]
        # a row of more than half of a pack needs one of its own
        fewest = max(-(-total // length), int((lengths > length / 2).sum()))
        print(
            f"| {name} | {length} | {full:.4%} | {total / fewest / length:.4%} | {min(times):.2f} "
            f"| {total / min(times) / 1e6:,.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--train", action="store_true", help="train a model instead")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way is not None:
        print(json.dumps(run(options.way, options.folder)))
        return
    if options.train:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            train(Path(folder))
        return
    plans(1_000_000)
    rng = np.random.default_rng(1)
    drawn_rows = [rng.integers(1, 1 << 15, size) for size in drawn(options.rows)["lognormal"][0]]
    for name, documents in {"docstrings": docstrings(), "lognormal": drawn_rows}.items():
        total = sum(map(len, documents))
        print(f"\n{len(documents):,} {name}, {total:,} tokens, in packs of {LENGTH}:\n")
        print("| | full | CPU, ns a token | M tokens/s | kept tokens |\n|---|--:|--:|--:|--:|", flush=True)
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            write(documents, Path(folder))
            best = dict[str, dict[str, Any]]()
            for _ in range(options.runs):
                for way in WAYS:
                    command = [sys.executable, __file__, "--way", way, "--folder", folder]
                    done = subprocess.run(command, capture_output=True, text=True)
                    if done.returncode:
                        sys.exit(done.stderr)
                    found = json.loads(done.stdout.splitlines()[-1])
                    if way not in best or found["cpu"] < best[way]["cpu"]:
                        best[way] = found
            for way, found in best.items():
                tokens = found["tokens"]
                print(
                    f"| {way} | {tokens / found['places']:.2%} | {found['cpu'] / tokens * 1e9:.1f} "
                    f"| {tokens / found['wall'] / 1e6:.1f} | {tokens / total:.2%} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
