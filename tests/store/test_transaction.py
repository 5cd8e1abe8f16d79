"""A dataset appears whole or not at all, whoever else is at it, and whenever a writer dies."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

import recordspec as rs
from frames_by_hand import frame
from recordspec import StoreError
from recordspec.integrity import repair as repairs
from recordspec.integrity.indexing import index
from recordspec.integrity.repair import repair
from recordspec.store import transaction as transactions
from recordspec.store.journal import FILE as JOURNAL
from recordspec.store.manifest import Manifest, Shard
from recordspec.store.sidecars import add_sidecars
from recordspec.store.transaction import Transaction, reserve
from recordspec.writing import sharding
from recordspec.writing.sources.csv import Csv

NONE = Manifest(schema=None, fingerprint=None, record="example", compression="none", splits={})


class Died(BaseException):
    """A kill -9: nothing is cleaned up, but the lock is gone."""


def publish(target: Path, **how: bool) -> None:
    with Transaction(target, **how) as transaction:
        transaction.commit(NONE, None)


def die(target: Path, monkeypatch, owner: type, name: str, ends: str) -> None:
    """A writer that replaces a dataset, and dies when it is about to do `name` to a path that ends so."""
    real = getattr(owner, name)

    def dying(path, *more, **how):
        if str(path).endswith(ends):
            raise Died
        return real(path, *more, **how)

    transaction = Transaction(target, force=True).__enter__()
    (transaction.work / JOURNAL).touch()
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dying)
        with pytest.raises(Died):
            transaction.commit(NONE, None)
    os.close(transaction._lock)


def test_one_that_has_published_leaves_the_next_alone(tmp_path):
    first = Transaction(tmp_path / "data").__enter__()
    first.commit(NONE, None)
    second = Transaction(tmp_path / "data", force=True).__enter__()
    first.__exit__(None, None, None)
    assert second.partial.is_dir()
    second.__exit__(None, None, None)
    assert os.listdir(tmp_path) == ["data"]


def test_a_process_that_was_forked_leaves_it_alone(tmp_path):
    """It ends within the block, as by `sys.exit` in a function that multiprocessing runs."""
    with Transaction(tmp_path / "data") as transaction:
        child = os.fork()
        if not child:
            try:
                transaction.__exit__()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert transaction.partial.is_dir()
        transaction.commit(NONE, None)
    assert (tmp_path / "data").is_dir()


@pytest.mark.parametrize("how", ["append", "force", "resume"])
@pytest.mark.parametrize(
    ("exchange", "name", "ends"),
    [
        (True, "rename", ".partial"),
        (True, "unlink", "owner.json"),
        (False, "rename", ".partial"),
        (False, "rename", "/data"),
        (False, "unlink", "owner.json"),
    ],
)
def test_after_a_death_while_it_publishes_the_next_goes_on(tmp_path, monkeypatch, exchange, name, ends, how):
    publish(tmp_path / "data")
    if not exchange:
        monkeypatch.setattr(transactions, "exchange", lambda one, other: False)
    die(tmp_path / "data", monkeypatch, Path, name, ends)
    publish(tmp_path / "data", **{how: True}, **({"force": True} if how == "resume" else {}))
    assert os.listdir(tmp_path) == ["data"]
    assert os.listdir(tmp_path / "data") == ["manifest.json"]


def test_a_dataset_stands_there_at_every_moment_of_a_swap(tmp_path, monkeypatch):
    publish(tmp_path / "data")
    seen = []

    def watched(real):
        def call(*arguments):
            done = real(*arguments)
            seen.append((real.__name__, (tmp_path / "data/manifest.json").exists()))
            return done

        return call

    for owner, name in ((Path, "rename"), (Path, "unlink"), (transactions, "exchange")):
        monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
    publish(tmp_path / "data", force=True)
    names = [name for name, _ in seen]
    # staged, without temporary files, swapped, the old one set aside
    assert names[:4] == ["rename", "rename", "exchange", "rename"]
    assert all(there for _, there in seen)


def test_the_remains_of_an_old_dataset_without_its_manifest_are_cleared(tmp_path):
    publish(tmp_path / "data")
    (tmp_path / ".data.replaced").mkdir()
    publish(tmp_path / "data", force=True)
    assert os.listdir(tmp_path) == ["data"]


def test_what_has_no_journal_cannot_be_gone_on_with(tmp_path):
    left = Transaction(tmp_path / "data").__enter__()
    (left.partial / "train-00000-of-00001.tfrecord").touch()
    os.close(left._lock)
    publish(tmp_path / "data", resume=True)
    assert os.listdir(tmp_path / "data") == ["manifest.json"]


def no_locks(handle: int, how: int) -> None:
    raise OSError(errno.ENOTSUP, "no locks here")


def test_where_there_are_no_locks_a_writer_that_lives_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", no_locks)
    other = Transaction(tmp_path / "data").__enter__()
    owner = {"pid": os.getppid(), "host": socket.gethostname()}
    (other.partial / "owner.json").write_text(json.dumps(owner))
    with pytest.raises(rs.StoreError) as caught:
        publish(tmp_path / "data")
    assert str(caught.value) == (
        f"`{tmp_path}/data` is being written by process {os.getppid()} on {socket.gethostname()}: "
        f"if it is gone, remove {tmp_path}/.data.partial; see `recordspec docs explanation/publishing`"
    )
    (other.partial / "owner.json").write_text(json.dumps({**owner, "pid": 1 << 30}))
    publish(tmp_path / "data")
    assert os.listdir(tmp_path) == ["data"]


def left_elsewhere(folder: Path, monkeypatch) -> Transaction:
    """A build that ended on another host before its end."""
    with monkeypatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "elsewhere")
        left = Transaction(folder / "data").__enter__()
    (left.work / JOURNAL).touch()
    return left


def test_a_build_of_another_host_is_resumed_where_its_lock_is_free(tmp_path, monkeypatch):
    left = left_elsewhere(tmp_path, monkeypatch)
    written = f"`{tmp_path}/data` is being written by process {os.getpid()} on elsewhere: if it is gone, "
    remove = f"remove {tmp_path}/.data.partial; see `recordspec docs explanation/publishing`"
    with pytest.raises(rs.StoreError) as caught:
        publish(tmp_path / "data", resume=True)
    assert str(caught.value) == f"{written}{remove}"
    os.close(left._lock)
    with pytest.raises(rs.StoreError) as caught:
        publish(tmp_path / "data")  # it would discard what may still be written
    assert str(caught.value) == f"{written}resume=True, or --resume, continues its build; or {remove}"
    with Transaction(tmp_path / "data", resume=True) as resumed:
        assert (resumed.work / JOURNAL).exists()
        owner = json.loads((resumed.partial / "owner.json").read_text())
        assert owner == {"pid": os.getpid(), "host": socket.gethostname()}
        resumed.commit(NONE, None)
    assert os.listdir(tmp_path) == ["data"]


def test_where_there_are_no_locks_a_build_of_another_host_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", no_locks)
    left = left_elsewhere(tmp_path, monkeypatch)
    with pytest.raises(rs.StoreError, match="on elsewhere: if it is gone, remove"):
        publish(tmp_path / "data", resume=True)
    assert (left.work / JOURNAL).exists()


def test_a_lock_on_a_folder_that_was_replaced_meanwhile_is_none(tmp_path, monkeypatch):
    left = Transaction(tmp_path / "data").__enter__()
    os.close(left._lock)
    real = fcntl.flock

    def late(handle: int, how: int) -> None:
        """Another writer has been quicker between opening and locking."""
        monkeypatch.setattr(fcntl, "flock", real)
        shutil.move(left.partial, tmp_path / "aside")
        shutil.copytree(tmp_path / "aside", left.partial)
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(rs.StoreError, match=f"is being written by process {os.getpid()} on "):
        publish(tmp_path / "data")
    assert left.partial.is_dir()


def reserved(folder: Path, *, alive: bool = True) -> Path:
    """A folder that a writer has just made and not named yet."""
    fresh, lock = reserve(folder / ".data.partial")
    (fresh / "work").mkdir()
    if not alive:
        os.close(lock)
    return fresh


def test_a_folder_of_a_writer_that_died_before_it_was_named_is_cleared(tmp_path):
    fresh = reserved(tmp_path, alive=False)
    assert fresh.name.startswith(".data.partial.")
    publish(tmp_path / "data")
    assert os.listdir(tmp_path) == ["data"]


def test_a_folder_that_another_writer_is_making_is_left_alone(tmp_path):
    fresh = reserved(tmp_path)
    publish(tmp_path / "data")
    assert sorted(os.listdir(tmp_path)) == [fresh.name, "data"]


def test_a_folder_of_a_writer_on_another_host_is_left_alone(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "elsewhere")
        fresh = reserved(tmp_path, alive=False)
    publish(tmp_path / "data")
    assert sorted(os.listdir(tmp_path)) == [fresh.name, "data"]


def test_another_target_with_such_a_name_is_left_alone(tmp_path):
    other = reserved(tmp_path, alive=False).name.lstrip(".")
    os.rmdir(tmp_path / f".{other}/work")
    os.rmdir(tmp_path / f".{other}")
    left = Transaction(tmp_path / other).__enter__()
    os.close(left._lock)
    publish(tmp_path / "data")
    assert sorted(os.listdir(tmp_path)) == [left.partial.name, "data"]


@pytest.mark.parametrize("alive", [False, True])
def test_where_there_are_no_locks_the_process_of_a_folder_tells_whether_it_is_cleared(
    tmp_path, monkeypatch, alive
):
    monkeypatch.setattr(fcntl, "flock", no_locks)
    process = os.getppid() if alive else 1 << 30
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: process)
        fresh = reserved(tmp_path)
    publish(tmp_path / "data")
    assert sorted(os.listdir(tmp_path)) == [*([fresh.name] if alive else []), "data"]


@pytest.mark.parametrize("removed", [False, True])
def test_a_folder_that_was_taken_for_abandoned_is_made_again(tmp_path, monkeypatch, removed):
    """Another writer clears the folder between its making and its locking."""
    made = []
    real = tempfile.mkdtemp

    def cleared(**how: str) -> str:
        made.append(real(**how))
        if len(made) == 1 and removed:
            os.rmdir(made[0])
        elif len(made) == 1:
            fcntl.flock(os.open(made[0], os.O_RDONLY), fcntl.LOCK_EX)
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", cleared)
    fresh, _ = reserve(tmp_path / ".data.partial")
    assert made[1:] == [str(fresh)]
    assert fresh.is_dir()


def test_of_two_writers_the_second_to_name_its_folder_is_refused(tmp_path, monkeypatch):
    real, others = Path.rename, []

    def late(path, target):
        monkeypatch.setattr(Path, "rename", real)
        others.append(Transaction(tmp_path / "data").__enter__())
        return real(path, target)

    monkeypatch.setattr(Path, "rename", late)
    with pytest.raises(rs.StoreError) as caught:
        publish(tmp_path / "data")
    assert str(caught.value) == (
        f"`{tmp_path}/data` is being written by process {os.getpid()} on {socket.gethostname()}: "
        f"if it is gone, remove {tmp_path}/.data.partial; see `recordspec docs explanation/publishing`"
    )
    assert os.listdir(tmp_path) == [".data.partial"]
    others[0].commit(NONE, None)
    others[0].__exit__(None, None, None)
    assert os.listdir(tmp_path) == ["data"]


def test_an_error_after_the_new_dataset_is_in_place_says_so(tmp_path, monkeypatch):
    publish(tmp_path / "data")

    def failing(folder):
        if folder == tmp_path:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(transactions, "sync_folder", failing)
    with pytest.raises(rs.StoreError) as caught:
        publish(tmp_path / "data", force=True)
    assert str(caught.value) == (
        f"{tmp_path}/data: cannot write: input/output error "
        "(the new dataset is in place, but a loss of power may undo that)"
    )
    assert "manifest.json" in os.listdir(tmp_path / "data")


SCHEMA = rs.Schema.loads("schema: s\nfeatures: {id: int64}")


def build(folder: Path, files: bool) -> None:
    """A dataset of Python rows, or of a file's."""
    (folder / "rows.csv").write_text("id\n1\n2\n")
    rows = Csv(files="rows.csv").open(folder) if files else [{"id": 1}, {"id": 2}]
    rs.write(rows, SCHEMA, folder / "data")


