"""Images that tell the classes of another image's pixels: kept, turned, resized and augmented with it."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import recordspec as rs

SCHEMA = """
schema: s
features:
  photo: {kind: image, shape: [null, null, 3], orientation: upright, resize: RESIZE}
  mask: {kind: image, shape: [null, null, 1], mask_of: photo, pad: 5, resize: RESIZE}
"""
RESIZES = ["null", "[16, 16]", "{size: [20, 20], aspect: crop}", "{size: [20, 24], aspect: pad}"]
CLASS = 2


def schema_of(resize: str = "null") -> rs.Schema:
    return rs.Schema.loads(SCHEMA.replace("RESIZE", resize))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A photo, white in one corner, in each EXIF orientation, and masks of that corner in each form."""
    folder = tmp_path_factory.mktemp("masks")
    photo = np.zeros((32, 24, 3), np.uint8)
    photo[:16, :8] = 255
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = orientation
        Image.fromarray(photo).save(folder / f"{orientation}.png", exif=exif)
    mask = (photo[..., 0] > 0).astype(np.uint8) * CLASS
    with_palette = Image.fromarray(mask)
    with_palette.putpalette([9, 9, 9, 128, 0, 0, 0, 128, 0, *[0] * 759])
    with_palette.save(folder / "palette.png")
    Image.fromarray(mask).save(folder / "grey.png")
    Image.fromarray(mask).save(folder / "mask.jpg")
    Image.fromarray(photo).save(folder / "colours.png")
    _png_of_two_bits(mask, folder / "two_bits.png")
    forms = {
        "palette": folder / "palette.png",
        "bytes": (folder / "palette.png").read_bytes(),
        "grey": folder / "grey.png",
        "two bits": folder / "two_bits.png",
        "array": mask,
        "whole numbers": mask[..., None].astype(np.int64),
        "PIL": with_palette,
    }
    return folder, mask, forms


