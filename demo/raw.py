"""The raw data of the gallery, which the configs read.

    python demo/raw.py digits raw/digits

Four datasets are files: `digits`, `photos`, `sounds` and `docstrings`. The rows of the other three are
returned by functions: `code_tokens`, `scattered_digits` and `moments`. Random values depend on a seed, so
that the same versions of the packages make the same data.

Digits: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository,
1998 (its test set of 1,797 images, 8 by 8 pixels of 0 to 16). Photographs: those of scikit-learn, which names
their authors.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.util
import inspect
import keyword
import re
import tokenize
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

Row = dict[str, Any]

SEED = 17
SAMPLE_RATE = 8000
BRIGHTEST = 16  # of the digits' pixels


def digits(folder: Path, count: int = 1797) -> int:
    """Handwritten digits as PNG files, one folder a digit."""
    for index, (pixels, digit) in enumerate(zip(*_digits(count), strict=True)):
        file = folder / str(digit) / f"{index:04d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(file)
    return count


def _digits(count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The images, uint8 `[n, 8, 8]`, and their digits."""
    from sklearn.datasets import load_digits  # takes 1 s, and other rows do not need it

    data = load_digits()
    pixels = np.round(data.images * (255 / BRIGHTEST)).astype(np.uint8)
    return pixels[:count], data.target[:count]


