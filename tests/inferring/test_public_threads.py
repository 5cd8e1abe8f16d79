"""Files that users reported to converters and dataset libraries: each is built, or refused with a hint.

The id of a case is its GitHub issue, `owner/repository#number`. The test writes files as the issue describes them.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import recordspec as rs
from media import photo


def pictures(*names: str, height: int = 20, width: int = 30) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(photo(height, width)).save(name)


def lines(name: str, rows: list[Any]) -> None:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def voc(box: str, name: str = "a.jpg", width: int = 30) -> None:
    pictures("JPEGImages/a.jpg")
    Path("Annotations").mkdir()
    size = f"<size><width>{width}</width><height>20</height></size>"
    found = f"<object><name>car</name><bndbox>{box}</bndbox></object>"
    Path("Annotations/a.xml").write_text(f"<annotation><filename>{name}</filename>{size}{found}</annotation>")


UPRIGHT = "<xmin>1</xmin><ymin>2</ymin><xmax>9</xmax><ymax>8</ymax>"


def hidden_and_empty_folders() -> str:
    pictures("skip/0.jpg", "keep/0.jpg", ".ipynb_checkpoints/0.jpg")
    Path("empty").mkdir()
    Path("skip/.DS_Store").write_text("x")
    return "."


def names_without_suffix() -> str:
    pictures(*(f"images/{number}_cat.jpg" for number in range(20)))
    Path("labels.csv").write_text("image,label\n" + "".join(f"{n}_cat,{'ab'[n % 2]}\n" for n in range(20)))
    return "labels.csv"


def rows_of_boxes() -> str:
    pictures("images/r0.jpg", "images/r1.jpg")
    rows = "".join(f"r{number // 2}.jpg,raccoon,{number}\n" for number in range(4))
    Path("train_labels.csv").write_text(f"filename,class,xmin\n{rows}")
    return "train_labels.csv"


def annotator() -> str:
    shape = {"name": "rect", "x": 4, "y": 3, "width": 9, "height": 4}
    regions = [{"shape_attributes": shape, "region_attributes": {}}]
    Path("via.json").write_text(json.dumps({"0.jpg593": {"filename": "0.jpg", "regions": regions}}))
    return "via.json"


def coco(*found: dict[str, Any], folder: str = "") -> Callable[[], str]:
    def make() -> str:
        pictures("images/1.jpg", "images/2.jpg")
        named = [{"id": n, "file_name": f"{folder}{n}.jpg"} for n in (1, 2)]
        objects = [{"id": n, "image_id": 1, "category_id": 0, **one} for n, one in enumerate(found)]
        birds = [{"id": 0, "name": "bird", "supercategory": None}]
        sized = [{**one, "width": 30, "height": 20} for one in named]
        document = {"images": sized, "annotations": objects, "categories": birds}
        Path("coco.json").write_text(json.dumps(document))
        return "coco.json"

    return make


def yolo(text: str, names: str = "[person, car]") -> Callable[[], str]:
    def make() -> str:
        pictures("images/train/a.jpg", "images/train/b.jpg")
        Path("labels/train").mkdir(parents=True)
        Path("labels/train/a.txt").write_text(text)
        Path("data.yaml").write_text(f"train: images/train\nnames: {names}\n")
        return "data.yaml"

    return make


def darknet() -> str:
    Path(yolo("1 0.5 0.5 0.2 0.2\n")()).unlink()
    Path("classes.txt").write_text("person\ncar\n\n")
    return "."


def labelme(kind: str, points: list[list[int]]) -> Callable[[], str]:
    def make() -> str:
        pictures("a.jpg")
        shape = {"label": "dog", "shape_type": kind, "points": points, "group_id": 0}
        document = {"imageData": None, "imagePath": "a.jpg", "imageHeight": 20, "imageWidth": 30}
        Path("a.json").write_text(json.dumps({**document, "shapes": [shape]}))
        return "."

    return make


def pets() -> str:
    """PNG and GIF files named .jpg, and bytes after the end of a JPEG."""
    pictures("cat/0.png", "cat/1.gif", "dog/0.jpg")
    for name in ("cat/0.png", "cat/1.gif"):
        Path(name).rename(Path(name).with_suffix(".jpg"))
    data = Path("dog/0.jpg").read_bytes()
    Path("dog/0.jpg").write_bytes(data[:-2] + bytes(245) + data[-2:])
    return "."


def zeros() -> str:
    pictures("a/0.jpg", "b/0.jpg")
    Path("b/1.jpg").write_bytes(bytes(4000))
    return "."


def dots_in_names() -> str:
    with tarfile.open("a.tar", "w") as file:
        for suffix in ("mp3", "json"):
            file.addfile(tarfile.TarInfo(f"235342 Track 2.0 (Clean Version).{suffix}"))
    return "a.tar"


def other_columns() -> str:
    lines("a.jsonl", [{"text": "x y"}])
    lines("b.jsonl", [{"text": "y z", "split": "test", "index": 3}])
    return "*.jsonl"


def rows(*given: Any) -> Callable[[], str]:
    def make() -> str:
        lines("rows.jsonl", list(given))
        return "rows.jsonl"

    return make


def table(text: str) -> Callable[[], str]:
    def make() -> str:
        Path("rows.csv").write_text(text)
        return "rows.csv"

    return make


def annotated(*args: Any) -> Callable[[], str]:
    def make() -> str:
        voc(*args)
        return "."

    return make


NER = {"text": "a b", "ner": [[0, 4, "Process"], [15, 16, "Protein"]]}
LACKING = "name,label\n" + "".join(f"N{number} & Co,{number % 2}\n" for number in range(9)) + ",\n"
MARKS = "a,b\n" + "".join(
    f"{number if number % 3 else 'NA'},{number if number % 4 else 'null'}\n" for number in range(9)
)
TELEMONITORING = "subject#,Jitter(%),Jitter:RAP\n" + "".join(
    f"{number},0.0066{number},3.38e-005\n" for number in range(9)
)
WIDE = "".join(f"{number},972079842{number},89,{number % 4}\n" for number in range(9))
BIRD = {"bbox": [3, 2, 6, 4], "segmentation": []}
OBJECTS = {"image": "image", "boxes": "box", "labels": "label"}
# The thread; what makes its files; the features that are built, or the start of the refusal; a part of a note.
CASES: list[tuple[str, Callable[[], str], dict[str, str] | str, str]] = [
    ("tensorflow/tensorflow#46595, pytorch/vision#4925, apple/turicreate#641", hidden_and_empty_folders,
     {"image": "image", "label": "label"}, "empty"),
    ("datitran/raccoon_dataset#12", names_without_suffix, {"image": "image", "label": "label"}, "paths of image files"),
    ("EdjeElectronics/TensorFlow-Object-Detection-API-Tutorial-Train-Multiple-Objects-Windows-10#322", rows_of_boxes,
     {"filename": "image", "class": "text", "xmin": "fixed_len"}, "`group_by: filename` keeps them together"),
    ("a64bit/tf2-object-detection-api-tutorial#3", annotator, "via.json: expected a feature of TFDS",
     "annotations of the VGG Image Annotator, which exports them as COCO's"),
    ("yangxue0827/R-DFPN_FPN_Tensorflow#10", annotated("<x0>1</x0><y0>9</y0><x1>8</x1><y1>2</y1>"),
     "Annotations/a.xml: bndbox: expected <xmin>, got corners", "a box has upright sides"),
    ("tensorflow/models#4218", annotated(UPRIGHT, "a.jpg", 4963),
     "Annotations/a.xml: features.image: expected an image of 4963 x 20", ""),
    ("acl21/image_bbox_slicer#11", annotated(UPRIGHT, "whole.tif"),
     {"image": "image", "boxes": "box", "labels": "label"}, "whole.tif"),
    ("huggingface/datasets#6460", rows(NER, NER), {"text": "text"}, "ner: lists of lists of int and str"),
    ("huggingface/datasets#7322", rows({"id": 1, "content": {"a": 1}}, {"id": 2, "content": [{"a": 1}]}),
     {"id": "fixed_len"}, "content: "),
    ("huggingface/datasets#6106", rows({"x": "-0.2253", "y": 1.5}, {"x": 0.5, "y": 2.5}), {"y": "fixed_len"},
     "x: str and float"),
    ("huggingface/datasets#7501", rows({"a": 1, "b": [{"c": 2}, {"c": 4}]}, {"a": 5, "b": []}),
     {"a": "fixed_len", "b.c": "var_len"}, ""),
    ("tensorflow/tensorflow#25825, tensorflow/tensorflow#13007", table(MARKS), {"a": "fixed_len", "b": "fixed_len"},
     "a: missing in 3 of 9 rows"),
    ("tensorflow/tfx#2802", table(LACKING), {"name": "fixed_len", "label": "fixed_len"}, "label: missing in 1 of 10 rows"),
    ("tensorflow/tensorflow#43074", table(TELEMONITORING), dict.fromkeys(("subject#", "Jitter(%)", "Jitter:RAP"), "fixed_len"),
     ""),
    ("tensorflow/tensorflow#33344", table(WIDE), {f"column_{number}": "fixed_len" for number in range(1, 5)},
     "`header: false`"),
    ("pandas-dev/pandas#22140", table('Col1|Col2\nStr2|q\nStr3|"\nStr4|s\n'), {"Col1": "text", "Col2": "text"},
     "`quote: null`: on line 3"),
    ("pandas-dev/pandas#16559, pandas-dev/pandas#5500", table('c1,c2\n"test \x1a    test", test\n'),
     {"c1": "text", "c2": "text"}, ""),
    ("pandas-dev/pandas#11493", table("a,b\n1,2\n1,2,3\n"), "rows.csv:3: expected 2 cells, as in the header, got 3", ""),
    ("YichenZW/Coh-MGT-Detection#4, huggingface/datasets#7169", other_columns,
     {"text": "text", "split": "fixed_len", "index": "fixed_len"}, "index: missing in 1 of 2 rows"),
    ("ultralytics/yolov5#8475", yolo("-1 0.5 0.5 0.2 0.2\n"),
     "labels/train/a.txt: expected a class 0 to 1, as data.yaml names, got -1 on line 1", ""),
    ("ultralytics/yolov5#3656, ultralytics/yolov3#569", yolo("0 0.95 0.5 0.2 0.2\n"), OBJECTS, "`clip: true`"),
    ("Deci-AI/super-gradients#1050", yolo("0 0.15 0.57 0.14 0.6 0.12 0.74 0.13 0.75\n"), OBJECTS, "1 of polygon"),
    ("WongKinYiu/yolor#45", darknet, OBJECTS, "boxes: none in 1 of 2 images"),
    ("WongKinYiu/yolor#45, in data.yaml", yolo("0 0.5 0.5 0.2 0.2\n", "coco.names"),
     "data.yaml: names: expected the names of the classes", "`names: coco.names` of the source reads a file"),
    ("ryouchinsa/Rectlabel-support#50", coco(), OBJECTS, "no object is `bird`"),
    ("DLR-RM/BlenderProc#34", coco(BIRD, {"bbox": [3, 2, 0, 4]}), OBJECTS, "1 without an area"),
    ("voxel51/fiftyone#1523", coco(BIRD, folder="/path/to/"), "`coco.json` names images such as `/path/to/1.jpg`",
     "paths of another machine: write paths from a folder, such as `1.jpg`"),
    ("nipdep/imgann#2", coco({}), "coco.json: annotations[0].bbox: expected [x, y, width, height], got none", ""),
    ("yyccR/yolov5_in_tf2_keras#7", labelme("circle", [[15, 10], [18, 10]]), OBJECTS, "1 of circle"),
    ("PaddlePaddle/PaddleDetection#1296", labelme("rectangle", [[20, 15], [4, 3]]), OBJECTS, ""),
    ("tensorflow/models#2194", pets, {"image": "image", "label": "label"}, "files with the suffix of another format"),
    ("tensorflow/tensorflow#45019", zeros, "b/1.jpg: features.image: expected an image", "4,000 zero bytes"),
    ("webdataset/webdataset#237", dots_in_names, "`a.tar` is a tar archive, which is not inferred", "source `webdataset`"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "expected", "note"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_files_of_public_threads(tmp_path, monkeypatch, make, expected, note):
    monkeypatch.chdir(tmp_path)
    given = make()
    if isinstance(expected, str):
        with pytest.raises(rs.RecordspecError) as error:
            build(given)
        assert str(error.value).startswith(expected)
        assert note in str(error.value)
        return
    found, manifest = build(given)
    assert {feature.name: feature.kind for feature in found.schema.features} == expected
    assert manifest.rows("train") > 0
    assert any(note in one for one in found.notes) or not note
    for row in rs.iterate("data", batch=4):
        assert all(isinstance(value, np.ndarray | rs.RaggedArray) for value in row.values())


def build(given: str) -> tuple[rs.InferredConfig, rs.Manifest]:
    found = rs.infer(given).with_options(write={"splits": None, "shuffle": None}, read={"batch": 4})
    found.save("c.yaml", schema="s.yaml", data="data")
    return found, rs.Pipeline.load("c.yaml").build()
