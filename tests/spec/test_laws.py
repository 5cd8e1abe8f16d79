"""Every kind, in every section of a record that takes it, keeps every law."""

from __future__ import annotations

import pytest

from instances import CASES
from recordspec.testing import LAWS, trace_together

SHARING = trace_together(CASES)
GRAPHS = list({id(case.shared): case.shared for case in SHARING}.values())


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("case", SHARING, ids=str)
def test_law(case, law):
    law(case)


@pytest.mark.parametrize("graph", ["record", "batch", "block"])
@pytest.mark.parametrize(
    "graphs", GRAPHS, ids=lambda graphs: f"{graphs.schema.sections[-1]}-{len(graphs.schema.names)}"
)
def test_features_are_traced_together(graphs, graph):
    """Were a graph of several features to fail, each case would be traced alone."""
    spec = graphs.schema.element_spec() if graph == "record" else graphs.schema.batch_spec()
    assert graphs.trace(graph).spec == spec
