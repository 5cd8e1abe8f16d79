"""Features with a fixed number of values, and the mask of those that are missing."""

from __future__ import annotations

import pytest

from one_feature import schema
from recordspec._tf import tf


def test_what_is_missing_is_told():
    """In rows and in blocks, where TensorFlow's parse dictionary has the default alone."""
    given = schema("{dtype: int64, shape: [2], default: [7, 8], with_missing: true}")
    assert str(given.parse_dict()["f"]) == (
        "FixedLenFeature(shape=[2], dtype=tf.int64, default_value=[7, 8])"
    )
    columns = {"f": [[1, 2], None, [7, 8]]}
    for decoded in (
        given.decode(given.encode_batch(columns, 3)),
        given.decode_block(given.encode_block(columns, 3)),
    ):
        assert decoded["f"].numpy().tolist() == [[1, 2], [7, 8], [7, 8]]
        assert decoded["f_missing"].numpy().tolist() == [False, True, False]
    longer = tf.train.Example()
    longer.features.feature["f"].int64_list.value.extend([1, 2, 3, 4])
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected one value, or none"):
        given.decode([longer.SerializeToString()])
