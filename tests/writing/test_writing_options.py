"""Options of a build that are wrong are named before anything is written."""

from __future__ import annotations

import os

import pytest
from test_writing_build import SCHEMA, plain, rows

import recordspec as rs


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"jobs": "2"}, "jobs: expected 1 to 1024, got str '2'"),
        ({"jobs": 1.5}, "jobs: expected 1 to 1024, got float 1.5"),
        ({"limit": "3"}, "limit: expected a number of rows, got str '3'"),
        ({"limit": 2.5}, "limit: expected a number of rows, got float 2.5"),
        ({"memory": 1 << 30}, "memory: expected a size such as 128MiB (B, KiB, MiB, GiB), got `1073741824`"),
    ],
)
def test_an_option_of_another_type_is_named(tmp_path, options, expected):
    with pytest.raises(rs.SpecError) as caught:
        rs.write(plain(rows(1)), SCHEMA, tmp_path / "data", **options)
    assert str(caught.value) == expected


@pytest.mark.slow
def test_an_option_of_yaml_that_python_calls_otherwise_is_no_silence(tmp_path):
    with pytest.raises(rs.SpecError) as caught:
        rs.write([], SCHEMA, tmp_path / "a", splits={"a": 1})
    told = "splits: expected the argument `split`, got `splits` (it takes a name, or the weights of several)"
    assert str(caught.value) == told
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"split": {"folds": 1}}, "splits.folds: expected 2 to 1000, got 1"),
        ({"layout": {"blocks": 0}}, "layout.blocks: expected 1 to 1048576 rows, got 0"),
        (
            {"split": {"column": "subset"}, "group_by": "writer"},
            "group_by: expected no group, got `writer` (the column `subset` says it already)",
        ),
        ({"jobs": 0}, "jobs: expected 1 to 1024, got 0"),
        ({"limit": 0}, "limit: expected a number of rows, got 0"),
        ({"memory": "much"}, "memory: expected a size such as 128MiB (B, KiB, MiB, GiB), got `much`"),
        ({"force": True, "append": True}, "append: expected either `append` or `force`, got both"),
        ({"resume": True}, "resume: expected rows of files, which can be read again, got list"),
    ],
)
def test_an_option_that_is_wrong_is_named(tmp_path, options, expected):
    with pytest.raises(rs.SpecError) as caught:
        rs.write(plain(rows(1)), SCHEMA, tmp_path / "data", **options)
    assert str(caught.value) == expected
    assert os.listdir(tmp_path) == []