@pytest.mark.parametrize("files", [False, True])
def test_ctrl_c_after_the_dataset_is_in_place_says_so(tmp_path, monkeypatch, files):
    def interrupted(folder):
        if folder == tmp_path:
            raise KeyboardInterrupt

    monkeypatch.setattr(transactions, "sync_folder", interrupted)
    with pytest.raises(rs.Interrupted) as caught:
        build(tmp_path, files)
    assert str(caught.value) == f"{tmp_path}/data: interrupted after 2 rows (the dataset was published)"
    assert sorted(os.listdir(tmp_path)) == ["data", "rows.csv"]


def fail_to_publish(patch, number: int = errno.EIO) -> None:
    real = Path.rename

    def failing(path, target):
        if (path.name, Path(target).name) == (".data.partial", "data"):
            raise OSError(number, os.strerror(number))
        return real(path, target)

    patch.setattr(Path, "rename", failing)


@pytest.mark.parametrize("files", [False, True])
def test_where_publishing_fails_rows_that_were_not_kept_are_not_said_to_be_safe(tmp_path, monkeypatch, files):
    """Rows of Python cannot be read again; those of one part are read again as fast."""
    fail_to_publish(monkeypatch)
    with pytest.raises(rs.StoreError) as caught:
        build(tmp_path, files)
    assert str(caught.value) == (
        f"{tmp_path}/data: cannot write: input/output error, after 2 rows (nothing was published)"
    )
    assert os.listdir(tmp_path) == ["rows.csv"]


