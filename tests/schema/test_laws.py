"""Every kind, in every section of a record that takes it, keeps every law: `schema.decoder`, `schema.tensors`.

Of these kinds, `instances.py` has all the forms: `schema.features.fixed_len_sequence`, `schema.features.ragged`,
`schema.features.sparse`, `schema.features.var_len`.
"""

from __future__ import annotations

import pytest

import recordspec as rs
from instances import CASES
from recordspec import testing
from recordspec._tf import stand_ins
from recordspec.schema import row_blocks
from recordspec.schema.decoder import batch_spec
from recordspec.schema.row_blocks import block_of_records
from recordspec.testing import LAWS, trace_together
from recordspec.wire.arrays import bytes_in, strings_array

CASES = trace_together(CASES)
GRAPHS = list(dict.fromkeys(case.shared for case in CASES))
each_case = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=str(case), marks=pytest.mark.together(GRAPHS.index(case.shared)))
        for case in CASES
    ],
)
each_graph = pytest.mark.parametrize(
    "graphs",
    [
        pytest.param(graphs, id=f"{len(graphs.schema.names)} features", marks=pytest.mark.together(number))
        for number, graphs in enumerate(GRAPHS)
    ],
)
OF_GRAPHS = (testing.the_decoded_type_is_the_spec, testing.a_block_is_a_batch, testing.a_graph_does_as_eager)
DECODING = {
    testing.stored_again_it_is_the_same,
    testing.a_batch_is_its_records,
    testing.numpy_does_as_tensorflow,
}
MARKED_LAWS = [
    pytest.param(law, id=law.__name__, marks=[pytest.mark.tensorflow] * (law in DECODING))
    for law in LAWS
    if law not in OF_GRAPHS
]


@pytest.mark.parametrize("law", MARKED_LAWS)
@each_case
def test_law(case, law):
    law(case)


@pytest.mark.tensorflow
@each_graph
def test_laws_of_graphs(graphs):
    """All cases of a graph in one test: tracing the largest ones, of steps, takes 30 s."""
    failed = {}
    for case in (case for case in CASES if case.shared is graphs):
        for law in OF_GRAPHS:
            try:
                law(case)
            except Exception as error:
                failed[f"{case}: {law.__name__}"] = error
        # Were a graph of several features to fail, each case would be traced alone, and pass.
        if "_graphs" in vars(case):
            failed[f"{case}: traced with others"] = graphs
    assert not failed


def types(schema: rs.Schema) -> list[tuple]:
    specs = (*schema.element_spec().items(), *batch_spec(schema, 7).items())
    return [
        (name, type(one).__name__, str(one.shape), one.dtype.name, getattr(one, "ragged_rank", None))
        for name, one in specs
    ]


@pytest.mark.tensorflow
@each_graph
def test_types_are_known_without_tensorflow(graphs):
    with stand_ins():
        known = types(graphs.schema)
    assert known == types(graphs.schema)


@each_case
def test_blocks_made_together_are_those_made_one_by_one(case):
    schema = case.schema
    records = strings_array([*case.records, *case.records[::-1], *case.records])
    size = len(case.records)
    sections = row_blocks.sections_of_records(schema, records)
    together = row_blocks.blocks_of(schema, sections, size, 3)
    assert bytes_in(together) == [case.block, block_of_records(schema, case.records[::-1]), case.block]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_records_that_only_protobuf_reads_are_decoded_with_the_others(case):
    """Two messages end to end are one, which has every key twice."""
    twice = [record + record if place % 2 else record for place, record in enumerate(case.records)]
    assert block_of_records(case.schema, twice) == case.block
