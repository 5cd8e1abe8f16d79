"""The results of a comparison, as JSON, as tables in Markdown and as a plot."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from ways import Way


@dataclass
class Measured:
    """The runs of one variant with one dataset."""

    way: str
    rows: int
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    bytes: int = 0

    @property
    def times(self) -> tuple[float, float]:
        """The median wall and CPU times."""
        return statistics.median(self.wall), statistics.median(self.cpu)

    def a_second(self, amount: int) -> float:
        return amount / self.times[0]


@dataclass
class Results:
    """The results of a benchmark: by table, then in the order of the variants."""

    machine: dict[str, Any]
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    datasets: dict[str, list[Measured]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Against:
    """A column of ratios to one variant: how many times as fast the others are, or it is.

    Attributes:
        heading: of the column.
        way: the variant that all others are compared with.
        turned: whether the ratio is that of this variant to the others.
    """

    heading: str
    way: str
    turned: bool = False


@dataclass(frozen=True, kw_only=True)
class Report:
    """The presentation of the results of a benchmark.

    Attributes:
        name: of its files; the target of make is `bench-` and the name.
        title: of the page.
        notes: on the measurements.
        ways: all variants.
        headings: of the tables.
        columns: of ratios.
        image: the format of the plot.
    """

    name: str
    title: str
    notes: str
    ways: Mapping[str, Way]
    headings: Mapping[str, str]
    columns: tuple[Against, ...]
    image: Literal["svg", "png"]

    def save(self, results: Results, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / f"{self.name}.json").write_text(json.dumps(asdict(results), indent=1) + "\n")
        (folder / f"{self.name}.md").write_text(self.markdown(results))
        self.plot(results, folder / f"{self.name}.{self.image}")

    def markdown(self, results: Results) -> str:
        machine = results.machine
        head = (
            f"# {self.title}\n\n{machine['date']}, {machine['cpu']}, {machine['cores']} cores, Python "
            f"{machine['python']}, median of {machine['runs']} runs. Made by `make bench-{self.name}`.\n"
        )
        tables = "\n".join(self.table(name, ways) for name, ways in results.datasets.items())
        versions = "\n".join(self._versions(results))
        return f"{head}\n{self.notes}\n{tables}\n## Versions\n\n{versions}\n"

    def _versions(self, results: Results) -> Iterator[str]:
        for way, packages in results.versions.items():
            listed = ", ".join(f"{name} {version}" for name, version in packages.items())
            yield f"- {self.ways[way].title}: {listed}"
        for what, why in results.skipped.items():
            yield f"- {what} was left out: {why}"

    def table(self, name: str, ways: list[Measured]) -> str:
        """All variants, in Markdown."""
        return "\n".join(self._lines(name, ways))

    def _lines(self, name: str, ways: list[Measured]) -> Iterator[str]:
        by_way = {one.way: one for one in ways}
        headings = " | ".join(column.heading for column in self.columns)
        yield f"## {self.headings[name]}; {ways[0].rows:,} rows\n"
        yield f"| way | rows/s | MB/s | {headings} |\n|---|--:|--:|{'--:|' * len(self.columns)}"
        for one in ways:
            rate, size = one.a_second(one.rows), one.a_second(one.bytes) / 1e6
            ratios = [_column(column, one, by_way.get(column.way)) for column in self.columns]
            yield f"| {self.ways[one.way].title} | {rate:,.0f} | {size:,.0f} | {' | '.join(ratios)} |"
        yield ""

    def plot(self, results: Results, path: Path) -> None:
        """A bar chart of rows/s on a logarithmic scale, with a panel for each table."""
        import matplotlib

        matplotlib.use("agg")
        matplotlib.rcParams.update({"svg.hashsalt": self.name, "svg.fonttype": "none"})
        import matplotlib.pyplot as plt

        # One column, whose text can be read on a phone.
        heights = [1.1 + 0.36 * len(ways) for ways in results.datasets.values()]
        how = {"figsize": (5.5, sum(heights)), "gridspec_kw": {"height_ratios": heights}}
        figure, axes = plt.subplots(len(heights), squeeze=False, **how)
        for panel, (name, ways) in zip(axes.flat, results.datasets.items(), strict=True):
            self._bars(panel, name, ways)
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None} if self.image == "svg" else None)

    def _bars(self, panel: Any, name: str, ways: list[Measured]) -> None:
        titles = [textwrap.fill(self.ways[one.way].title, 30, break_long_words=False) for one in ways]
        rates = [one.a_second(one.rows) for one in ways]
        bars = panel.barh(titles, rates, color=[COLOURS[self.ways[one.way].side] for one in ways])
        panel.bar_label(bars, [f"{rate:,.0f}" for rate in rates], fontsize=9, padding=3)
        panel.tick_params(axis="y", labelsize=9)
        panel.set_xscale("log")
        panel.xaxis.set_minor_formatter("")
        panel.set_xlim(min(rates) / 3, max(rates) * 9)
        panel.invert_yaxis()
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_title(textwrap.fill(self.headings[name], 45), fontsize=10, loc="left")
        panel.set_xlabel("rows/s")


COLOURS = {"ours": "#d9622b", "peer": "#8c98a8", "limit": "#3d4a5c"}


def _column(column: Against, one: Measured, other: Measured | None) -> str:
    return _ratio(one, other) if column.turned else _ratio(other, one)


def _ratio(slow: Measured | None, fast: Measured | None) -> str:
    """The ratio of speeds, and in brackets that of CPU times."""
    if slow is None or fast is None or slow is fast:
        return ""
    wall, cpu = (_times(a / b) for a, b in zip(slow.times, fast.times, strict=True))
    return f"{wall} ({cpu})"


def _times(ratio: float) -> str:
    return f"{ratio:.0f}x" if ratio >= 20 else f"{ratio:.1f}x" if ratio >= 2 else f"{ratio:.2f}x"


def machine(runs: int) -> dict[str, Any]:
    """The machine of the measurement."""
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "runs": runs,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()
