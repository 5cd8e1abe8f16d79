"""The site: what is generated for it is complete, and its examples load."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

import recordspec as rs
from recordspec import kinds
from recordspec.cli import PAGES, commands
from recordspec.cli.docs import pages
from recordspec.language import options_table
from recordspec.schema.features import KINDS

pytestmark = pytest.mark.newest
DOCS = Path(__file__).parents[1] / "docs"
sys.path.append(str(DOCS / "extensions"))
generated, architecture = (importlib.import_module(name) for name in ("generated", "architecture"))
agents, journeys = (importlib.import_module(name) for name in ("agents", "journeys"))

EXAMPLES = generated.examples()
API = (DOCS / "reference/api.md").read_text()
ROWS = [
    *({**row, "in": "schema"} for row in generated.head_options()),
    *({**row, "in": "every kind"} for row in generated.COMMON),
    *(row for row in options_table() if not generated.is_common(row)),
]


def test_every_option_has_an_example_and_no_other_has():
    options = {(row["in"], row["option"]) for row in ROWS}
    assert {(place, option) for place, examples in EXAMPLES.items() for option in examples} == options


def test_every_option_is_on_the_page():
    page = "".join(generated.language(section) for section in ("spec", "features", "kinds", "config"))
    for row in ROWS:
        assert f"`{row['option']}` *(" in page
        assert EXAMPLES[row["in"]][row["option"]] in page
    assert page.count("```yaml") == len(ROWS)
    for kind in KINDS:
        assert f"### `{kind}`" in page


# What the examples of configs name, in a schema of their own.
FEATURES = """
schema: s
features:
  fare: float32
  price: float32
  weight: float32
  tokens: {kind: var_len, dtype: int64}
  company: string
  comment: string
  ride: int64
  tip: {kind: label, names: [none, some]}
  image: {kind: image, encoding: jpeg}
  photo: {kind: image, encoding: jpeg}
  mask: image
  sound: {kind: audio, sample_rate: 8000}
