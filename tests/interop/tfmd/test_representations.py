"""Tensor representations, and sparse features, of TensorFlow Metadata."""

from __future__ import annotations

from tfmd_text import imported

from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.ragged import RaggedLists
from recordspec.schema.features.sparse import SparseValues
from recordspec.schema.features.var_len import VariableLen


def test_sparse_and_weighted_features():
    features, notes = imported(
        """
feature {name: "v" type: FLOAT} feature {name: "i" type: INT int_domain {min: 0 max: 9}}
sparse_feature {name: "s" index_feature {name: "i"} value_feature {name: "v"} is_sorted: true}
feature {name: "w" type: FLOAT} feature {name: "j" type: INT}
weighted_feature {name: "vw" feature {step: "v"} weight_feature {step: "w"}}
sparse_feature {name: "t" index_feature {name: "j"} value_feature {name: "w"}}
"""
    )
    assert list(features.values()) == [
        SparseValues(name="s", key="v", dtype="float32", size=10, index_keys=("i",)),
        VariableLen(name="w", dtype="float32"),
        VariableLen(name="j", dtype="int64"),
    ]
    assert notes == [
        "sparse_feature.s.is_sorted: true: has no counterpart",
        'sparse_feature.t: name: "t" index_feature { name: "j" } value_feature { name: "w" }:'
        " its shape is unknown: its features are read separately",
        'weighted_feature.vw: name: "vw" feature { step: "v" } weight_feature { step: "w" }:'
        " both features are read separately",
    ]


def test_tensor_representations():
    features, notes = imported(
        """
feature {name: "a" type: INT} feature {name: "n" type: INT} feature {name: "d" type: BYTES}
tensor_representation_group {
  key: ""
  value {
    tensor_representation {
      key: "lists"
      value {
        ragged_tensor {
          feature_path {step: "a"} partition {row_length: "n"} partition {uniform_row_length: 2}
          row_partition_dtype: INT32
        }
      }
    }
    tensor_representation {
      key: "odd"
      value {ragged_tensor {feature_path {step: "a"} partition {uniform_row_length: 2} partition {row_length: "n"}}}
    }
    tensor_representation {key: "gone" value {varlen_sparse_tensor {column_name: "none"}}}
    tensor_representation {
      key: "dense"
      value {dense_tensor {column_name: "d" shape {dim {size: 2}} default_value {bytes_value: "?"}}}
    }
  }
}
tensor_representation_group {
  key: "other"
  value {tensor_representation {key: "x" value {varlen_sparse_tensor {column_name: "a"}}}}
}
"""
    )
    assert list(features.values()) == [
        RaggedLists(name="lists", key="a", dtype="int64", shape=(None, None, 2), row_lengths=("n",)),
        FixedLen(name="dense", key="d", dtype="string", shape=(2,), default=("?", "?")),
    ]
    assert notes == [
        'tensor_representation_group."".lists: row partitions of INT32: read as int64',
        'tensor_representation_group."".odd: ragged_tensor { feature_path { step: "a" } partition'
        " { uniform_row_length: 2 ...: has no counterpart",
        'tensor_representation_group."".gone: varlen_sparse_tensor { column_name: "none" }: has no counterpart',
        'tensor_representation_group.other.x: varlen_sparse_tensor { column_name: "a" }: has no counterpart',
    ]
