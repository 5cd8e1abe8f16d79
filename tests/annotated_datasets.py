"""Datasets of annotated images, written as the tools write them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import yaml
from PIL import Image

NAMES = ("cat", "dog", "red fox")


@dataclass(frozen=True)
class Picture:
    """An image, with (class, left, top, right, bottom) of each object in pixels of the image as it is shown."""

    name: str
    width: int
    height: int
    objects: tuple[tuple[int, int, int, int, int], ...]
    orientation: int = 1

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        width, height = (self.width, self.height) if self.orientation < 5 else (self.height, self.width)
        exif = Image.Exif()
        if self.orientation != 1:
            exif[0x0112] = self.orientation
        Image.new("RGB", (width, height), (9, 99, 200)).save(path, exif=exif)


def pictures(count: int, seed: int, orientations: tuple[int, ...] = (1,)) -> list[Picture]:
    """Images of several sizes, of which each third has no object."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        width, height = (int(side) for side in random.integers(20, 90, 2))
        objects = []
        for _ in range(number % 3):
            left, right = sorted(int(one) for one in random.choice(width + 1, 2, replace=False))
            top, bottom = sorted(int(one) for one in random.choice(height + 1, 2, replace=False))
            objects.append((int(random.integers(len(NAMES))), left, top, right, bottom))
        orientation = orientations[number % len(orientations)]
        made.append(Picture(f"img {seed}-{number:03d}.jpg", width, height, tuple(objects), orientation))
    return made


def yolo_lines(picture: Picture) -> str:
    lines = []
    for label, left, top, right, bottom in picture.objects:
        x, y = (left + right) / 2 / picture.width, (top + bottom) / 2 / picture.height
        width, height = (right - left) / picture.width, (bottom - top) / picture.height
        lines.append(f"{label} {x:.6f} {y:.6f} {width:.6f} {height:.6f}\n")
    return "".join(lines)


def write_yolo(images: Path, labels: Path, given: list[Picture], *, empty: bool = True) -> None:
    """The images, and their text files; without `empty`, images without objects have none."""
    labels.mkdir(parents=True, exist_ok=True)
    for picture in given:
        picture.save(images / picture.name)
        if picture.objects or empty:
            (labels / picture.name).with_suffix(".txt").write_text(yolo_lines(picture))


def ultralytics(folder: Path, train: list[Picture], val: list[Picture]) -> Path:
    """`images/train` and `labels/train` (https://docs.ultralytics.com/datasets/detect/)."""
    for split, given in (("train", train), ("val", val)):
        write_yolo(folder / "images" / split, folder / "labels" / split, given, empty=False)
    data = {"path": "../datasets/pets", "train": "images/train", "val": "images/val", "test": None}
    names: dict[str, Any] = {"names": dict(enumerate(NAMES))}
    (folder / "pets.yaml").write_text(yaml.safe_dump(data | names, sort_keys=False))
    return folder / "pets.yaml"


def roboflow_yolo(folder: Path, train: list[Picture], val: list[Picture]) -> Path:
    """`train/images` and `train/labels` (https://roboflow.com/formats/yolo), named from a folder below."""
    for split, given in (("train", train), ("valid", val)):
        write_yolo(folder / split / "images", folder / split / "labels", given)
    (folder / "data.yaml").write_text(
        "train: ../train/images\nval: ../valid/images\ntest: ../test/images\n\n"
        f"nc: {len(NAMES)}\nnames: {list(NAMES)}\n"
    )
    (folder / "README.roboflow.txt").write_text("pets - v1\n")
    return folder


def darknet(folder: Path, train: list[Picture], val: list[Picture]) -> Path:
    """Images beside their text files, as CVAT's "YOLO 1.1"."""
    write_yolo(folder / "obj_train_data", folder / "obj_train_data", train + val)
    (folder / "obj.names").write_text("".join(f"{name}\n" for name in NAMES))
    (folder / "obj.data").write_text("classes = 3\ntrain = data/train.txt\nnames = data/obj.names\n")
    (folder / "train.txt").write_text("".join(f"data/obj_train_data/{one.name}\n" for one in train + val))
    return folder


def label_studio(folder: Path, train: list[Picture], val: list[Picture]) -> Path:
    """`images`, `labels` and `classes.txt`, with the categories of `notes.json`."""
    write_yolo(folder / "images", folder / "labels", train + val)
    (folder / "classes.txt").write_text("\n".join(NAMES))
    notes = {"categories": [{"id": n, "name": name} for n, name in enumerate(NAMES)], "info": {"year": 2026}}
    (folder / "notes.json").write_text(json.dumps(notes, indent=2))
    return folder


def cvat_yolo(folder: Path, train: list[Picture], val: list[Picture]) -> Path:
    """CVAT's "Ultralytics YOLO Detection": lists of images."""
    for split, given in (("train", train), ("val", val)):
        write_yolo(folder / "images" / split, folder / "labels" / split, given, empty=False)
        (folder / f"{split}.txt").write_text("".join(f"data/images/{split}/{one.name}\n" for one in given))
    data = {"names": dict(enumerate(NAMES)), "path": ".", "train": "train.txt", "val": "val.txt"}
    (folder / "data.yaml").write_text(yaml.safe_dump(data))
    return folder