@pytest.mark.parametrize("how", [{}, {"force": True}], ids=str)
@pytest.mark.parametrize("number", [errno.EBUSY, errno.EACCES])
def test_where_publishing_fails_what_is_finished_stays_for_resume(tmp_path, monkeypatch, how, number):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("id\n1\n2\n")
    if how:
        publish(tmp_path / "data")
        monkeypatch.setattr(transactions, "exchange", lambda one, other: False)
    rows = Csv(files="[ab].csv").open(tmp_path)
    with monkeypatch.context() as patch:
        fail_to_publish(patch, number)
        with pytest.raises(rs.StoreError) as caught:
            rs.write(rows, SCHEMA, tmp_path / "data", **how)
    reason = os.strerror(number)
    assert str(caught.value) == (
        f"{tmp_path}/data: cannot write: {reason[:1].lower()}{reason[1:]}, after 4 rows (nothing was "
        "published; 4 rows are safe: resume=True, or --resume, continues from there)"
    )
    assert sorted(os.listdir(tmp_path)) == [".data.partial", "a.csv", "b.csv", *(["data"] if how else [])]
    monkeypatch.setattr(sharding, "ShardWriter", None)  # no shard is written again
    made = rs.write(rows, SCHEMA, tmp_path / "data", resume=True, **how)
    monkeypatch.undo()
    again = rs.write(rows, SCHEMA, tmp_path / "other")
    assert [shard.sha256 for shard in made.all_shards] == [shard.sha256 for shard in again.all_shards]
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "b.csv", "data", "other"]


