"""Stands in for TensorFlow where tests run without it: importing it skips the test that does.

A process that a test starts cannot skip it: there the import fails, and the test needs the mark `tensorflow`.
"""

import sys

if "pytest" not in sys.modules:
    raise ImportError("this test needs TensorFlow: mark it with `tensorflow`")

import pytest

pytest.skip("needs TensorFlow", allow_module_level=True)
