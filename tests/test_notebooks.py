"""Every notebook runs from its first cell to its last, and the outputs that stand in it are of such a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = [pytest.mark.docs, pytest.mark.newest]

HERE = Path(__file__).parent
NOTEBOOKS = sorted((HERE.parent / "notebooks").glob("*.ipynb"))
TIMEOUT = 300  # seconds a cell
MOST_BYTES = 400_000

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)


def test_the_notebooks_are_seen():
    names = "audio gallery images movie_ratings multimodal structured_data text"
    assert [path.stem for path in NOTEBOOKS] == names.split()


# By notebook: the beginning of each cell that evaluates classifiers, and these, each with the rows and the accuracy
# that the cell reports.
CLASSIFIERS = {
    "audio": [("labels, guesses = ", [("model", "test", "accuracy")])],
    "gallery": [
        ("def half_second", [("model", "test", "accuracy")]),
        ("keras.utils.set_random_seed(17)\nwords", [("model", "test", "accuracy")]),
        ("keras.utils.set_random_seed(17)\nlookup", [("model", "test", "accuracy")]),
    ],
    "images": [
        ("accuracy = ", [("model", "test", "accuracy"), ("plain_model", "test", "accuracy_of_plain")])
    ],
    "multimodal": [
        (
            "models = ",
            [
                (f"models[{name!r}]", "test", f"accuracies[{name!r}]")
                for name in ("picture", "text", "numbers", "together")
            ],
        )
    ],
    "text": [("accuracy = ", [("model", "test", "accuracy")])],
}


def checks(name: str, cell: str) -> str:
    """Code that checks whether the classifiers of a cell have learned."""
    found = [models for begin, models in CLASSIFIERS.get(name, ()) if cell.startswith(begin)]
    return "\n".join(f"check_learned({', '.join(model)})" for models in found for model in models)


@pytest.mark.long
@each_notebook
def test_a_notebook_runs_and_its_classifiers_learn(path):
    notebook = nbformat.read(path, as_version=4)
    # a kernel of another installation would test that one
    before = f"import sys; assert sys.prefix == {sys.prefix!r}; sys.path.append({str(HERE)!r})"
    cells = [before, "from learning import check_learned"]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cells += [cell.source, *filter(None, [checks(path.stem, cell.source)])]
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in cells]
    assert sum(cell.startswith("check_learned") for cell in cells) == len(CLASSIFIERS.get(path.stem, ()))
    assert "CategoricalCrossentropy(" not in "".join(cells) or path.stem in CLASSIFIERS
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
