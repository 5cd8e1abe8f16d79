"""From runs to a published dataset: the shards are planned, written, and named in a manifest."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from recordspec.errors import Problem, RecordError, show_text
from recordspec.executors import Executor
from recordspec.locations import sync_file
from recordspec.spec.features.label import Label
from recordspec.spec.schema import Schema
from recordspec.store import key_hashes
from recordspec.store.manifest import KEYS_FILE, REJECTS_FILE, LabelCounts, Manifest, Shard
from recordspec.store.transaction import Transaction
from recordspec.writing.append import Base
from recordspec.writing.encoding import PART_BITS, Words
from recordspec.writing.ending import on_disk
from recordspec.writing.order import KNOWN, Order, twins
from recordspec.writing.runs import Run
from recordspec.writing.shards import shard_count, spans
from recordspec.writing.tasks import Plan, ShardTask, write_shard

log = logging.getLogger("recordspec")

Shards = dict[str, tuple[Shard, ...]]
# How messages name a row, by its part and its number there.
Place = Callable[[int, int], str]


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """All the rows of a build, encoded.

    Attributes:
        splits: their names; the runs need not have rows of each.
        runs: where the rows are.
        rows: how many fit.
        rejected: how many did not.
    """

    splits: tuple[str, ...]
    runs: tuple[Run, ...]
    rows: int
    rejected: int

    @classmethod
    def of(cls, plan: Plan, runs: tuple[Run, ...], rows: int, rejected: int) -> Encoded:
        """With the splits of the options, or those that the rows named."""
        named = {split for run in runs for split in run.counts}
        return cls(
            splits=tuple(plan.options.weights or sorted(named)), runs=runs, rows=rows, rejected=rejected
        )


def check_unique(plan: Plan, runs: tuple[Run, ...], place: Place) -> None:
    """Raises RecordError, which names both, where two rows have one key and may not."""
    if not plan.options.unique:
        return
    base = plan.base
    with on_disk(plan.name):
        found = twins(plan.folder, runs, plan.budget, None if base is None else base.keys)
    if found is None:
        return

    def named(number: int) -> str:
        if base is not None and number >= KNOWN:
            return base.place(number - KNOWN)
        return place(number >> PART_BITS, number & (1 << PART_BITS) - 1)

    first, second = found if found[1] < KNOWN else reversed(found)
    expected = "a key that no other row has"
    problem = Problem(path=plan.options.keys, expected=expected, got=f"that of {named(first)}")
    raise RecordError(problem.at(named(second)))


def tasks_of(plan: Plan, encoded: Encoded) -> Iterator[ShardTask]:
    """The shards of every split."""
    suffix = "" if plan.base is None else plan.base.suffix
    for split in encoded.splits:
        order = Order(plan.folder, encoded.runs, split, plan.rules, plan.piece)
        if plan.base is not None and not order.rows:
            continue
        count = shard_count(plan.options, order.bytes, order.rows)
        for span in spans(split + suffix, count, order.rows, plan.options):
            yield ShardTask(split=split, span=span, cut=order.cut(span.start, span.stop or 0))


def write_shards(
    plan: Plan,
    encoded: Encoded,
    executor: Executor,
    done: Mapping[str, Shard],
    finished: Callable[[str, Shard], None],
) -> Shards:
    """Writes the shards that are not `done`; `finished` is told the file of each in the plan's folder."""
    tasks = list(tasks_of(plan, encoded))
    shards = dict(done)
    missing = [(task,) for task in tasks if task.span.file not in shards]
    for task, file, shard in executor.map(partial(write_shard, plan, encoded.runs), missing):
        finished(file, shard)
        shards[task.span.file] = shard
    return {
        split: tuple(shards[task.span.file] for task in tasks if task.split == split)
        for split in encoded.splits
    }


def place_shards(transaction: Transaction) -> Callable[[str, Shard], None]:
    """What puts a shard that is written where it will be published."""

    def put(file: str, shard: Shard) -> None:
        (transaction.work / file).rename(transaction.staging / shard.file)
        keys = transaction.work / f"{file}.keys"
        if keys.exists():
            keys.rename(transaction.work / f"{shard.file}.keys")

    return put


def heading(plan: Plan, splits: Shards, rejected: int, label_counts: LabelCounts) -> Manifest:
    """The manifest of what was just written."""
    options, schema = plan.options, plan.schema
    return Manifest(
        schema=None if schema is None else schema.name,
        fingerprint=None if schema is None else schema.fingerprint,
        record="example" if schema is None else schema.record,
        compression=options.compression,
        splits=splits,
        key=options.keys,
        shuffle_seed=options.shuffle.seed if options.shuffle else None,
        labels={} if schema is None else _labels(schema),
        label_counts={split: label_counts[split] for split in splits if split in label_counts},
        rejected=rejected,
        block=options.block,
        division=options.division,
    )


def publish(transaction: Transaction, plan: Plan, manifest: Manifest) -> Manifest:
    """Adds what was there before, writes the manifest, and commits."""
    written, rejected = manifest, manifest.rejected
    if plan.base is not None:
        manifest = plan.base.with_more(manifest)
    with on_disk(plan.name):
        if plan.options.unique:
            parts = _keys(manifest, transaction.work, plan.base)
            sha256 = key_hashes.write(transaction.staging / KEYS_FILE, parts)
            manifest = replace(manifest, keys_sha256=sha256)
        sync_file(transaction.staging / REJECTS_FILE)
        transaction.commit(manifest, None if plan.schema is None else plan.schema.dump())
    if rejected:
        rows = rejected + sum(written.rows(split) for split in written.splits)
        message = "%s of %s rows did not fit: see %s"
        path = show_text(f"{transaction.name}/{REJECTS_FILE}")
        log.warning(message, f"{rejected:,}", f"{rows:,}", path)
    return manifest


def _keys(manifest: Manifest, work: Path, base: Base | None) -> Iterator[Words]:
    """The hashes of the keys of every shard: of old ones as they were, of new ones as they were written."""
    before = {} if base is None else base.manifest.starts()
    for shard in manifest.all_shards:
        if base is not None and shard.file in before:
            yield key_hashes.read(base.keys, before[shard.file], shard.rows)
        else:
            yield key_hashes.read(work / f"{shard.file}.keys", 0, shard.rows)


def _labels(schema: Schema) -> dict[str, tuple[str, ...]]:
    return {feature.name: feature.names for _, feature in schema.placed if isinstance(feature, Label)}
