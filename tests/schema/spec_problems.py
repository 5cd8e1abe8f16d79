"""What is wrong with a spec, in words."""

from __future__ import annotations

import pytest

from recordspec import Schema, SpecError


def problems(text: str) -> list[str]:
    """The messages of a spec that does not hold together."""
    with pytest.raises(SpecError) as caught:
        Schema.loads(text, source="x.yaml")
    return str(caught.value).splitlines()
