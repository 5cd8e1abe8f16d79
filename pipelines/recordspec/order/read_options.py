"""How a dataset is read: the options of `recordspec.read` and of a config's `read:`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypedDict
from urllib.parse import urlsplit

from recordspec.errors import Problem, SpecError, nearest, one_of, see
from recordspec.locations import Location, PathText, local_below
from recordspec.schema.options import parse_bytes

# With a larger factor of contrast, all pixels would be black or white.
_MOST_CONTRAST = 100.0

# Increased when a release changes the order of lanes for the same options.
LANES_VERSION = 2

# Increased when a release changes which rows are in the packs of an epoch.
PACK_VERSION = 1

# The units in which a bucket compares lengths.
MEASURED = "a ragged or sparse feature, a text, or a number that is a length"


def _at_least(option: str, value: int, least: int) -> None:
    if value < least:
        raise SpecError(Problem(path=(option,), expected=f"at least {least}", got=str(value)))


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The number of rows per batch. The last batch of a pass may be smaller, unless it is dropped.

    All workers have the same number of batches. If rows do not divide evenly, some are dropped
    with `drop_remainder`, and some are read twice without it.

    Attributes:
        size: the number of rows, at least 1.
        drop_remainder: whether a smaller last batch is dropped.
    """

    SHORT_FORM: ClassVar[str] = "size"

    size: int
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        _at_least("size", self.size, 1)


@dataclass(frozen=True, kw_only=True)
class Shuffle:
    """A shuffle of files and, within a buffer, of rows; or of all rows, without a buffer. The order is a
    function of the seed and the epoch. `shuffle: true` shuffles all rows with the seed 0.

    Attributes:
        buffer: the number of rows that are permuted together, or their stored bytes, such as `64MiB`. Up to
            four times as much memory is used; for rows of 8 KiB or more, as much.
        seed: the seed of the order.
        global_: whether all rows are permuted, instead of files and the rows within a buffer. The global
            batches are the same for every number of workers, a training resumes at any step at once, and a
            pass holds no rows in memory. It requires uncompressed files on this machine, and runs Python in
            the graph.
        lanes: as `global`, but a worker reads files from their beginning to their end, and workers together
            read every byte once: the number of lanes into which the files are cut, such as 240. Workers have
            whole lanes, so their number divides it.
        window: the rows of a lane that are permuted together, or their stored bytes. The larger, the better
            rows are mixed, and the more of them are read at a time: a window of each lane.
    """

    TRUE: ClassVar[Mapping[str, Any]] = {"global_": True}

    seed: int = 0
    buffer: int | str = 10_000
    global_: bool = False
    lanes: int | None = None
    window: int | str = "256KiB"

    def __post_init__(self) -> None:
        if self.lanes is not None:
            self._check_lanes()
        elif self.window != Shuffle.window:
            raise SpecError(Problem(path=("window",), expected="none without `lanes`", got=str(self.window)))
        if self.global_ and self.buffer != Shuffle.buffer:
            raise SpecError(
                Problem(path=("buffer",), expected="none with `global: true`", got=str(self.buffer))
            )
        if isinstance(self.buffer, str):
            parse_bytes(self.buffer, "buffer")
        else:
            _at_least("buffer", self.buffer, 1)

    def _check_lanes(self) -> None:
        assert self.lanes is not None
        _at_least("lanes", self.lanes, 1)
        if isinstance(self.window, str):
            parse_bytes(self.window, "window")
        else:
            _at_least("window", self.window, 1)
        for option, usual in (("global_", False), ("buffer", Shuffle.buffer)):
            if (value := getattr(self, option)) != usual:
                name, got = option.strip("_"), "true" if value is True else str(value)
                raise SpecError(Problem(path=(name,), expected="none with `lanes`", got=got))

    @property
    def order(self) -> dict[str, Any]:
        """What determines which rows come next, beside the seed, as JSON values."""
        if self.lanes is not None:
            return {"lanes": [LANES_VERSION, self.lanes, self.window]}
        return {"global": True} if self.global_ else {"buffer": self.buffer}

    @property
    def is_elastic(self) -> bool:
        """Whether the row at a position of an epoch is a function of the position, for all workers."""
        return self.global_ or self.lanes is not None


