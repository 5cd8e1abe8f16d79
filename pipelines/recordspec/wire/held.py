"""What records hold under a key, as columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from recordspec.wire.columns import Cells
from recordspec.wire.pieces import Mask
from recordspec.wire.proto import Kind, Listed
from recordspec.wire.strings import Ints, Strings, lengths_of

# In the order of their fields in a Feature.
LISTS: tuple[Kind, ...] = ("bytes", "float32", "int64")


@dataclass(frozen=True)
class Held:
    """What some rows have under a key, all in lists of the same kind.

    Attributes:
        rows: their numbers, rising, int64 `[m]`.
        cells: the values of these rows; of the kind `none` there are none.
    """

    kind: Kind
    rows: Ints
    cells: Cells


@dataclass(frozen=True)
class Steps:
    """What some rows have in a feature list.

    Attributes:
        rows: their numbers, rising, int64 `[m]`.
        counts: the steps of each, int64 `[m]`.
        held: what the steps have, whose `rows` are steps, counted over all of these rows.
    """

    rows: Ints
    counts: Ints
    held: tuple[Held, ...]


def empty(kind: Kind, rows: Ints) -> Held:
    return Held(kind, rows, Cells(flat=Strings.of([]), lengths=0, rows=len(rows)))


def only(held: Held, rows: Mask) -> Held:
    """What only these rows have."""
    kept = rows[held.rows]
    if kept.all():
        return held
    lengths = np.broadcast_to(np.asarray(held.cells.lengths), (len(held.rows),))
    if isinstance(held.cells.flat, Strings):
        flat: Any = held.cells.flat.take(np.flatnonzero(np.repeat(kept, lengths)))
    else:
        flat = held.cells.flat[np.repeat(kept, lengths)]
    cells = Cells(flat=flat, lengths=lengths[kept], rows=int(kept.sum()))
    return Held(held.kind, held.rows[kept], cells)


def of_kind(found: tuple[Held, ...], kind: Kind, rows: Mask) -> tuple[Held, ...]:
    """What these rows have in lists of one kind."""
    return tuple(only(held, rows) for held in found if held.kind == kind)


def only_steps(steps: Steps, rows: Mask) -> Steps:
    kept = rows[steps.rows]
    of_kept = np.repeat(kept, steps.counts)
    number = np.cumsum(of_kept) - 1
    held = [only(one, of_kept) for one in steps.held]
    renumbered = tuple(replace(one, rows=number[one.rows]) for one in held if len(one.rows))
    return Steps(steps.rows[kept], steps.counts[kept], renumbered)


def as_held(rows: Ints, features: list[Listed]) -> tuple[Held, ...]:
    """Features of protobuf's, by kind."""
    kinds = np.array([feature.kind for feature in features])
    found = []
    for kind in ("none", *LISTS):
        places = np.flatnonzero(kinds == kind)
        if len(places) and kind == "none":
            found.append(empty(kind, rows[places]))
        elif len(places):
            lists = [features[place].values for place in places.tolist()]
            values = list(chain.from_iterable(lists))
            flat: Any = Strings.of(values) if kind == "bytes" else np.array(values, kind)
            found.append(
                Held(kind, rows[places], Cells(flat=flat, lengths=lengths_of(lists), rows=len(places)))
            )
    return tuple(found)
