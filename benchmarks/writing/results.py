"""What was measured, as JSON, as a table in Markdown and as a plot."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from writing.data import DATASETS
from writing.ways import WAYS

LOOP = "loop"
OURS = ("columns", "rows")

NOTES = """\
Every way has the same values in memory, in the form that it takes, and ends with a finished, closed file; one
process each. The ways take turns, and of each the median counts; the first turn warms up. Only one works at
a time, and before each run what the others wrote has been deleted, the disk has settled, and memory for the
file has been touched.

- recordspec checks every value, computes the SHA-256 of the shard, fsyncs it, and publishes it with a
  manifest by a rename. All that is in its times. The peers do none of it, nor was an fsync added to them.
- The limit is a copy of the bytes of recordspec's finished file, in pieces of 1 MiB, with their CRC32C,
  written and fsynced.
- The loop is there twice: as tutorials have it (messages built by keyword, arrays handed over as they are),
  and tuned (the message filled in place, arrays turned into lists first).
- tfx_bsl gets Arrow record batches made beforehand, a list in every cell, which is the form that it takes;
  its records go through `tf.io.TFRecordWriter`.
- TFDS's `Writer` sorts the records by a hash of their keys, as it does for every dataset that TFDS builds;
  `SequentialWriter` keeps their order.
- A ratio is of wall times, and of CPU times (user and system, all threads) in brackets: 10x (9x) takes a
  tenth of the time and a ninth of the CPU time. MB/s counts the bytes of the file that the way wrote.
"""


@dataclass
class Measured:
    """The runs of one way with one dataset."""

    way: str
    rows: int
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    bytes: int = 0

    @property
    def times(self) -> tuple[float, float]:
        """The medians, wall and CPU."""
        return statistics.median(self.wall), statistics.median(self.cpu)

    def a_second(self, amount: int) -> float:
        return amount / self.times[0]


@dataclass
class Results:
    """Of one run of the benchmark: by dataset, then in the order of the ways."""

    machine: dict[str, Any]
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    datasets: dict[str, list[Measured]] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "write.json").write_text(json.dumps(asdict(self), indent=1) + "\n")
        (folder / "write.md").write_text(self.markdown())
        self.plot(folder / "write.svg")

    def markdown(self) -> str:
        machine = self.machine
        head = (
            f"# Writing, side by side\n\n{machine['date']}, {machine['cpu']}, {machine['cores']} cores, "
            f"Python {machine['python']}, median of {machine['runs']} runs. Made by `make bench-write`.\n"
        )
        tables = "\n".join(table(name, ways) for name, ways in self.datasets.items())
        return f"{head}\n{NOTES}\n{tables}\n## Versions\n\n" + "\n".join(self._versions()) + "\n"

    def _versions(self) -> Iterator[str]:
        for way, packages in self.versions.items():
            listed = ", ".join(f"{name} {version}" for name, version in packages.items())
            yield f"- {WAYS[way].title}: {listed}"
        for what, why in self.skipped.items():
            yield f"- {what} was left out: {why}"

    def plot(self, path: Path) -> None:
        """Rows a second, as bars, on a logarithmic scale; a panel for each dataset."""
        import matplotlib

        matplotlib.use("svg")
        matplotlib.rcParams.update({"svg.hashsalt": "write", "svg.fonttype": "none"})
        import matplotlib.pyplot as plt

        lines = -(-len(self.datasets) // 2)
        figure, axes = plt.subplots(lines, 2, figsize=(14, 3.3 * lines), squeeze=False)
        for panel, (name, ways) in zip(axes.flat, self.datasets.items(), strict=False):
            _bars(panel, name, ways)
        for empty in axes.flat[len(self.datasets) :]:
            empty.set_axis_off()
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None})


def table(name: str, ways: list[Measured]) -> str:
    """The ways side by side, in Markdown."""
    return "\n".join(_lines(name, ways))


def _lines(name: str, ways: list[Measured]) -> Iterator[str]:
    by_way = {one.way: one for one in ways}
    yield f"## {DATASETS[name].title}; {ways[0].rows:,} rows\n"
    yield (
        "| way | rows/s | MB/s | against the loop | recordspec columns against it "
        "| recordspec dict rows against it |\n|---|--:|--:|--:|--:|--:|"
    )
    for one in ways:
        rate, size = one.a_second(one.rows), one.a_second(one.bytes) / 1e6
        ratios = [_ratio(by_way.get(LOOP), one)] + [_ratio(one, by_way.get(ours)) for ours in OURS]
        yield f"| {WAYS[one.way].title} | {rate:,.0f} | {size:,.0f} | {' | '.join(ratios)} |"
    yield ""


def _ratio(slow: Measured | None, fast: Measured | None) -> str:
    """How many times as fast, and in brackets, how many times less CPU time."""
    if slow is None or fast is None or slow is fast:
        return ""
    wall, cpu = (_times(a / b) for a, b in zip(slow.times, fast.times, strict=True))
    return f"{wall} ({cpu})"


def _times(ratio: float) -> str:
    return f"{ratio:.0f}x" if ratio >= 20 else f"{ratio:.1f}x" if ratio >= 2 else f"{ratio:.2f}x"


COLOURS = {"ours": "#d9622b", "peer": "#8c98a8", "limit": "#3d4a5c"}


def _bars(panel: Any, name: str, ways: list[Measured]) -> None:
    titles = [WAYS[one.way].title for one in ways]
    rates = [one.a_second(one.rows) for one in ways]
    bars = panel.barh(titles, rates, color=[COLOURS[WAYS[one.way].side] for one in ways])
    panel.bar_label(bars, [f"{rate:,.0f}" for rate in rates], fontsize=9, padding=3)
    panel.set_xscale("log")
    panel.xaxis.set_minor_formatter("")
    panel.set_xlim(min(rates) / 3, max(rates) * 4)
    panel.invert_yaxis()
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_title(DATASETS[name].title, fontsize=10, loc="left")
    panel.set_xlabel("rows/s")
