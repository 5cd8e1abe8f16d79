"""Compares variants in interleaved runs.

The medians are reported; their ratios carry over to other machines. CPU time is that of all threads of the
process.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

Run = Callable[[], object]


def header(runs: int) -> None:
    """The header of the table, with the machine."""
    print(f"TensorFlow {tf.__version__}, {os.cpu_count()} cores, median of {runs} runs")
    print("| what | recordspec, rows/s | peer, rows/s | ratio | CPU time, ratio |\n|---|---|---|---|---|")


def compare(title: str, ours: Run, peer: Run, rows: int, runs: int) -> None:
    """Prints a line of the table. The first run of each variant is a warm-up."""
    (wall, cpu), (peer_wall, peer_cpu) = medians([ours, peer], runs)
    print(
        f"| {title} | {rows / wall:,.0f} | {rows / peer_wall:,.0f} "
        f"| {peer_wall / wall:.2f}x | {peer_cpu / cpu:.2f}x |",
        flush=True,
    )


def medians(ways: list[Run], runs: int) -> list[tuple[float, float]]:
    """The median wall and CPU seconds of each variant."""
    measured: list[list[tuple[float, float]]] = [[] for _ in ways]
    for turn in range(runs + 1):
        for way, times in zip(ways, measured, strict=True):
            taken = timed(way)
            if turn:
                times.append(taken)
    return [
        (statistics.median(wall for wall, _ in times), statistics.median(cpu for _, cpu in times))
        for times in measured
    ]


def timed(run: Run) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def drain(dataset: Any) -> None:
    """Iterates over all batches, without the cost of passing each to Python."""
    dataset.reduce(np.int64(0), lambda count, _: count + 1).numpy()