@dataclass(frozen=True, kw_only=True)
class Interleave:
    """How files are mixed: `block` records from each of `cycle` files in turn.

    Attributes:
        cycle: the number of files open at a time; by default all, up to 128, so that rows of all files are
            mixed.
        block: the number of records read from a file before the next file; in the layout `blocks` it is one.
        parallel: the number of files read in parallel, by threads. `auto` is all of the cycle, up to 16. It
            helps with remote files. Local files are read faster without it: passing records between threads
            costs more than reading them.
    """

    cycle: Literal["auto"] | int = "auto"
    block: int = 32
    parallel: Literal["auto"] | int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.cycle, int):
            _at_least("cycle", self.cycle, 1)
        _at_least("block", self.block, 1)
        if isinstance(self.parallel, int):
            _at_least("parallel", self.parallel, 1)


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """Batches of rows of similar lengths, to reduce padding.

    Attributes:
        by: the feature whose lengths are compared: the number of items of a list, of bytes of a text, or of
            words if `fit` encodes the text as `words`; or a number that is a length.
        boundaries: the lengths at which the next bucket begins: `[64, 128]` makes three buckets, for lengths
            below 64, from 64 to 127, and from 128.
    """

    by: str
    boundaries: tuple[int, ...]

    def __post_init__(self) -> None:
        rising = all(one < other for one, other in pairwise(self.boundaries))
        if not self.boundaries or self.boundaries[0] < 1 or not rising:
            expected = "lengths, each more than the one before"
            got = str(list(self.boundaries))
            raise SpecError(Problem(path=("boundaries",), expected=expected, got=got))


@dataclass(frozen=True, kw_only=True)
class Pack:
    """Several rows in one sequence of a fixed length, in place of padding. A batch is a number of packs.

    The features of `fit` whose rows differ in length are packed, after `fit.encode`; the values of other
    features are in the order of the rows in a pack. See docs/packing.md.

    Attributes:
        length: the number of values of a pack: of each packed feature, or by name.
        longer: what is done with a row that is longer than a pack: `error` refuses it before training,
            `truncate` keeps its beginning, `split` makes several pieces of it, and `drop` leaves it out.
        most: the largest number of rows in a pack; by default any. Features that are not packed have this
            many values for each pack, and need it.
        align: every row begins at a multiple of this number.
        separator: a value that is added after each row, and belongs to it, such as the end of a text.
        names: the names of segments and positions: those of Grain, MaxText, T5X, Hugging Face or torchtitan.
        weights: whether every `token` weighs 1, or every `document`.
    """

    SHORT_FORM: ClassVar[str] = "length"

    length: int | dict[str, int]
    longer: Literal["error", "truncate", "split", "drop"] = "error"
    most: int | None = None
    align: int = 1
    separator: int | None = None
    names: Literal["grain", "maxtext", "t5x", "hf", "torchtitan"] = "grain"
    weights: Literal["token", "document"] = "token"

    def __post_init__(self) -> None:
        lengths = self.length if isinstance(self.length, Mapping) else {"": self.length}
        for name, length in lengths.items():
            path = ("length", name) if name else ("length",)
            if length < 1 or length % max(1, self.align):
                expected = "at least 1" if self.align <= 1 else f"a multiple of `align`, {self.align}"
                raise SpecError(Problem(path=path, expected=expected, got=str(length)))
        _at_least("align", self.align, 1)
        if self.most is not None:
            _at_least("most", self.most, 1)

    def length_of(self, name: str) -> int:
        """The number of values of a feature in a pack."""
        return self.length[name] if isinstance(self.length, Mapping) else self.length


@dataclass(frozen=True, kw_only=True)
class Balance:
    """Drops rows of frequent classes at random, so that all classes are about equally frequent.

    The choice is a function of the seed, the epoch, and the row's position in the order.

    Attributes:
        by: a label with one class per row; a build counts the classes.
        seed: the seed of the choice; by default that of the shuffle.
    """

    SHORT_FORM: ClassVar[str] = "by"

    by: str
    seed: int | None = None


