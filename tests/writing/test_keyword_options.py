"""The options as keyword arguments, which editors complete, are those of the dataclasses that check them."""

from __future__ import annotations

from dataclasses import fields
from typing import get_type_hints

import recordspec as rs
from recordspec.order.read_options import DatasetOptions, Read
from recordspec.writing.write_options import BuildOptions, Execution, Write, WriteOptions


def names(options: type) -> set[str]:
    return {field.name for field in fields(options)}


def test_keyword_arguments_are_the_fields():
    assert {*get_type_hints(WriteOptions), "splits"} == names(Write)
    assert {*get_type_hints(BuildOptions)} == names(Execution)
    assert {*get_type_hints(DatasetOptions)} == names(Read)


def test_the_literal_list_of_names_is_whole():
    assert sorted(rs.__all__) == sorted(["__version__", *rs._HOMES])
