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
    """A Parquet file of reviews, good or bad, as lists of token numbers."""
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
    """JSON lines of words with their parts of speech. For an ambiguous word, the previous word decides."""
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


def yolo() -> None:
    """The same images in the folders of YOLO: `images/train` and `labels/train`, with `data.yaml`."""
    objects()
    coco = json.loads((RAW / "instances.json").read_text())
    for one, box in zip(coco["images"], coco["annotations"], strict=True):
        split = "val" if one["id"] % 5 == 0 else "train"
        for kind in ("images", "labels"):
            (RAW / kind / split).mkdir(parents=True, exist_ok=True)
        (RAW / "images" / one["file_name"]).rename(RAW / "images" / split / one["file_name"])
        left, top, width, height = (side / 48 for side in box["bbox"])
        line = f"0 {left + width / 2:.6f} {top + height / 2:.6f} {width:.6f} {height:.6f}\n"
        (RAW / "labels" / split / f"{one['id']}.txt").write_text(line)
    (RAW / "instances.json").unlink()
    (RAW / "data.yaml").write_text("path: .\ntrain: images/train\nval: images/val\n\nnames:\n  0: box\n")


def labelme() -> None:
    """The same images, each beside a JSON file of LabelMe with its rectangle."""
    objects()
    coco = json.loads((RAW / "instances.json").read_text())
    for one, box in zip(coco["images"], coco["annotations"], strict=True):
        left, top, width, height = box["bbox"]
        points = [[left, top], [left + width, top + height]]
        shape = {"label": "box", "points": points, "shape_type": "rectangle", "group_id": None, "flags": {}}
        file = {"version": "5.5.0", "flags": {}, "shapes": [shape], "imagePath": one["file_name"]}
        file |= {"imageData": None, "imageHeight": 48, "imageWidth": 48}
        (RAW / "images" / f"{one['id']}.json").write_text(json.dumps(file))
    (RAW / "instances.json").unlink()


def unlabelled() -> None:
    """A folder of TFDS, whose test split has -1 in place of each label: `plus` if the first four values have
    a larger sum than the others.
    """
    import tensorflow as tf

    folder = RAW / "signs" / "1.0.0"
    folder.mkdir(parents=True)
    for split, rows in (("train", 2000), ("test", 400)):
        with tf.io.TFRecordWriter(str(folder / f"signs-{split}.tfrecord-00000-of-00001")) as writer:
            for _ in range(rows):
                values = DRAW.normal(size=8).astype(np.float32)
                label = int(values[:4].sum() > values[4:].sum())
                example = tf.train.Example()
                example.features.feature["values"].float_list.value.extend(values.tolist())
                stored = label if split == "train" else -1
                example.features.feature["label"].int64_list.value.append(stored)
                writer.write(example.SerializeToString())
    core = "tensorflow_datasets.core.features"
    features = {
        "label": {
            "pythonClassName": f"{core}.class_label_feature.ClassLabel",
            "classLabel": {"numClasses": "2"},
        },
        "values": {
            "pythonClassName": f"{core}.tensor_feature.Tensor",
            "tensor": {"shape": {"dimensions": ["8"]}, "dtype": "float32", "encoding": "none"},
        },
    }
    named = {"pythonClassName": f"{core}.features_dict.FeaturesDict", "featuresDict": {"features": features}}
    (folder / "features.json").write_text(json.dumps(named))
    (folder / "label.labels.txt").write_text("minus\nplus\n")
    template = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    splits = [
        {"name": split, "shardLengths": [str(rows)], "numBytes": "1", "filepathTemplate": template}
        for split, rows in (("train", 2000), ("test", 400))
    ]
    info = {"name": "signs", "version": "1.0.0", "fileFormat": "tfrecord", "splits": splits}
    (folder / "dataset_info.json").write_text(json.dumps(info))


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


