"""Every public class, function and method has an example in its docstring, and each runs.

They share the lines with which the page of the API begins, in a folder of their own.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from pathlib import Path

import pytest

import recordspec as rs
from recordspec.statistics.summary import SplitSummary, StatsReport

API = (Path(__file__).parents[1] / "docs/reference/api.md").read_text()
# Their classes are of Keras, which importing them would import.
OF_KERAS = {"Backup": "training/backup.py", "SegmentMask": "training/segment_mask.py"}
(BEGIN,) = re.findall(r"^```python\n(import recordspec as rs\n.*?)^```$", API, re.MULTILINE | re.DOTALL)


def documented() -> dict[str, str]:
    """The docstrings of public names, and of what public classes define themselves."""
    found = {}
    for name in sorted({*rs.__all__} - {*OF_KERAS, "KINDS", "__version__"}):
        value = getattr(rs, name)
        found[name] = value.__doc__ or ""
        is_plain = inspect.isclass(value) and not issubclass(value, BaseException)
        for member, part in vars(value).items() if is_plain else ():
            part = getattr(part, "fget", getattr(part, "func", getattr(part, "__func__", part)))
            if not member.startswith("_") and inspect.isfunction(part):
                found[f"{name}.{member}"] = part.__doc__ or ""
    for name, module in OF_KERAS.items():
        tree = ast.parse((Path(rs.__file__).parent / module).read_text())
        (node,) = (node for node in tree.body if getattr(node, "name", "") == name)
        found[name] = ast.get_docstring(node) or ""
    # what `rs.stats` returns
    found |= {summary.__name__: summary.__doc__ or "" for summary in (StatsReport, SplitSummary)}
    return found


DOCUMENTED = documented()
# These need TensorFlow: `make test-quick` runs all others.
OF_TENSORFLOW = {
    *(
        "Backup",
        "Feature.decode",
        "Feature.spec",
        "Pipeline.bench",
        "Pipeline.dataset",
        "Pipeline.export_model",
    ),
    *(
        "Pipeline.input_fn",
        "Pipeline.keras_dataset",
        "Pipeline.layers",
        "Pipeline.locating",
        "Pipeline.preview",
        "SegmentMask",
        "Schema.decode",
    ),
    *("Schema.decode_block", "Schema.element_spec", "Schema.parse_dict", "locating", "mix", "read"),
}


# These need another package.
OF_OTHERS = {"Pipeline.torch_dataset": "torch", "Pipeline.jax_dataset": "jax"}


def test_every_public_docstring_has_an_example():
    assert [name for name, text in DOCUMENTED.items() if ">>> " not in text] == []
    assert len(DOCUMENTED) > 80


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.tensorflow] if name in OF_TENSORFLOW else [])
        for name in DOCUMENTED
    ],
)
def test_the_example_of_a_docstring_runs(name, tmp_path, monkeypatch):
    if name in OF_OTHERS:
        pytest.importorskip(OF_OTHERS[name])
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "example"}
    exec(compile(BEGIN, "api.md", "exec", dont_inherit=True), names)
    text = inspect.cleandoc(DOCUMENTED[name])
    example = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    assert example.examples
    told: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=told.append)
    assert told == []
