"""The messages of tensorflow_metadata/proto/v0/schema.proto (release 1.21), parsed and printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from google.protobuf import message, text_format

from recordspec.errors import Path, Problem, SpecError, escape_unseen
from recordspec.interop.notes import Note
from recordspec.wire.proto import declare, unknown_fields_of

_PACKAGE = "recordspec.interop.tfmd"
_MESSAGES = {
    # generate_legacy_feature_spec is not in the released proto, but public files contain it, by name; the
    # number is our own
    "Schema": "feature=1:Feature* sparse_feature=6:SparseFeature* weighted_feature=12:WeightedFeature*"
    " string_domain=4:StringDomain* float_domain=9:FloatDomain* int_domain=10:IntDomain*"
    " default_environment=5:string* represent_variable_length_as_ragged=14:bool annotation=8:Annotation"
    " dataset_constraints=11:DatasetConstraints tensor_representation_group=13:GroupEntry*"
    " generate_legacy_feature_spec=1000:bool",
    "GroupEntry": "key=1:string value=2:Group",
    "Group": "tensor_representation=1:TensorEntry*",
    "TensorEntry": "key=1:string value=2:Tensor",
    "Tensor": "dense_tensor=1:DenseTensor varlen_sparse_tensor=2:VarLenSparseTensor"
    " sparse_tensor=3:SparseTensor ragged_tensor=4:RaggedTensor",
    "DenseTensor": "column_name=1:string shape=2:FixedShape default_value=3:DefaultValue",
    "DefaultValue": "float_value=1:double int_value=2:int64 bytes_value=3:bytes uint_value=4:uint64",
    "VarLenSparseTensor": "column_name=1:string",
    "SparseTensor": "dense_shape=1:FixedShape index_column_names=2:string* value_column_name=3:string"
    " already_sorted=4:bool",
    "RaggedTensor": "feature_path=1:Path partition=3:Partition* row_partition_dtype=2:RowPartitionDType",
    "Partition": "uniform_row_length=1:int64 row_length=2:string",
    "Path": "step=1:string*",
    "Feature": "name=1:string deprecated=2:bool presence=14:Presence group_presence=17:GroupPresence"
    " shape=23:FixedShape value_count=5:ValueCount value_counts=32:ValueCountList type=6:FeatureType"
    " domain=7:string int_domain=9:IntDomain float_domain=10:FloatDomain string_domain=11:StringDomain"
    " bool_domain=13:BoolDomain struct_domain=29:StructDomain"
    " natural_language_domain=24:NaturalLanguageDomain image_domain=25:ImageDomain"
    " audio_domain=36:AudioDomain video_domain=37:VideoDomain content_chunk_domain=38:ContentChunkDomain"
    " mid_domain=26:MIDDomain url_domain=27:URLDomain time_domain=28:TimeDomain"
    " time_of_day_domain=30:TimeOfDayDomain distribution_constraints=15:DistributionConstraints"
    " annotation=16:Annotation skew_comparator=18:Comparator drift_comparator=21:Comparator"
    " in_environment=20:string* not_in_environment=19:string* lifecycle_stage=22:LifecycleStage"
    " unique_constraints=31:UniqueConstraints validation_derived_source=34:DerivedFeatureSource"
    " sequence_metadata=35:SequenceMetadata",
    "Presence": "min_fraction=1:double min_count=2:int64",
    "GroupPresence": "required=1:bool",
    "FixedShape": "dim=2:Dim*",
    "Dim": "size=1:int64 name=2:string",
    "ValueCount": "min=1:int64 max=2:int64",
    "ValueCountList": "value_count=1:ValueCount*",
    "SparseFeature": "name=1:string deprecated=2:bool lifecycle_stage=7:LifecycleStage presence=4:Presence"
    " dense_shape=5:FixedShape index_feature=6:FeatureName* is_sorted=8:bool value_feature=9:FeatureName"
    " type=10:FeatureType",
    "FeatureName": "name=1:string",
    "WeightedFeature": "name=1:string feature=2:Path weight_feature=3:Path lifecycle_stage=4:LifecycleStage",
    "IntDomain": "name=1:string min=3:int64 max=4:int64 is_categorical=5:bool",
    "FloatDomain": "name=1:string min=3:float max=4:float disallow_nan=5:bool disallow_inf=6:bool"
    " is_embedding=7:bool is_categorical=8:bool embedding_dim=9:int64 embedding_type=10:string",
    "StringDomain": "name=1:string value=2:string* is_categorical=3:Categorical",
    "BoolDomain": "name=1:string true_value=2:string false_value=3:string",
    "StructDomain": "feature=1:Feature* sparse_feature=2:SparseFeature*",
    "NaturalLanguageDomain": "vocabulary=1:string coverage=2:Coverage token_constraints=3:TokenConstraints*"
    " sequence_length_constraints=5:LengthConstraints",
    "Coverage": "min_coverage=1:float min_avg_token_length=2:float excluded_string_tokens=3:string*"
    " excluded_int_tokens=4:int64* oov_string_tokens=5:string*",
    "TokenConstraints": "int_value=1:int64 string_value=2:string min_per_sequence=3:int64"
    " max_per_sequence=4:int64 min_fraction_of_sequences=5:float max_fraction_of_sequences=6:float",
    "LengthConstraints": "excluded_int_value=1:int64* excluded_string_value=2:string*"
    " min_sequence_length=3:int64 max_sequence_length=4:int64",
    "ImageDomain": "minimum_supported_image_fraction=1:float max_image_byte_size=2:int64",
    "AudioDomain": "",
    "VideoDomain": "",
    "ContentChunkDomain": "",
    "MIDDomain": "",
    "URLDomain": "",
    "TimeDomain": "string_format=1:string integer_format=2:TimeFormat",
    "TimeOfDayDomain": "string_format=1:string integer_format=2:TimeOfDayFormat",
    "DistributionConstraints": "min_domain_mass=1:double",
    "Annotation": "tag=1:string* comment=2:string* extra_metadata=3:Any*",
    "Any": "type_url=1:string value=2:bytes",
    "Comparator": "infinity_norm=1:Threshold jensen_shannon_divergence=2:Divergence"
    " normalized_abs_difference=3:Threshold",
    "Threshold": "threshold=1:double",
    "Divergence": "threshold=1:double source=2:HistogramSelection",
    "HistogramSelection": "type=1:Histogram",
    "DatasetConstraints": "num_examples_drift_comparator=1:NumericComparator"
    " num_examples_version_comparator=2:NumericComparator min_examples_count=3:int64"
    " max_examples_count=4:int64",
    "NumericComparator": "min_fraction_threshold=1:double max_fraction_threshold=2:double",
    "UniqueConstraints": "min=1:int64 max=2:int64",
    "DerivedFeatureSource": "deriver_name=1:string description=2:string",
    "SequenceMetadata": "sequential_status=3:SequentialStatus joint_group=4:string"
    " sequence_truncation_limit=5:int64",
}
_ENUMS = {
    "FeatureType": "TYPE_UNKNOWN=0 BYTES=1 INT=2 FLOAT=3 STRUCT=4",
    "LifecycleStage": "UNKNOWN_STAGE=0 PLANNED=1 ALPHA=2 BETA=3 PRODUCTION=4 DEPRECATED=5 DEBUG_ONLY=6"
    " DISABLED=7 VALIDATION_DERIVED=9",
    "RowPartitionDType": "UNSPECIFIED=0 INT64=1 INT32=2",
    "Categorical": "CATEGORICAL_UNSPECIFIED=0 CATEGORICAL_YES=1 CATEGORICAL_NO=2",
    "TimeFormat": "FORMAT_UNKNOWN=0 UNIX_DAYS=5 UNIX_SECONDS=1 UNIX_MILLISECONDS=2 UNIX_MICROSECONDS=3"
    " UNIX_NANOSECONDS=4",
    # an enum value's name is unique within a package, hence the prefixes and the missing UNKNOWN
    "TimeOfDayFormat": "PACKED_64_NANOS=1",
    "Histogram": "DEFAULT=0 QUANTILES=1 STANDARD=2",
    "SequentialStatus": "SEQUENTIAL_UNSPECIFIED=0 SEQUENTIAL_YES=1 SEQUENTIAL_NO=2",
}
# The values of FeatureType.
TYPE_UNKNOWN, BYTES, INT, FLOAT, STRUCT = range(5)
DTYPES = {BYTES: "string", INT: "int64", FLOAT: "float32"}
# The integer dtypes that an Int64List holds, except int64, whose range is no restriction.
NARROW_DTYPES = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
# The fields of DefaultValue, by dtype.
DEFAULT_FIELDS = {"string": "bytes_value", "int64": "int_value", "float32": "float_value"}
# TensorFlow Metadata describes the feature lists of a SequenceExample as a feature of type STRUCT with this
# name.
STEPS = "##SEQUENCE##"


@cache
def classes() -> Mapping[str, Any]:
    """The message classes, by name."""
    return declare(_PACKAGE, _MESSAGES, syntax="proto2", enums=_ENUMS)


@cache
def _field_names() -> frozenset[str]:
    """The names of all fields."""
    return frozenset(field.partition("=")[0] for fields in _MESSAGES.values() for field in fields.split())


@cache
def ignored_stages() -> Mapping[int, str]:
    """The names of the lifecycle stages in which TensorFlow Metadata ignores a feature, by number."""
    ignored = ("PLANNED", "ALPHA", "DEPRECATED", "DEBUG_ONLY", "DISABLED", "VALIDATION_DERIVED")
    known = dict(value.split("=") for value in _ENUMS["LifecycleStage"].split())
    return {int(known[name]): name for name in ignored}


# A string, a comment, or the name of a field followed by a colon or a brace.
_TOKEN = re.compile(
    r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\#[^\n]*)|(\[?[A-Za-z_][\w./]*\]?)\s*(?=[:{<])"""
)

