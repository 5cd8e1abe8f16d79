"""`SegmentMask`: which values of a pack may attend to which, for the attention of Keras."""

from __future__ import annotations

from typing import Any

from recordspec._keras import keras


class SegmentMask(keras.layers.Layer):  # type: ignore[misc]
    """The mask of attention within the rows of a pack, for `attention_mask` of
    `keras.layers.MultiHeadAttention`.

    A value attends to the values of its own row, not to the other rows of the pack and not to padding; with
    `causal`, not to later values. Without it, a model learns from rows that only share its pack by chance.
    Padding attends to itself alone, as a softmax over nothing has no value.

    Call it with the segments of the queries, `<name>_segment_ids`, int32 `[n, t]`; for cross-attention, also
    with the segments of the keys, `[n, s]`, whose rows are in the same order. Returns bool `[n, t, s]`.

    Args:
        causal: whether values attend to earlier ones of the same row alone.

    Example:
        >>> import numpy as np
        >>> mask = rs.SegmentMask()(np.array([[1, 1, 2, 0]], "int32"))
        >>> np.asarray(mask).astype(int)[0].tolist()
        [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    """

    def __init__(self, causal: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.causal = causal

    def call(self, segments: Any, keys: Any = None) -> Any:
        """The mask of segments, bool `[n, t, s]`."""
        ops, others = keras.ops, segments if keys is None else keys
        allowed = ops.expand_dims(segments, 2) == ops.expand_dims(others, 1)
        if keys is None:
            places = ops.arange(ops.shape(segments)[1])
            itself = ops.expand_dims(places, 1) == ops.expand_dims(places, 0)
            allowed = ops.logical_and(allowed, ops.expand_dims(segments > 0, 2))
            allowed = ops.logical_or(allowed, itself)
        if self.causal and keys is None:
            allowed = ops.logical_and(allowed, ops.expand_dims(places, 1) >= ops.expand_dims(places, 0))
        return allowed

    def compute_output_shape(self, segments: Any, keys: Any = None) -> Any:
        """The shape of the mask."""
        return (*segments, (segments if keys is None else keys)[1])

    def compute_output_spec(self, segments: Any, keys: Any = None) -> Any:
        """The type of the mask."""
        shape = self.compute_output_shape(segments.shape, None if keys is None else keys.shape)
        return keras.KerasTensor(shape, dtype="bool")

    def get_config(self) -> dict[str, Any]:
        """The arguments of the layer."""
        return {**super().get_config(), "causal": self.causal}