def test_a_mount_point_is_refused_before_rows_are_read(tmp_path, monkeypatch):
    data = tmp_path / "my data"
    data.mkdir()
    escaped = str(data).replace(" ", r"\040")
    (tmp_path / "mounts").write_text(
        f"22 27 0:21 / / rw - ext4 a rw\n23 22 0:21 /x {escaped} rw - ext4 a rw\n"
    )
    monkeypatch.setattr(transactions, "_MOUNTS", tmp_path / "mounts")

    def rows():
        raise AssertionError("rows are read")
        yield

    for how in ({}, {"force": True}):
        with pytest.raises(rs.StoreError) as caught:
            rs.write(rows(), SCHEMA, data, **how)
        assert str(caught.value) == (
            f"`{data}` is a mount point, as a container's volume is, and cannot be replaced: "
            "write into a folder in it, or mount the folder above it"
        )
    rs.write([{"id": 1}], SCHEMA, data / "ids")
    with pytest.raises(rs.StoreError, match="is a mount point"):
        publish(data, append=True)


def test_a_disk_that_fails_while_files_are_repaired_is_named(tmp_path, monkeypatch):
    def failing(file):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(repairs, "sync", failing)
    with pytest.raises(rs.StoreError) as caught:
        save(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/saved: cannot write: input/output error (nothing was published)"
    )
    assert sorted(os.listdir(tmp_path)) == ["x.tfrecord", "y.tfrecord"]


