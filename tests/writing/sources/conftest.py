"""A folder of images, in folders by their classes."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image


@pytest.fixture
def folder(tmp_path) -> Path:
    for index, name in enumerate(["cat/a.png", "dog/b.PNG", "dog/deep/c.png"]):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (3, 2), (index, 0, 0)).save(path)
    (tmp_path / "images/dog/Thumbs.db").touch()
    (tmp_path / "images/.hidden.png").touch()
    return tmp_path / "images"
