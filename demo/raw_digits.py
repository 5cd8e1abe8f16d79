"""Writes the handwritten digits that come with scikit-learn as PNG files, one folder a digit.

The source of the data: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine
Learning Repository, 1998 (its test set of 1,797 images, 8 by 8 pixels of 0 to 16).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

BRIGHTEST = 16


def main(folder: Path) -> None:
    """Fills `folder`; what is there already is written again, the same."""
    digits = load_digits()
    pixels = np.round(digits.images * (255 / BRIGHTEST)).astype(np.uint8)
    for index, (image, digit) in enumerate(zip(pixels, digits.target, strict=True)):
        file = folder / str(digit) / f"{index:04d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(file)
    print(f"{folder}: {len(pixels):,} images")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
