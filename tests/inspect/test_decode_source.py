"""The module that `explain --as python` writes (`schema.features.python_source`): it decodes without recordspec."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import recordspec as rs
from instances import CASES
from recordspec._tf import stand_ins, tf
from recordspec.inspect.decode_source import module_source
from recordspec.schema.decoder import batch_spec
from recordspec.schema.encoder import columns_of
from recordspec.schema.features.audio import Audio
from recordspec.schema.features.image import Image
from recordspec.testing import Case, trace_together
from recordspec.wire.columns import Section

ROOT = Path(__file__).parents[2]
FURTHER: list[tuple[str, Section]] = [
    ("{dtype: int64, default: -1, with_missing: true}", "features"),
    ("{kind: image, shape: [null, null, 3], resize: [4, 5]}", "features"),
    ("{kind: image, shape: [null, null, 3], pad: 9, resize: {size: [4, 5], aspect: pad, method: area}}", "features"),
    ("{kind: image, shape: [6, 7, 1], encoding: raw, resize: {size: [4, 5], aspect: crop}}", "sequence"),
    ("{kind: video, shape: [2, null, null, 3], encoding: png, resize: [4, 5]}", "features"),
    (
        "{kind: image, encoding: jpeg, resize: {size: [2, 1], aspect: crop, scaled_decoding: true}}",
        "features",
    ),
    ("{kind: audio, sample_rate: 8000, resample: 16000}", "features"),
    ("{kind: audio, sample_rate: 8000, encoding: raw, dtype: int16, resample: 6000}", "features"),
]  # fmt: skip


def further(number: int, text: str, section: Section) -> Case:
    (feature,) = rs.Schema.loads(f"schema: s\nfeatures: {{further_{number}: {text}}}").features
    return Case(feature, section)


ALL = [*(case for case in CASES if getattr(case.feature, "encoding", "") not in ("flac", "webp"))]
ALL += [further(number, *one) for number, one in enumerate(FURTHER)]
GRAPHS = list(dict.fromkeys(case.shared for case in trace_together(ALL)))


def types(schema: rs.Schema) -> list[tuple]:
    specs = (*schema.element_spec().items(), *batch_spec(schema, 7).items())
    return [
        (name, type(one).__name__, str(one.shape), one.dtype.name, getattr(one, "ragged_rank", None))
        for name, one in specs
    ]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_types_are_known_without_tensorflow(case):
    with stand_ins():
        known = types(case.schema)
    assert known == types(case.schema)


def decoded_by(source: str, records: list[bytes]) -> dict:
    names: dict = {"__name__": "reader"}
    exec(compile(source, "reader.py", "exec"), names)
    return tf.function(names["decode"])(tf.constant(records))


@pytest.mark.tensorflow
@pytest.mark.parametrize("graphs", GRAPHS, ids=lambda graphs: f"{len(graphs.schema.names)} features")
def test_it_decodes_to_the_same_tensors(graphs):
    source, expected = module_source(graphs.schema), graphs.trace("batch").values
    assert "recordspec" not in source
    columns = columns_of(graphs.schema, graphs._rows)
    found = decoded_by(source, graphs.schema.encode_batch(columns, len(graphs._rows)))
    assert list(found) == list(expected)
    tf.nest.assert_same_structure(found, expected, expand_composites=True)
    for name in expected:
        flat = (tf.nest.flatten(each[name], expand_composites=True) for each in (found, expected))
        for one, other in zip(*flat, strict=True):
            assert one.dtype == other.dtype, name
            np.testing.assert_array_equal(one.numpy(), other.numpy(), err_msg=name)


FOLLOWING = """
schema: s
record: sequence_example
context:
  photo: {kind: image, resize: {size: [4, 5], aspect: crop}}
  face: {kind: box, format: rel_xywh, pad: -1}
sequence:
  clip: {kind: video, shape: [2, null, null, 3], encoding: png, resize: {size: [4, 5], aspect: pad}}
  raw: {kind: image, encoding: raw, shape: [6, 7, 3], resize: [4, 5]}
  box: {kind: box, format: xyxy, image: photo}
  there: {kind: box, format: center_xywh, image: clip}
  here: {kind: box, format: yxyx, image: raw, keys: [top, left, bottom, right]}
"""


@pytest.mark.tensorflow
def test_boxes_follow_their_images():
    schema, rng = rs.Schema.loads(FOLLOWING), np.random.default_rng(0)
    rows = [
        {
            name: [feature.sample(rng) for _ in range(steps)] if name in schema.steps else feature.sample(rng)
            for name, feature in schema.names.items()
        }
        for steps in (2, 0, 3)
    ]
    records = [schema.encode(row) for row in rows]
    found, expected = decoded_by(module_source(schema), records), schema.decode(records)
    for name in ("face", "box", "there", "here"):
        np.testing.assert_array_equal(found[name].flat_values, expected[name].flat_values)
        assert expected[name].flat_values.shape[0]
    assert (found["here"].flat_values.numpy() <= [4, 5, 4, 5]).all()


def test_what_it_cannot_is_named():
    class Mesh(Image):
        kind = "mesh"

    features = (
        Image(name="a", encoding="webp"),
        Audio(name="b", sample_rate=8000, encoding="flac"),
        Mesh(name="c"),
        Image(name="d"),
    )
    with pytest.raises(rs.SpecError) as caught:
        module_source(rs.Schema(name="s", features=features))
    assert str(caught.value).splitlines() == [
        "features.a.encoding: expected one that every TensorFlow decodes, got webp (leave it out of the schema)",
        "features.b.encoding: expected one that every TensorFlow decodes, got flac (leave it out of the schema)",
        "features.c.kind: expected a kind of recordspec, got mesh (leave it out of the schema)",
    ]


SCRIPT = """
import pickle, sys
sys.modules["recordspec"] = None
import tensorflow as tf
import reader
batches = list(reader.dataset([sys.argv[1]], 4))
flat = [tf.nest.flatten(batch, expand_composites=True) for batch in batches]
pickle.dump([[one.numpy() for one in each] for each in flat], open(sys.argv[2], "wb"))
"""


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_process_without_recordspec_reads_a_dataset(tmp_path):
    schema = rs.Schema.load(ROOT / "schemas/scattered_digits.yaml")
    rng = np.random.default_rng(0)
    rows = [{name: feature.sample(rng) for name, feature in schema.names.items()} for _ in range(10)]
    rs.write(schema, rows, tmp_path / "data", progress=False)
    (tmp_path / "reader.py").write_text(module_source(schema))
    (shard,) = (tmp_path / "data").glob("train-*")
    subprocess.run([sys.executable, "-c", SCRIPT, shard, tmp_path / "out"], check=True, cwd=tmp_path)
    found = pickle.loads((tmp_path / "out").read_bytes())
    expected = [tf.nest.flatten(batch, expand_composites=True) for batch in rs.read(schema, shard, batch=4)]
    assert len(found) == len(expected) == 3
    for one, other in zip(found, expected, strict=True):
        for value, wanted in zip(one, other, strict=True):
            np.testing.assert_array_equal(value, wanted.numpy())
