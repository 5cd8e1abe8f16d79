"""Where a feature of TFDS stands: its key, the sequences around it, the file of its names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recordspec.interop.tfds.nodes import Node

Shape = tuple[int | None, ...]

# Under what is behind the key of a feature TFDS stores sequences in sequences.
FLAT, ROW_LENGTHS = "ragged_flat_values", "ragged_row_lengths_"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a feature stands.

    Attributes:
        key: what it is stored under: the names on the way to it.
        lengths: of the sequences that it is in, outermost first; null if it is not fixed.
        file: the stem of the file of its names.
    """

    key: str = ""
    lengths: Shape = ()
    file: str = ""

    def of(self, name: str) -> Place:
        """That of a feature in this one."""
        stem = file_stem(name)
        return Place(
            key=f"{self.key}/{name}" if self.key else name,
            lengths=self.lengths,
            file=f"{self.file}-{stem}" if self.file else stem,
        )

    def each(self, length: int | None) -> Place:
        """That of the items of a sequence."""
        return Place(key=self.key, lengths=(*self.lengths, length), file=self.file)


def file_stem(name: str) -> str:
    """What TFDS makes of a feature's name in that of a file."""
    return name.replace("/", ".")


def named(node: Node, place: Place) -> dict[str, Any]:
    """The options that every kind has."""
    return {"name": place.key, "description": node.description}
