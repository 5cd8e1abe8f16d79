"""Probes of what recordspec stands on."""

from __future__ import annotations

import importlib.metadata
import platform

from recordspec._tf import tf
from recordspec.inspect.doctor.finding import check


def python() -> str:
    return f"Python {platform.python_version()}"


def checksums() -> str:
    import crc32c

    # the check value of CRC-32C, RFC 3720
    check(crc32c.crc32c(b"123456789") == 0xE3069283, "checksum")
    kind = "in hardware" if crc32c.hardware_based else "in software, slow"
    return f"{importlib.metadata.version('crc32c')}, {kind}"


def parsing() -> str:
    example = b"\n\x0c\n\n\n\x01x\x12\x05\x1a\x03\n\x01\x07"  # {"x": 7}
    parsed = tf.io.parse_example([example], {"x": tf.io.FixedLenFeature([], tf.int64)})
    check(parsed["x"].numpy().tolist() == [7], "value")
    return f"TensorFlow {tf.__version__}"


def csv() -> str:
    import pyarrow
    from pyarrow import csv

    table = csv.read_csv(pyarrow.BufferReader(b"a\n1\n"))
    check(table.to_pydict() == {"a": [1]}, "value")
    return f"pyarrow {pyarrow.__version__}"


def parquet() -> str:
    import pyarrow
    from pyarrow import parquet

    file = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table({"a": [1]}), file)
    table = parquet.read_table(pyarrow.BufferReader(file.getvalue()))
    check(table.to_pydict() == {"a": [1]}, "value")
    return f"pyarrow {pyarrow.__version__}"


def polars() -> str:
    import polars

    table = polars.DataFrame({"a": [1, None]}).to_arrow()
    check(table.to_pydict() == {"a": [1, None]}, "value")
    return f"polars {polars.__version__}"


def frames() -> str:
    import pandas

    frame = pandas.DataFrame({"a": [1, None]})
    check(frame["a"].isna().tolist() == [False, True], "value")
    return f"pandas {pandas.__version__}"
