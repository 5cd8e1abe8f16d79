"""Batches for PyTorch's DataLoader: the same for any number of workers, and resumed at any batch."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest

import recordspec as rs
from recordspec.errors import SpecError

torch = pytest.importorskip("torch")
DataLoader = torch.utils.data.DataLoader


def rows_in(batches) -> list[list[int]]:
    return [inputs["row"].tolist() for inputs, _ in batches]


def test_numbers_are_tensors_without_a_copy(pipeline):
    (inputs, targets), *_ = pipeline.torch_dataset("train")
    expected, labels = next(pipeline.iterate("train"))
    assert {name: value.dtype for name, value in inputs.items()} == {
        "row": torch.int64,
        "x": torch.float32,
        "words": torch.float32,
    }
    for name, value in expected.items():
        np.testing.assert_array_equal(inputs[name].numpy(), value)
    np.testing.assert_array_equal(targets.numpy(), labels)
    array = np.arange(6, dtype=np.float32)
    from recordspec.training.torch_data import _as_tensors

    assert _as_tensors(array).data_ptr() == array.ctypes.data
    texts = np.array([b"a"], object)
    assert _as_tensors({"t": texts})["t"] is texts
    assert torch.is_tensor(_as_tensors([array])[0])


def test_each_iteration_is_the_next_pass(pipeline, rows_of):
    data = pipeline.torch_dataset("train")
    assert len(data) == len(rows_of(0))
    assert [rows_in(data) for _ in range(3)] == [rows_of(epoch) for epoch in range(3)]
    twice = pipeline.torch_dataset("train", repeat=2, start=(1, 3))
    assert rows_in(twice) == rows_of(1)[3:] + rows_of(2)
    assert rows_in(twice) == rows_of(3) + rows_of(4)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_batches_are_the_same_for_any_number_of_workers(pipeline, rows_of, workers):
    data = pipeline.torch_dataset("train", repeat=2)
    loader = DataLoader(data, batch_size=None, num_workers=workers)
    for epoch in (0, 2):
        data.set_epoch(epoch)
        assert rows_in(loader) == rows_of(epoch) + rows_of(epoch + 1)
    kept = pipeline.torch_dataset("train")
    loader = DataLoader(kept, batch_size=None, num_workers=workers, persistent_workers=True)
    for epoch in (4, 1):
        kept.set_epoch(epoch)
        assert rows_in(loader) == rows_of(epoch)
    in_order = DataLoader(pipeline.torch_dataset("test", shuffle=None), batch_size=None, num_workers=workers)
    assert rows_in(in_order) == rows_in(in_order)


def test_workers_are_told_which_pass_is_next(pipeline):
    loader = DataLoader(pipeline.torch_dataset("train"), batch_size=None, num_workers=1)
    assert len(list(loader)) == len(loader)
    with pytest.raises(SpecError, match=r"^epoch: expected the number of the next pass, got 0 again"):
        list(loader)


def test_batches_of_a_filter_are_the_same_for_any_number_of_workers(pipeline):
    options = {"filter": lambda features: features["row"] % 3 > 0, "repeat": 2}
    expected = rows_in(pipeline.iterate("train", **options))
    data = pipeline.torch_dataset("train", **options)
    assert len(data) == len(expected)
    assert rows_in(DataLoader(data, batch_size=None, num_workers=2)) == expected


def of_rank(home, rank, rows):
    torch.distributed.init_process_group("gloo", f"file://{home}/group", rank=rank, world_size=2)
    data = rs.Pipeline.load(home / "c.yaml").torch_dataset("train")
    rows.put((rank, rows_in(DataLoader(data, batch_size=None, num_workers=2))))


def test_ranks_share_each_batch(home, rows_of):
    context = multiprocessing.get_context("fork")
    rows = context.Queue()
    ranks = [context.Process(target=of_rank, args=(home, rank, rows)) for rank in range(2)]
    for one in ranks:
        one.start()
    found = dict(rows.get(timeout=100) for _ in ranks)
    for one in ranks:
        one.join()
    whole = rows_of(0)
    assert found == {rank: [batch[rank::2] for batch in whole] for rank in range(2)}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader_resumes_at_any_batch(pipeline, rows_of, workers):
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")

    def loader(**options):
        data = pipeline.torch_dataset("train", **options)
        return data, torchdata.StatefulDataLoader(data, batch_size=None, num_workers=workers)

    whole = [batch for epoch in range(2) for batch in rows_of(epoch)]
    for stopped in (1, 6, 12, 15):
        batches = iter(loader(repeat=2)[1])
        seen = rows_in(next(batches) for _ in range(stopped))
        _, again = loader(repeat=2)
        again.load_state_dict(batches.state_dict())
        assert seen + rows_in(again) == whole
    _, first = loader()
    assert rows_in(first) == rows_of(0)
    data, again = loader()
    again.load_state_dict(first.state_dict())
    data.set_epoch(1)
    assert rows_in(again) == rows_of(1)


def test_a_state_of_another_dataset_is_refused(pipeline):
    data = pipeline.torch_dataset("train")
    batches = iter(data)
    for _ in range(3):
        next(batches)
    state = data.state_dict()
    assert (state["epoch"], state["step"], state["batches"]) == (0, 0, 3)
    with pytest.raises(SpecError, match=r"^state.batch: expected 8, got 16$"):
        pipeline.torch_dataset("train", batch=8).load_state_dict(state)
    with pytest.raises(SpecError, match=r"^state.manifest: expected "):
        data.load_state_dict({**state, "manifest": "x"})
    data.load_state_dict(state)
    assert data.state_dict() == state
    endless = pipeline.torch_dataset("train", repeat="forever")
    endless.load_state_dict({**state, "batches": 15})  # of passes of 13
    assert rows_in([next(iter(endless))]) == rows_in(list(pipeline.iterate("train", start=(1, 2)))[:1])


def doubled(features):
    return {**features, "x": features["x"] * 2}


def test_workers_may_be_spawned(pipeline, rows_of):
    data = pipeline.torch_dataset("train", map=doubled)
    loader = DataLoader(data, batch_size=None, num_workers=1, multiprocessing_context="spawn")
    assert rows_in(loader) == rows_of(0)


def test_a_mixture_is_read_like_a_dataset(mixture):
    wanted = [(inputs["row"].tolist(), targets.tolist()) for inputs, targets in mixture.iterate("train")]
    assert all([number >= 1000 for number in row] == source for row, source in wanted)
    data = mixture.torch_dataset("train")
    assert len(data) == len(wanted)
    assert [(inputs["row"].tolist(), targets.tolist()) for inputs, targets in data] == wanted
    loader = DataLoader(mixture.torch_dataset("train"), batch_size=None, num_workers=2)
    loader.dataset.set_epoch(0)
    assert rows_in(loader) == [row for row, _ in wanted]
    parts = [rows_in(mixture.torch_dataset("train", worker=worker, workers=3)) for worker in range(3)]
    assert all(
        [whole[0::3], whole[1::3], whole[2::3]] == part
        for (whole, _), *part in zip(wanted, *parts, strict=True)
    )