def _png_of_two_bits(mask: np.ndarray, path) -> None:
    """In grey, which decoders scale to the full range, and Pillow does not write."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = mask.shape
    packed = (mask.reshape(height, -1, 4) << np.array([6, 4, 2, 0], np.uint8)).sum(2).astype(np.uint8)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), packed], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 2, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes())) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + parts)


def agreement(photo: np.ndarray, mask: np.ndarray, shown: int = CLASS) -> float:
    """The share of the pixels that are white in the photo where the mask has the class, and black elsewhere."""
    known = mask[..., 0] != 5
    return float(((photo[..., 0] > 127) == (mask[..., 0] == shown))[known].mean())


def rows_of(batch) -> int:
    return int(batch["mask"].nrows() if hasattr(batch["mask"], "nrows") else len(batch["mask"]))


def dense(value) -> np.ndarray:
    return np.asarray(value.to_tensor() if hasattr(value, "to_tensor") else value)


@pytest.mark.tensorflow
@pytest.mark.parametrize("resize", RESIZES)
@pytest.mark.parametrize("layout", ["rows", {"blocks": 3}])
def test_a_mask_is_where_its_photo_is(tmp_path, files, resize, layout):
    """In each orientation and form of a file, resized, and with flips and crops, by both decoders."""
    folder, _, forms = files
    rows = [{"photo": folder / f"{n}.png", "mask": form} for n in range(1, 9) for form in forms.values()]
    rs.write(rows, schema_of(resize), tmp_path / "data", layout=layout)
    opened = rs.open(tmp_path / "data", schema_of(resize))[:]
    for row in range(len(rows)):
        photo, mask = np.asarray(opened["photo"][row]), np.asarray(opened["mask"][row])
        assert {*np.unique(mask).tolist()} <= {0, CLASS, *([5] if "pad" in resize else [])}
        assert photo.shape[:2] == mask.shape[:2]
        assert agreement(photo, mask) > 0.97, row
    first = 0
    for batch in rs.read(tmp_path / "data", schema_of(resize), batch=5):
        for row in range(rows_of(batch)):
            np.testing.assert_array_equal(dense(batch["mask"][row]), np.asarray(opened["mask"][first + row]))
        first += rows_of(batch)
    moved = {"seed": 1, "flip": "both", "crop": [0.4, 0.9]}
    for batch in rs.read(tmp_path / "data", schema_of(resize), batch=5, augment=moved):
        for row in range(rows_of(batch)):
            mask = dense(batch["mask"][row])
            assert {*np.unique(mask).tolist()} <= {0, CLASS, 5}
            assert agreement(dense(batch["photo"][row]), mask) > 0.93


def test_one_bit_is_the_classes_0_and_1(files):
    folder, mask, _ = files
    for value in (Image.fromarray(mask > 0), mask > 0):
        row = schema_of().decode([schema_of().encode({"photo": folder / "1.png", "mask": value})])
        np.testing.assert_array_equal(dense(row["mask"][0])[..., 0], mask // CLASS)


def test_each_row_of_steps_has_its_masks(files):
    folder, mask, _ = files
    schema = rs.Schema.loads(
        "schema: s\nrecord: sequence_example\nsequence:\n"
        "  photo: {kind: image, shape: [null, null, 3], orientation: upright}\n"
        "  mask: {kind: image, shape: [null, null, 1], mask_of: photo}\n"
    )
    given = {"photo": [folder / f"{n}.png" for n in (1, 6, 3)], "mask": [mask] * 3}
    row = schema.decode([schema.encode(given)])
    for photo, turned in zip(row["photo"][0], row["mask"][0], strict=True):
        assert agreement(dense(photo), dense(turned)) == 1


def test_a_mask_that_does_not_fit_is_refused(files):
    folder, mask, _ = files
    wrong = {
        folder
        / "colours.png": r"expected an image with a palette, or of one channel, got .*mode RGB \(an array",
        folder / "mask.jpg": "expected a mask without a loss, got .*a JPEG image",
    }
    arrays = [
        (mask[:5], r"expected \[32, 24\] pixels, as `photo` has, got \[5, 24\]$"),
        (mask.astype(float), r"expected an image uint8 \[null, null, 1\], got float64"),
        (mask.astype(int) - 1, "expected classes from 0 to 255, got values from -1 to 1$"),
        (
            mask.astype(int) + 300,
            r"expected classes from 0 to 255, got values from 300 to 302 \(`dtype: uint16` has more\)$",
        ),
    ]
    for value, message in [*wrong.items(), *arrays]:
        with pytest.raises(rs.RecordError, match=f"^row 0: features.mask: {message}"):
            schema_of().encode({"photo": folder / "1.png", "mask": value})
    with pytest.raises(rs.RecordError, match=r"got \[24, 32\] \(a mask is given as the image is, before"):
        schema_of().encode({"photo": folder / "6.png", "mask": mask.T})


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("shape: [null, null, 3]", "shape: expected 1 channel of a mask"),
        ("shape: [5, null, 1]", r"shape: expected height and width as `photo`, \[null, null\]"),
        ("mask_of: phot", r"mask_of: expected photo, got `phot` \(did you mean `photo`"),
        ("mask_of: mask", "mask_of: expected photo, got `mask`"),
        ("mask_of: words", "mask_of: expected photo, got `words`"),
        ("convert: true", "convert: expected none of a mask"),
        ("orientation: upright", "orientation: expected none of a mask"),
        ("encoding: jpeg", "encoding: expected png or raw for a mask"),
        (
            "resize: [3, 3]",
            r"resize: expected that of `photo`, `\{size: \[4, 4\], aspect: crop\}`, got another",
        ),
        (
            "resize: {size: [4, 4], aspect: crop, method: area}",
            "resize: expected `method: nearest` of a mask",
        ),
        (
            "resize: {size: [4, 4], aspect: pad}",
            "pad: expected the class of the pixels that `aspect: pad` adds to a mask",
        ),
    ],
)
def test_a_mask_that_cannot_be_moved_with_its_image_is_refused(option, problem):
    usual = {"shape": "[null, null, 1]", "mask_of": "photo", "resize": "{size: [4, 4], aspect: crop}"}
    name, _, value = option.partition(": ")
    options = ", ".join(f"{key}: {text}" for key, text in {**usual, name: value}.items())
    text = (
        "schema: s\nfeatures:\n  words: text\n"
        "  photo: {kind: image, shape: [null, null, 3], resize: {size: [4, 4], aspect: crop}}\n"
        f"  mask: {{kind: image, {options}}}\n"
    )
    with pytest.raises(rs.SpecError, match=rf"features\.mask\.{problem}"):
        rs.Schema.loads(text)


def test_a_mask_that_is_read_alone_stays_one(tmp_path, files):
    folder, mask, _ = files
    rs.write([{"photo": folder / "1.png", "mask": mask}], schema_of("[8, 8]"), tmp_path / "data")
    alone = schema_of("[8, 8]").only(["mask"])
    assert list(alone.names) == ["mask"]
    read = rs.open(tmp_path / "data", schema_of("[8, 8]"))
    np.testing.assert_array_equal(read.only(["mask"])[0]["mask"], read[0]["mask"])
    assert {*np.unique(read[0]["mask"]).tolist()} == {0, CLASS}


def test_a_palette_is_neither_grey_nor_a_mask_unasked(files):
    folder, _, _ = files
    for more in ("", ", convert: true"):
        schema = rs.Schema.loads(f"schema: s\nfeatures: {{m: {{kind: image, shape: [32, 24, 1]{more}}}}}")
        with pytest.raises(rs.RecordError, match=r"3 channels keep its colours, `mask_of` its indices\)$"):
            schema.encode({"m": folder / "palette.png"})


def test_masks_whose_resize_mixes_classes_are_not_augmented(tmp_path):
    text = (
        "schema: s\nfeatures:\n  photo: {kind: image, shape: [null, null, 3], resize: [8, 8]}\n"
        "  mask: {kind: image, shape: [null, null, 1], resize: RESIZE}\n"
    )
    (tmp_path / "config.yaml").write_text(
        "schema: s.yaml\ndata: d\nread: {batch: 2, augment: {seed: 1, flip: both, masks: [mask]}}\n"
    )
    for resize, is_right in (("[8, 8]", False), ("{size: [8, 8], method: nearest}", True)):
        (tmp_path / "s.yaml").write_text(text.replace("RESIZE", resize))
        if is_right:
            rs.Pipeline.load(tmp_path / "config.yaml")
            continue
        expected = "expected masks whose classes are not mixed, got `mask`, resized by `bilinear`"
        with pytest.raises(rs.SpecError, match=rf"augment\.masks: {expected}"):
            rs.Pipeline.load(tmp_path / "config.yaml")


def test_photos_are_not_turned_away_from_their_masks(tmp_path, files):
    """In a CSV file of paths: `infer` turned photos, and kept masks as they were."""
    folder, *_ = files
    exif = Image.Exif()
    exif[0x112] = 6
    Image.open(folder / "1.png").save(tmp_path / "a.jpg", exif=exif, quality=95)
    Image.open(folder / "palette.png").save(tmp_path / "m.png")
    (tmp_path / "rows.csv").write_text("photo,mask\n" + "a.jpg,m.png\n" * 20)
    found = rs.infer(tmp_path / "rows.csv")
    assert found.schema["photo"].orientation == "keep"
    assert [note for note in found.notes if "not turned upright, since `mask` would not be" in note]
    assert [note for note in found.notes if note.startswith("mask: palettes, stored as their colours")]
    (tmp_path / "m.png").unlink()
    (tmp_path / "rows.csv").write_text("photo\n" + "a.jpg\n" * 20)
    assert rs.infer(tmp_path / "rows.csv").schema["photo"].orientation == "upright"
