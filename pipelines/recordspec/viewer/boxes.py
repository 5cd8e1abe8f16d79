"""Bounding boxes for the page: drawn over their image, with class names beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.schema.features.box import Box, corners_of
from recordspec.schema.schema import Schema
from recordspec.tables.column_types import is_list_type
from recordspec.tables.scan_columns import ScanColumn

# The largest number of boxes drawn on an image.
_MOST = 200


@dataclass(frozen=True, kw_only=True)
class BoxesOfImage:
    """A column of boxes.

    Attributes:
        column: the name of the column.
        image: the column of the images that the boxes belong to.
        format: the order and the unit of the sides; see `Box`.
        labels: the columns that may have a label for each box.
    """

    column: str
    image: str
    format: str
    labels: tuple[str, ...]

    def cell(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The boxes of a row of `pyarrow.Scalar`s, with the labels of the first column that has as many
        labels as there are boxes.

        Sides are left, top, right and bottom, in pixels or, if `relative`, as fractions of the image.
        """
        boxes = np.array(row[self.column].as_py(), np.float64).reshape(-1, 4)
        made = self._drawn(boxes)
        for name in self.labels:
            if row[name].is_valid and len(row[name]) == len(boxes):
                return {**made, "names": [str(label) for label in row[name].as_py()[:_MOST]]}
        return made

    def of_batch(self, cells: Mapping[str, Any]) -> Any:
        """The cell of decoded boxes, from the cells of a row of a batch. Boxes of zeros are padding and left
        out. If the cell does not hold all boxes, the numbers are shown unchanged."""
        decoded = cells[self.column]
        shape: list[int | None] = decoded.get("shape", []) if isinstance(decoded, dict) else []
        if shape[1:] != [4] or len(decoded["some"]) != 4 * (shape[0] or 0):
            return decoded
        boxes = np.array(decoded["some"], np.float64).reshape(-1, 4)
        kept = np.flatnonzero(boxes.any(axis=1)).tolist()
        made = self._drawn(boxes[kept])
        for name in self.labels:
            items = cells[name]["items"] if name in cells and "items" in cells[name] else ()
            if len(items) in (len(boxes), len(kept)):
                named = [items[place] for place in (kept if len(items) == len(boxes) else range(len(kept)))]
                if all(isinstance(item, dict) and item["is"] == "label" for item in named):
                    return {**made, "names": [item["text"] for item in named]}
        return made

    def _drawn(self, boxes: Any) -> dict[str, Any]:
        low, high = corners_of(boxes[:_MOST], self.format)
        corners = np.nan_to_num(np.concatenate([low, high], 1)).tolist()
        return {"is": "boxes", "corners": corners, "relative": self.format.startswith("rel_")}


def boxes_of_images(schema: Schema, columns: Mapping[str, ScanColumn]) -> dict[str, BoxesOfImage]:
    """The columns of boxes by name. Boxes of videos and in feature lists are not drawn."""
    types = arrow().types
    images = [
        name
        for name, column in columns.items()
        if len(column.features) == 1 and column.features[0].feature.kind == "image"
    ]
    labels = tuple(
        name
        for name, column in columns.items()
        if is_list_type(column.type) and types.is_dictionary(column.type.value_type)
    )
    made = {}
    for name, column in columns.items():
        feature = column.features[0].feature if len(column.features) == 1 else None
        if not isinstance(feature, Box) or column.features[0].place.in_steps:
            continue
        image = feature.image or (images[0] if len(images) == 1 else None)
        if image in images:
            made[name] = BoxesOfImage(column=name, image=image, format=feature.format, labels=labels)
    return made
