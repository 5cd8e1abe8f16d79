"""The ways of reading: what each is called, its environment, and the function that prepares it.

A way is `prepare(given) -> run`, where `run(check)` makes one pass over all rows, and gives their number and,
to check, the sum of a column; None for what the way does not see. Each stands in a module of its own, which
alone imports what it measures.
"""

from __future__ import annotations

from collections.abc import Callable

from ways import Way

# Of whether to check: rows, and the sum of a column.
Run = Callable[[bool], tuple[int | None, int | None]]

_OURS = ("recordspec", "tensorflow", "numpy")
_TENSORFLOW = ("tensorflow", "numpy")
_HERE = "reading_speed.ways"


def _batched(title: str, function: str) -> Way:
    title = f"make_batched_features_dataset, {title}"
    return Way(title=title, module=f"{_HERE}.make_batched", function=function, packages=_TENSORFLOW)


def _graph(title: str, function: str) -> Way:
    return Way(title=title, module=f"{_HERE}.graphs", function=function, packages=_TENSORFLOW)


WAYS = {
    "rows": Way(
        title="recordspec, rows", module=f"{_HERE}.ours", function="rows", packages=_OURS, side="ours"
    ),
    "blocks": Way(
        title="recordspec, blocks of 256",
        module=f"{_HERE}.ours",
        function="blocks",
        packages=_OURS,
        side="ours",
    ),
    "global": Way(
        title="recordspec, rows, all permuted",
        module=f"{_HERE}.ours",
        function="all_rows",
        packages=_OURS,
        side="ours",
    ),
    "global_blocks": Way(
        title="recordspec, blocks of 256, all permuted",
        module=f"{_HERE}.ours",
        function="all_blocks",
        packages=_OURS,
        side="ours",
    ),
    "iterate": Way(
        title="recordspec, rows, to NumPy",
        module=f"{_HERE}.to_numpy",
        function="rows",
        packages=("recordspec", "numpy"),
        side="ours",
    ),
    "iterate_blocks": Way(
        title="recordspec, blocks of 256, to NumPy",
        module=f"{_HERE}.to_numpy",
        function="blocks",
        packages=("recordspec", "numpy"),
        side="ours",
    ),
    "parquet": Way(
        title="Parquet, columns of Arrow to NumPy",
        module=f"{_HERE}.to_numpy",
        function="parquet",
        packages=("pyarrow", "numpy"),
    ),
    "grain": Way(
        title="Grain over ArrayRecord",
        module=f"{_HERE}.grain_loader",
        packages=("grain", "array_record", *_TENSORFLOW),
    ),
    "make_batched": _batched("defaults", "defaults"),
    "make_batched_tuned": _batched("tuned", "tuned"),
    "make_batched_one": _batched("tuned, one reader", "tuned_with_one_reader"),
    "single": _graph("map(parse_single_example), then batch", "single"),
    "hand": _graph("by hand: batch, then map(parse_example)", "hand"),
    "hand_blocks": _graph("by hand, interleaved in blocks of 64", "hand_interleaved"),
    "hand_unordered": _graph("by hand, parallel reads, unordered", "hand_unordered"),
    "tfds": Way(
        title="TFDS, from its own files",
        module=f"{_HERE}.tfds_reader",
        packages=("tensorflow-datasets", *_TENSORFLOW),
    ),
    "tfrecord": Way(
        title="tfrecord package",
        module=f"{_HERE}.tfrecord_package",
        environment="bench-tfrecord",
        packages=("tfrecord", "protobuf", "numpy"),
    ),
    "records": Way(
        title="limit: records in batches, not parsed",
        module=f"{_HERE}.limits",
        function="records",
        packages=_TENSORFLOW,
        side="limit",
    ),
    "cat": Way(title="limit: bytes of the files", module=f"{_HERE}.limits", function="cat", side="limit"),
}

# The files that a way reads, unless they are those of recordspec's rows.
FORMS = {
    "blocks": "blocks",
    "global_blocks": "blocks",
    "iterate_blocks": "blocks",
    "parquet": "parquet",
    "grain": "array_record",
    "tfds": "tfds",
}