# protobuf quotes the line before it states the error.
_PREAMBLE = re.compile(r"^'.*?': ", re.DOTALL)

_UNKNOWN_FIELD = "unknown field: ignored"


def parse_text(text: str, source: str) -> tuple[Any, list[Note]]:
    """A Schema message, and notes on the unknown fields in its text. Raises SpecError."""
    schema = classes()["Schema"]()
    try:
        text_format.Parse(text, schema, allow_unknown_field=True, allow_unknown_extension=True)
    except (text_format.ParseError, RecursionError) as error:
        place, _, got = str(error).partition(" : ")
        where, got = (f"{source}:{place}", got) if got else (source, place)
        got = _PREAMBLE.sub("", got).replace(f"{_PACKAGE}.", "")
        expected = "a schema of TensorFlow Metadata, as text"
        raise SpecError(Problem(where=where, expected=expected, got=_short(got))) from None
    names = {match[2]: None for match in _TOKEN.finditer(text) if match[2]}
    return schema, [Note(path=(name,), text=_UNKNOWN_FIELD) for name in names if name not in _field_names()]


def parse_binary(data: bytes, source: str) -> tuple[Any, list[Note]]:
    """A Schema message, and notes on the unknown fields in its bytes. Raises SpecError."""
    try:
        schema = classes()["Schema"].FromString(data)
    except message.DecodeError:
        expected, got = "a schema of TensorFlow Metadata, as bytes", f"{len(data):,} bytes of something else"
        raise SpecError(Problem(where=source, expected=expected, got=got)) from None
    return schema, list(_unknown(schema, ()))


