"""Faults at requests of every command on stores: `fault_sweep.py` tries them all."""

from __future__ import annotations

import pytest
from fault_sweep import COMMANDS, FAULTS, FaultSweep, few_retries

pytestmark = pytest.mark.services

WRITING = ["write", "force", "append", "build"]
# Of each writing command every fault at every so many requests, from another one on each.
STEP = 5


@pytest.fixture(scope="module")
def sweeps(servers, tmp_path_factory):
    made = {}

    def sweep(scheme: str) -> FaultSweep:
        if scheme not in made:
            made[scheme] = FaultSweep(servers(scheme), tmp_path_factory.mktemp("sweep"))
        return made[scheme]

    with few_retries():
        yield sweep


@pytest.mark.parametrize("name", [*COMMANDS])
@pytest.mark.parametrize("scheme", ["gs", "s3"])
def test_a_command_ends_with_its_result_or_a_clear_error(sweeps, tmp_path, monkeypatch, scheme, name):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sweep = sweeps(scheme)
    before = sum(sweep.trials.values())
    for number, kind in enumerate(FAULTS):
        sweep.run(name, [kind], STEP if scheme == "gs" else 2 * STEP, number % STEP)
    wrong, sweep.wrong = sweep.wrong, []
    assert wrong == []
    assert sum(sweep.trials.values()) - before >= len(FAULTS)