def modes() -> None:
    """Pictures of circles and squares as people keep them: photos in colour, in grey and for printing, drawings with
    a palette and with transparency, scans of 16 bits, and one under a wrong name."""
    from PIL import Image, ImageDraw

    for number in range(900):
        name = ("circle", "square")[number % 2]
        (RAW / "modes" / name).mkdir(parents=True, exist_ok=True)
        image = Image.new("RGB", (40, 40), tuple(DRAW.integers(0, 90, 3).tolist()))
        left, top = (int(side) for side in DRAW.integers(2, 12, 2))
        draw = ImageDraw.Draw(image)
        draw = draw.ellipse if name == "circle" else draw.rectangle
        draw((left, top, left + 24, top + 24), fill=tuple(DRAW.integers(150, 256, 3).tolist()))
        mode, suffix = (
            ("RGB", "jpg"),
            ("L", "jpg"),
            ("CMYK", "jpg"),
            ("RGB", "jpg"),
            ("P", "png"),
            ("RGBA", "png"),
        )[int(DRAW.integers(6))]
        image = image.convert(mode)
        if number % 100 == 7:
            image, suffix = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257), "png"
        place = RAW / "modes" / name / f"{number}.{suffix}"
        image.save(place)
        if number == 8:
            place.rename(place.with_suffix(".png" if suffix == "jpg" else ".jpg"))


def rates() -> None:
    """Folders of WAV files of mixed sample rates, channels and widths: tones and noise."""
    for number in range(400):
        name, rate = ("tone", "noise")[number % 2], int(DRAW.choice([8000, 8000, 16000, 22050]))
        channels, width = int(DRAW.integers(1, 3)), int(DRAW.choice([1, 2, 2]))
        (RAW / "rates" / name).mkdir(parents=True, exist_ok=True)
        samples = DRAW.normal(size=(int(rate * DRAW.uniform(0.2, 0.4)), channels)) * 0.2
        if name == "tone":
            times = np.arange(len(samples)) / rate
            samples = 0.05 * samples + 0.4 * np.sin(times * DRAW.uniform(1000, 6000))[:, None]
        with wave.open(str(RAW / "rates" / name / f"{number}.wav"), "wb") as file:
            file.setnchannels(channels)
            file.setsampwidth(width)
            file.setframerate(rate)
            cast = samples * 127 + 128 if width == 1 else samples * 32767
            file.writeframes(
                np.clip(cast, *((0, 255) if width == 1 else (-32768, 32767)))
                .astype(f"<{'ui'[width - 1]}{width}")
                .tobytes()
            )


def sales() -> None:
    """A compressed CSV file as a German spreadsheet saves it: decimal commas, days first, `k.A.`, Windows' letters."""
    import gzip

    lines = ["Datum;Größe;Preis;Rabatt;Käufer"]
    for _ in range(4000):
        day = np.datetime64("2024-01-01") + int(DRAW.integers(366))
        size, discount = DRAW.gamma(3, 40), int(DRAW.integers(0, 60))
        price = size * DRAW.uniform(8, 12) * (1 - discount / 100)
        buyer = "Händler" if price > 900 else "Kunde"
        year, month, date = str(day).split("-")
        numbers = [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in (size, price)]
        size_cell = "k.A." if DRAW.random() < 0.05 else numbers[0]
        lines.append(f"{date}.{month}.{year};{size_cell};{numbers[1]};{discount} %;{buyer}")
    with gzip.open(RAW / "verkauf.csv.gz", "wb") as file:
        file.write("\r\n".join([*lines, ""]).encode("windows-1252"))


