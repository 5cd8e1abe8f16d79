"""What schemas of TensorFlow Metadata say that has no counterpart: each is noted."""

from __future__ import annotations

import pytest
from tfmd_text import ALWAYS, imported


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (
            "presence {min_count: 3}",
            "presence: min_count: 3: the number of records that have it is not checked",
        ),
        (
            "value_count {min: 1 max: 4}",
            "value_count.min: 1: the minimum number of values is not checked",
        ),
        ('domain: "d"', "domain: 'd': values are not restricted to it"),
        ("int_domain {min: 1 max: 9}", "int_domain: min: 1 max: 9: the range is not checked"),
        ('bool_domain {true_value: "y"}', 'bool_domain: true_value: "y": has no counterpart'),
        ("lifecycle_stage: BETA", "lifecycle_stage: BETA: has no counterpart"),
        (
            "shape {dim {size: 2}}",
            "shape: dim { size: 2 }: not required in every record, or of an unknown size: read as a list",
        ),
        (
            f'{ALWAYS} shape {{dim {{size: 2 name: "x"}}}}',
            'shape: dim { name: "x" }: the names of dimensions have no counterpart',
        ),
        (
            "value_counts {value_count {max: 1}}",
            "value_counts: value_count { max: 1 }: nested lists are read flat"
            " (a tensor representation defines how they are stored)",
        ),
        ("drift_comparator {}", "drift_comparator: : has no counterpart"),
        ('in_environment: "x"', "in_environment: 'x': has no counterpart"),
    ],
)
def test_what_has_no_counterpart_is_noted(options, note):
    _, notes = imported(f'feature {{name: "a" type: INT {options}}}')
    assert notes == [f"feature.a.{note}"]
