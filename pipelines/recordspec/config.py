"""Reads a config: its schema, the source of its rows, and how they are built, read and fed to a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from recordspec.errors import Path, Problem, SpecError, State, correction, did_you_mean, nearest, one_of
from recordspec.locations import (
    AnyPath,
    Location,
    LocationText,
    absolute,
    below,
    location_problem,
)
from recordspec.order.mix_options import MixOptions
from recordspec.order.read_options import Read
from recordspec.reading import augmentation
from recordspec.reading.filtering import check_label
from recordspec.schema.features import KINDS, Feature
from recordspec.schema.mixed_schema import common_schema, with_names
from recordspec.schema.options import INVALID, Imported, Log, YamlValue, from_python, options_of, read_fields
from recordspec.schema.schema import Schema, parse_file, schema_in
from recordspec.schema.yaml_text import MappingNode, ScalarNode
from recordspec.store.expand import missing_file
from recordspec.training.fit import Fit, check_packed
from recordspec.writing.write_options import SPLIT_NAME, ByColumn, Write, is_split_name

if TYPE_CHECKING:
    from recordspec.writing.sources.base import Source


def _source(module: str, name: str) -> Imported:
    return Imported(f"recordspec.writing.sources.{module}", name)


@dataclass(frozen=True, kw_only=True)
class From:
    """The source of rows: exactly one of the options. Only the module of that source is imported.

    Attributes:
        csv: CSV files, whose headers name the features.
        jsonl: JSON Lines files, with one object per row.
        json: JSON files with one list of objects.
        parquet: Parquet files.
        image_folder: a folder of images, with one subfolder per class.
        audio_folder: a folder of audio files, with one subfolder per class.
        tensor_folder: a folder of `.npy` files, with one subfolder per class.
        tfrecord: existing TFRecord files, decoded and encoded again.
        coco: the images of a COCO annotation file, with boxes, keypoints or captions.
        voc: the images and boxes of a folder of Pascal VOC annotations.
        yolo: the images and boxes of a YOLO dataset.
        labelme: the images and boxes of a folder of LabelMe annotations.
        cvat: the images and boxes of an annotation file of CVAT for images.
        webdataset: WebDataset tar files; the files of a row share a name.
    """

    EXACTLY_ONE: ClassVar[bool] = True

    csv: Annotated[Any, _source("csv", "Csv")] | None = None
    jsonl: Annotated[Any, _source("jsonl", "Jsonl")] | None = None
    json: Annotated[Any, _source("jsonl", "JsonList")] | None = None
    parquet: Annotated[Any, _source("parquet", "Parquet")] | None = None
    image_folder: Annotated[Any, _source("folders", "ImageFolder")] | None = None
    audio_folder: Annotated[Any, _source("folders", "AudioFolder")] | None = None
    tensor_folder: Annotated[Any, _source("folders", "TensorFolder")] | None = None
    coco: Annotated[Any, _source("coco", "Coco")] | None = None
    voc: Annotated[Any, _source("voc", "PascalVoc")] | None = None
    yolo: Annotated[Any, _source("yolo", "Yolo")] | None = None
    labelme: Annotated[Any, _source("labelme", "LabelMe")] | None = None
    cvat: Annotated[Any, _source("cvat", "Cvat")] | None = None
    webdataset: Annotated[Any, _source("webdataset", "WebDataset")] | None = None
    tfrecord: Annotated[Any, _source("tfrecord", "TFRecords")] | None = None

    def __post_init__(self) -> None:
        if len(self._given) != 1:
            expected = one_of(field.name for field in fields(self))
            raise SpecError(Problem(expected=expected, got="several" if self._given else "none"))

    @property
    def given(self) -> tuple[str, Any]:
        """The name of the option, and the source."""
        ((name, form),) = self._given.items()
        return name, form

    @property
    def _given(self) -> dict[str, Any]:
        forms = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: form for name, form in forms.items() if form is not None}

    def open(self, folder: Location, path: AnyPath | None = None) -> Source:
        """Opens the source of rows; its paths are relative to `folder`. A `path` given here replaces the
        config's and is relative to the current folder.
        """
        _, form = self.given
        source = form.open(folder)
        if path is not None:
            source = replace(source, **{form.SHORT_FORM: str(absolute(path))})
        opened: Source = source
        return opened


@dataclass(frozen=True, kw_only=True)
class WriteFrom(Write):
    """The section `write:`. If it names no source, rows are given in Python.

    Attributes:
        source: where the rows come from; or a source for each split, by name, without `splits`.
    """

    source: From | dict[str, From] | None = None

    def _check(self) -> Iterator[Problem]:
        yield from super()._check()
        if not isinstance(self.source, Mapping):
            return
        for name in self.source:
            if not is_split_name(name):
                yield Problem(path=("source", name), expected=SPLIT_NAME, got=f"`{name}`")
        if not self.source:
            yield Problem(path=("source",), expected="at least one split", got="none")
        for option, default in (("splits", Write().splits), ("group_by", None)):
            if getattr(self, option) != default:
                hint = "each source is a split"
                yield Problem(path=(option,), expected=f"no `{option}`", got="some", hint=hint)

    def open(
        self, folder: Location, schema: Schema, path: AnyPath | None = None
    ) -> tuple[Source, dict[str, Any]]:
        """The source of rows, and the options of `recordspec.write` for them; `folder` and `path` as in
        `From.open`. Raises SpecError if there is no source.
        """
        options = options_of(self)
        del options["source"]
        splits, source = options.pop("splits"), self.source
        if source is None:
            hint = "give rows, or add write.source to the config"
            raise SpecError(Problem(path=("write",), expected="a source of rows", got="none", hint=hint))
        if isinstance(source, From):
            return source.open(folder, path), {"split": splits, **options}
        if path is not None:
            expected = f"no other source than those of {', '.join(source)}"
            raise SpecError(Problem(path=("write", "source"), expected=expected, got=f"`{path}`"))
        from recordspec.writing.sources.splits import SplitSources

        sources = SplitSources(sources={name: one.open(folder) for name, one in source.items()})
        sources = sources.beside((*schema.names, *self.keys))
        return sources, {"split": ByColumn(column=sources.column), **options}


@dataclass(frozen=True, kw_only=True)
class Config:
    """A dataset definition. Its paths are relative to the config file, or URLs.

    Attributes:
        schema: the path of the feature spec.
        data: the folder of the shards.
        write: how the shards are built: the section `write:`.
        read: how the shards are read: the section `read:`.
        fit: the inputs and targets of the model: the section `fit:`. By default, a batch is a dict of all
            features.
        description: a text for readers.
    """

    schema: LocationText
    data: LocationText
    write: WriteFrom = field(default_factory=WriteFrom)
    read: Read = field(default_factory=Read)
    fit: Fit | None = None
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class Mix(MixOptions):
    """The datasets of a mixture, and how they are mixed.

    Attributes:
        datasets: the path of the config of each dataset, by a name for it. Its `read` and `fit` are not used.
    """

    datasets: dict[str, LocationText]

    @property
    def options(self) -> MixOptions:
        """How they are mixed."""
        return MixOptions(**{option.name: getattr(self, option.name) for option in fields(MixOptions)})


@dataclass(frozen=True, kw_only=True)
class MixConfig:
    """A mixture of datasets. Its paths are relative to the config file, or URLs.

    Attributes:
        mix: the datasets, and how they are mixed: the section `mix:`.
        read: how the mixture is read: the section `read:`, with `shuffle: {global: true}`.
        fit: the inputs and targets of the model: the section `fit:`.
        description: a text for readers.
    """

    mix: Mix
    read: Read
    fit: Fit | None = None
    description: str = ""


# The config, the schema and the folder of a dataset of a mixture.
MixedConfig = tuple[Config, Schema, Location]


def load(
    path: Location, kinds: Mapping[str, type[Feature]] = KINDS, text: str | None = None
) -> tuple[Config, Schema]:
    """A config and its schema. `text` replaces the contents of the config.

    Raises SpecError with every problem in both, or StoreError.
    """
    node, log = parse_file(path, text)
    if node.values.keys() & {"features", "context", "sequence"} and "data" not in node.values:
        hint = "a config names it as its `schema`; `recordspec init` writes both"
        raise SpecError(Problem(where=str(path), expected="a config", got="a feature spec", hint=hint))
    config: Config = read_fields(Config, YamlValue(node), (), log)
    schema: Any = INVALID
    name = node.values.get("schema")
    if isinstance(name, ScalarNode) and location_problem(name.text) is None:
        schema = _load_schema(path.parent, kinds, name, log)
    if config is not INVALID and schema is not INVALID:
        log.adopt(SpecError(list(problems_of(config, schema))), YamlValue(node), ())
    log.close()
    return config, schema


def is_mixture(path: Location, text: str | None = None) -> bool:
    """Whether a file is the config of a mixture. Raises SpecError and StoreError if it is no YAML."""
    return "mix" in parse_file(path, text)[0].values


def load_mixture(
    path: Location, kinds: Mapping[str, type[Feature]] = KINDS, text: str | None = None
) -> tuple[MixConfig, dict[str, MixedConfig]]:
    """The config of a mixture, and those of its datasets, by name. `text` replaces the contents of the first.

    Raises SpecError with every problem in all of them, or StoreError.
    """
    node, log = parse_file(path, text)
    of_datasets = ("schema", "data", "write")
    for key, where in node.keys.items():
        if key in of_datasets:
            hint = "the configs of its datasets have it"
            log.add(str(where.position), (key,), f"no `{key}` beside `mix`", "one", hint)
    own = {key: value for key, value in node.values.items() if key not in of_datasets}
    config: MixConfig = read_fields(MixConfig, YamlValue(replace(node, values=own)), (), log)
    datasets: dict[str, MixedConfig] = {}
    section = node.values.get("mix")
    named = section.values.get("datasets") if isinstance(section, MappingNode) else None
    for name, one in named.values.items() if isinstance(named, MappingNode) else ():
        if isinstance(one, ScalarNode) and location_problem(one.text) is None:
            found = _load_mixed(path.parent, kinds, one, ("mix", "datasets", name), log)
            if found is not INVALID:
                datasets[name] = found
    log.close()
    try:
        mixed = {name: (schema, below(folder, one.data)) for name, (one, schema, folder) in datasets.items()}
        check_mixture(mixed, config.mix.options, Config(schema="", data="", read=config.read, fit=config.fit))
    except SpecError as error:
        log.adopt(error, YamlValue(node), ())
    log.close()
    return config, datasets


def check_mixture(
    datasets: Mapping[str, tuple[Schema, Location]], options: MixOptions, config: Config
) -> tuple[Schema, Schema]:
    """The schema of the stored features of a mixture, and the schema of the features that are read.

    Args:
        datasets: the schema and the folder of each dataset, by name.
        options: how they are mixed.
        config: the sections `read` and `fit`.

    Raises SpecError for a mixture that cannot be read.
    """
    names = tuple(datasets)
    problems = [] if names else [Problem(path=("mix",), expected="at least one dataset", got="none")]
    problems += [problem.under("mix") for problem in options.check_names(names)]
    folders: dict[Location, str] = {}
    for name, (_, folder) in datasets.items():
        if (other := folders.setdefault(folder, name)) != name:  # rows are known by their files
            expected, hint = f"other data than that of `{other}`", "`weights` say how often it is read"
            path = ("mix", "datasets", name)
            problems.append(Problem(path=path, expected=expected, got=f"`{folder}`", hint=hint))
    if problems:
        raise SpecError(problems)
    stored = common_schema({name: schema for name, (schema, _) in datasets.items()}, config.read.features)
    schema = with_names(stored, options.name_as, names)
    problems = [*problems_of_mixed_reading(config.read), *problems_of(config, schema)]
    if options.count == "packs" and config.read.pack is None:
        problems.append(
            Problem(
                path=("mix", "count"), expected="`rows` or `tokens`", got="packs", hint="without `read.pack`"
            )
        )
    if config.read.shuffle is not None and config.read.shuffle.lanes is not None:
        problems += [problem.under("mix") for problem in options.problems_in_lanes()]
    if options.packs == "mixed" and config.read.pack is None:
        problems.append(Problem(path=("mix", "packs"), expected="none without `read.pack`", got="mixed"))
    if options.name_as is not None and config.read.pack is not None:
        problems.append(Problem(path=("mix", "name_as"), expected="none with `read.pack`", got="one"))
    if problems:
        raise SpecError(problems)
    return stored, schema


def _load_mixed(
    folder: Location, kinds: Mapping[str, type[Feature]], name: ScalarNode, path: Path, log: Log
) -> Any:
    """A dataset of a mixture, or INVALID: the problems of its config join those of the mixture."""
    place = below(folder, name.text)
    if (missing := missing_file(str(place))) is not None:
        return log.put(missing_path(missing, name, path))
    try:
        if is_mixture(place):
            expected = "the config of one dataset"
            return log.add(str(name.position), path, expected, "a mixture", "name its datasets")
        return (*load(place, kinds), place.parent)
    except SpecError as error:
        for problem in error.problems:
            log.put(problem)
        return INVALID


def _load_schema(folder: Location, kinds: Mapping[str, type[Feature]], name: ScalarNode, log: Log) -> Any:
    """The schema that a config in `folder` names, or INVALID: its problems join those of the config. Raises
    StoreError.
    """
    try:
        path = below(folder, name.text)
        if (missing := missing_file(str(path))) is not None:
            return log.put(missing_path(missing, name, ("schema",)))
        return Schema.load(path, kinds)
    except SpecError as error:
        for problem in error.problems:
            log.put(problem)
        return INVALID


def missing_path(missing: State, name: ScalarNode, path: Path) -> Problem:
    """The problem of an option that names a missing file, at its position in a config."""
    hint, meant = missing.hint, correction(missing)
    if meant is not None:  # a name in the same folder
        folder, slash, _ = name.text.rpartition("/")
        hint = did_you_mean(f"{folder}{slash}{meant}")
    got = f"`{missing.where}` {missing.got}"
    return Problem(where=str(name.position), path=path, expected="", got=got, hint=hint)


def config_of(options: Mapping[str, Any], schema: Schema) -> Config:
    """A config from Python values, as `load` reads it from a file. Raises SpecError with its problems."""
    config: Config = from_python(Config, options)
    problems = list(problems_of(config, schema))
    if problems:
        raise SpecError(problems)
    return config


def load_any(path: Location, text: str | None = None) -> tuple[Config | None, Schema]:
    """Reads a schema file, or a config file with its schema; a schema is recognized by its features. Of a
    mixture, only the schema is returned. `text` and the errors are as for `load`.
    """
    schema = schema_in(path, text)
    if schema is not None:
        return None, schema
    if is_mixture(path, text):
        config, datasets = load_mixture(path, text=text)
        schemas = {name: one for name, (_, one, _) in datasets.items()}
        return None, common_schema(schemas, config.read.features)
    return load(path, text=text)


def problems_of(config: Config, schema: Schema) -> Iterator[Problem]:
    """Yields the problems of sections that contradict the schema or each other."""
    if config.fit is not None:
        yield from config.fit.problems_with(schema)
    if config.fit is not None:
        yield from check_packed(config.fit, config.read.pack)
    if config.read.balance is not None:
        yield from check_label(config.read.balance.by, schema, ("read", "balance", "by"))
    if config.read.augment is not None:
        yield from augmentation.check(config.read.augment, schema)
        yield from _check_augmented(config.read.augment.splits, config.write)
    if config.fit is not None and config.read.batch is None:
        hint = "Keras takes batches"
        yield Problem(path=("read",), expected="a batch to fit on", got="none", hint=hint)


def problems_of_mixed_reading(read: Read) -> Iterator[Problem]:
    """Yields the problems of options with which a mixture cannot be read."""
    hints = {
        "bucket": "the values of rows would decide batches, and not the weights",
        "balance": "`weights` say how often a dataset is read",
        "interleave": "the mixture determines the next row",
        "cache": "files are mapped into memory",
        "corrupt": "`recordspec repair` writes the intact records",
        "service": "its workers run no Python",
    }
    usual = Read()
    for option, hint in hints.items():
        if getattr(read, option) != getattr(usual, option):
            yield Problem(path=("read", option), expected="none in a mixture", got=f"`{option}`", hint=hint)
    if not read.is_global:
        got = "none" if read.shuffle is None else "a buffer"
        hint = "write `shuffle: {global: true, seed: 1}`"
        expected = "`global: true` or `lanes` in a mixture"
        yield Problem(path=("read", "shuffle"), expected=expected, got=got, hint=hint)


def _check_augmented(splits: Sequence[str], write: WriteFrom) -> Iterator[Problem]:
    """Yields the problems of splits that are augmented but not written by a build of the config."""
    if isinstance(write.source, Mapping):
        known = list(write.source)
    elif write.source is None or write.weights is None:  # rows may name their splits
        return
    else:
        known = list(write.weights)
    for name in splits:
        if name not in known:
            path, hint = ("read", "augment", "splits"), nearest(name, known)
            yield Problem(path=path, expected=one_of(known), got=f"`{name}`", hint=hint)