def photos(folder: Path, count: int = 80) -> int:
    """Crops of two photographs as JPEG files, one folder a photograph; one file is truncated."""
    rng = np.random.default_rng(SEED)
    from sklearn.datasets import load_sample_images

    sample = load_sample_images()
    for name, pixels in zip(sample.filenames, sample.images, strict=True):
        (folder / Path(name).stem).mkdir(parents=True, exist_ok=True)
        for index in range(count // 2):
            top, left = rng.integers(0, pixels.shape[0] - 375), rng.integers(0, pixels.shape[1] - 500)
            crop = Image.fromarray(pixels[top : top + 375, left : left + 500])
            crop.save(folder / Path(name).stem / f"{index:03d}.jpg", quality=90)
    whole = (folder / "flower/000.jpg").read_bytes()
    (folder / "flower/cut.jpg").write_bytes(whole[: len(whole) // 2])
    return count // 2 * 2 + 1


# Functions of a random generator, and of the phase of each sample.
WAVES: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "noise": lambda rng, turns: rng.uniform(-1, 1, turns.size),
    "sawtooth": lambda _, turns: 2 * (turns % 1) - 1,
    "sine": lambda _, turns: np.sin(2 * np.pi * turns),
    "square": lambda _, turns: np.sign(turns % 1 - 0.5),
}


def sounds(folder: Path, count: int = 480) -> int:
    """Tones of half a second to a second as WAV files, and a CSV file that lists them."""
    rng = np.random.default_rng(SEED)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "sounds.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["path", "label"])
        for index in range(count):
            label = list(WAVES)[index % len(WAVES)]
            path = f"{label}/{index:03d}.wav"
            samples = tone(rng, label, rng.uniform(100, 1000), loudness=rng.uniform(0.1, 0.9))
            _write_wav(folder / path, samples)
            table.writerow([path, label])
    return count


def tone(rng: np.random.Generator, waveform: str, pitch: float, loudness: float = 0.5) -> np.ndarray:
    """Half a second to a second of samples, int16 `[n]`; the pitch in Hz, a loudness of 1 is full scale."""
    turns = np.arange(int(SAMPLE_RATE * rng.uniform(0.5, 1))) * (pitch / SAMPLE_RATE)
    return np.rint(WAVES[waveform](rng, turns) * loudness * 32767).astype(np.int16)


def _write_wav(path: Path, samples: np.ndarray) -> None:
    path.parent.mkdir(exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, SAMPLE_RATE, len(samples), "NONE", "not compressed"))
        file.writeframes(samples.astype("<i2").tobytes())


# The modules of each package whose public names are used.
PARTS = {
    "numpy": "linalg fft random ma polynomial.polynomial polynomial.chebyshev testing",
    "scipy": "linalg stats signal ndimage optimize sparse spatial interpolate integrate special",
    "sklearn": "cluster metrics linear_model preprocessing ensemble datasets decomposition svm neighbors "
    "feature_extraction.text feature_selection manifold utils naive_bayes neural_network tree covariance",
}


def docstrings(folder: Path, count: int = 1050) -> int:
    """First paragraphs of docstrings, equally many of each package, in a CSV file."""
    rng = np.random.default_rng(SEED)
    rows = []
    for package in PARTS:
        found = {text: name for name, text in _paragraphs(package)}  # unique texts
        texts = rng.permutation(sorted(found))[: count // len(PARTS)]
        rows += [(found[text], text, package) for text in texts]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "docstrings.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("name", "text", "package"), *rows])
    return len(rows)


def _paragraphs(package: str) -> Iterator[tuple[str, str]]:
    """The public functions and classes of a package: their names and first paragraphs."""
    for part in ("", *PARTS[package].split()):
        module = importlib.import_module(f"{package}.{part}".rstrip("."))
        for name in sorted(module.__all__):  # some come from sets, whose order varies by run
            item = vars(module).get(name)
            if not (inspect.isroutine(item) or inspect.isclass(item) or isinstance(item, np.ufunc)):
                continue
            paragraphs = (inspect.getdoc(item) or "").split("\n\n")
            # docstrings of C functions begin with their signature
            text = next((one for one in paragraphs if not re.match(r"[\w.]+\(", one)), "")
            if len(text) >= 20:
                yield f"{module.__name__}.{name}", " ".join(text.split())


# Large modules of the standard library, which exist from Python 3.10 to 3.13.
MODULES = "argparse bisect calendar configparser difflib fractions heapq statistics tarfile textwrap"


def code_tokens(count: int = 2000) -> Iterator[Row]:
    """Rows of `code_tokens`: statements of 3 to 30 tokens."""
    found = [row for module in MODULES.split() for row in _statements(module)]
    for place in np.random.default_rng(SEED).permutation(len(found))[:count]:
        yield found[place]


def _statements(module: str) -> Iterator[Row]:
    path = Path(importlib.util.find_spec(module).origin)
    statement: list[tokenize.TokenInfo] = []
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.NEWLINE:
                if 3 <= len(statement) <= 30 and max(len(one.string) for one in statement) <= 40:
                    yield _statement(path.name, statement)
                statement = []
            elif token.string.strip() and token.type != tokenize.COMMENT:
                statement.append(token)


def _statement(file: str, tokens: list[tokenize.TokenInfo]) -> Row:
    kinds = [
        "KEYWORD" if keyword.iskeyword(token.string) else tokenize.tok_name[token.type] for token in tokens
    ]
    return {
        "file": file,
        "line": tokens[0].start[0],
        "length": len(tokens),
        "token": [token.string for token in tokens],
        "kind_of_token": kinds,
    }


def scattered_digits(count: int = 500) -> Iterator[Row]:
    """Rows of `scattered_digits`: one to eight digits, 8, 16 or 24 pixels large, without overlap."""
    rng = np.random.default_rng(SEED)
    known = _digits()
    for index in range(count):
        yield {"id": index, **_scattered(rng, *known)}


def _scattered(rng: np.random.Generator, pixels: np.ndarray, labels: np.ndarray) -> Row:
    canvas, taken = np.zeros((2, 64, 64), np.uint8)
    boxes, classes = [], []
    for pick in rng.choice(len(pixels), 8, replace=False):
        times = rng.integers(1, 4)
        top, left = rng.integers(0, 64 - 8 * times, 2, endpoint=True)
        place = np.s_[top : top + 8 * times, left : left + 8 * times]
        if not taken[place].any():
            canvas[place] = np.kron(pixels[pick], np.ones((times, times), np.uint8))
            taken[place] = 1
            boxes.append([top, left, top + 8 * times, left + 8 * times])
            classes.append(str(labels[pick]))
    return {"image": canvas, "boxes": boxes, "classes": classes}


# A time of day: the colour of the sky, and the pitch of its tone in Hz.
TIMES = {
    "midnight": ((10, 10, 50), 110),
    "sunrise": ((250, 170, 190), 220),
    "noon": ((120, 190, 250), 440),
    "sunset": ((250, 120, 50), 330),
}


def moments(count: int = 200) -> Iterator[Row]:
    """Rows of `moments`: a sun or a moon crosses the sky in three to five frames."""
    rng = np.random.default_rng(SEED)
    for index in range(count):
        time = list(TIMES)[index % len(TIMES)]
        colour, pitch = TIMES[time]
        sky = np.clip(colour + rng.normal(0, 12, 3), 0, 255).astype(int)
        clip = np.stack([_sky(sky, x) for x in range(rng.integers(4, 20), 44, rng.integers(8, 12))][:5])
        image = clip[len(clip) // 2]
        yield {
            "id": index,
            "image": image,
            "caption": f"{'The moon' if time == 'midnight' else 'The sun'} at {time}",
            "sound": tone(rng, "sine", pitch * rng.uniform(0.9, 1.1)),
            "vector": np.concatenate([image.mean((0, 1)), image.std((0, 1))]).astype(np.float16),
            "clip": clip,
            "time": time,
        }


def _sky(colour: np.ndarray, x: int) -> np.ndarray:
    """An image, uint8 `[32, 48, 3]`, with a disk that is highest in the middle."""
    image = Image.new("RGB", (48, 32), tuple(colour.tolist()))
    y = 8 + abs(x - 24) // 2
    ImageDraw.Draw(image).ellipse((x - 4, y - 4, x + 4, y + 4), fill=(255, 250, 220))
    return np.asarray(image)


DATASETS: dict[str, Callable[[Path], int]] = {
    "digits": digits,
    "photos": photos,
    "sounds": sounds,
    "docstrings": docstrings,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes the raw data of a dataset; the same on every run.")
    parser.add_argument("dataset", choices=DATASETS)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    print(f"{given.folder}: {DATASETS[given.dataset](given.folder):,} rows")
