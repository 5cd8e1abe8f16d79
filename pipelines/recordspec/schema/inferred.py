"""A schema that was inferred, with what else is known of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from recordspec import html
from recordspec.errors import counted
from recordspec.schema.schema import Schema


@dataclass(frozen=True, kw_only=True)
class ProposedOption:
    """An option that the source of the rows needs.

    Attributes:
        name: its name.
        value: its value, as YAML has it.
        reason: why; "" where nothing is guessed.
    """

    name: str
    value: Any
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Inferred:
    """A schema, with notes.

    Attributes:
        notes: guesses, and what the schema does not express.
        rows: the number of rows read; None for an imported schema.
        left_out: the keys or columns without a feature.
        no_inputs: the features that should not be inputs of a model, with the reason.
        first_texts: the first texts of features of text, which may be paths of files.
        options: those that the source of a config needs to read the rows.
        free_text: the features with texts of several words, mostly different.
        missing_files: the numbers of missing and of all files that were looked for, by feature.
    """

    schema: Schema
    notes: tuple[str, ...]
    rows: int | None
    left_out: tuple[str, ...] = ()
    no_inputs: Mapping[str, str] = field(default_factory=dict)
    first_texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: tuple[ProposedOption, ...] = ()
    free_text: tuple[str, ...] = ()
    missing_files: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.schema!r}, {counted(len(self.notes), 'note')})"

    def _repr_html_(self) -> str:
        return html.in_notebook(self._html)

    def _html(self) -> Iterator[html.Markup]:
        yield html.Markup(self.schema._repr_html_())
        if self.left_out:
            yield html.paragraph(f"without {', '.join(self.left_out)}")
        yield html.items(self.notes[: html.MOST_ROWS])
        yield html.others(self.notes[html.MOST_ROWS :], "note")
