"""`recordspec lint`, `explain` and `init`: schemas and configs."""

from __future__ import annotations

import importlib.resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recordspec.cli.output import (
    echo,
    print_json,
    print_notes,
    print_rows,
    print_text,
    size,
    wants_json,
)
from recordspec.cli.shared_options import LOCAL_PATH, PATH, json_option
from recordspec.errors import ExistsError, exists, show_path, system_errors
from recordspec.locations import Location, output_file, read_bytes

if TYPE_CHECKING:
    from recordspec.pipeline.mixture import Mixture

_STARTER_FILES = {
    "schema.yaml": "schemas/flowers.yaml",
    "config.yaml": "configs/flowers.yaml",
    "rows.csv": "raw/flowers.csv",
}


@click.command(short_help="Report all errors in schemas and configs, with lines.")
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("--no-sources", is_flag=True, help="Do not examine the sources of configs.")
@click.option("--fix", is_flag=True, help="Correct the files whose problems have one correction each.")
@json_option
def lint(files: tuple[Location, ...], no_sources: bool, fix: bool, as_json: bool) -> int:
    """Report all errors in schemas and configs, with line and column.

    \b
      recordspec lint schemas/digits.yaml configs/digits.yaml
      recordspec lint schemas/*.yaml configs/*.yaml --no-sources --json

    Also checks that the sources of configs on this machine exist and have the columns of the features, as
    far as a build knows before it reads rows. --no-sources leaves that out, for a machine without the data.
    --fix applies corrections such as "did you mean" and prints the changes. It changes no file in which a
    problem without a single correction remains, such as the name of a missing file.

    Exits with 2 if there is an error, with 3 if a file cannot be read.
    """
    from recordspec.linting import Fix, fix_files, lint_files

    fixes = fix_files(files, sources=not no_sources) if fix else {}
    exit_code = 0
    for linted in lint_files(files, sources=not no_sources):
        file, fixed = linted.path, fixes.get(linted.path, Fix())
        if fixed.changes and not as_json:
            print_text(fixed.changes)
        for problem in linted.problems:
            if as_json:
                print_json({**vars(problem), "path": show_path(problem.path)})
            else:
                echo(problem)
        if linted.error is not None:
            exit_code = max(exit_code, linted.error.exit_code)
        elif as_json:
            print_json(
                {"file": str(file), "problems": 0} | ({"diff": fixed.changes} if fixed.changes else {})
            )
        else:
            echo(f"{file}: no problems")
        if fixed.reason:
            echo(f"{file}: not changed: {fixed.reason}", err=True)
            for problem in fixed.remaining:
                echo(f"  {problem}", err=True)
    return exit_code


@click.command(short_help="Show what a schema or config compiles to.")
@click.argument("file", type=PATH)
@click.option("--python", is_flag=True, help="Print Python that parses the records with TensorFlow alone.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["tfmd", "tfds"]),
    help="Print it as schema.pbtxt of TensorFlow Metadata, or as features.json of TensorFlow Datasets.",
)
@json_option
def explain(file: Location, python: bool, form: str | None, as_json: bool) -> None:
    """Show what a schema or a config compiles to.

    \b
      recordspec explain schemas/movie_ratings.yaml
      recordspec explain schemas/movie_ratings.yaml --python > parse.py

    Prints what each feature stores and decodes to, and the bytes of a generated value; of a config with
    `read.pack`, also the packs of each split. Of a mixture, prints the weights that are used, the steps of an
    epoch, what is read of each dataset, and by how many rows it is short: as many are read again. Notes on
    stderr list what --as tfmd and --as tfds cannot express.
    """
    from recordspec.schema.explain import features, python_source
    from recordspec.schema.schema import schema_in

    schema, packs = schema_in(file), dict[str, Any]()
    if schema is None:
        from recordspec.pipeline import Pipeline  # takes 0.1 s
        from recordspec.pipeline.mixture import Mixture

        pipeline = Pipeline.load(file)
        schema = pipeline._stored
        if isinstance(pipeline, Mixture) and form is None and not python:
            _explain_mixture(pipeline, as_json)
            return
        if pipeline.config.read.pack is not None and not (form or python):
            from recordspec.store.manifest import manifest_in

            if manifest_in(pipeline.data) is None:
                print_notes([f"no packs are planned: {pipeline.data} is not built"])
            else:
                packs = {split: pipeline.packs(split) for split in pipeline.manifest.splits}
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
        print_rows([row for split, plan in packs.items() for row in plan.as_rows(split)], as_json)


def _explain_mixture(mixture: Mixture, as_json: bool) -> None:
    rows, steps, epoch_rows = mixture.explain()
    units = mixture._units
    named = [{units if key == "rows" else key: value for key, value in row.items()} for row in rows]
    print_rows(named, as_json, lambda: f"\n{steps:,} steps an epoch, of {epoch_rows:,} {units}")
    if wants_json(as_json):
        print_json({"steps": steps, units: epoch_rows})
    if mixture.config.read.pack is not None:
        split = mixture._usual_split
        print_rows(mixture.packs(split).as_rows(split), as_json)


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
            raise ExistsError(exists(target, "nothing was written"))
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
