"""Domains of TensorFlow Metadata: what values may be. Of ours, a dtype with a range, and text say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from recordspec.interop.forms import Form
from recordspec.interop.notes import Note
from recordspec.interop.tfmd.declared import INT
from recordspec.interop.tfmd.values import take
from recordspec.spec.features import Feature
from recordspec.spec.features.text import Text
from recordspec.spec.values import dtype_range

# Those that an Int64List holds, but for int64 itself, whose range is no restriction.
NARROW = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
_BY_RANGE = {dtype_range(dtype): dtype for dtype in NARROW}
_SHARED = ("int_domain", "float_domain", "string_domain")


class Domains:
    """The domains that features share, by name."""

    def __init__(self, schema: Any) -> None:
        self._shared = {field: {one.name: one for one in getattr(schema, field)} for field in _SHARED}
        self._named: set[str] = set()
        take(schema, *_SHARED)

    def feature(self, form: Form, given: Any) -> Feature:
        """The feature of a form; what the domain of `given` adds is taken from there."""
        self._named.add(given.domain)
        if self._is_text(form, given):
            take(given, "natural_language_domain")
            key = None if form.key == form.name else form.key
            return Text(name=form.name, key=key, description=form.description)
        dtype = self._dtype(given) if self._may_be_narrow(form) else None
        if dtype is None:
            return form.feature()
        take(given, "bool_domain", "int_domain", "domain")
        return replace(form, dtype=dtype).feature()

    def left(self) -> Iterator[Note]:
        """On domains that no feature has; those that one has are told with it."""
        for field, domains in self._shared.items():
            for name in sorted(domains.keys() - self._named):
                yield Note(path=(field, name), text="no feature has it")

    def _is_text(self, form: Form, given: Any) -> bool:
        known = given.HasField("natural_language_domain") and form.default is None
        return known and not given.natural_language_domain.ListFields() and form.shape == ()

    def _may_be_narrow(self, form: Form) -> bool:
        """`tensor` has no default, no bound, and one dimension that varies at most."""
        plain = form.default is None and form.max_length is None and not form.sparse
        return plain and not form.row_lengths

    def _dtype(self, given: Any) -> str | None:
        if given.type != INT:
            return None
        if given.HasField("bool_domain"):
            return None if given.bool_domain.ListFields() else "bool"
        domain = self._shared["int_domain"].get(given.domain, given.int_domain)
        if domain.is_categorical or not (domain.HasField("min") and domain.HasField("max")):
            return None
        return _BY_RANGE.get((domain.min, domain.max))
