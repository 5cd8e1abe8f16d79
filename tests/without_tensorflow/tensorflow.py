"""Replaces TensorFlow when tests run without it: a test that imports this module is skipped.

A child process cannot skip the test that started it: its import fails, and the test needs the mark
`tensorflow`.
"""

import sys

if "pytest" not in sys.modules:
    raise ImportError("this test needs TensorFlow: mark it with `tensorflow`")

import pytest

pytest.skip("needs TensorFlow", allow_module_level=True)