@dataclass(frozen=True, kw_only=True)
class Augment:
    """Changes images of the training split at random after they are decoded.

    The changes of a row are a function of the seed, the epoch and the row's position in it, so that a resumed
    training sees the same images. Boxes and masks follow the flips and crops of their image.

    Attributes:
        seed: the seed of the random changes.
        image: the image; by default the only image of the schema that is no mask.
        masks: images and tensors of the height and width of the image, such as the class of each pixel. They
            follow its flips and crops. If a crop is resized, each pixel takes the value of the nearest one.
        flip: `horizontal` or `vertical`, for every second image on average; or `both`, drawn independently.
        crop: the smallest and the largest fraction of the area that is kept, such as `[0.7, 1.0]`. The kept
            part has the aspect ratio of the image, and is resized to its size.
        brightness: the largest amount added to or subtracted from all pixels, as a fraction of the full
            range, such as 0.1.
        contrast: the smallest and the largest factor of the distance from the mean of a channel, such as
            `[0.8, 1.2]`.
        splits: the splits whose images are changed. `recordspec.read` changes the images of all files, and
            takes no splits.
    """

    seed: int
    image: str | None = None
    masks: tuple[str, ...] = ()
    flip: Literal["horizontal", "vertical", "both"] | None = None
    crop: tuple[float, ...] | None = None
    brightness: float | None = None
    contrast: tuple[float, ...] | None = None
    splits: tuple[str, ...] = ("train",)

    def __post_init__(self) -> None:
        problems = list(self._check())
        if problems:
            raise SpecError(problems)

    def _check(self) -> Iterator[Problem]:
        changes = ("flip", "crop", "brightness", "contrast")
        if all(getattr(self, name) is None for name in changes):
            yield Problem(expected=f"at least one of {', '.join(changes)}", got="none")
        if self.crop is not None and not _is_range(self.crop, 1.0, positive=True):
            expected = "two shares above 0 and up to 1, the smaller first"
            yield Problem(path=("crop",), expected=expected, got=_listed(self.crop))
        if self.brightness is not None and not 0 < self.brightness <= 1:
            expected = "a share above 0 and up to 1"
            yield Problem(path=("brightness",), expected=expected, got=f"{self.brightness:g}")
        if self.contrast is not None and not _is_range(self.contrast, _MOST_CONTRAST):
            expected = f"two factors of 0 to {_MOST_CONTRAST:g}, the smaller first"
            yield Problem(path=("contrast",), expected=expected, got=_listed(self.contrast))
        if self.masks and not self.is_moving:
            yield Problem(path=("masks",), expected="a flip or a crop, which masks follow", got="neither")
        if not self.splits:
            yield Problem(path=("splits",), expected="at least one split", got="none")

    @property
    def is_moving(self) -> bool:
        """Whether the changes may move the contents of an image."""
        return self.flip is not None or self.crop is not None


def _is_range(values: tuple[float, ...], most: float, *, positive: bool = False) -> bool:
    """Whether the values are two numbers from 0 to `most`, the smaller first; with `positive`, above 0."""
    if len(values) != 2:
        return False
    low, high = values
    return 0 <= low <= high <= most and (low > 0 or not positive)


def _listed(values: tuple[float, ...]) -> str:
    return f"[{', '.join(f'{value:g}' for value in values)}]"


@dataclass(frozen=True, kw_only=True)
class Staging:
    """The folder for local copies of shards that are read from an object store.

    Attributes:
        folder: the path; by default `~/.cache/recordspec/shards`. Several processes may share a folder.
        size: the largest total size of the copies.
    """

    folder: PathText | None = None
    size: str = "20GiB"

    def __post_init__(self) -> None:
        parse_bytes(self.size, "size")


