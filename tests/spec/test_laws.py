"""Every kind, in every section of a record that takes it, keeps every law."""

from __future__ import annotations

import pytest

from instances import CASES
from recordspec.testing import LAWS


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_law(case, law):
    law(case)
