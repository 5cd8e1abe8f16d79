"""Probes of the file systems that TensorFlow knows."""

from __future__ import annotations

import os
import tempfile
from typing import NoReturn

from recordspec._tf import tf
from recordspec.inspect.doctor.finding import UnusableError, check


def local() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return _write_and_read(os.path.join(folder, "file"))


def ram() -> str:
    return _write_and_read(f"ram://recordspec-doctor-{os.getpid()}/file")


def _write_and_read(path: str) -> str:
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(b"7")
    with tf.io.gfile.GFile(path, "rb") as file:
        check(file.read() == b"7", "bytes")
    tf.io.gfile.remove(path)
    return "written and read by tf.io.gfile"


def remote(scheme: str) -> NoReturn:
    """Always raises UnusableError: it takes an account to try, and s3:// aborts the interpreter at exit."""
    registered = scheme in tf.io.gfile.get_registered_schemes()
    raise UnusableError("registered, not tried" if registered else "not registered")
