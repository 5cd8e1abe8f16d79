"""What is odd about records and their features, in words."""

from __future__ import annotations

from collections.abc import Iterator

from recordspec.inspect.stats.figures import Classes, Order
from recordspec.inspect.stats.forms import EMPTY
from recordspec.inspect.stats.report import Feature
from recordspec.inspect.stats.tally import MOST_FEATURES, Tally

# Times as frequent as the rarest, from which on a class is worth a word.
_IMBALANCE = 20
# Of more that only look like classes, some are rare by nature.
_FEW = 20
_MOST_NAMED = 3


def of_split(tally: Tally) -> Iterator[str]:
    if tally.broken:
        yield f"{_many(tally.broken, 'record')} cannot be read"
    if tally.foreign:
        of = f"{tally.foreign:,} of {_many(tally.rows, 'row')}"
        yield f"{of} have fields that no Example has: if they are other messages, `head` shows them"
    if tally.conflicts:
        of = f"{tally.conflicts:,} of {_many(tally.rows, 'row')}"
        yield f"{of} are refused by TensorFlow, or read otherwise than here: `check` tells which"
    copies = tally.hashes.repeated
    if copies.value:
        about = "about " * (copies.error > 0)
        yield f"{about}{_many(copies.value, 'row')} of {tally.rows:,} repeat one before them"
    if tally.repeated:
        keys = ", ".join(f"`{key}`" for key in sorted(tally.repeated)[:_MOST_NAMED])
        more = ", ..." * (len(tally.repeated) > _MOST_NAMED)
        yield f"records have a key twice, of which readers take the last: {keys}{more}"
    if tally.crowded:
        yield f"there are more than {MOST_FEATURES:,} keys: these are told, the others not"


def of_feature(feature: Feature, *, in_spec: bool) -> Iterator[str]:
    if not in_spec:
        yield "is not in the spec"
    yield from _of_presence(feature)
    if len(feature.kinds) > 1:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in feature.kinds.items())
        yield f"has lists of several kinds ({kinds}): the values told are those of {feature.kind}"
    if feature.numbers is not None:
        numbers = feature.numbers
        if numbers.nans:
            yield f"has {_many(numbers.nans, 'NaN')} among {numbers.count:,} numbers"
        if numbers.infinite:
            yield f"has {_many(numbers.infinite, 'infinite number')} among {numbers.count:,}"
        if numbers.count > 1 and numbers.min == numbers.max and not numbers.nans + numbers.infinite:
            yield f"is always {numbers.min}"
    if feature.strings is not None and feature.common is not None:
        yield from _of_strings(feature)
    if feature.classes is not None:
        yield from _of_classes(feature.classes)
    if feature.order is not None and feature.order.clumped:
        yield _of_order(feature.order)


def _of_presence(feature: Feature) -> Iterator[str]:
    rows = feature.records + feature.missing
    if feature.section != "sequence":
        rows += feature.no_kind + feature.empty
    if not rows or feature.records:
        return
    if feature.missing == rows:
        yield "is in the spec, and in no record"
    elif feature.kinds:
        yield f"is empty in all of {rows:,} records"
    else:
        yield f"has no value in any of {rows:,} records: its type is unknown"


def _of_strings(feature: Feature) -> Iterator[str]:
    assert feature.strings is not None
    assert feature.common is not None
    forms, count = feature.strings.forms, feature.strings.sizes.count
    if empty := forms.get(EMPTY):
        yield f"has {_many(empty, 'empty string')} among {count:,}"
    some = {form: many for form, many in forms.items() if form != EMPTY}
    if len(some) > 1:
        told = ", ".join(f"{many:,} {form}" for form, many in list(some.items())[:_MOST_NAMED])
        yield f"has bytes of several forms: {told}{', ...' * (len(some) > _MOST_NAMED)}"
    if count > 1 and feature.common.distinct.value == 1:
        always = f"`{feature.common.top[0][0]}`" if feature.common.top else "the same bytes"
        yield f"is always {always}"


def _of_classes(classes: Classes) -> Iterator[str]:
    if classes.unnamed:
        yield f"has {_many(classes.unnamed, 'value')} that no name stands for"
    never = [name for name, count in classes.counts if not count]
    if never:
        told = ", ".join(f"`{name}`" for name in never[:_MOST_NAMED])
        more = ", ..." * (len(never) > _MOST_NAMED)
        yield f"never has {len(never):,} of its {len(classes.counts):,} classes: {told}{more}"
    few = classes.named or len(classes.counts) <= _FEW
    if few and classes.imbalance is not None and classes.imbalance >= _IMBALANCE:
        yield f"is uneven: its most frequent class is {classes.imbalance:,.0f} times as large as its rarest"


def _of_order(order: Order) -> str:
    return (
        f"is clumped: {order.same:.1%} of neighbours have the same value, and of shuffled records"
        f" {order.by_chance:.1%} would (build with `shuffle`, or read with a large shuffle buffer)"
    )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
