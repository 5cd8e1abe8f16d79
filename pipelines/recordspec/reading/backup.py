"""Training that can be broken off at any step, and goes on with the very next batch."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError, StoreError
from recordspec.reading.order import Position
from recordspec.store.locks import exchange

_WEIGHTS = "model.weights.h5"
_POSITION = "position.json"


class Backup(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """A Keras callback that keeps the model and the position in the data together, and restores both.

        backup = recordspec.Backup("backup", every=500)
        model.fit(pipeline.dataset("train", start=backup.start), initial_epoch=backup.start.epoch,
                  epochs=10, callbacks=[backup])

    Run again after it was broken off, the same lines go on where the last backup was made: weights,
    optimizer and the order of the batches are those of a run that nothing broke off.

    Attributes:
        start: where to begin: the position of the backup, or the beginning.
    """

    def __init__(self, folder: str | os.PathLike[str], *, every: int | None = None) -> None:
        """Looks for a backup.

        Args:
            folder: holds the backup, and nothing else.
            every: steps from one backup to the next; by default one is made after each epoch.

        Raises:
            SpecError: `every` is no number of steps.
            StoreError: what is in the folder is no backup.
        """
        super().__init__()
        if every is not None and every < 1:
            raise SpecError(Problem(path=("every",), expected="at least 1 step", got=str(every)))
        self._folder, self._every = Path(folder), every
        self.start = self._load()
        self._position = self.start
        self._warnings: Any = None

    def _load(self) -> Position:
        path = self._folder / _POSITION
        if not self._folder.exists():
            return Position()
        try:
            return Position(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError, SpecError) as error:
            raise StoreError(Problem(where=str(path), expected="a backup", got=str(error))) from None

    def on_train_begin(self, logs: Any = None) -> None:
        """Restores the model, where there is a backup."""
        if self.start != Position():
            # optimizers skip what they find saved as long as they have no variables themselves
            self.model.optimizer.build(self.model.trainable_variables)
            self.model.load_weights(self._folder / _WEIGHTS)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """The epoch that was broken off is shorter than others, of which Keras would warn."""
        first = self.start.step if epoch == self.start.epoch else 0
        self._position = Position(epoch=epoch, step=first)
        if first:
            self._warnings = warnings.catch_warnings()
            self._warnings.__enter__()
            warnings.filterwarnings("ignore", message="Your input ran out of data")

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Makes a backup after every so many steps."""
        first = self.start.step if self._position.epoch == self.start.epoch else 0
        before, self._position = self._position, Position(epoch=self._position.epoch, step=first + batch + 1)
        if self._every is not None and before.step // self._every != self._position.step // self._every:
            self._save()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Makes a backup: the next batch is the first of the next epoch."""
        if self._warnings is not None:
            self._warnings.__exit__(None, None, None)
            self._warnings = None
        self._position = Position(epoch=epoch + 1)
        self._save()

    def _save(self) -> None:
        """A backup is there whole or not at all: what is being written has another name."""
        made = self._folder.with_name(f".{self._folder.name}.new")
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        self.model.save_weights(made / _WEIGHTS)
        position = {"epoch": self._position.epoch, "step": self._position.step}
        (made / _POSITION).write_text(json.dumps(position))
        if self._folder.exists() and not exchange(made, self._folder):
            shutil.rmtree(self._folder)
        if not self._folder.exists():
            made.rename(self._folder)
        shutil.rmtree(made, ignore_errors=True)
