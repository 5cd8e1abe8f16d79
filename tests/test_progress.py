"""Progress on a terminal and in the kernel of a notebook; without either, a line now and then."""

from __future__ import annotations

import io
import re
import sys
from types import SimpleNamespace

import nbformat
import pytest
from nbclient import NotebookClient

from fragments import Fragment
from recordspec import progress
from recordspec.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    """Lines are not cut at the width of the terminal in which the tests run."""
    monkeypatch.setenv("COLUMNS", "200")


def test_a_terminal_has_a_line_of_each_stage():
    stream = Terminal()
    with Progress(stream=stream) as bar:
        bar.begin("encoding", 3)
        bar.advance(3, 1_000_000)
        bar.begin("copying", None)
        bar.advance(1000)
    text = stream.getvalue()
    assert re.search(r"encoding .* 3 rows .* rows/s", text)
    assert re.search(r"copying .* 1,000 rows .* rows/s", text)


def test_short_work_shows_nothing_elsewhere(capsys):
    with Progress() as bar:
        bar.begin("encoding", 3)
        bar.advance(3)
    assert capsys.readouterr() == ("", "")


def test_long_work_has_a_line_each_half_minute_elsewhere(capsys, clock):
    def work(seconds: int) -> None:
        for _ in range(seconds):
            clock[0] += 1
            bar.advance(100, 1_000_000)

    with Progress() as bar:
        bar.begin("encoding", 10_000)
        work(29)
        assert capsys.readouterr() == ("", "")
        work(41)
        bar.begin("writing shards", None)
        work(40)
    assert capsys.readouterr() == (
        "",
        "encoding: 3,000 rows, 100 rows/s, 1 MB/s, 0:01:10 left\n"
        "encoding: 6,000 rows, 100 rows/s, 1 MB/s, 0:00:40 left\n"
        "writing shards: 2,000 rows, 100 rows/s, 1 MB/s\n",
    )
    with Progress(show=False) as bar:
        bar.begin("encoding", None)
        work(100)
    assert capsys.readouterr() == ("", "")


def test_work_goes_on_where_nobody_reads_its_lines(clock):
    stream = io.StringIO()
    with Progress(stream=stream) as bar:
        bar.begin("encoding", None)
        stream.close()
        clock[0] += 31
        bar.advance(1)


class Kernel:
    """IPython's shell and display, in a kernel: what is displayed, and what replaces it."""

    kernel = None

    def __init__(self) -> None:
        self.shown: list[list[dict]] = []
        self.display = SimpleNamespace(display=self.show)

    def get_ipython(self):
        return self

    def show(self, data, *, raw, display_id):
        assert raw
        assert display_id
        self.shown.append([data])
        return self

    def update(self, data, *, raw):
        assert raw
        self.shown[-1].append(data)


@pytest.fixture
def kernel(monkeypatch):
    made = Kernel()
    monkeypatch.setitem(sys.modules, "IPython", made)
    return made


@pytest.fixture
def clock(monkeypatch):
    """The time, in seconds, in a list that a test changes."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_notebook_has_one_bar_that_replaces_itself(kernel, clock):
    with Progress() as bar:
        bar.begin("<encoding>", 1000)
        bar.advance(100)
        assert kernel.shown == []
        clock[0] += 1
        bar.advance(100, 4_000_000)
        clock[0] += 0.1
        bar.advance(10)  # too soon
        clock[0] += 0.9
        bar.begin("copying", None)
        clock[0] += 2
        bar.advance(300)
        clock[0] += 60
    (shown,) = kernel.shown
    ended = "<encoding>: 210 rows, 105 rows/s, 2 MB/s, 0:00:02"
    assert [data["text/plain"] for data in shown] == [
        "<encoding>: 200 rows, 200 rows/s, 4 MB/s, 0:00:04 left",
        "<encoding>: 210 rows, 105 rows/s, 2 MB/s, 0:00:08 left",
        f"{ended}\ncopying: 300 rows, 150 rows/s",
        f"{ended}\ncopying: 300 rows, 5 rows/s",
        f"{ended}\ncopying: 300 rows, 5 rows/s, 0:01:02",
    ]
    assert Fragment(shown[0]["text/html"]).rows == [
        ["<encoding>", "", "200 rows, 200 rows/s, 4 MB/s, 0:00:04 left"]
    ]
    assert '<progress max="1000" value="200"></progress>' in shown[0]["text/html"]
    assert "<progress></progress>" in shown[2]["text/html"]
    assert '<progress max="300" value="300"></progress>' in shown[-1]["text/html"]


def test_short_work_has_no_bar_in_a_notebook(kernel, clock):
    with Progress() as bar:
        bar.begin("encoding", 3)
        clock[0] += 0.4
        bar.advance(3)
    assert kernel.shown == []


def test_a_stream_or_a_choice_comes_first(kernel, clock):
    stream = Terminal()
    for made in (Progress(stream=stream), Progress(show=False)):
        with made as bar:
            bar.begin("encoding", 3)
            clock[0] += 1
            bar.advance(3)
    assert kernel.shown == []
    assert "encoding" in stream.getvalue()


CELLS = [
    "import sys, recordspec as rs\n"
    f"assert sys.prefix == {sys.prefix!r}\n"
    "schema = rs.Schema.loads('{schema: s, features: {number: int64, text: string}}')\n"
    "rows = [{'number': n, 'text': '<b>'} for n in range(1000)]\n"
    "from recordspec import progress\n"
    "progress._FIRST_SHOWN = 3600\n"
    "manifest = rs.write(rows, schema, 'few')",
    "progress._FIRST_SHOWN = progress._SHOWN_EACH = 0\nmanifest = rs.write(rows, schema, 'data')",
    "schema",
    "rs.scan('data')",
    "get_ipython().complete('schema[\"')[1]",
]


@pytest.mark.slow
def test_a_kernel_shows_bars_and_tables_and_completes_names(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    short, long, schema, table, names = (cell.outputs for cell in notebook.cells)
    assert short == []
    (bar,) = long
    assert bar.output_type == "display_data"
    assert bar.data["text/plain"].startswith("encoding: 1,000 rows, ")
    assert Fragment(schema[0].data["text/html"]).rows[1][:2] == ["number", "fixed_len"]
    assert schema[0].data["text/plain"] == "Schema(s, 2 features: number, text)"
    assert len(Fragment(table[0].data["text/html"]).rows) == 1 + 20
    assert names[0].data["text/plain"] == "['schema[\"number', 'schema[\"text']"
