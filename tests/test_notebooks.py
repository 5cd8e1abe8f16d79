"""Every notebook runs from its first cell to its last, and the outputs that stand in it are of such a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = [pytest.mark.docs, pytest.mark.newest]

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
TIMEOUT = 300  # seconds a cell
MOST_BYTES = 400_000

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)


def test_the_notebooks_are_seen():
    names = "audio gallery images movie_ratings multimodal structured_data text"
    assert [path.stem for path in NOTEBOOKS] == names.split()


@each_notebook
def test_a_notebook_runs(path):
    notebook = nbformat.read(path, as_version=4)
    # a kernel of another installation would test that one
    here = nbformat.v4.new_code_cell(f"import sys; assert sys.prefix == {sys.prefix!r}")
    notebook.cells.insert(0, here)
    NotebookClient(notebook, timeout=TIMEOUT, resources={"metadata": {"path": str(path.parent)}}).execute()


@each_notebook
def test_the_outputs_of_a_notebook_are_those_of_one_run_without_an_error(path):
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert len(outputs) > len(cells) / 2
    assert {output.output_type for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert "Traceback" not in json.dumps(outputs)


@each_notebook
def test_a_notebook_is_small_and_names_no_place_of_one_machine(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < MOST_BYTES
    assert not [place for place in ("/home/", "/tmp/", "/root/", "/Users/", sys.prefix) if place in text]
    assert all(not cell.metadata for cell in nbformat.read(path, as_version=4).cells)