def save(folder: Path) -> Path:
    """What is repaired of a file that has no manifest beside it."""
    for name in ("x.tfrecord", "y.tfrecord"):
        (folder / name).write_bytes(frame(b"a"))
    repair([folder / "x.tfrecord", folder / "y.tfrecord"], folder / "saved", force=True)
    return folder / "saved"


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("manifest", [False, True])
def test_a_removal_that_was_broken_off_is_gone_on_with(tmp_path, monkeypatch, count, manifest):
    """Whatever it had removed by then, and in whatever order the folder lists its files."""
    saved = save(tmp_path)
    if manifest:
        (saved / "manifest.json").write_text(NONE.dump())
        for path in saved.glob("*.tfrecord"):
            path.unlink()
    real, left = Path.unlink, [count]

    def dying(path, *more, **how):
        if path.parent.name == ".saved.replaced":
            if not left[0]:
                raise Died
            left[0] -= 1
        real(path, *more, **how)

    monkeypatch.setattr(Path, "unlink", dying)
    monkeypatch.setattr(Path, "iterdir", lambda path: (path / name for name in sorted(os.listdir(path))))
    with pytest.raises(Died) if count < len(os.listdir(saved)) else contextlib.nullcontext():
        save(tmp_path)
    monkeypatch.undo()
    assert sorted(os.listdir(save(tmp_path))) == ["repair.json", "x.tfrecord", "y.tfrecord"]
    assert sorted(os.listdir(tmp_path)) == ["saved", "x.tfrecord", "y.tfrecord"]


def test_after_a_death_behind_the_exchange_a_repair_goes_on(tmp_path, monkeypatch):
    save(tmp_path)
    real = transactions.exchange

    def dying(one: Path, other: Path) -> bool:
        real(one, other)
        raise Died

    monkeypatch.setattr(transactions, "exchange", dying)
    monkeypatch.setattr(Transaction, "__exit__", lambda self, *_: os.close(self._lock))
    with pytest.raises(Died):
        save(tmp_path)
    assert "owner.json" in os.listdir(tmp_path / "saved")
    monkeypatch.undo()
    assert sorted(os.listdir(save(tmp_path))) == ["repair.json", "x.tfrecord", "y.tfrecord"]
    assert sorted(os.listdir(tmp_path)) == ["saved", "x.tfrecord", "y.tfrecord"]


THESIS = {"file": "thesis.docx", "records": 1, "bytes": 17, "sha256": ""}


@pytest.mark.parametrize(
    ("report", "got"),
    [
        ("[" * 200_000, "is not a dataset: it has no manifest"),
        (
            '{"files": [{"shard": "thesis.docx"}]}',
            "is not a dataset: it has no manifest",
        ),
        ({"shards": ["thesis.docx"]}, "is not a dataset: it has no manifest"),
        (
            {"shards": [{**THESIS, "file": "../x"}]},
            "is not a dataset: it has no manifest",
        ),
        ({"shards": []}, "has `thesis.docx`, which does not belong to a dataset"),
        ({"shards": [THESIS]}, "17 bytes, as repair.json says, got `thesis.docx` of 6"),
    ],
)
def test_a_report_that_no_repair_wrote_gives_nothing_free(tmp_path, report, got):
    (tmp_path / "saved").mkdir()
    text = report if isinstance(report, str) else json.dumps(report)
    (tmp_path / "saved/repair.json").write_text(text)
    (tmp_path / "saved/thesis.docx").write_bytes(b"thesis")
    with pytest.raises(rs.StoreError) as caught:
        save(tmp_path)
    assert str(caught.value).startswith((f"`{tmp_path}/saved` {got}", f"{tmp_path}/saved: expected {got}"))
    assert (tmp_path / "saved/thesis.docx").read_bytes() == b"thesis"


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone gives files to another user")
@pytest.mark.parametrize("how", [{"force": True}, {"append": True}], ids=str)
def test_a_dataset_that_cannot_be_moved_is_refused_before_rows_are_read(unprivileged, how):
    folder, as_nobody = unprivileged
    schema, data = rs.Schema.loads("schema: s\nfeatures: {a: int64}"), folder / "data"
    rs.write([{"a": 1}], schema, data)
    folder.chmod(0o1777)

    def rows():
        raise AssertionError("rows are read")
        yield

    with as_nobody(), pytest.raises(rs.StoreError) as caught:
        rs.write(rows(), schema, data, **how)
    hint = f"it belongs to another user, and {folder} has the sticky bit"
    assert str(caught.value) == f"{data}: cannot replace: operation not permitted ({hint})"
    assert os.listdir(folder) == ["data"]


