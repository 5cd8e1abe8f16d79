"""`recordspec view`."""

from __future__ import annotations

import click

from recordspec.cli.shared_options import PATTERN, schema_option
from recordspec.locations import Location

# The smallest limit of the memory of the page, in bytes; the page may take half of the free memory.
_LEAST = 4 << 30


@click.command(short_help="Show records on a page in the browser.")
@click.argument("files", nargs=-1, required=True, type=PATTERN)
@schema_option
@click.option("--against", type=PATTERN, help="Other files, with which these may be compared.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="[default: any that is free]")
@click.option("--browser/--no-browser", default=True, help="Whether the page is opened.")
def view(
    files: tuple[str, ...], schema: Location | None, against: str | None, port: int, browser: bool
) -> None:
    """Show the records of FILES (a config, paths, folders, patterns) on a page in the browser.

    \b
      recordspec view data/digits
      recordspec view configs/digits.yaml

    Prints the URL of the page, which only this machine can open, and only with the token in it. Ctrl-C ends
    it. Needs the extra `view`.
    """
    from recordspec.reading.memory import available
    from recordspec.schema.schema import given_schema
    from recordspec.store.expand import is_config
    from recordspec.viewer.server import limit_memory, serve
    from recordspec.viewer.viewed_files import ViewedFiles

    limit_memory(max(_LEAST, available() // 2))
    batches, loaded = None, given_schema(schema)
    if len(files) == 1 and is_config(files[0]):
        from recordspec.pipeline import Pipeline
        from recordspec.pipeline.mixture import Mixture
        from recordspec.viewer.batches import ModelBatches

        pipeline = Pipeline.load(files[0])
        batches = ModelBatches(pipeline)
        if isinstance(pipeline, Mixture):
            files = tuple(str(one.data) for one in pipeline.pipelines.values())
            loaded = pipeline._stored if loaded is None else loaded
    other = None if against is None else ViewedFiles(against, loaded)
    viewed = ViewedFiles(files, loaded, other=other, batches=batches)
    serve(viewed, port=port, browser=browser)
