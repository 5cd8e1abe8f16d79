"""What this installation can do. Each probe runs the thing: an import proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from recordspec.inspect.doctor import files, images, packages, sounds
from recordspec.inspect.doctor.finding import Finding, find
from recordspec.inspect.doctor.tensorflow_io import tensorflow_io

_TENSORFLOW = "pip install tensorflow"
_IMAGE = "pip install 'pillow>=10.2'"
_ARROW = "pip install 'pyarrow<26'"
_AUDIO = "pip install 'recordspec[audio]'"
_LOCAL_ONLY = "recordspec itself reads local paths in this version"


def examine() -> list[Finding]:
    """Runs every probe. Loads TensorFlow."""
    return [find(*probe) for probe in _PROBES]


_PROBES: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("python", packages.python, ""),
    ("checksums", packages.checksums, "pip install crc32c"),
    ("parsing", packages.parsing, _TENSORFLOW),
    ("images when reading: png", images.read_png, _TENSORFLOW),
    ("images when reading: jpeg", images.read_jpeg, _TENSORFLOW),
    ("images when reading: gif", images.read_gif, _TENSORFLOW),
    ("images when reading: bmp", images.read_bmp, _TENSORFLOW),
    ("images when reading: webp", images.read_webp, _TENSORFLOW),
    ("images when writing: png", partial(images.write, "png"), _IMAGE),
    ("images when writing: jpeg", partial(images.write, "jpeg"), _IMAGE),
    ("images when writing: webp", partial(images.write, "webp"), _IMAGE),
    ("images when writing: bmp", partial(images.write, "bmp"), _IMAGE),
    ("images when writing: gif", partial(images.write, "gif"), _IMAGE),
    ("audio when reading: wav", sounds.read_wav, _TENSORFLOW),
    ("audio when reading: flac", sounds.read_flac, _TENSORFLOW),
    ("audio when reading: mp3", sounds.read_mp3, _TENSORFLOW),
    ("audio when reading: ogg", sounds.read_ogg, _TENSORFLOW),
    ("audio when writing: wav", partial(sounds.write, "wav"), _AUDIO),
    ("audio when writing: flac", partial(sounds.write, "flac"), _AUDIO),
    ("audio when writing: mp3", partial(sounds.write, "mp3"), _AUDIO),
    ("audio when writing: ogg", partial(sounds.write, "ogg"), _AUDIO),
    ("tensorflow-io", tensorflow_io, _TENSORFLOW),
    ("csv files", packages.csv, _ARROW),
    ("parquet files", packages.parquet, _ARROW),
    ("pandas frames", packages.frames, "pip install 'recordspec[frames]'"),
    ("polars frames", packages.polars, "pip install 'recordspec[frames]'"),
    # after tensorflow-io, which registers file systems when it is imported
    ("files: local", files.local, _TENSORFLOW),
    ("files: ram://", files.ram, _TENSORFLOW),
    ("files: gs://", partial(files.remote, "gs"), _LOCAL_ONLY),
    ("files: s3://", partial(files.remote, "s3"), _LOCAL_ONLY),
    ("files: az://", partial(files.remote, "az"), _LOCAL_ONLY),
    ("files: hdfs://", partial(files.remote, "hdfs"), _LOCAL_ONLY),
    ("files: http://", partial(files.remote, "http"), _LOCAL_ONLY),
    ("files: https://", partial(files.remote, "https"), _LOCAL_ONLY),
)
