"""The kinds of features, one per file."""

from __future__ import annotations

from recordspec.schema.features.audio import Audio
from recordspec.schema.features.box import Box
from recordspec.schema.features.feature import Feature
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.fixed_len_sequence import FixedLenSequence
from recordspec.schema.features.image import Image
from recordspec.schema.features.label import Label
from recordspec.schema.features.ragged import RaggedLists
from recordspec.schema.features.sparse import SparseValues
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.text import Text
from recordspec.schema.features.var_len import VariableLen
from recordspec.schema.features.video import Video

# A caller extends it: `Schema.load(path, kinds=KINDS | {"mesh": Mesh})`.
KINDS: dict[str, type[Feature]] = {
    kind.kind: kind
    for kind in (
        FixedLen,
        VariableLen,
        FixedLenSequence,
        RaggedLists,
        SparseValues,
        AnyTensor,
        Label,
        Text,
        Image,
        Audio,
        Video,
        Box,
    )
}

__all__ = ["KINDS", "Feature"]
