"""Backups of a training: after an interruption, it resumes with the next batch."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from recordspec._keras import keras
from recordspec._tf import tf
from recordspec.errors import Problem, SpecError, StoreError, see, system_reason
from recordspec.locations import atomic_write, local, read_bytes, sync_file
from recordspec.order.position import Opening, Position

_POSITION = "position.json"
# The fields of a position that identify the data.
_DATASET = ("workers", "batch", "manifest", "order")
_MOST_BYTES = 64 << 20  # of a position file: a few numbers for each random number generator
# The value of `stop_training` that ends an epoch, but not the training. No other callback sets it.
_ENDED = "the end of an interrupted epoch"
_OURS = re.compile(r"weights-\d+-\d+\.weights\.h5|position\.json(\.new)?|\.position\.json\.(\d+|partial)")


class Backup(keras.callbacks.Callback):  # type: ignore[misc]
    """A Keras callback that saves the model together with the position in the data, and restores both.

    For example::

        backup = recordspec.Backup("backup", every=500)
        model.fit(pipeline.dataset("train", start=backup.start), initial_epoch=backup.start.epoch,
                  epochs=10, callbacks=[backup])

    If this code runs again after an interruption, it resumes from the last backup: weights, optimizer, the
    random numbers of dropout and the order of the batches equal those of an uninterrupted run. An epoch
    of `fit` must be a pass of the dataset: `repeat` and `steps_per_epoch` raise SpecError. List the callback
    last, so that it sees the effects of the other callbacks.

    A backup has the complete position in the dataset that begins at `start`. Resuming with another batch,
    seed, split or filter, or after the dataset was replaced or appended to, raises SpecError.

    Attributes:
        start: the position of the backup; without a backup, the beginning.

    Example:
        >>> backup = rs.Backup("backup", every=500)
        >>> backup.start.epoch, backup.start.step
        (0, 0)
    """

    def __init__(self, folder: str | os.PathLike[str], *, every: int | None = None) -> None:
        """Loads the position of a backup, if there is one.

        Args:
            folder: the folder of the backup. Other files in it are never changed.
            every: the number of steps between backups; by default, a backup is made after each epoch.

        Raises:
            SpecError: `every` is below 1, or `folder` is a URL.
            StoreError: the folder holds other files, but no backup.
        """
        super().__init__()
        if every is not None and every < 1:
            raise SpecError(Problem(path=("every",), expected="at least 1 step", got=str(every)))
        self._folder, self._every = local(folder), every
        start, self._seeds, self._torch = self._load()
        self._opening: Opening | None = None
        self._has_begun = self._resumes = False
        self.start = start._watched(self._set_read)
        self._position = self._saved = self._read = self.start
        self._stopped, self._quiet = False, ExitStack()

    def _load(self) -> tuple[Position, list[Any], list[str]]:
        """The position of the backup, and the states of the random number generators of Keras and PyTorch."""
        path = self._folder / _POSITION
        try:
            if not self._folder.exists() or _nothing_but_ours(self._folder):
                return Position(), [], []
            kept = json.loads(read_bytes(path, _MOST_BYTES))
            # earlier versions saved only the epoch and the step
            more = {name: kept[name] for name in _DATASET if name in kept}
            position = Position(epoch=kept["epoch"], step=kept["step"], **more)
            return position, kept["seeds"], kept.get("torch", [])
        except StoreError as error:
            hint = "a backup's folder has one, or is empty"
            problems = [
                replace(each, expected=each.expected and "a backup", hint=each.hint or hint)
                for each in error.problems
            ]
            raise StoreError(problems) from None
        except (OSError, ValueError, TypeError, KeyError, SpecError) as error:
            problem = Problem(where=str(path), expected="a backup", got=system_reason(error))
            raise StoreError(problem) from None

    def set_model(self, model: Any) -> None:
        """Receives the model to train."""
        super().set_model(model)
        self._trained = model  # on JAX, `self.model` copies the state of the training to the model each time

    def _set_read(self, position: Position, opening: Opening) -> None:
        """Receives the position and the opening of the dataset that begins at `start`."""
        self._read, self._opening, self._has_begun = position, opening, False

    @property
    def _restart(self) -> Callable[[], None] | None:
        return None if self._opening is None else self._opening.restart

    def on_train_begin(self, logs: Any = None) -> None:
        """Restores the model if there is a backup. Raises SpecError if resuming would not be exact."""
        self._check()
        if self._restart is not None and not self._has_begun:  # Keras has read batches to build metrics with
            self._restart()
        self._has_begun = True
        if (self.start.epoch, self.start.step) == (0, 0):
            return
        self._resumes = True
        # an optimizer that is not built ignores the saved variables
        self.model.optimizer.build(self.model.trainable_variables)
        self.model.load_weights(self._folder / _weights(self.start))
        for variable, state in zip(_generators(self.model), self._seeds, strict=True):
            variable.assign(state)
        if self.start.step == 0:
            self._restore_torch()

    def _check(self) -> None:
        hint = ""
        steps = self.params.get("steps")
        strategy = getattr(self.model, "distribute_strategy", None)
        on_tensorflow = keras.backend.backend() == "tensorflow"
        if on_tensorflow and (
            tf.distribute.has_strategy() or strategy not in (None, tf.distribute.get_strategy())
        ):
            # Keras reads a batch to build the model with, and so begins with the second pass
            expected, got = "a model without a strategy", type(strategy).__name__
            hint = see("distributed")
        elif not self.model.built:
            expected, got = "a model that is built", "one without weights"
            hint = "give it an Input, or call build"
        elif self._opening is None:
            expected, got = "a dataset that begins where the backup ends", "another"
            hint = "give it `start=backup.start`"
        elif self._opening.passes != 1:
            expected, got = "a dataset without `repeat`, as an epoch is a pass", "several passes"
            hint = "`epochs` of `fit` repeats it"
        elif self._every is not None and not steps:
            expected, got = "a dataset of known cardinality, or no `every`", "an unknown one"
        elif steps and steps != self._opening.steps:
            expected, got = f"{self._opening.steps or 'all'} steps, as an epoch is a pass", f"{steps}"
            hint = "leave out `steps_per_epoch`"
        else:
            return
        raise SpecError(Problem(path=("Backup",), expected=expected, got=got, hint=hint))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Counts the steps of the epoch. Raises SpecError if training resumes with another epoch."""
        if self._resumes and epoch != self.start.epoch:
            expected, hint = f"initial_epoch={self.start.epoch}", "give `fit` `backup.start.epoch`"
            raise SpecError(Problem(path=("Backup",), expected=expected, got=str(epoch), hint=hint))
        self._resumes = False
        self._position = self.start if epoch == self.start.epoch else Position(epoch=epoch)
        if self._restart is not None and 0 < self._position.step == self.params.get("steps"):
            self._end_early()  # nothing is left of the epoch

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Restores PyTorch's generator: Keras has drawn a number from it at the beginning of the epoch."""
        self._restore_torch()

    def _restore_torch(self) -> None:
        if self._torch:
            _set_torch_states(self._torch)
            self._torch = []

    def _draw_from_torch(self) -> None:
        """Draws the number that Keras draws at the end of a whole epoch, for a DataLoader that it ignores."""
        import torch

        self._restore_torch()
        torch.empty((), dtype=torch.int64).random_()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Makes a backup every `every` steps."""
        epoch, before = self._position.epoch, self._position.step
        first = self.start.step if epoch == self.start.epoch else 0
        self._position = Position(epoch=epoch, step=first + batch + 1)
        self._stopped = bool(self._trained.stop_training)
        if self._every is not None and before // self._every != self._position.step // self._every:
            self._save()
        if first and self._position.step == self.params.get("steps") and not self._stopped:
            self._end_early()

    def _end_early(self) -> None:
        """Ends a resumed epoch, which is shorter than a whole epoch.

        Keras asks for more batches, and warns that there are none.
        """
        if self._restart is not None:
            self._quiet.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", message="Your input ran out of data")
            if keras.backend.backend() == "torch":
                self._quiet.callback(self._draw_from_torch)
        else:
            # TensorFlow's trainer counts a failed step, too, in the optimizer and in the random number
            # generators. Other trainers do not count it, and refuse an epoch after a stopped epoch.
            self._trained.stop_training = _ENDED

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Makes a backup at the start of the next epoch, unless a callback stopped this one."""
        self._quiet.close()
        if self._trained.stop_training is _ENDED:
            self._trained.stop_training = False
        steps = self.params.get("steps")
        if not steps and self._stopped:
            return  # without a known cardinality, training resumes only at whole epochs
        if not (steps and self._trained.stop_training and self._position.step < steps):
            self._position = Position(epoch=epoch + 1)
        self._save()

    def _save(self) -> None:
        """Makes a backup atomically: weights are part of it once the position names them."""
        if self._position == self._saved:
            return
        weights = self._folder / _weights(self._position)
        self._folder.mkdir(parents=True, exist_ok=True)
        self.model.save_weights(weights)
        sync_file(weights)
        seeds = [variable.numpy().tolist() for variable in _generators(self.model)]
        position: dict[str, Any] = {"epoch": self._position.epoch, "step": self._position.step}
        position |= {name: getattr(self._read, name) for name in _DATASET} | {"seeds": seeds}
        if keras.backend.backend() == "torch":  # layers without a seed use PyTorch's generator
            position["torch"] = _torch_states()
        atomic_write(self._folder / _POSITION, json.dumps(position).encode())
        for path in self._folder.iterdir():
            if _OURS.fullmatch(path.name) and path.name not in (weights.name, _POSITION):
                path.unlink()
        self._saved = self._position


def _weights(position: Position) -> str:
    return f"weights-{position.epoch}-{position.step}.weights.h5"


def _nothing_but_ours(folder: Path) -> bool:
    """Whether a folder is empty, or holds an unfinished first backup."""
    names = os.listdir(folder)
    return _POSITION not in names and all(_OURS.fullmatch(name) for name in names)


def _generators(model: Any) -> list[Any]:
    """The states of random number generators, such as dropout's. Weights do not include them."""
    known = {id(variable) for variable in [*model.weights, *model.metrics_variables]}
    return [variable for variable in model.variables if id(variable) not in known]


def _torch_states() -> list[str]:
    """The states of PyTorch's generators, of the processor and of each GPU, in hexadecimal."""
    import torch

    states = [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]
    return [bytes(state.numpy()).hex() for state in states]


def _set_torch_states(states: list[str]) -> None:
    import torch

    first, *others = (torch.frombuffer(bytearray.fromhex(state), dtype=torch.uint8) for state in states)
    torch.set_rng_state(first)
    torch.cuda.set_rng_state_all(others)