def posts() -> None:
    """JSON lines of nested objects: the author, the tags and the replies of a post, and whether it is
    popular."""
    with (RAW / "posts.jsonl").open("w") as file:
        for number in range(3000):
            followers, tags = int(DRAW.gamma(2, 300)), DRAW.choice(["cats", "news", "food", "code"], 2, False)
            replies = [
                {"by": f"u{DRAW.integers(50)}", "length": int(DRAW.integers(1, 90))}
                for _ in range(DRAW.poisson(2))
            ]
            score = followers / 300 + 2 * ("cats" in tags) + 0.5 * len(replies)
            post = {
                "id": number,
                "author": {
                    "name": f"n{number % 90}",
                    "stats": {"followers": followers, "verified": bool(number % 3)},
                },
                "tags": tags.tolist()[: int(DRAW.integers(3))] if "cats" not in tags else tags.tolist(),
                "replies": replies,
                "popular": "yes" if score > 4 else "no",
            }
            print(json.dumps(post), file=file)


def orders() -> None:
    """A Parquet file as a warehouse writes it: decimals, times of day, structs, lists that are missing, truth values."""
    from datetime import time
    from decimal import Decimal

    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = []
    for number in range(3000):
        items = int(DRAW.integers(0, 6))
        price, member = Decimal(int(DRAW.gamma(2, 2500))) / 100, [True, False, None][int(DRAW.integers(3))]
        late = float(price) > 45 or items > 4
        rows.append(
            {
                "order": number,
                "price": price,
                "at": time(int(DRAW.integers(24)), int(DRAW.integers(60))),
                "member": member,
                "customer": {
                    "age": int(DRAW.integers(18, 80)),
                    "town": str(DRAW.choice(["Rome", "Oslo", "Lima"])),
                },
                "quantities": None if items == 0 else DRAW.integers(1, 9, items).tolist(),
                "late": "late" if late else "in time",
            }
        )
    price = pa.decimal128(10, 2)
    table = pa.Table.from_pylist(rows)
    pq.write_table(table.set_column(1, "price", table["price"].cast(price)), RAW / "orders.parquet")


def readings() -> None:
    """2,000 small TFRecord files of another program: sensors that are healthy, or drift."""
    import tensorflow as tf

    (RAW / "readings").mkdir()
    for file in range(2000):
        split = "test" if file % 5 == 0 else "train"
        with tf.io.TFRecordWriter(str(RAW / "readings" / f"{split}_{file:04}.tfrecord")) as writer:
            for _ in range(10):
                drifts = int(DRAW.integers(2))
                trace = DRAW.normal(size=16).cumsum() * (0.2 + 0.4 * drifts)
                example = tf.train.Example()
                example.features.feature["trace"].float_list.value.extend(trace)
                example.features.feature["state"].bytes_list.value.append([b"well", b"drifts"][drifts])
                writer.write(example.SerializeToString())


def opinions() -> None:
    """JSON lines of short texts labelled as praise or blame; no list has the names of the classes."""
    words = {
        "praise": ["lovely", "superb", "great", "fun", "warm", "clever"],
        "blame": ["dull", "awful", "slow", "cold", "silly", "flat"],
        "": [
            "the",
            "film",
            "was",
            "and",
            "its",
            "plot",
            "with",
            "actors",
            "scenes",
            "music",
            "story",
            "a",
            "of",
            "then",
        ],
    }
    with (RAW / "opinions.jsonl").open("w") as file:
        for number in range(2500):
            kind = ("praise", "blame")[int(DRAW.integers(2))]
            text = [*DRAW.choice(words[""], int(DRAW.integers(4, 20))), *DRAW.choice(words[kind], 2)]
            DRAW.shuffle(text)
            print(
                json.dumps({"id": number, "text": f"{' '.join(text).capitalize()}.", "opinion": kind}),
                file=file,
            )


