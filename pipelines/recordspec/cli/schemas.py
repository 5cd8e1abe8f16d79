"""`recordspec lint`, `explain`, `describe` and `init`: schemas and configs."""

from __future__ import annotations

import importlib.resources
import json
from pathlib import Path

import click

from recordspec.cli.output import (
    echo,
    print_json,
    print_notes,
    print_rows,
    print_text,
    size,
)
from recordspec.cli.shared_options import LOCAL_PATH, PATH, json_option
from recordspec.errors import RecordspecError, StoreError, exists, show_path, system_errors
from recordspec.locations import Location, output_file, read_bytes

_STARTER_FILES = {
    "schema.yaml": "schemas/flowers.yaml",
    "config.yaml": "configs/flowers.yaml",
    "rows.csv": "raw/flowers.csv",
}


@click.command(short_help="Report all errors in schemas and configs, with lines.")
@click.argument("files", nargs=-1, required=True, type=PATH)
@json_option
def lint(files: tuple[Location, ...], as_json: bool) -> int:
    """Report all errors in schemas and configs, with line and column.

    \b
      recordspec lint schemas/digits.yaml
      recordspec lint schemas/*.yaml configs/*.yaml --json

    Exits with 2 if there is an error, with 3 if a file cannot be read.
    """
    from recordspec.config import load_any

    exit_code = 0
    for file in files:
        try:
            load_any(file)
        except RecordspecError as error:
            exit_code = max(exit_code, error.exit_code)
            for problem in error.problems:
                if as_json:
                    print_json({**vars(problem), "path": show_path(problem.path)})
                else:
                    echo(problem)
            continue
        if as_json:
            print_json({"file": str(file), "problems": 0})
        else:
            echo(f"{file}: no problems")
    return exit_code


@click.command(short_help="List the kinds, the sections and their options.")
@click.option(
    "--json-schema", is_flag=True, help="A JSON Schema (2020-12) of specs and configs, for editors."
)
@json_option
def language(json_schema: bool, as_json: bool) -> None:
    """List every option of the YAML language, by kind of feature and section of a config.

    \b
      recordspec language
      recordspec language --json-schema > recordspec.schema.json

    Editors with the YAML language server complete and check a file whose first line is
    `# yaml-language-server: $schema=recordspec.schema.json`. `recordspec lint` checks more than a JSON Schema
    can express.
    """
    from recordspec import language as of_yaml

    if json_schema:
        print_text(json.dumps(of_yaml.json_schema(), indent=1))
    else:
        print_rows(of_yaml.options_table(), as_json)


@click.command(short_help="Show what a spec or config compiles to.")
@click.argument("file", type=PATH)
@click.option("--python", is_flag=True, help="Print Python that parses the records with TensorFlow alone.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["tfmd", "tfds"]),
    help="Print the spec as schema.pbtxt of TensorFlow Metadata, or as features.json of TensorFlow Datasets.",
)
@json_option
def explain(file: Location, python: bool, form: str | None, as_json: bool) -> None:
    """Show what a spec or a config compiles to.

    \b
      recordspec explain schemas/movie_ratings.yaml
      recordspec explain schemas/movie_ratings.yaml --python > parse.py

    Prints what each feature stores and decodes to, and the bytes of a generated value. Notes on stderr list
    what --as tfmd and --as tfds cannot express.
    """
    from recordspec.schema.explain import features, python_source
    from recordspec.schema.schema import schema_in

    schema = schema_in(file)
    if schema is None:
        from recordspec.config import load  # takes 0.1 s

        _, schema = load(file)
    if form in ("tfmd", "tfds"):
        from recordspec.interop import tfds, tfmd

        text, notes = tfmd.dumps(schema) if form == "tfmd" else tfds.dumps(schema)
        print_text(text)
        print_notes(notes)
    elif python:
        print_text(python_source(schema))
    else:
        rows = features(schema)
        total = size(sum(row["bytes"] for row in rows))
        print_rows(rows, as_json, lambda: f"{schema.record}, about {total} a row\n\n{python_source(schema)}")


@click.command(short_help="Write the files that TensorFlow Datasets needs.")
@click.argument("folder", type=LOCAL_PATH)
@click.option(
    "--as",
    "form",
    type=click.Choice(["tfds"]),
    default="tfds",
    show_default=True,
    help="The reader: TensorFlow Datasets.",
)
@json_option
def describe(folder: Path, form: str, as_json: bool) -> None:
    """Write the files that other libraries need to open the dataset in FOLDER, beside its shards.

    \b
      recordspec describe data/digits
      recordspec describe data/digits --as tfds --json

    tfds.builder_from_directory("data/digits") then reads features.json, dataset_info.json and the names
    of labels. Notes on stderr list what they cannot express. Files of another origin are not replaced.
    """
    from recordspec.interop import tfds

    files, notes = tfds.describe(folder)
    rows = [{"file": str(folder / name), "bytes": (folder / name).stat().st_size} for name in files]
    print_rows(rows, as_json)
    print_notes(notes)


def _holds(path: Path, content: bytes) -> bool:
    """Whether a file already has the content: an interrupted `init` has written it."""
    same = path.is_file() and path.stat().st_size == len(content)
    return same and read_bytes(path, len(content)) == content


@click.command(short_help="Write a schema, a config and a few rows to start from.")
@click.argument("folder", default=".", type=LOCAL_PATH)
def init(folder: Path) -> None:
    """Write a schema, a config and a few rows into FOLDER, to start from.

    \b
      recordspec init my-data
      recordspec build my-data/configs/flowers.yaml

    Existing files are not overwritten; what an interrupted run has not written is. Editors with the YAML
    language server complete and check the YAML with recordspec.schema.json.
    """
    from recordspec.language import FILE, header, write_json_schema

    starter = importlib.resources.files("recordspec.cli") / "starter"
    targets = {}
    for name, place in _STARTER_FILES.items():
        target = folder / place
        first = header(f"../{FILE}") if target.suffix == ".yaml" else ""
        targets[target] = (first + (starter / name).read_text(encoding="utf-8")).encode()
    for target, content in targets.items():
        if target.exists() and not _holds(target, content):
            raise StoreError(exists(target, "nothing was written"))
    for target, content in targets.items():
        if not target.exists():
            with system_errors("write", target):
                target.parent.mkdir(parents=True, exist_ok=True)
            with output_file(target, force=False) as fresh:
                fresh.write_bytes(content)
        echo(target)
    if (written := write_json_schema(folder)) is not None:
        echo(written)
    echo(f"next: recordspec build {folder / _STARTER_FILES['config.yaml']}", err=True)