@dataclass(frozen=True, kw_only=True)
class Read:
    """How shards are read as batches. A stage without its option is omitted.

    Attributes:
        batch: the number of rows per batch; by default, an element is a single row.
        shuffle: how rows are shuffled; by default, rows keep the order of the files.
        interleave: how files are mixed; by default only when shuffling.
        bucket: batches of rows of similar lengths.
        pack: several rows in one sequence of a fixed length, in place of padding.
        balance: the label whose classes are to be equally frequent.
        features: the features to read; by default all.
        augment: how images are changed at random for training.
        cache: `memory`, or a folder, for the serialized rows of the first pass; `none` keeps none.
        repeat: the number of passes, or `forever`. No batch has rows of two passes.
        prefetch: the number of batches to prefetch; `auto` is 2.
        deterministic: whether the order is independent of parallelism.
        corrupt: `skip` skips and logs records that cannot be read. To find them, all files are read once
            before the first batch.
        service: the address of a tf.data service that reads the files, such as `grpc://localhost:5050`.
        staging: the folder to which shards of an object store are copied while they are read; with
            `tensorflow`, TensorFlow reads them directly, which supports `gs://`.
    """

    batch: Batch | None = None
    shuffle: Shuffle | None = None
    interleave: Interleave | None = None
    bucket: Bucket | None = None
    pack: Pack | None = None
    balance: Balance | None = None
    features: tuple[str, ...] | None = None
    augment: Augment | None = None
    cache: Literal["none", "memory"] | PathText = "none"
    repeat: Literal["forever"] | int = 1
    prefetch: Literal["auto"] | int | None = "auto"
    deterministic: bool = True
    corrupt: Literal["error", "skip"] = "error"
    service: str | None = None
    staging: Literal["tensorflow"] | Staging = Staging()

    def __post_init__(self) -> None:
        problems = list(self._check())
        if problems:
            raise SpecError(problems)

    def _check(self) -> Iterator[Problem]:
        if isinstance(self.repeat, int) and self.repeat < 1:
            yield Problem(path=("repeat",), expected="at least 1, or forever", got=str(self.repeat))
        if isinstance(self.prefetch, int) and self.prefetch < 0:
            yield Problem(path=("prefetch",), expected="at least 0, or auto", got=str(self.prefetch))
        if self.bucket is not None and self.batch is None:
            yield Problem(path=("bucket",), expected="a batch to fill", got="none")
        if self.balance is not None and self.choice_seed is None:
            hint = f"so that the rows are reproducible; {see('explanation/order')}"
            yield Problem(path=("balance",), expected="the key `seed`, or a shuffle", got="none", hint=hint)
        if self.pack is not None:
            yield from self._check_pack()
        if self.features == ():
            yield Problem(path=("features",), expected="at least one feature", got="none")
        if self.service is not None:
            yield from self._check_service(self.service)

    def _check_pack(self) -> Iterator[Problem]:
        if self.batch is None:
            yield Problem(path=("pack",), expected="a batch of packs", got="none")
        if self.shuffle is not None and not self.shuffle.is_elastic:
            hint = "`shuffle: {global: true}`; the packs of a buffer would depend on all rows before"
            yield Problem(path=("shuffle", "buffer"), expected="none with packs", got="a buffer", hint=hint)
        hints = {
            "bucket": "packs have one length",
            "balance": "weigh the classes: `Pipeline.class_weights`",
            "augment": "packs are of sequences: `map` changes rows",
            "interleave": "the plan of the packs determines the next row",
            "cache": "files are mapped into memory",
            "corrupt": "`recordspec repair` writes the intact records",
            "service": "its workers run no Python",
        }
        usual = {field.name: field.default for field in fields(self)}
        for option, hint in hints.items():
            if getattr(self, option) != usual[option]:
                yield Problem(path=(option,), expected="none with packs", got=f"`{option}`", hint=hint)

    def _check_service(self, service: str) -> Iterator[Problem]:
        try:
            address_of(service)
        except SpecError as error:
            yield from error.problems
        if self.cache != "none":
            hint = "each of its workers would cache its part of a single pass"
            yield Problem(path=("cache",), expected="none with a service", got=self.cache, hint=hint)
        if self.augment is not None:
            hint = "random draws depend on positions, which its batches do not have: augment with `map_fit`"
            yield Problem(path=("augment",), expected="none with a service", got="one", hint=hint)
        if self.bucket is not None and self.shuffle is not None:
            hint = "each of its workers would read every row"  # TensorFlow 2.16 to 2.21
            expected = "none with a service and a shuffle"
            yield Problem(path=("bucket",), expected=expected, got=f"by `{self.bucket.by}`", hint=hint)

    def within(self, folder: Location) -> Read:
        """The options with paths relative to a folder.

        Raises SpecError if the folder is in an object store, and a path is relative.
        """
        read = self
        if read.cache not in ("none", "memory"):
            read = replace(read, cache=_local(folder, read.cache, "cache"))
        if isinstance(read.staging, Staging) and read.staging.folder is not None:
            staged = _local(folder, read.staging.folder, "staging", "folder")
            read = replace(read, staging=replace(read.staging, folder=staged))
        return read

    def of_splits(self, splits: Sequence[str], known: Iterable[str]) -> Read:
        """The options for reading some splits: without `augment` if it is for other splits.

        Args:
            known: all splits of the dataset.

        Raises SpecError if `augment` names an unknown split, or some, but not all, of the splits to read.
        """
        if self.augment is None:
            return self
        named, path = self.augment.splits, ("read", "augment", "splits")
        if unknown := [name for name in named if name not in known]:
            hint = nearest(unknown[0], known)
            raise SpecError(Problem(path=path, expected=one_of(known), got=f"`{unknown[0]}`", hint=hint))
        augmented = [name for name in splits if name in named]
        if augmented and len(augmented) < len(splits):
            expected = f"all of {', '.join(splits)}, which are read together, or none"
            raise SpecError(Problem(path=path, expected=expected, got=", ".join(augmented)))
        return self if augmented else replace(self, augment=None)

    @property
    def choice_seed(self) -> int | None:
        """The seed for dropping rows to balance classes."""
        if self.balance is None:
            return None
        shuffled = None if self.shuffle is None else self.shuffle.seed
        return shuffled if self.balance.seed is None else self.balance.seed

    @property
    def order(self) -> dict[str, Any]:
        """The options that determine which rows come next, as JSON values, without unset ones."""
        found: dict[str, Any] = {}
        if self.batch is not None and self.batch.drop_remainder:
            found["drop_remainder"] = True
        mixed = self.interleave
        if self.shuffle is not None:
            found["seed"] = self.shuffle.seed
            found |= self.shuffle.order
            mixed = mixed or Interleave()
        if mixed is not None and not self.is_global:
            found["interleave"] = [mixed.cycle, mixed.block]
        if self.bucket is not None:
            found["bucket"] = [self.bucket.by, *self.bucket.boundaries]
        if self.pack is not None:
            found["pack"] = {"version": PACK_VERSION} | {
                field.name: getattr(self.pack, field.name)
                for field in fields(Pack)
                if field.name not in ("names", "weights") and getattr(self.pack, field.name) != field.default
            }
        if self.balance is not None:
            found["balance"] = [self.balance.by, self.choice_seed]
        if self.corrupt != Read.corrupt:
            found["corrupt"] = self.corrupt
        return found

    @property
    def is_global(self) -> bool:
        """Whether all rows are permuted, without a buffer."""
        return self.shuffle is not None and self.shuffle.is_elastic

    @property
    def divides_batches(self) -> bool:
        """Whether workers divide each batch, as the rows of a batch are a function of its position."""
        return self.is_global or self.pack is not None

    @property
    def passes(self) -> int | None:
        """The number of passes; None for `forever`."""
        return None if self.repeat == "forever" else self.repeat