def results() -> None:
    """Lists of TF-Ranking: a query with its documents, one of them clicked."""
    import tensorflow as tf
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    package = descriptor_pb2.FileDescriptorProto(
        name="elwc.proto", package="elwc", dependency=["tensorflow/core/example/example.proto"]
    )
    message = package.message_type.add(name="ExampleListWithContext")
    for number, (name, label) in enumerate((("examples", 3), ("context", 1)), 1):
        message.field.add(name=name, number=number, label=label, type=11, type_name=".tensorflow.Example")
    descriptor_pool.Default().Add(package)
    found = descriptor_pool.Default().FindMessageTypeByName("elwc.ExampleListWithContext")
    lists = message_factory.GetMessageClass(found)
    for split, count in (("train", 2000), ("test", 500)):
        with tf.io.TFRecordWriter(str(RAW / f"{split}.tfrecord")) as writer:
            for _ in range(count):
                query, documents = DRAW.normal(size=4), DRAW.normal(size=(int(DRAW.integers(3, 9)), 4))
                clicked = int(np.argmax(documents @ query))
                elwc = lists()
                elwc.context.features.feature["query"].float_list.value.extend(query)
                for place, document in enumerate(documents):
                    features = elwc.examples.add().features.feature
                    features["document"].float_list.value.extend(document)
                    features["clicked"].int64_list.value.append(int(place == clicked))
                writer.write(elwc.SerializeToString())


