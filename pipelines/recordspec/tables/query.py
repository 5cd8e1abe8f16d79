"""Queries: a predicate on the records of files, and a projection to some features."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from recordspec.store.scan import RowBatch, Scanner
from recordspec.tables.column_types import keys_of
from recordspec.tables.feature_names import FeatureKey, FeatureNames, check_known

if TYPE_CHECKING:
    from recordspec.locations import AnyPath
    from recordspec.progress import Progress
    from recordspec.schema.schema import Schema
    from recordspec.store.expand import Files
    from recordspec.tables.sql import Condition


def query(
    sql: str,
    files: Files | Mapping[str, Files],
    schema: Schema | AnyPath | None = None,
    *,
    memory: str | None = None,
    progress: Progress | None = None,
) -> Any:
    """Runs a query in SQL, in the dialect of DuckDB, over TFRecords. Returns its result, a `pyarrow.Table`.

    Args:
        sql: the query. It reads the tables, and nothing else.
        files: a mapping from the name of a table to files. Without a mapping, each split is a table with its
            name; files whose names tell no split are the table `records`.
        schema: the schema of the records, or its path; by default the schemas of the datasets.
        memory: the memory limit of DuckDB, such as `2GiB`; by default 80 % of the machine's memory.
        progress: receives the number of rows read.

    Raises:
        SpecError: the SQL is invalid, or is not a query.
        StoreError: there are no files, or the memory or the disk is full.
        RecordError: a record is corrupt.
        MissingExtra: without DuckDB.

    Example:
        >>> rs.query("SELECT count(*) AS n FROM train", "data/points")["n"].to_pylist()
        [15]
    """
    from recordspec.schema.schema import given_schema
    from recordspec.tables import sql as queries  # loads DuckDB

    tables = queries.named_tables(files, sql, given_schema(schema))
    with queries.query(sql, tables, memory=memory, progress=progress) as result:
        return result.read_all()


@dataclass(frozen=True, kw_only=True)
class Query:
    """A selection of records and features.

    Attributes:
        columns: the names of features, in the order of the result; empty for all features.
        where: a condition on records in SQL; see `tables.sql.Condition`. None selects all records.
        schema: the schema that names features and classes; None to use keys as names, and indices for
            classes.
        stored: whether keys are valid names, too, for the stored values.
    """

    columns: tuple[str, ...] = ()
    where: str | None = None
    schema: Schema | None = None
    stored: bool = False

    @cached_property
    def names(self) -> FeatureNames:
        return FeatureNames.of(self.schema, stored=self.stored)

    def check(self, scanner: Scanner, features: Collection[str] = ()) -> dict[FeatureKey, None]:
        """Returns the keys of the schema, and of the first records of files until all columns are found.

        Args:
            scanner: the scanner of the files.
            features: more valid names of columns.

        Raises SpecError for an unknown name or an invalid condition, RecordError for an
        ExampleListWithContext.
        """
        keys = dict.fromkeys(self.names.names)
        for batch in scanner.first():
            decoded = batch.decode()
            if (error := batch.list_error(decoded)) is not None:
                raise error
            keys |= dict.fromkeys(keys_of(decoded))
            if self._words(keys).union(features).issuperset(self.columns):
                break
        else:
            words = self._words(keys)
            unknown = [name for name in self.columns if name not in words and name not in features]
            check_known(unknown, [*map(self.names.name, keys), *features], "columns")
        self.condition(scanner)  # raises for an invalid one
        return keys

    def _words(self, keys: Iterable[FeatureKey]) -> set[str]:
        return {word for key in keys for word in self.names.words(key)}

    def batches(self, scanner: Scanner) -> Iterator[RowBatch]:
        """The records that match the condition.

        Raises RecordError at a record for which the condition cannot be evaluated, after the records before
        it.
        """
        condition = self.condition(scanner)
        return scanner.batches() if condition is None else condition.matching(scanner.batches())

    def condition(self, scanner: Scanner) -> Condition | None:
        """The condition for the files of a scanner; None if all records match."""
        if self.where is None:
            return None
        if scanner not in self._conditions:
            from recordspec.tables.sql import Condition  # loads DuckDB

            self._conditions[scanner] = Condition(self.where, scanner)
        return self._conditions[scanner]

    @cached_property
    def _conditions(self) -> dict[Scanner, Condition]:
        """The condition for the files of each scanner."""
        return {}