def coco_document(given: list[Picture], **more: Any) -> dict[str, Any]:
    """https://cocodataset.org/#format-data, with category ids that have gaps."""
    images, annotations = [], []
    for number, picture in enumerate(given):
        size = {"width": picture.width, "height": picture.height}
        images.append({"id": number, "file_name": picture.name, "license": 1, **size})
        for label, left, top, right, bottom in picture.objects:
            annotation = {
                "id": len(annotations) + 1,
                "image_id": number,
                "category_id": 10 * label + 1,
                "bbox": [left, top, right - left, bottom - top],
                "area": (right - left) * (bottom - top),
                "segmentation": [[left, top, right, top, right, bottom, left, bottom]],
                "iscrowd": 0,
            }
            annotations.append(annotation)
    categories = [{"id": 10 * n + 1, "name": name, "supercategory": "none"} for n, name in enumerate(NAMES)]
    return {
        "info": {"description": "pets"},
        "images": images,
        "annotations": annotations,
        "categories": categories,
    } | more


def roboflow_coco(folder: Path, train: list[Picture], val: list[Picture]) -> Path:
    """`_annotations.coco.json` in the folder of the images of each split."""
    for split, given in (("train", train), ("valid", val)):
        for picture in given:
            picture.save(folder / split / picture.name)
        (folder / split / "_annotations.coco.json").write_text(json.dumps(coco_document(given)))
    return folder


def coco(folder: Path, train: list[Picture], val: list[Picture]) -> Path:
    """The folders of COCO itself."""
    (folder / "annotations").mkdir(parents=True)
    for split, given in (("train2017", train), ("val2017", val)):
        for picture in given:
            picture.save(folder / split / picture.name)
        (folder / f"annotations/instances_{split}.json").write_text(json.dumps(coco_document(given)))
        (folder / f"annotations/captions_{split}.json").write_text('{"images": [], "annotations": []}')
    return folder


def labelme(folder: Path, train: list[Picture], val: list[Picture]) -> Path:
    """A JSON file beside each image, as `labelme` saves them: corners in the order in which they were clicked."""
    for number, picture in enumerate(train + val):
        picture.save(folder / picture.name)
        shapes = [
            {
                "label": NAMES[label],
                "points": [[float(right), float(bottom)], [float(left), float(top)]],
                "group_id": None,
                "description": "",
                "shape_type": "rectangle",
                "flags": {},
                "mask": None,
            }
            for label, left, top, right, bottom in picture.objects
        ]
        document = {
            "version": "5.5.0",
            "flags": {},
            "shapes": shapes,
            "imagePath": f"..\\raw\\{picture.name}" if number % 2 else picture.name,
            "imageData": None,
            "imageHeight": picture.height,
            "imageWidth": picture.width,
        }
        (folder / picture.name).with_suffix(".json").write_text(json.dumps(document, indent=2))
    return folder


def cvat(folder: Path, train: list[Picture], val: list[Picture]) -> Path:
    """`annotations.xml` beside `images` (https://docs.cvat.ai/docs/other/xml_format)."""
    root = ElementTree.Element("annotations")
    ElementTree.SubElement(root, "version").text = "1.1"
    task = ElementTree.SubElement(ElementTree.SubElement(root, "meta"), "task")
    labels = ElementTree.SubElement(task, "labels")
    for name in NAMES:
        label = ElementTree.SubElement(labels, "label")
        ElementTree.SubElement(label, "name").text = name
        ElementTree.SubElement(label, "type").text = "any"
    for number, picture in enumerate(train + val):
        picture.save(folder / "images" / picture.name)
        size = {"width": str(picture.width), "height": str(picture.height)}
        image = ElementTree.SubElement(root, "image", {"id": str(number), "name": picture.name, **size})
        for one in picture.objects:
            sides = dict(zip(("xtl", "ytl", "xbr", "ybr"), (f"{side:.2f}" for side in one[1:]), strict=True))
            attributes = {
                "label": NAMES[one[0]],
                "source": "manual",
                "occluded": "0",
                **sides,
                "z_order": "0",
            }
            ElementTree.SubElement(image, "box", attributes)
    folder.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(root).write(folder / "annotations.xml", encoding="utf-8", xml_declaration=True)
    return folder


def voc(folder: Path, train: list[Picture], val: list[Picture]) -> Path:
    """An XML file beside each image, as Roboflow writes them; `<filename>` of another machine."""
    (folder.parent / "ImageSets").mkdir(parents=True)
    for picture in train + val:
        picture.save(folder / picture.name)
        root = ElementTree.Element("annotation")
        ElementTree.SubElement(root, "filename").text = f"{picture.name[:-4]}_jpg.rf.0f3c.jpg"
        size = ElementTree.SubElement(root, "size")
        for side in ("width", "height"):
            ElementTree.SubElement(size, side).text = str(getattr(picture, side))
        for one in picture.objects:
            item = ElementTree.SubElement(root, "object")
            ElementTree.SubElement(item, "name").text = NAMES[one[0]]
            box = ElementTree.SubElement(item, "bndbox")
            for side, value in zip(("xmin", "ymin", "xmax", "ymax"), one[1:], strict=True):
                ElementTree.SubElement(box, side).text = str(value)
        ElementTree.ElementTree(root).write((folder / picture.name).with_suffix(".xml"))
    return folder