def _local(folder: Location, path: str, *option: str) -> str:
    """The path on this machine that an option names."""
    try:
        return local_below(folder, path)
    except SpecError as error:
        raise SpecError(replace(problem, path=("read", *option)) for problem in error.problems) from None


class ReadOptions(TypedDict, total=False):
    """The fields of `Read` as keyword arguments, except the arguments named by `recordspec.read`."""

    interleave: Mapping[str, Any] | Interleave | None
    bucket: Mapping[str, Any] | Bucket | None
    pack: int | Mapping[str, Any] | Pack | None
    balance: str | Mapping[str, Any] | Balance | None
    features: Sequence[str] | None
    augment: Mapping[str, Any] | Augment | None
    cache: str
    repeat: Literal["forever"] | int
    prefetch: Literal["auto"] | int | None
    deterministic: bool
    corrupt: Literal["error", "skip"]
    service: str | None
    staging: Literal["tensorflow"] | Mapping[str, str] | Staging


class DatasetOptions(ReadOptions, total=False):
    """All fields of `Read` as keyword arguments."""

    batch: int | Mapping[str, Any] | Batch | None
    shuffle: bool | Mapping[str, Any] | Shuffle | None


def address_of(service: str) -> tuple[str, int]:
    """The host and port of the dispatcher of a tf.data service. Raises SpecError."""
    try:
        parts = urlsplit(service)
        if parts.scheme == "grpc" and parts.hostname and parts.port and service == f"grpc://{parts.netloc}":
            return parts.hostname, parts.port
    except ValueError:  # the port is no number
        pass
    expected = "an address such as grpc://localhost:5050"
    raise SpecError(Problem(path=("service",), expected=expected, got=f"`{service}`"))
