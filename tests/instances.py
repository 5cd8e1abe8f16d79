"""Instances of every feature kind in each of its forms. The law suite runs on each instance."""

from __future__ import annotations

from media import decodes
from recordspec.schema.features.audio import Audio
from recordspec.schema.features.box import Box
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.fixed_len_sequence import FixedLenSequence
from recordspec.schema.features.geometry import Resize
from recordspec.schema.features.image import Image
from recordspec.schema.features.label import Label
from recordspec.schema.features.ragged import RaggedLists
from recordspec.schema.features.sparse import SparseValues
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.text import Text
from recordspec.schema.features.var_len import VariableLen
from recordspec.schema.features.video import Video
from recordspec.schema.values import DTYPES
from recordspec.testing import Case

TF_DTYPES = ("float32", "int64", "string")
# One JPEG more changes a channel by a few of its 255 steps: measured on random pixels, the worst case.
JPEG_LOSS = 12.0

FIXED = [FixedLen(name=f"scalar {dtype}", dtype=dtype) for dtype in TF_DTYPES]
FIXED += [FixedLen(name=f"shaped/{dtype}", dtype=dtype, shape=(2, 3)) for dtype in TF_DTYPES]
FIXED += [
    FixedLen(name="é", dtype="int64", default=-1),
    FixedLen(name="on", dtype="string", default="none", key="1"),
    FixedLen(name="default", dtype="float32", shape=(2,), default=(0.5, 1.5)),
    FixedLen(name="empty", dtype="int64", shape=(0,)),
    FixedLen(name="day", dtype="int64", date="days"),
    FixedLen(name="time", dtype="int64", date="milliseconds", default=0),
    FixedLen(name="may be missing", dtype="float32", default=0.0, with_missing=True),
    FixedLen(
        name="shaped, may be missing",
        dtype="string",
        shape=(2, 1),
        default=(("",), ("-",)),
        with_missing=True,
    ),
]
LISTS = [VariableLen(name=f"list {dtype}", dtype=dtype) for dtype in TF_DTYPES]
LISTS += [
    VariableLen(name="padded", dtype="int64", as_="dense", pad=-1),
    VariableLen(name="padded text", dtype="string", as_="dense", pad="<pad>"),
    VariableLen(name="static", dtype="float32", as_="dense", max_length=5, key="other"),
    VariableLen(name="with length", dtype="string", as_="dense", pad="-", with_length=True),
    VariableLen(name="static length", dtype="int64", as_="dense", max_length=5, with_length=True),
    VariableLen(name="sparse", dtype="string", as_="sparse", pad="-"),
    VariableLen(name="perhaps none", dtype="float32", missing="empty"),
]
STEPS = [FixedLenSequence(name=f"steps {dtype}", dtype=dtype) for dtype in TF_DTYPES]
STEPS += [
    FixedLenSequence(name="shaped", dtype="float32", shape=(2, 3)),
    FixedLenSequence(name="pad", dtype="int64", pad=-1),
    FixedLenSequence(name="pad shaped", dtype="string", shape=(2,), pad="x"),
    FixedLenSequence(name="static", dtype="int64", max_length=6),
    FixedLenSequence(name="static pad", dtype="int64", shape=(2,), max_length=6, pad=7),
    FixedLenSequence(name="counted", dtype="float32", shape=(2,), with_length=True),
    FixedLenSequence(name="all", dtype="int64", pad=-1, max_length=6, with_length=True),
]
RAGGED = [RaggedLists(name=f"one {dtype}", dtype=dtype, shape=(None,)) for dtype in TF_DTYPES]
RAGGED += [RaggedLists(name=f"two {dtype}", dtype=dtype, shape=(None, None)) for dtype in TF_DTYPES]
RAGGED += [
    RaggedLists(name="cells", dtype="float32", shape=(None, 4)),
    RaggedLists(name="deep", dtype="int64", shape=(None, None, None, 2, 3), pad=-1),
    RaggedLists(name="keys", dtype="int64", shape=(None, None), key="v", row_lengths=("n",)),
    RaggedLists(name="perhaps none", dtype="string", shape=(None, None, 2), missing="empty"),
]
SPARSE = [
    SparseValues(name="vector", dtype="float32", size=9),
    SparseValues(name="matrix", dtype="string", size=(4, 3), index_keys=("row", "column"), key="v", pad="-"),
]
TENSORS = [AnyTensor(name=dtype, dtype=dtype, shape=(2, 3)) for dtype in DTYPES]
TENSORS += [AnyTensor(name=f"raw {dtype}", dtype=dtype, encoding="raw") for dtype in DTYPES]
TENSORS += [
    AnyTensor(name="zlib", dtype="uint16", shape=(4,), encoding="zlib"),
    AnyTensor(name="empty", dtype="int32", shape=(2, 0)),
    AnyTensor(name="empty raw", dtype="float64", shape=(0,)),
    *(
        AnyTensor(name=f"any {encoding}", dtype="int16", shape=(None, 3), encoding=encoding, pad=-1)
        for encoding in ("list", "raw", "zlib")
    ),
    AnyTensor(name="any", dtype="uint32", shape=(None,), encoding="raw", pad=2**32 - 1),
    AnyTensor(name="perhaps", dtype="bool", default=False, with_missing=True),
    AnyTensor(name="default", dtype="float64", default=0.1),
    AnyTensor(
        name="raw, may be missing", dtype="uint64", shape=(2,), default=(1, 2**64 - 1), with_missing=True
    ),
    AnyTensor(name="half", dtype="float16", shape=(2,), default=(0.5, 1), with_missing=True),
    AnyTensor(name="zlib, may be missing", dtype="int8", default=-1, encoding="zlib", with_missing=True),
]
MEANINGS = [
    Label(name="label", names=("cat", "dog", "no")),
    Label(name="open label", names=("a", "b"), oov="index"),
    Label(name="labels", names=("a", "b", "c"), shape=(None,)),
    Label(name="perhaps labels", names=("a", "b"), shape=(None,), missing="empty"),
    Label(name="padded label", names=("a", "b"), shape=(None,), pad=0),
    Label(name="stored name", names=("cat", "dog", "é", "no"), encoding="name"),
    Label(name="open stored name", names=("a", "b"), encoding="name", oov="index"),
    Label(name="stored names", names=("a", "b", "c"), encoding="name", shape=(None,), key="other"),
    Label(name="two stored names", names=("a", "b", "c"), encoding="name", shape=(2,), pad=0),
    Label(name="perhaps label", names=("a", "b"), missing=True),
    Label(name="perhaps open label", names=("a", "b"), oov="index", missing=True, key="d"),
    Label(name="perhaps stored name", names=("a", "b"), encoding="name", missing=True),
    Label(name="stored float", names=("a", "b", "c"), encoding="float"),
    Label(name="perhaps stored float", names=("0", "1"), encoding="float", missing=True),
    Label(name="stored floats", names=("a", "b"), encoding="float", shape=(None,), oov="index"),
    Label(name="three labels", names=("a", "b", "c"), shape=(3,), oov="index"),
    *(Box(name=f, format=f) for f in ("xyxy", "rel_yxyx", "rel_xywh", "rel_center_xywh")),
    Box(name="boxes", format="center_xywh", size=(480, 640), key="b", pad=-1.0),
    Box(name="sides", format="rel_yxyx", keys=("bbox/ymin", "bbox/xmin", "bbox/ymax", "bbox/xmax")),
    Text(name="text"),
    Text(name="short", max_bytes=20, pad="<pad>"),
    Image(name="png", shape=(8, 6, 3)),
    Image(name="grey", shape=(8, 6, 1)),
    Image(name="alpha", shape=(None, 6, 4)),
    Image(name="any size", shape=(None, None, 1)),
    Image(name="deep", shape=(4, 4, 1), dtype="uint16"),
    Image(name="deep colour", shape=(4, 4, 3), dtype="uint16"),
    Image(name="deep alpha", shape=(None, 4, 4), dtype="uint16", pad=65535),
    *(Image(name=f"bmp{c}", shape=(None, 5, c), encoding="bmp") for c in (1, 3)),
    Image(name="gif", shape=(6, None, 3), encoding="gif"),
    Image(name="resized", shape=(None, None, 3), resize=(5, 4)),
    Image(name="cropped", shape=(None, None, 1), resize=Resize(size=(4, 6), aspect="crop", antialias=True)),
    Image(name="padded", dtype="uint16", pad=9, resize=Resize(size=(6, 5), aspect="pad", method="bicubic")),
    Image(name="raw", shape=(4, 5, 2), encoding="raw"),
    Image(name="raw16", shape=(4, 5, 3), encoding="raw", dtype="uint16"),
]
SOUNDS = [
    Audio(name="wav", sample_rate=8000),
    Audio(name="stereo", sample_rate=44100, channels=2, dtype="int16", max_seconds=1.5),
    Audio(name="raw sound", sample_rate=16000, encoding="raw", channels=2),
    Audio(name="raw sound16", sample_rate=16000, encoding="raw", dtype="int16", pad=-1),
]
# The encodings that core TensorFlow cannot decode on every machine.
MEANINGS += [Image(name=f"webp{c}", shape=(6, 5, c), encoding="webp") for c in (3, 4) if decodes("webp")]
SOUNDS += [
    Audio(name=f"flac {dtype}", sample_rate=8000, channels=2, encoding="flac", dtype=dtype)
    for dtype in ("float32", "int16")
    if decodes("flac")
]
VIDEOS = [
    Video(name="video", encoding="png"),
    Video(name="clip", shape=(3, 6, 5, 3), encoding="png"),
    Video(name="frames", shape=(None, 6, 5, 1), encoding="png", dtype="uint16", pad=7),
    Video(name="clips", shape=(2, None, None, 3), encoding="gif", key="v"),
    Video(name="small frames", encoding="png", resize=(3, 2)),
    Video(name="raw frames", shape=(None, 4, 3, 2), encoding="raw"),
    Video(name="raw clip", shape=(2, 4, 3, 1), encoding="raw", dtype="uint16"),
]
LOSSY = [Image(name="jpeg", shape=(16, 8, 3), encoding="jpeg")]

ANYWHERE = [*LISTS, *RAGGED, *TENSORS, *MEANINGS, *SOUNDS, *VIDEOS]
_IN_STEPS = [feature for feature in ANYWHERE if getattr(feature, "as_", "") in ("", "ragged")]
_IN_STEPS = [feature for feature in _IN_STEPS if feature.name != "empty" and not feature.traits.optional]
_IN_STEPS += [feature for feature in LISTS if feature.as_ == "dense" and feature.max_length]

CASES = [Case(feature) for feature in (*FIXED, *STEPS, *SPARSE, *ANYWHERE)]
CASES += [Case(feature, "context") for feature in (*FIXED, *ANYWHERE)]
CASES += [Case(feature, "sequence") for feature in (*STEPS, *_IN_STEPS)]
CASES += [Case(feature, section, JPEG_LOSS) for feature in LOSSY for section in ("features", "sequence")]