def series() -> None:
    """A CSV file of the hourly load of a power grid, with gaps."""
    hours = np.arange(24 * 7 * 20)
    load = (
        50
        + 12 * np.sin(hours * np.pi / 12)
        + 6 * (hours // 24 % 7 < 5)
        + DRAW.normal(0, 1, len(hours)).cumsum() * 0.1
    )
    with (RAW / "series.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["time", "load"])
        for hour, value in zip(hours, load, strict=True):
            time = np.datetime64("2024-01-01T00") + np.timedelta64(int(hour), "h")
            table.writerow([time, "" if DRAW.random() < 0.01 else f"{value:.3f}"])


def phrases() -> None:
    """Phrases of three words in English, with their French, whose adjective follows the noun."""
    colors = {"red": "rouge", "black": "noir", "yellow": "jaune", "white": "blanc", "green": "vert"}
    things = {"cat": "chat", "book": "livre", "train": "train", "hat": "chapeau", "bread": "pain"}
    numbers = {"two": "deux", "three": "trois", "four": "quatre", "five": "cinq"}
    with (RAW / "phrases.jsonl").open("w") as file:
        for number in range(4000):
            color, thing, many = (str(DRAW.choice([*words])) for words in (colors, things, numbers))
            row = {
                "id": f"p{number}",
                "english": f"{many} {color} {thing}s",
                "french": f"{numbers[many]} {things[thing]}s {colors[color]}s",
            }
            file.write(json.dumps(row) + "\n")


def log() -> None:
    """A compressed text file of a machine without a header: comments, quotes that enclose no cell, and a list of
    alarms in a cell."""
    import bz2

    alarms = ["heat", "dust", "noise", "door"]
    lines = ["# press 7, 2024"]
    for number in range(1500):
        raised = [name for name in alarms if DRAW.random() < 0.3]
        load = float(DRAW.gamma(3, 10))
        state = "stop" if "heat" in raised or load > 50 else "run"
        lines.append(f'{number};"{DRAW.choice(["L", "S"])}" pipe;{load:.2f};{"|".join(raised)};{state}')
        lines += ["# shift"] * (number % 500 == 499)
    (RAW / "press.csv.bz2").write_bytes(bz2.compress("\n".join([*lines, ""]).encode()))


def trips() -> None:
    """Parquet files in folders named after the columns of the city and the year, as Spark writes them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for place, city in enumerate(("Oslo", "Rome", "Kyiv")):
        for year in (2023, 2024):
            folder = RAW / "trips" / f"city={city}" / f"year={year}"
            folder.mkdir(parents=True)
            distance, night = DRAW.gamma(2, 4, 400), DRAW.integers(0, 2, 400).astype(bool)
            price = (2 + place) * distance + 5 * night + (year - 2023) * 4
            category = np.where(price > 25, "taxi", "bus")
            columns = {"distance": distance.astype(np.float32), "night": night, "category": category}
            pq.write_table(pa.table(columns), folder / "part-0.parquet")


def questions() -> None:
    """A JSON document with the questions of an exam in a list, as SQuAD has its articles."""
    data = []
    for number in range(1500):
        asked = [int(DRAW.integers(1, 90)) for _ in range(DRAW.integers(2, 7))]
        hard = sum(asked) > 180
        steps = [{"kind": str(DRAW.choice(["add", "copy"])), "number": one} for one in asked]
        data.append({"id": f"q{number}", "steps": steps, "meta": {"level": "hard" if hard else "easy"}})
    (RAW / "exam.json").write_text(json.dumps({"version": "1.1", "data": data}))


def vibrations() -> None:
    """`.npy` files of vibrations of several lengths, in folders of folders: the class is the path."""
    for name, speed in {"metal/iron": 0.3, "metal/gold": 0.9, "stone/flint": 1.8}.items():
        (RAW / "vibrations" / name).mkdir(parents=True)
        for number in range(250):
            times = np.arange(DRAW.integers(20, 40)) * speed + DRAW.uniform(0, 6)
            values = np.sin(times) + DRAW.normal(0, 0.2, len(times))
            np.save(RAW / "vibrations" / name / f"{number}.npy", values.astype(np.float32))


def dogs() -> None:
    """A contest as on Kaggle: `train.csv` with names of images and their breeds, and `test.csv` with names alone;
    `solution.csv` has the breeds of the test set, which a contest keeps."""
    from PIL import Image

    for split, count in (("train", 600), ("test", 200)):
        (RAW / split).mkdir()
        breeds = DRAW.choice(["beagle", "husky"], count)
        for number, breed in enumerate(breeds):
            pixels = DRAW.integers(0, 120, (24, 24, 3), np.uint8)
            across = pixels if breed == "beagle" else pixels.swapaxes(0, 1)
            across[int(DRAW.integers(2, 18)) :][:4] += 130
            Image.fromarray(pixels).save(RAW / split / f"{split}{number}.png")
        names = [f"{split}{number}" for number in range(count)]
        labelled = ["id,breed", *map(",".join, zip(names, breeds, strict=True))]
        (RAW / ("train.csv" if split == "train" else "solution.csv")).write_text("\n".join(labelled) + "\n")
    (RAW / "test.csv").write_text("\n".join(["id", *names]) + "\n")


def poses() -> None:
    """Images with two bright points, which are COCO's keypoints: a head and a tail."""
    from PIL import Image

    (RAW / "images").mkdir()
    names = ["head", "tail"]
    coco = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "fish", "keypoints": names}]}
    for number in range(800):
        pixels = DRAW.integers(0, 60, (32, 32, 3), np.uint8)
        (x, y), (u, v) = (DRAW.integers(2, 30, 2).tolist() for _ in names)
        for channel, (left, top) in ((0, (x, y)), (2, (u, v))):
            pixels[top - 2 : top + 2, left - 2 : left + 2, channel] = 250
        Image.fromarray(pixels).save(RAW / "images" / f"{number}.png")
        coco["images"].append({"id": number, "file_name": f"{number}.png", "width": 32, "height": 32})
        left, top, right, bottom = min(x, u) - 1, min(y, v) - 1, max(x, u) + 1, max(y, v) + 1
        pose = {"id": number, "image_id": number, "category_id": 1, "iscrowd": 0, "num_keypoints": 2}
        pose["bbox"], pose["area"] = [left, top, right - left, bottom - top], (right - left) * (bottom - top)
        coco["annotations"].append({**pose, "keypoints": [x, y, 2, u, v, 2]})
    (RAW / "keypoints.json").write_text(json.dumps(coco))


if __name__ == "__main__":
    RAW.mkdir(exist_ok=True)
    globals()[sys.argv[1]]()