SHARD = "a-00000-of-00001.tfrecord"


def manifest(**options) -> Manifest:
    shard = Shard(file="a-00000-of-00001.tfrecord", rows=3, records=3, bytes=4, sha256="0")
    known = {"schema": "s", "fingerprint": "f", "record": "example", "compression": "none"}
    return Manifest(**known, splits={"a": (shard,)}, labels={"l": ("x", "é")}, key=("id",), **options)


def test_a_folder_appears_at_commit(tmp_path):
    target = tmp_path / "deep" / "data"
    with Transaction(target) as transaction:
        (transaction.partial / "x").write_text("1")
        assert not target.exists()
        transaction.commit(manifest(), "schema: s")
    assert sorted(os.listdir(target)) == ["manifest.json", "schema.yaml", "x"]
    assert os.listdir(target.parent) == ["data"]


def test_an_exception_leaves_nothing(tmp_path):
    target = tmp_path / "data"

    def fail() -> None:
        with Transaction(target) as transaction:
            (transaction.partial / "x").write_text("1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert os.listdir(tmp_path) == []


def test_what_exists_is_replaced_by_force_alone(tmp_path):
    target = tmp_path / "data"
    for force in (False, True):
        with Transaction(target, force=force) as transaction:
            (transaction.partial / SHARD).write_text(str(force))
            transaction.commit(manifest(), "")
    assert sorted(os.listdir(target)) == [SHARD, "manifest.json", "schema.yaml"]
    assert (target / SHARD).read_text() == "True"
    assert os.listdir(tmp_path) == ["data"]
    with pytest.raises(StoreError) as caught, Transaction(target):
        pass
    assert str(caught.value) == (f"`{target}` exists: force=True, or --force, replaces it")


def test_force_replaces_datasets_and_nothing_else(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(StoreError) as caught, Transaction(tmp_path, force=True):
        pass
    assert str(caught.value) == (f"`{tmp_path}` is not a dataset: it has no manifest")
    path, hint = tmp_path / "manifest.json", "(move it elsewhere first)"
    changed = "the manifest was changed after it was written: its values cannot be trusted"
    for text, message in [
        (
            '{"name": "an extension of a browser"}',
            f"{path}: expected a manifest of format 3, got KeyError: 'format' {hint}",
        ),
        (manifest().dump().replace("example", "sequence_example"), f"{path}: {changed} {hint}"),
        (
            manifest().dump(),
            f"`{tmp_path}` has `thesis.tex`, which does not belong to a dataset: move it elsewhere first",
        ),
    ]:
        path.write_text(text)
        with pytest.raises(StoreError) as caught, Transaction(tmp_path, force=True):
            pass
        assert str(caught.value) == message
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_what_appears_at_the_target_during_a_build_stays(tmp_path):
    target = tmp_path / "data"

    def build() -> None:
        with Transaction(target) as transaction:
            target.mkdir()
            (target / "precious").touch()
            transaction.commit(manifest(), "")

    with pytest.raises(StoreError, match="exists"):
        build()
    assert os.listdir(target) == ["precious"]
    assert os.listdir(tmp_path) == ["data"]


@pytest.mark.parametrize("text", [None, "", "[1]", '{"pid": "x", "host": 3}'])
def test_a_staging_folder_of_nobody_is_not_removed(tmp_path, text):
    staging = tmp_path / ".data.partial"
    staging.mkdir()
    (staging / "precious").touch()
    if text is not None:
        (staging / "owner.json").write_text(text)
    with (
        pytest.raises(StoreError, match=r"has no owner\.json: if no process writes there, remove it"),
        Transaction(tmp_path / "data"),
    ):
        pass
    assert (staging / "precious").exists()
    assert os.listdir(tmp_path) == [".data.partial"]


def test_a_second_writer_is_refused_while_the_first_lives(tmp_path):
    target = tmp_path / "data"
    with Transaction(target), pytest.raises(StoreError) as caught, Transaction(target):
        pass
    assert str(caught.value) == (
        f"`{target}` is being written by process {os.getpid()} on {socket.gethostname()}: "
        f"if it is gone, remove {tmp_path}/.data.partial; see `recordspec docs explanation/publishing`"
    )


def test_what_a_dead_writer_left_is_cleared(tmp_path):
    staging = tmp_path / ".data.partial"
    staging.mkdir()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    (staging / "owner.json").write_text(json.dumps({"pid": pid, "host": socket.gethostname()}))
    (staging / "rest").touch()
    with Transaction(tmp_path / "data") as transaction:
        assert sorted(os.listdir(transaction.partial)) == ["owner.json", "work"]


def test_a_swap_that_died_is_undone(tmp_path):
    old = tmp_path / ".data.replaced"
    old.mkdir()
    (old / "manifest.json").write_text(manifest().dump())
    with pytest.raises(StoreError, match="exists"), Transaction(tmp_path / "data"):
        pass
    assert (tmp_path / "data" / "manifest.json").exists()


def test_force_is_advised_of_datasets_alone(tmp_path):
    (tmp_path / "notes.txt").touch()
    for target in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(StoreError) as caught, Transaction(target):
            pass
        assert str(caught.value) == f"`{target}` exists: it is not a dataset"


def test_a_lock_that_is_refused_leaves_no_open_file(tmp_path):
    handle = transactions.locked(tmp_path)
    before = os.listdir("/proc/self/fd")
    assert transactions.locked(tmp_path) is None
    assert len(os.listdir("/proc/self/fd")) == len(before)
    os.close(handle)


def commands(data: Path) -> dict:
    """The commands that write into the folder of a dataset."""
    return {
        "index": lambda: index([str(data)]),
        "export": lambda: add_sidecars(data, {"labels.txt": "a\n"}),
        "adopt": lambda: rs.adopt(str(data / "train-*"), SCHEMA, force=True),
    }


@pytest.mark.parametrize("name", ["index", "export", "adopt"])
def test_a_command_that_writes_into_a_dataset_locks_it(tmp_path, name):
    data = tmp_path / "data"
    rs.write([{"id": 1}], SCHEMA, data)
    if name == "adopt":
        (data / "manifest.json").unlink()
        rs.adopt(str(data / "train-*"), SCHEMA)
    command = commands(data)[name]
    before = {path.name: path.read_bytes() for path in data.iterdir()}
    with transactions.changing(data), pytest.raises(StoreError) as caught:
        command()
    assert str(caught.value) == (
        f"`{data}` is being written by process {os.getpid()} on {socket.gethostname()}: "
        f"if it is gone, remove {tmp_path}/.data.partial; see `recordspec docs explanation/publishing`"
    )
    assert {path.name: path.read_bytes() for path in data.iterdir()} == before
    command()
    assert os.listdir(tmp_path) == ["data"]


@pytest.mark.parametrize("resumable", [False, True])
def test_a_command_that_writes_into_a_dataset_leaves_an_unfinished_build_alone(tmp_path, resumable):
    rs.write([{"id": 1}], SCHEMA, tmp_path / "data")
    left = Transaction(tmp_path / "data", force=True).__enter__()
    if resumable:
        (left.work / JOURNAL).touch()
    os.close(left._lock)
    index([str(tmp_path / "data")])
    assert sorted(os.listdir(tmp_path)) == [*([".data.partial"] if resumable else []), "data"]


def test_a_dataset_that_is_replaced_before_it_is_locked_is_not_changed(tmp_path):
    old = rs.write([{"id": 1}], SCHEMA, tmp_path / "data")
    rs.write([{"id": 2}], SCHEMA, tmp_path / "data", force=True)
    with pytest.raises(StoreError) as caught, transactions.changing(tmp_path / "data", old):
        raise AssertionError("it is changed")
    assert str(caught.value) == f"`{tmp_path}/data` was changed by another writer: try again"


def test_a_dataset_in_a_folder_that_nobody_writes_to_has_an_index(unprivileged):
    folder, as_nobody = unprivileged
    with as_nobody():
        rs.write([{"id": 1}], SCHEMA, folder / "data")
    folder.chmod(0o555)
    with as_nobody():
        (written,) = index([str(folder / "data")])
    assert written.records == 1
    folder.chmod(0o777)