def dump_text(schema: Any) -> str:
    """The message as text. Unprintable characters are escaped byte by byte, as text_format reads them."""
    text = text_format.MessageToString(schema, as_utf8=True)
    return escape_unseen(text, lambda char: "".join(f"\\{byte:03o}" for byte in char.encode()))


def inline(value: Any) -> str:
    """A field's value on one line, short enough for a note."""
    return _short(dump_text(value) if isinstance(value, message.Message) else repr(value))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _unknown(part: Any, path: Path) -> Iterator[Note]:
    for field in unknown_fields_of(part):
        yield Note(path=(*path, f"field {field.field_number}"), text=_UNKNOWN_FIELD)
    for descriptor, value in part.ListFields():
        if descriptor.message_type is not None:
            for item in value if hasattr(value, "append") else [value]:
                yield from _unknown(item, (*path, descriptor.name))


def sizes(shape: Any) -> tuple[int | None, ...]:
    """The sizes of a FixedShape; None for an unknown size."""
    return tuple(dim.size if dim.HasField("size") and dim.size >= 0 else None for dim in shape.dim)


def add_sizes(shape: Any, dims: tuple[int, ...]) -> None:
    """Sets a FixedShape; for a scalar it is present and empty."""
    shape.SetInParent()
    for size in dims:
        shape.dim.add(size=size)


def names_domain(path: tuple[str, ...], key: str) -> str:
    """The name of the schema's string domain with the names for a label's indices.

    A feature of type INT has an `int_domain`, and cannot have a second domain.
    """
    return "/".join((*path, key))


def is_live(feature: Any) -> bool:
    """Whether TensorFlow Metadata uses a feature: it ignores deprecated ones and some lifecycle stages."""
    return not feature.deprecated and feature.lifecycle_stage not in ignored_stages()
