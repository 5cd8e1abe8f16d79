"""Faults at requests of every command on stores: `fault_sweep.py` tries them all."""

from __future__ import annotations

import pytest
from fault_sweep import COMMANDS, FAULTS, FaultSweep, few_retries

pytestmark = [pytest.mark.services, pytest.mark.newest, pytest.mark.long]

# By store, at how many requests of a command each fault comes, and of which commands.
POINTS = {"gs": (4, [*COMMANDS]), "s3": (2, ["write", "force", "append", "build", "read", "verify"])}


@pytest.fixture(scope="module")
def sweeps(servers, tmp_path_factory):
    made = {}

    def sweep(scheme: str) -> FaultSweep:
        if scheme not in made:
            made[scheme] = FaultSweep(servers(scheme), tmp_path_factory.mktemp("sweep"))
        return made[scheme]

    with few_retries():
        yield sweep


@pytest.mark.parametrize(
    ("scheme", "name"), [(scheme, name) for scheme, (_, names) in POINTS.items() for name in names]
)
def test_a_command_ends_with_its_result_or_a_clear_error(sweeps, tmp_path, monkeypatch, scheme, name):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sweep = sweeps(scheme)
    step = max(1, sweep.requests(name) // POINTS[scheme][0])
    for number, kind in enumerate(FAULTS):
        sweep.run(name, [kind], step, number % step)
    wrong, sweep.wrong = sweep.wrong, []
    assert wrong == []
    assert sum(sweep.trials[name, kind] for kind in FAULTS) >= len(FAULTS) - 1