"""
LABELS = "{kind: label, names: [cat, dog], shape: [null]}"


def uses(given: object, option: str) -> bool:
    """Whether an option is somewhere in what was read from YAML."""
    if isinstance(given, dict):
        return option in given or any(uses(one, option) for one in given.values())
    return isinstance(given, list) and any(uses(one, option) for one in given)


@pytest.mark.parametrize("place", EXAMPLES)
def test_examples_load(place, tmp_path):
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    (tmp_path / "schema.yaml").write_text(FEATURES)
    for option, text in EXAMPLES[place].items():
        given = yaml.safe_load(text)
        assert uses(given, option), (option, text)
        if place == "schema":
            rest = {"schema": "s", "record": "sequence_example", "context": {"user": "int64"}} | given
            if option == "features":
                rest = {"schema": "s"} | given
            rs.Schema.loads(yaml.safe_dump(rest))
        elif place.startswith(("kind: ", "every kind")):
            head = (
                "record: sequence_example\nsequence"
                if (place, option) == ("every kind", "missing")
                else "features"
            )
            text = f"schema: s\n{head}:\n  f: {text}\n  photo: image\n  labels: {LABELS}"
            schema = rs.Schema.loads(text, folder=tmp_path)
            assert place == "every kind" or f"kind: {schema.features[0].kind}" == place
        elif place == "config of a mixture" or place.startswith("mix"):
            datasets = {"books": "books.yaml", "wiki": "wiki.yaml"}
            for name, path in datasets.items():
                (tmp_path / path).write_text(f"schema: schema.yaml\ndata: data/{name}\n")
            config = {"read": {"batch": 32, "shuffle": True}} | given
            config["mix"] = {"datasets": datasets} | given.get("mix", {})
            (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
            assert list(rs.Pipeline.load(tmp_path / "config.yaml").pipelines) == ["books", "wiki"]
        else:
            config = {"schema": "schema.yaml", "data": "data", "read": {"batch": 32}} | given
            config["schema"] = "schema.yaml"
            (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
            rs.Pipeline.load(tmp_path / "config.yaml")


def test_every_public_name_is_in_the_api_reference():
    for name in rs.__all__:
        assert f"recordspec.{name}\n" in API or name in ("__version__", "KINDS"), name
    assert "`recordspec.KINDS`" in API


def public() -> list[tuple[str, object]]:
    """What the reference documents: the objects, and the public methods of classes."""
    found = []
    for path in re.findall(r"auto(?:class|function|exception):: (\S+)", API):
        module, _, name = path.rpartition(".")
        if module == "recordspec.ray_data" and find_spec("ray") is None:
            continue  # it is in another environment
        thing = getattr(importlib.import_module(module), name)
        found.append((path, thing))
        if inspect.isclass(thing):
            own = (base for base in thing.__mro__ if base.__module__.startswith("recordspec"))
            members = {name: member for base in own for name, member in vars(base).items()}
            found += [
                (f"{path}.{name}", member) for name, member in members.items() if documented(name, member)
            ]
    return found + [
        (f"recordspec.kinds.{name}", getattr(kinds, name)) for name in kinds.__all__ if name != "KINDS"
    ]


def documented(name: str, member: object) -> bool:
    return not name.startswith("_") and (
        inspect.isfunction(member) or isinstance(member, (classmethod, property))
    )


@pytest.mark.tensorflow
def test_every_public_name_has_a_docstring():
    without = [path for path, thing in public() if not inspect.getdoc(thing)]
    assert without == []


def test_the_architecture_is_that_of_the_imports():
    found = architecture.imports()
    layers = architecture.layers(found)
    height = {name: level for level, row in enumerate(layers) for name in row}
    assert all(height[other] < height[name] for name, others in found.items() for other in others)
    assert height["errors"] == 0
    assert layers[-1] == ["cli"]
    picture = architecture.html()
    assert all(f">{name}</text>" in picture for name in found)
    for name, others in architecture.needed({"a": {"b", "c"}, "b": {"c"}, "c": set()}).items():
        assert others == {"a": {"b"}, "b": {"c"}, "c": set()}[name]


def test_circular_imports_are_told():
    with pytest.raises(ValueError, match="a -> b -> a"):
        architecture.layers({"a": {"b"}, "b": {"a"}})


def test_every_journey_has_a_page_and_the_same_without_recordspec():
    scripts = sorted(path.stem for path in journeys.FOLDER.glob("*.sh"))
    pages = sorted(path.stem for path in (DOCS / "howto").glob("*.md") if path.stem != "index")
    assert scripts == pages
    listed = re.findall(
        r"^\w+$", (DOCS / "howto/index.md").read_text().partition("{toctree}")[2], re.MULTILINE
    )
    assert sorted(listed) == pages
    table = journeys.table("")
    for name in pages:
        assert f"{{{{ journey: {name} }}}}" in (DOCS / f"howto/{name}.md").read_text()
        code = journeys.plain(name)
        assert code is not None, name
        ast.parse(code)
        assert f"{name}.md" in table


def test_llms_txt_lists_every_page_once():
    listed = re.findall(r"^- \[.+\]\((\S+)\.html\)", agents.llms(), re.MULTILINE)
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(listed) == sorted(pages - {"index"})


@pytest.mark.parametrize("name", ["rides", "shapes", "reviews", "sentences", "sounds", "objects"])
def test_the_script_on_a_page_makes_the_data_of_its_journey(name, tmp_path):
    what, script = journeys.data_script(name)
    assert what.endswith(".")
    made = []
    for command in (["-c", script], [str(journeys.FOLDER / "journey_data.py"), name]):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        subprocess.run([sys.executable, *command], cwd=folder, check=True)
        files = (path for path in folder.rglob("*") if path.is_file())
        made.append({str(path.relative_to(folder)): path.read_bytes() for path in files})
    assert made[0] == made[1] != {}


def test_code_of_journeys_is_no_wider_than_its_page():
    for path in sorted(journeys.FOLDER.glob("*.sh")):
        script = path.read_text().partition(journeys.BEGIN)[2]
        code = (journeys.FOLDER / f"plain/{path.stem}.py").read_text()
        assert [line for line in (script + code).splitlines() if len(line) > 88] == [], path.stem


def test_pages_that_commands_and_messages_name_are_there():
    package = Path(rs.__file__).parent
    named = [*PAGES.values()]
    for path in package.rglob("*.py"):
        named += re.findall(r"\bsee\(['\"]([\w/-]+)['\"]\)", path.read_text())
    assert set(PAGES) == set(commands.list_commands(None))
    assert {"stores", "spark", "installing"} <= set(named)
    assert set(named) <= set(pages())


def test_the_life_of_a_row_names_what_there_is():
    """A name of the page is a module, or what a module has: `schema.encoder.records_of`, `writing/sorter.py`."""
    package = Path(rs.__file__).parent
    pages = [DOCS / "explanation" / name for name in ("life-of-a-row.md", "architecture.md")]
    text = "\n".join(page.read_text() for page in pages)
    rooms = [path.name for path in package.iterdir() if (path / "__init__.py").is_file()]
    names = set(re.findall(rf"`((?:{'|'.join(rooms)})\.[\w.]+)`", text))
    assert len(names) > 20
    # where to begin in a room: names of its modules
    begins = re.findall(r"^\| `(\w+)` \|.*\|([^|]*)\|$", pages[1].read_text(), re.MULTILINE)
    assert [room for room, _ in begins if room not in rooms] == []
    names |= {f"{room}.{name}" for room, cell in begins for name in re.findall(r"`([a-z_]+\.\w+)`", cell)}
    names = {name for name in names if not name.endswith(".py")}
    for room, cell in begins:
        for name in re.findall(r"`([a-z_]+\.py)`", cell):
            assert (package / room / name).is_file() or (package / name).is_file(), name
    for name in names:
        module, attribute = name.rsplit(".", 1)
        path = package / name.replace(".", "/")
        if not path.is_dir() and not path.with_suffix(".py").is_file():
            assert hasattr(importlib.import_module(f"recordspec.{module}"), attribute), name
    files = set(re.findall(rf"`((?:{'|'.join(rooms)})/[\w/.]*)`", text))
    assert [name for name in files if not (package / name).exists()] == []
    classes = {
        node.name
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    named = {name.partition(".")[0] for name in re.findall(r"`([A-Z][a-z]+\w*(?:\.\w+)?)`", text)}
    assert named - classes == {"Compression"}  # a type of three texts
