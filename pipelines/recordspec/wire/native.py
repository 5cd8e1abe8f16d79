"""The native codec: `codec.cpp`, compiled when the package is installed, and loaded with ctypes.

If it is missing, the reference codec, plain Python over protobuf, writes and reads the same bytes, 30 to 500
times more slowly. `RECORDSPEC_NATIVE=required` makes a missing library an error, and `off` selects the
reference codec.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recordspec._arrow import arrow
from recordspec.errors import Problem, StoreError

if TYPE_CHECKING:
    from recordspec.wire.arrays import Ints

LIBRARY = Path(__file__).with_name("_native.so")
_SOURCE = Path(__file__).with_name("codec.cpp")

_address, _from_buffer = ctypes.addressof, ctypes.c_char.from_buffer
_POINTER, _COUNT = ctypes.c_void_p, ctypes.c_int64
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "rs_source_hash": (ctypes.c_char_p, ()),
    "rs_masked_crcs": (None, (_POINTER, _POINTER, _POINTER, _COUNT, _POINTER)),
    "rs_hashes": (None, (_POINTER, _POINTER, _POINTER, _COUNT, _POINTER)),
    "rs_keys": (None, (_POINTER, _POINTER, _POINTER, _COUNT, _POINTER)),
    "rs_frames": (_COUNT, (_POINTER, _COUNT, _COUNT, _POINTER, _COUNT)),
    "rs_headers": (_COUNT, (_POINTER, _COUNT, _COUNT, ctypes.c_uint64, _POINTER, _COUNT)),
    "rs_seal": (None, (_POINTER, _POINTER, _COUNT)),
    "rs_measure": (
        _POINTER,
        (_POINTER, *[_COUNT] * 4, ctypes.c_int32, _POINTER, ctypes.POINTER(_COUNT)),
    ),
    "rs_fill": (ctypes.c_int32, (_POINTER, _POINTER, _POINTER)),
    "rs_decode": (
        _POINTER,
        (_POINTER, _POINTER, _POINTER, _COUNT, ctypes.c_int32, ctypes.c_char_p, _COUNT, _POINTER),
    ),
    "rs_values": (ctypes.c_int32, (_POINTER, ctypes.c_char_p, _COUNT, _POINTER)),
    "rs_parts": (_POINTER, (_POINTER, ctypes.POINTER(_COUNT))),
    "rs_places": (None, (_POINTER, _COUNT, ctypes.c_int32, _POINTER, _POINTER)),
    "rs_locate": (_COUNT, (_POINTER, _POINTER, _COUNT, _POINTER, _POINTER)),
    "rs_gather": (_COUNT, (_POINTER, _POINTER, _COUNT, _POINTER)),
    "rs_strings": (_COUNT, (*[_POINTER] * 3, _COUNT, ctypes.c_char_p, _COUNT, *[_POINTER] * 3)),
    "rs_copy": (None, (_POINTER, _POINTER, _POINTER, _COUNT, _POINTER)),
    "rs_permute": (None, (_POINTER, *[_COUNT] * 4, ctypes.c_int32, ctypes.c_uint64, _POINTER)),
    "rs_free": (None, (_POINTER,)),
}


def source_hash() -> str:
    """The hash of the source, which is compiled into the library."""
    return hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]


@cache
def _loaded() -> tuple[Any, str]:
    """The library, or None and the reason why there is none."""
    if os.environ.get("RECORDSPEC_NATIVE") == "off":
        return None, "RECORDSPEC_NATIVE is off"
    try:
        library = ctypes.CDLL(str(LIBRARY))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        reason = "it was not compiled" if not LIBRARY.exists() else str(error).splitlines()[0]
        return None, reason
    # a checkout has two, and one may be outdated
    if _SOURCE.exists() and library.rs_source_hash().decode() != source_hash():
        return None, "codec.cpp was edited after it was compiled"
    return library, ""


def library() -> Any:
    """The library; None if it is missing. Raises StoreError instead if RECORDSPEC_NATIVE is `required`."""
    loaded, reason = _loaded()
    if loaded is None and os.environ.get("RECORDSPEC_NATIVE") == "required":
        hint = "a C++ compiler, and `pip install` from the source again"
        problem = Problem(where=str(LIBRARY), expected="the native codec", got=f"none: {reason}", hint=hint)
        raise StoreError(problem)
    return loaded


def missing() -> str:
    """The reason why the library is not used; empty if it is used."""
    return _loaded()[1]


def describe() -> str:
    """The codec in use."""
    return f"the reference codec, which is slow: {missing()}" if missing() else "the native codec"


class Memory:
    """Memory allocated by the library, freed when no buffer of it is in use."""

    def __init__(self, library: Any, address: int) -> None:
        self.library, self.address = library, address

    def __del__(self) -> None:
        self.library.rs_free(self.address)

    def buffer(self, address: int, size: int) -> Any:
        """The bytes at an address as an Arrow buffer, without a copy; empty for address 0."""
        return arrow().foreign_buffer(address, size, self) if address else arrow().py_buffer(b"")


def ints(values: Ints) -> Ints:
    """The numbers in the form that the library reads."""
    return np.ascontiguousarray(values, np.int64)


def at(array: Any) -> int:
    """The address of an array."""
    try:  # in a fifth of the time of NumPy's own interface
        return _address(_from_buffer(array))
    except (TypeError, ValueError):  # it is read-only or empty
        interface = array.__array_interface__
        # the library would read other numbers
        assert interface["strides"] is None or not array.size, "an array that is not contiguous"
        return int(interface["data"][0])
