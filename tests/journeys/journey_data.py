"""Makes the raw data of a journey in the folder `raw`: `python journey_data.py NAME`. Nothing is downloaded."""

from __future__ import annotations

import csv
import json
import os
import sys
import wave
from pathlib import Path

import numpy as np

RAW = Path("raw")
DRAW = np.random.default_rng(0)


def rides() -> None:
    """A CSV file with gaps and dates; a fare above 9 that is not paid in cash has a tip."""
    with (RAW / "rides.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["ride", "pickup", "company", "fare", "payment", "tipped"])
        for number in range(4000):
            day = np.datetime64("2024-01-01") + int(DRAW.integers(366))
            fare, payment = round(float(DRAW.gamma(3, 5)), 2), DRAW.choice(["card", "cash", "app"])
            tipped = "yes" if payment != "cash" and fare > 9 else "no"
            fare = fare if DRAW.random() < 0.9 else ""
            company = DRAW.choice(["Yellow", "Blue", "Sun", ""])
            table.writerow([f"r{number}", day, company, fare, payment, tipped])


def shapes() -> None:
    """Folders of JPEG files of several sizes: circles and squares."""
    from PIL import Image, ImageDraw

    for number in range(1200):
        name = ("circle", "square")[number % 2]
        (RAW / "shapes" / name).mkdir(parents=True, exist_ok=True)
        width, height = (int(side) for side in DRAW.integers(24, 64, 2))
        image = Image.new("RGB", (width, height), tuple(DRAW.integers(0, 90, 3).tolist()))
        size = int(min(width, height) * DRAW.uniform(0.5, 0.9))
        left, top = (int(DRAW.integers(0, side - size + 1)) for side in (width, height))
        pen = ImageDraw.Draw(image)
        draw = pen.ellipse if name == "circle" else pen.rectangle
        draw((left, top, left + size, top + size), fill=tuple(DRAW.integers(150, 256, 3).tolist()))
        image.save(RAW / "shapes" / name / f"{number}.jpg")


def reviews() -> None:
    """A Parquet file of lists of token numbers, of reviews that are good or bad."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    labels = DRAW.integers(0, 2, 3000)
    tokens = [
        np.where(
            DRAW.random(size) < 0.3, DRAW.integers(50, 60, size) + 10 * label, DRAW.integers(1, 50, size)
        )
        for label, size in zip(labels, DRAW.integers(3, 40, 3000), strict=True)
    ]
    table = {
        "tokens": [row.tolist() for row in tokens],
        "sentiment": [("bad", "good")[one] for one in labels],
    }
    pq.write_table(pa.table(table), RAW / "reviews.parquet")


def sentences() -> None:
    """JSON lines of words, each with its part of speech, which the word before decides where it is unclear."""
    words = {"article": range(1, 4), "noun": range(4, 30), "verb": range(20, 50)}
    follows = {"start": "article", "article": "noun", "noun": "verb", "verb": "article"}
    with (RAW / "sentences.jsonl").open("w") as file:
        for _ in range(2000):
            tags, tag = [], "start"
            for _ in range(int(DRAW.integers(2, 15))):
                tag = follows[tag]
                tags.append(tag)
            tokens = [int(DRAW.choice(words[tag])) for tag in tags]
            print(json.dumps({"topic": int(DRAW.integers(5)), "tokens": tokens, "tags": tags}), file=file)


def sounds() -> None:
    """Folders of WAV files of 8 kHz: tones and noise."""
    for number in range(400):
        name, size = ("tone", "noise")[number % 2], int(DRAW.integers(1000, 4000))
        (RAW / "sounds" / name).mkdir(parents=True, exist_ok=True)
        samples = DRAW.normal(size=size) * 0.2
        if name == "tone":
            samples = 0.05 * samples + 0.4 * np.sin(np.arange(size) * DRAW.uniform(0.1, 0.8))
        with wave.open(str(RAW / "sounds" / name / f"{number}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def objects() -> None:
    """Images with a bright rectangle, and COCO annotations of it."""
    from PIL import Image

    (RAW / "images").mkdir()
    coco = {"images": [], "annotations": [], "categories": [{"id": 7, "name": "box"}]}
    for number in range(800):
        width, height = (int(side) for side in DRAW.integers(8, 24, 2))
        left, top = int(DRAW.integers(0, 49 - width)), int(DRAW.integers(0, 49 - height))
        pixels = DRAW.integers(0, 80, (48, 48, 3), np.uint8)
        pixels[top : top + height, left : left + width] += 150
        Image.fromarray(pixels).save(RAW / "images" / f"{number}.png")
        coco["images"].append({"id": number, "file_name": f"{number}.png", "width": 48, "height": 48})
        box = {"id": number, "image_id": number, "category_id": 7, "bbox": [left, top, width, height]}
        coco["annotations"].append({**box, "area": width * height, "iscrowd": 0})
    (RAW / "instances.json").write_text(json.dumps(coco))


def clicks() -> None:
    """A Parquet file of a gigabyte of columns like Criteo's: 13 numbers, 26 texts, and a click."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = pa.array([f"{number:08x}" for number in DRAW.integers(0, 1 << 32, 1000)])
    writer = None
    size = 160_000 // int(os.environ.get("FRACTION", "1"))
    for _ in range(8):
        numbers = {f"i{place}": DRAW.gamma(2, 10, size).astype(np.float32) for place in range(13)}
        clicked = numbers["i0"] + DRAW.normal(0, 5, size) > 20
        texts = {f"c{place}": names.take(pa.array(DRAW.integers(0, 1000, size))) for place in range(26)}
        table = pa.table({"click": pa.array(np.where(clicked, "yes", "no")), **numbers, **texts})
        writer = writer or pq.ParquetWriter(RAW / "clicks.parquet", table.schema)
        writer.write_table(table)
    writer.close()


if __name__ == "__main__":
    RAW.mkdir(exist_ok=True)
    globals()[sys.argv[1]]()
