"""The problems of a spec, as messages."""

from __future__ import annotations

import pytest

from recordspec import Schema, SpecError


def problems(text: str) -> list[str]:
    """The messages of an invalid spec."""
    with pytest.raises(SpecError) as caught:
        Schema.loads(text, source="x.yaml")
    return str(caught.value).splitlines()
