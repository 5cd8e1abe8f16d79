"""The kinds of features, one per file."""

from __future__ import annotations

from recordspec.spec.features.audio import Audio
from recordspec.spec.features.base import Feature
from recordspec.spec.features.box import Box
from recordspec.spec.features.fixed_len import FixedLen
from recordspec.spec.features.fixed_len_sequence import FixedLenSequence
from recordspec.spec.features.image import Image
from recordspec.spec.features.label import Label
from recordspec.spec.features.ragged import RaggedLists
from recordspec.spec.features.sparse import SparseValues
from recordspec.spec.features.tensor import AnyTensor
from recordspec.spec.features.text import Text
from recordspec.spec.features.var_len import VariableLen
from recordspec.spec.features.video import Video

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
