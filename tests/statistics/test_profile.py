"""What is counted of records (`statistics.profile`, `statistics.value_counts`, `statistics.distinct`,
`statistics.sizes`, `statistics.content`) is what NumPy and Python say of their values: few or many, in any
files.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import recordspec as rs
from examples import example, file_of
from recordspec.statistics import profile
from recordspec.statistics import value_counts as values_of
from recordspec.statistics.distinct import SmallestHashes, ValueCounts
from recordspec.statistics.profile import profile_all
from recordspec.statistics.stats import stats
from recordspec.statistics.value_counts import SHARES, NumberCounter, NumberValues
from recordspec.store import scan
from recordspec.store.dataset import StoredDataset
from recordspec.store.scan import Scanner
from recordspec.wire.arrays import numbers_array
from selection import scaled


def profiled(path: Path, **options) -> profile.Profile:
    return profile_all(Scanner.of_rows(StoredDataset.of(path)), threads=1, **options)


KINDS = st.one_of(
    st.just(("none", [])),
    st.tuples(st.just("bytes"), st.lists(st.sampled_from([b"", b"a", b"\xff\0", b"b" * 300]), max_size=3)),
    st.tuples(
        st.just("float32"), st.lists(st.sampled_from([0.0, 0.5, -3.0, math.inf, math.nan]), max_size=3)
    ),
    st.tuples(st.just("int64"), st.lists(st.integers(-5, 5), max_size=3)),
)
KEYS = st.sampled_from(["a", "b", "c"])
RECORDS = st.lists(
    st.tuples(st.dictionaries(KEYS, KINDS), st.dictionaries(KEYS, st.lists(KINDS, max_size=3))), max_size=12
)


@given(RECORDS)
@settings(max_examples=scaled(60))
def test_values_are_those_that_were_written(tmp_path_factory, rows):
    """In features and steps of any kinds, of which Python counts the values one by one."""
    path = file_of(tmp_path_factory.mktemp("rows") / "records", [example(*row) for row in rows])
    found = profiled(path)
    lists: dict[tuple[bool, str], list] = {}
    for features, steps in rows:
        for name, made in features.items():
            lists.setdefault((False, name), []).append(made)
        for name, many in steps.items():
            lists.setdefault((True, name), []).extend(many)
    assert found.features.keys() == lists.keys()
    for key, some in lists.items():
        counts = found.features[key]
        assert {kind: count for kind, count in counts.kinds.items() if count} == Counter(
            kind for kind, _ in some
        )
        for kind in ("bytes", "float32", "int64"):
            values = [value for of_kind, listed in some if of_kind == kind for value in listed]
            if not values:
                assert kind not in counts.of
                continue
            of_kind = counts.of[kind]
            assert of_kind.count == len(values)
            if kind == "float32":
                assert (of_kind.nans, of_kind.infinite) == (
                    sum(map(math.isnan, values)),
                    sum(map(math.isinf, values)),
                )
                finite = [value for value in values if math.isfinite(value)]
                assert (of_kind.low, of_kind.high) == (min(finite, default=None), max(finite, default=None))
            else:
                times = Counter(of_kind.frequent.times)
                assert times == Counter(Counter(values).values())
                assert of_kind.frequent.whole


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=30))
@settings(max_examples=scaled(50))
def test_quantiles_and_histograms_are_those_of_numpy(tmp_path_factory, values):
    records = [example({"x": ("float32", [value])}) for value in values]
    (split,) = stats(file_of(tmp_path_factory.mktemp("rows") / "records", records)).splits
    found, exact = split.features[0].numbers, np.array(values, np.float64)
    assert list(found.quantiles.values()) == pytest.approx(np.quantile(exact, SHARES), rel=1e-12, abs=1e-300)
    assert sum(found.histogram.counts) == len(values)
    if found.min < found.max:
        counts, edges = np.histogram(exact, 20)
        assert found.histogram.counts == tuple(counts.tolist())
        assert found.histogram.edges == tuple(edges.tolist())


MANY = {
    "normal": lambda rng, n: rng.normal(0, 1, n).astype(np.float32),
    "lognormal": lambda rng, n: rng.lognormal(0, 3, n).astype(np.float32),
    "half zeros": lambda rng, n: (rng.random(n) * (rng.random(n) < 0.5)).astype(np.float32),
    "constant": lambda rng, n: np.full(n, 2.5, np.float32),
    "ids": lambda rng, n: rng.permutation(n) + (1 << 60),
    "zipf": lambda rng, n: np.minimum(rng.zipf(1.2, n), 1 << 62),
    "timestamps": lambda rng, n: rng.integers(1_700_000_000_000_000_000, 1_700_000_100_000_000_000, n),
}


@pytest.mark.parametrize("name", MANY)
def test_estimates_of_many_values_have_the_error_that_they_tell(tmp_path, monkeypatch, name):
    """With small limits: what is exact stays exact, quantiles are off by their `rank_error`."""
    monkeypatch.setattr(profile, "MOST_DISTINCT", 50)
    monkeypatch.setattr(values_of, "SAMPLE", 2000)
    values = MANY[name](np.random.default_rng(5), 20_000)
    kind = "float32" if values.dtype == np.float32 else "int64"
    rows = values.reshape(-1, 20).tolist()
    path = file_of(tmp_path / "x", [example({"x": (kind, row)}) for row in rows])
    found = profiled(path).features[False, "x"].of[kind]
    assert not found.is_counted
    assert (found.count, found.low, found.high) == (len(values), values.min(), values.max())
    assert found.zeros == np.count_nonzero(values == 0)
    exact = values.astype(np.float64)
    assert found.mean == pytest.approx(exact.mean(), rel=1e-9)
    deviation = (values - values.min()).astype(np.float64).std()
    assert found.deviation == pytest.approx(deviation, rel=1e-6, abs=1e-9)
    ordered, errors = np.sort(values), []
    for share, value in found.quantiles.items():
        ranks = [np.searchsorted(ordered, value, side) / len(values) for side in ("left", "right")]
        errors.append(max(ranks[0] - share, share - ranks[1], 0))
    assert found.rank_error == pytest.approx(max(errors), abs=1e-9)
    # of 2,000 to 4,000 values, where the largest of seven errors is above this once in ten thousand draws
    assert found.rank_error < 0.05
    assert found.below.tolist() == np.searchsorted(ordered, found.points, "left").tolist()
    assert sum(found.histogram.counts) == len(values)
    edges = found.histogram.edges
    if kind == "float32" and found.low < found.high:
        assert found.histogram.counts == tuple(np.histogram(exact, np.array(edges))[0].tolist())
    if kind == "int64":
        distinct = len(np.unique(values))
        assert found.frequent.distinct.value == pytest.approx(
            distinct, rel=5 * found.frequent.distinct.error + 1e-9
        )
        times = Counter(values.tolist())
        pairs = dict(zip(found.frequent.values, found.frequent.times, strict=True))
        assert pairs == {value: times[value] for value in pairs}
        if name == "zipf":
            assert list(pairs)[:5] == [value for value, _ in times.most_common(5)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [2**60, -(2**62), 2**63 - 3, 3.4028234663852886e38])
def test_the_moments_of_many_large_numbers_are_exact(tmp_path, monkeypatch, value):
    monkeypatch.setattr(profile, "MOST_DISTINCT", 1)
    monkeypatch.setattr(values_of, "SAMPLE", 10)
    numbers = [value if isinstance(value, float) else value + index % 3 for index in range(50)]
    kind = "float32" if isinstance(value, float) else "int64"
    found = profiled(file_of(tmp_path / "x", [example({"x": (kind, numbers)})])).features[False, "x"].of[kind]
    assert not found.is_counted
    assert found.mean == math.ceil(Fraction(sum(numbers)) / len(numbers))
    assert found.deviation == pytest.approx(statistics.pstdev(numbers), rel=1e-12)


def test_frequent_strings_are_found_among_many(tmp_path, monkeypatch):
    """Of a column whose first values are all different, and of one whose first are the same."""
    monkeypatch.setattr(profile, "MOST_STRINGS", 1000)
    monkeypatch.setattr(profile, "MOST_DISTINCT", 50)
    some = [b"%d" % number for number in range(9000)]
    words = [*some, *[b"often"] * 3000]
    for name, texts in (("late", words), ("first", words[::-1])):
        records = [example({"s": ("bytes", texts[row : row + 10])}) for row in range(0, len(texts), 10)]
        found = profiled(file_of(tmp_path / name, records)).features[False, "s"].of["bytes"]
        assert not found.frequent.whole
        assert (found.frequent.values[0], found.frequent.times[0]) == (b"often", 3000)
        assert found.frequent.distinct.value == pytest.approx(9001, rel=5 * found.frequent.distinct.error)


def without_rounding(report) -> list:
    """Sums of floats depend on their order, in the last digits."""
    return [rounded(line) for line in report.lines()]


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 9) + 0.0 if isinstance(value, float) else value


@pytest.mark.slow
def test_threads_find_what_one_finds(tmp_path):
    records = [
        example({"n": ("int64", [number % 7]), "s": ("bytes", [b"%d" % (number % 90)])})
        for number in range(900)
    ]
    file_of(tmp_path / "train-00000-of-00001.tfrecord", records)
    file_of(tmp_path / "test-00000-of-00001.tfrecord", records[:50])
    files = sorted(tmp_path.iterdir())
    assert list(stats(files, jobs=2).lines()) == list(stats(files, jobs=1).lines())


def test_many_files_of_one_split_are_one(tmp_path: Path):
    records = [example({"n": ("int64", [number])}) for number in range(20)]
    whole = file_of(tmp_path / "train-00000-of-00001.tfrecord", records)
    (expected,) = stats(whole).splits
    halves = [
        file_of(tmp_path / f"train-0000{half}-of-00002.tfrecord", records[half * 10 : half * 10 + 10])
        for half in (0, 1)
    ]
    (found,) = stats(halves).splits
    assert found.features == expected.features
    assert (found.files, found.rows) == (2, 20)


def test_small_files_are_counted_together_as_they_are_alone(tmp_path: Path, monkeypatch):
    for number in range(12):
        records = [
            example({"n": ("int64", [row % 3]), "s": ("bytes", [b"%d" % number])}) for row in range(number)
        ]
        if number % 5 == 4:
            records += [b"\xff" * number, example({"n": ("int64", [7])}) * 2]
        split = "test" if number in (5, 6) else "train"
        file_of(tmp_path / f"{split}-{number:05d}-of-00012.tfrecord", records)
    files = sorted(tmp_path.iterdir())
    together = without_rounding(stats(files))
    assert any("record 9 at byte" in str(line) for line in together)
    for name, size in (("_SMALL_BYTES", 0), ("_MOST_SMALL", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(scan, name, size)
            assert without_rounding(stats(files)) == together


LARGE = [2**62 + 2, 2**62 + 3, 2**62 + 7, 2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 2**52 + 1, 0, -5]
INTS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(0, 3), max_size=40)


def test_values_below_many_bounds_are_counted():
    """Percentiles are more bounds than are compared one by one; values equal to a bound are not below it."""
    values = np.random.default_rng(0).integers(0, 1000, 5000)
    for kind in ("int64", "float32"):
        counter, numbers = NumberCounter(kind, 0), values.astype(kind)
        counter.add(numbers)
        counter.find_bounds([percent / 100 for percent in range(1, 100)])
        counter.count_below(numbers)
        assert len(counter._bounds) > 100
        assert counter._below.tolist() == [int((numbers < bound).sum()) for bound in counter._bounds]


def summary_of(values: list[int]) -> NumberValues:
    array = np.array(values, np.int64)
    counter = NumberCounter("int64", 0)
    counter.add(array)
    return counter.summary_of(*np.unique(array, return_counts=True))


@given(st.lists(st.sampled_from(LARGE), min_size=1, max_size=50), st.integers(0, 4))
@settings(max_examples=scaled(100))
def test_numbers_that_no_float_tells_are_told(numbers, near):
    values = [LARGE[near] + number % 5 for number in range(len(numbers))] if near < 3 else numbers
    found = summary_of(values)
    assert all(found.low <= one <= found.high for one in found.quantiles.values())
    if len(set(values)) == 1:
        assert set(found.quantiles.values()) == {found.low}
    if near < 3:
        edges, counts = found.histogram.edges, found.histogram.counts
        assert list(edges) == list(range(min(values), max(values) + 2))
        assert list(counts) == [values.count(edge) for edge in edges[:-1]]


def check_integers(values: list[int]) -> None:
    """Compares with the exact percentiles of the standard library, and with bins counted one by one."""
    found = summary_of(values)
    percentiles = statistics.quantiles(values, n=100, method="inclusive")
    for share, one in found.quantiles.items():
        expected = percentiles[round(share * 100) - 1]
        assert one == expected if abs(expected) < 1 << 52 else 0 <= one - expected < 1 << 11
    mean = Fraction(sum(values), len(values))
    assert found.mean == (float(mean) if abs(mean) < 1 << 52 else math.ceil(mean))
    assert found.deviation == pytest.approx(statistics.pstdev(values), rel=1e-9, abs=1e-9)
    edges = found.histogram.edges
    counts = [sum(math.ceil(low) <= one < high for one in values) for low, high in pairwise(edges)]
    assert list(found.histogram.counts) == counts
    assert sum(counts) == len(values)


def test_one_far_integer_leaves_the_quantiles_of_the_others():
    near, least, most = [*range(1, 101)], -(2**63), 2**63 - 1
    assert list(summary_of([*near, least]).quantiles.values()) == [1, 5, 25, 50, 75, 95, 99]
    for far in ([least], [most], [least, most], [least] * 3, [most] * 40, [2**53 + 1], [-(2**62)]):
        check_integers([*near, *far])
        check_integers([*(one - 50 for one in near), *far])


@given(INTS.filter(lambda values: len(values) > 1))
@settings(max_examples=scaled(200))
def test_the_quantiles_and_bins_of_any_integers_are_exact(values):
    check_integers(values)


def test_each_of_many_classes_is_counted(tmp_path):
    names = [f"c{index}" for index in range(6000)]
    schema = rs.Schema.loads(
        yaml.safe_dump({"schema": "s", "features": {"y": {"kind": "label", "names": names}}})
    )
    records = [example({"y": ("int64", [index])}) for index in range(1, 6000)] * 2
    for part in range(2):
        file_of(
            tmp_path / f"x-0000{part}-of-00002.tfrecord",
            records[part::2] + [example({"y": ("int64", [7000])})],
        )
    ((found,),) = (split.features for split in stats(tmp_path, schema).splits)
    assert set(found.classes.counts) == {("c0", 0), *((name, 2) for name in names[1:])}
    assert found.classes.unnamed == 2
    assert found.warnings[:2] == (
        "has 2 values without a class name",
        "never has 1 of its 6,000 classes: `c0`",
    )


@pytest.mark.parametrize("layout", ["rows", {"blocks": 16}])
def test_duplicates_among_more_rows_than_are_kept_are_estimated(tmp_path, monkeypatch, layout):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64, s: text}")
    rows = [{"n": number % 1500, "s": f"{number % 1500}"} for number in range(2000)]
    rs.write(rows, schema, tmp_path / "data", layout=layout, shuffle=None)
    whole = profiled(tmp_path / "data").hashes
    assert (whole.copies.value, whole.copies.error) == (500, 0)
    assert (whole.shared(whole).value, whole.shared(whole).error) == (1500, 0)
    monkeypatch.setattr(profile, "MOST_ROWS", 500)
    some = profiled(tmp_path / "data").hashes
    assert some.distinct.value != 1500
    assert some.distinct.value == pytest.approx(1500, rel=5 * some.distinct.error)
    assert some.copies.value == pytest.approx(500, rel=5 * some.copies.error)
    assert some.shared(whole).value == pytest.approx(1500, rel=5 * some.shared(whole).error)


def test_rows_that_differ_in_few_bytes_are_no_duplicates(tmp_path):
    """Wherever two of them are."""
    for place in range(8):
        values = [bytearray(b"x" * 24) for _ in range(1024)]
        for index, value in enumerate(values):
            value[place], value[place + 8] = divmod(index, 32)
        records = [example({"s": ("bytes", [bytes(value)])}) for value in values]
        found = profiled(file_of(tmp_path / f"{place}", records))
        assert (found.hashes.copies.value, found.rows) == (0, 1024)


def test_strings_that_differ_in_few_bytes_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(profile, "MOST_STRINGS", 500)
    monkeypatch.setattr(profile, "MOST_DISTINCT", 500)
    values = [b"_______%c_______%c" % (index // 64, index % 64) for index in range(4096)]
    records = [example({"s": ("bytes", values[row : row + 64])}) for row in range(0, 4096, 64)]
    found = profiled(file_of(tmp_path / "x", records)).features[False, "s"].of["bytes"].frequent
    assert not found.whole
    assert found.distinct.value == 4096


@pytest.mark.parametrize("kind", ["list", "steps"])
def test_rows_of_blocks_with_other_orders_are_no_duplicates(tmp_path, kind):
    """Such as lists of zeros and ones, and steps that are transposed."""
    if kind == "list":
        schema = rs.Schema.loads("schema: s\nfeatures: {x: {dtype: int64, shape: [10]}}")
        rows = [{"x": list(map(int, f"{number:010b}"))} for number in range(1024)]
    else:
        schema = rs.Schema.loads(
            "schema: s\nrecord: sequence_example\nsequence: {x: {kind: fixed_len_sequence, dtype: int64, shape: [2]}}"
        )
        rows = [{"x": [[1, one], [two, 4]]} for one in range(8) for two in range(8)]
    rs.write(rows, schema, tmp_path / "data", layout={"blocks": 16}, shuffle=None)
    hashes = profiled(tmp_path / "data").hashes
    assert (hashes.distinct.value, hashes.copies.value) == (len(rows), 0)


@pytest.mark.parametrize("distinct", [100, 101, 8192, 100_000])
def test_how_many_values_differ_is_counted_or_estimated(distinct):
    """In whatever parts they come."""
    rng = np.random.default_rng(distinct)
    values = rng.permutation(np.arange(200_000) % distinct)
    counts = ValueCounts(100)
    for part in np.split(values, np.sort(rng.integers(1, len(values), 40))):
        if len(part):
            counts.add(numbers_array(part))
    if distinct == 100:
        numbers, times = counts.pairs
        assert sorted(numbers.to_pylist()) == list(range(100))
        assert set(times.tolist()) == {2000}
    else:
        assert counts.pairs is None
    found = counts.distinct
    assert (found.value == distinct) == (found.error == 0) == (distinct <= 8192)
    assert found.error < 0.016
    assert found.value == pytest.approx(distinct, rel=5 * found.error)


def test_copies_of_a_frequent_row_are_counted():
    """With hashes of which as many are kept as there are different rows: of each also how often it is there."""
    rng = np.random.default_rng(0)
    words = rng.integers(1 << 64, size=1000, dtype=np.uint64)
    hashes = SmallestHashes(1000)
    for part in np.array_split(rng.permutation(np.concatenate([words, words[:1].repeat(50_000)])), 77):
        hashes.add(part)
    assert (hashes.copies.value, hashes.copies.error) == (50_000, 0)
    assert (hashes.distinct.value, hashes.distinct.error) == (1000, 0)


def test_the_error_of_copies_covers_rows_that_are_more_frequent_than_others():
    """Of 200 draws, of rows that are there 1 to 100 times."""
    rng = np.random.default_rng(1)
    times = rng.zipf(1.8, 5000).clip(max=100)
    off = []
    for _ in range(200):
        hashes = SmallestHashes(1000)
        for part in np.array_split(
            rng.permutation(rng.integers(1 << 64, size=5000, dtype=np.uint64).repeat(times)), 9
        ):
            hashes.add(part)
        off.append((hashes.copies.value / (times.sum() - 5000) - 1) / hashes.copies.error)
    assert 0.8 < np.std(off) < 1.3
    assert abs(np.mean(off)) < 0.3


def test_hashes_below_the_smaller_limit_are_compared():
    words = np.random.default_rng(2).integers(1 << 64, size=10_000, dtype=np.uint64)
    whole, some = SmallestHashes(20_000), SmallestHashes(500)
    whole.add(words[:8000])
    some.add(words[2000:])
    for shared in (whole.shared(some), some.shared(whole)):
        assert 0 < shared.error < 0.1
        assert shared.value == pytest.approx(6000, rel=5 * shared.error)


def test_the_order_of_more_values_than_are_counted_is_not_told(tmp_path, monkeypatch):
    """Of 80 where 50 are counted: they come in one part, and are told to be too many only at the end."""
    monkeypatch.setattr(values_of, "SAMPLE", 20)
    records = [example({"x": ("int64", [number])}) for number in range(80)]
    assert profiled(file_of(tmp_path / "x", records)).features[False, "x"].order.pairs == 79
    monkeypatch.setattr(profile, "MOST_DISTINCT", 50)
    assert profiled(file_of(tmp_path / "x", records)).features[False, "x"].order is None


def test_groups_of_files_merge(tmp_path, monkeypatch):
    """Counts are those of all files at once, and estimates are within their errors."""
    rng = np.random.default_rng(0)
    count = 40_000
    columns = {
        "few": np.arange(count) // 10_000,
        "many": rng.permutation(count),
        "float": rng.normal(size=count).astype(np.float32),
        "halves": (np.arange(count) % 7 / 2).astype(np.float32),
        "text": np.array([f"t{n % 9000}" for n in range(count)]),
        "word": np.array(["a", "b", "b"] * count)[:count],
    }
    schema = rs.Schema.loads(
        "schema: s\nfeatures: {few: int64, many: int64, float: float32, halves: float32, text: string, "
        "word: string}"
    )
    rs.write(columns, schema, tmp_path / "data", shards=5, progress=False)
    dataset = Scanner.of_rows(StoredDataset.of(tmp_path / "data"))
    whole = profile_all(dataset)
    for size in (1, 1_500_000):
        monkeypatch.setattr(scan, "_GROUP", size)
        monkeypatch.setattr(scan, "_RANGE", max(size, 300_000))
        merged = profile_all(dataset)
        assert merged.rows == count
        assert merged.hashes.distinct == whole.hashes.distinct
        assert merged.sizes.times == whole.sizes.times
        for key, found in merged.features.items():
            expected = whole.features[key]
            assert (found.present, found.kinds, found.lengths.times) == (
                expected.present,
                expected.kinds,
                expected.lengths.times,
            )
            for kind, values in found.of.items():
                other = expected.of[kind]
                assert values.count == other.count == count
                assert values.frequent is None or values.frequent.distinct.value == pytest.approx(
                    other.frequent.distinct.value, rel=0.06
                )
                if key[1] in ("few", "word", "halves"):
                    assert repr(values.frequent) == repr(other.frequent)
                    assert kind == "bytes" or repr(values) == repr(other)
                elif kind != "bytes":
                    assert (values.low, values.high) == (other.low, other.high)
                    exact = columns[key[1]].astype(np.float64)
                    assert values.mean == pytest.approx(exact.mean(), rel=1e-9, abs=1e-9)
                    assert values.deviation == pytest.approx(exact.std(), rel=1e-9)
                    assert values.rank_error < 0.02
            if found.order is not None:
                assert (found.order.pairs, found.order.same) == (expected.order.pairs, expected.order.same)
        assert {key[1] for key, found in merged.features.items() if found.order is not None} == {
            "few",
            "word",
        }
