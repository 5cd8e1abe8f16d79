"""Objects in stores, by URL: `s3://`, `gs://` and `az://`, and `http(s)://` to read.

Credentials and endpoints come from the environment variables that obstore reads: `AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT_URL`, `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_ACCOUNT_NAME` and so on. URLs, messages
and manifests contain none.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import posixpath
import re
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from recordspec.errors import Problem, SpecError, StoreError, missing_package, nearest, see

_T = TypeVar("_T")

# Identifies a version of an object, as obstore accepts it: by the `e_tag`, which S3 and Azure
# compare, and the `version`, which GCS compares.
Stamp = dict[str, str]

# How a request that fails for a reason that may pass (a 5xx, 408 or 429, a connection that is dropped, a body
# that is cut) is repeated: after 0.1 s, 0.2 s and so on to 5 s, at most so often, and not after a minute.
RETRIES = 8
_RETRY = {
    "max_retries": RETRIES,
    "retry_timeout": timedelta(minutes=1),
    "backoff": {"max_backoff": timedelta(seconds=5)},
}
# The bytes of the first request, and of one after a seek; and of the largest, which takes about as long to
# transfer as to be answered.
_FIRST_RANGE, _RANGE = 256 << 10, 4 << 20
# S3 takes parts of 5 MiB at least, and 10,000 of them.
_PART = 16 << 20
# Files up to this size are written by one request, from memory.
_LARGEST_PUT = 128 << 20
# The name of the sha256 in the metadata of what this module has written.
_SHA256 = "sha256"
# The metadata that distinguishes the requests of two writers, which may write the same bytes.
_MARK = "written_by"
# An object with another sha256 is read again.
_ATTEMPTS = 2
# An object of so many seconds is written again, in place of an upload of the same bytes that was interrupted:
# half of the age at which `recordspec sweep` takes what no manifest names for abandoned.
_OLD = 12 * 3600.0

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<host>[^/?#]*)(?P<key>[^?#]*)(?P<rest>.*)", re.DOTALL
)
SCHEMES = ("s3", "gs", "az", "http", "https")
# The expected value where a URL is allowed.
PLACE = "a path or a URL of s3, gs, az, http or https"
# The name of a bucket or a container, and that of a server.
_BUCKET = re.compile(r"[^\s:@\\]+")
_SERVER = re.compile(r"([^\s:@\\\[\]]+|\[[0-9A-Fa-f:.]+\])(:\d+)?")
# obstore takes no key with these.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# The characters that a web URL has as `%20` and so on; others are encoded when it is sent.
_UNSAFE = re.compile(r"[%?#\s]")
_ANY_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<slashes>/+)(?P<rest>.*)", re.DOTALL)
_LONGEST_SHOWN = 200
_STATUS = re.compile(r"status code: (\d{3}[A-Za-z ]*)")
_CODE = re.compile(r"<Code>([^<]{1,100})</Code>")
_REFUSED = "the credentials are refused"
_RETRIED = re.compile(r"after (\d+) retries.* - (?:HTTP error: )?(.+)")
_QUERY = re.compile(r"\?\S*")
# The credentials in an endpoint of the environment, `http://user:password@host`.
_USER = re.compile(r"//[^/\s]*@")


@dataclass(frozen=True)
class ObjectStat:
    """The metadata of an object in a store, with the names of `os.stat_result` if it has them.

    Attributes:
        st_size: in bytes.
        e_tag: changes with the content.
        modified: when it was written.
    """

    st_size: int
    e_tag: str
    modified: datetime

    st_dev = 0

    @property
    def age(self) -> float:
        """Seconds since it was written, by the clocks of the store and of this machine."""
        return (datetime.now(timezone.utc) - self.modified).total_seconds()

    @property
    def st_mtime_ns(self) -> int:
        return int(self.modified.timestamp() * 1e9)

    @property
    def st_ino(self) -> int:
        """A number that changes with the content."""
        return zlib.crc32(self.e_tag.encode())


@dataclass(frozen=True, order=True)
class RemotePath:
    """A location in an object store, with the methods of `pathlib.Path` that reading needs.

    It is not an `os.PathLike`: a library that opens it as a local file would create the folder `s3:`.

    Attributes:
        root: the scheme and the bucket, container or host, `s3://bucket`.
        key: the rest, without a slash at either end.
    """

    root: str
    key: str

    @classmethod
    def parse(cls, url: str) -> RemotePath:
        """Parses a URL. Raises SpecError for another scheme, for one without a bucket, and for one that has a
        user, a password or a query: they may be secrets, and URLs are shown in messages."""
        match = _URL.fullmatch(url)
        scheme = "" if match is None else match["scheme"].lower()
        if match is None or scheme not in SCHEMES:
            hint = nearest(scheme, SCHEMES)
            raise SpecError(Problem(expected=PLACE, got=f"`{shown_url(url)}`", hint=hint))
        host, key = match["host"], match["key"]
        http = scheme.startswith("http")
        form = f"{scheme}://{'HOST' if http else 'BUCKET'}/PATH"
        got = hint = ""
        if not (_SERVER if http else _BUCKET).fullmatch(host):
            got = "a name of another form" if host else f"no {'host' if http else 'bucket'}"
            if _has_user(scheme, host):
                got, hint = "a user or a password", "credentials come from the environment"
        elif match["rest"]:
            got, hint = "a query", "credentials come from the environment, and `?` is no wildcard here"
            if match["rest"].startswith("#"):
                got, hint = "a fragment", ""
        key = unquote(key) if http else key
        if not got and _CONTROL.search(key):
            got = "a control character"
        if got:
            raise SpecError(Problem(expected=form, got=f"{got} in `{shown_url(url)}`", hint=hint))
        return cls(f"{scheme}://{host}", "") / key.strip("/")

    def __str__(self) -> str:
        key = _UNSAFE.sub(lambda one: quote(one[0]), self.key) if self.is_http else self.key
        return f"{self.root}/{key}" if key else self.root

    def __truediv__(self, name: str) -> RemotePath:
        """A place below it. `..` leads up, as in a path; above the bucket there is nothing."""
        key = posixpath.normpath(posixpath.join("/", self.key, name)).strip("/")
        return RemotePath(self.root, key)

    def relative_to(self, other: RemotePath) -> PurePosixPath:
        """Raises ValueError for a place that is not below `other`."""
        if self.root != other.root:
            raise ValueError(f"{self} is not below {other}")
        return PurePosixPath("/", self.key).relative_to(PurePosixPath("/", other.key))

    def is_relative_to(self, other: RemotePath) -> bool:
        return self.root == other.root and PurePosixPath("/", self.key).is_relative_to(f"/{other.key}")

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def is_http(self) -> bool:
        """Whether it is on a web server, which is read, and neither written nor listed."""
        return self.root.startswith("http")

    def check_writable(self) -> None:
        """Raises SpecError for a place on a web server."""
        if self.is_http:
            expected = "a URL of s3, gs or az to write to"
            raise SpecError(Problem(where=str(self), expected=expected, got="one of a web server"))

    @property
    def parent(self) -> RemotePath:
        return RemotePath(self.root, self.key.rpartition("/")[0])

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix

    def with_name(self, name: str) -> RemotePath:
        return self.parent / name

    def stat(self) -> ObjectStat:
        """Raises FileNotFoundError, or StoreError."""
        with _store_errors("read", self):
            if not self.key:  # a bucket
                raise FileNotFoundError
            return _stat(_obstore().head(_store(self.root), self.key))

    def exists(self) -> bool:
        """Whether there is an object with this key. Raises StoreError if that is unknown."""
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_file(self) -> bool:
        return self.exists()

    def is_dir(self) -> bool:
        """Whether there is an object below it; unknown for a web server."""
        if self.is_http:
            return False
        listed = self._repeated(self._list_folder)
        return bool(listed["objects"] or listed["common_prefixes"])

    def iterdir(self) -> Iterator[RemotePath]:
        """The objects below it, not those of folders in it."""
        return (path for path, _ in self.entries())

    def entries(self) -> Iterator[tuple[RemotePath, ObjectStat]]:
        """The same, with what the store says of them, in the order of their keys."""
        listed = self._repeated(self._list_folder)["objects"]
        for one in self._objects(listed):
            yield RemotePath(self.root, one["path"]), _stat(one)

    def folders(self) -> Iterator[RemotePath]:
        """The folders directly below it."""
        for prefix in self._repeated(self._list_folder)["common_prefixes"]:
            yield RemotePath(self.root, prefix.strip("/"))

    def resolve(self) -> RemotePath:
        return self

    def read_bytes(self) -> bytes:
        """The whole object. Raises FileNotFoundError, or StoreError."""
        return self.read_stamped()[0]

    def read_at_most(self, most: int) -> bytes | None:
        """The whole object, of one request; None, and nothing is transferred, where it is larger."""
        with _store_errors("read", self):
            found = _obstore().get(_store(self.root), self.key)
            return bytes(found.bytes()) if found.meta["size"] <= most else None

    def read_stamped(self) -> tuple[bytes, Stamp]:
        """The whole object, and its stamp, of one request."""
        data, metadata = self._get()
        return data, _stamp(metadata)

    def _get(self, **options: Any) -> tuple[bytes, Any]:
        """The bytes of a request, and the object's metadata; repeats the request once if a whole object does
        not match its sha256."""
        data, sha256 = b"", None
        for _ in range(_ATTEMPTS):
            with _store_errors("read", self):
                found = _obstore().get(_store(self.root), self.key, options=options)
                data, sha256 = bytes(found.bytes()), found.attributes.get(_SHA256)
            if (
                sha256 is None
                or len(data) != found.meta["size"]
                or hashlib.sha256(data).hexdigest() == sha256
            ):
                return data, found.meta
        expected, got = f"bytes of the sha256 {str(sha256)[:12]}...", hashlib.sha256(data).hexdigest()
        hint = "from the object's metadata"
        raise StoreError(Problem(where=str(self), expected=expected, got=f"{got[:12]}...", hint=hint))

    def read_start(self, most: int) -> tuple[bytes, int]:
        """The first bytes of the object, and its size, of one request."""
        try:
            data, metadata = self._get(range=(0, most))
            return data, int(metadata["size"])
        except StoreError:  # an empty object has no range
            if self.stat().st_size:
                raise
            return b"", 0

    def read_range(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`, fewer at the end of the object."""
        if start >= stop:
            return b""
        with _store_errors("read", self):
            return bytes(_obstore().get_range(_store(self.root), self.key, start=start, end=stop))

    def stream(self) -> Iterator[Any]:
        """The whole object as buffers of some 256 KiB; nothing is copied. Raises FileNotFoundError, or
        StoreError."""
        with _store_errors("read", self):
            yield from _obstore().get(_store(self.root), self.key).stream(min_chunk_size=_FIRST_RANGE)

    def open(self) -> io.BufferedReader:
        """The object as a file that is read by ranges. Raises FileNotFoundError, or StoreError."""
        first, size = self.read_start(_FIRST_RANGE)
        return io.BufferedReader(_RangeReader(self, size, first), _FIRST_RANGE)

    def walk(self) -> Iterator[tuple[RemotePath, ObjectStat]]:
        """Every object whose key begins with this one and a slash, in the order of their keys."""
        for listed in self._repeated(self._list):
            yield RemotePath(self.root, listed["path"]), _stat(listed)

    def _list(self) -> list[Any]:
        listed = _obstore().list(_store(self.root), self._prefix)
        return self._objects(one for some in listed for one in some)

    def _list_folder(self) -> Any:
        return _obstore().list_with_delimiter(_store(self.root), self._prefix)

    def _objects(self, listed: Iterable[Any]) -> list[Any]:
        """The listing, sorted, without the empty object that a console makes for a folder, `key/`."""
        return sorted((one for one in listed if one["path"] != self.key), key=lambda one: str(one["path"]))

    @property
    def _prefix(self) -> str | None:
        return f"{self.key}/" if self.key else None

    def _repeated(self, call: Callable[[], _T]) -> _T:
        """The result of a call that obstore does not repeat itself where an answer is cut."""
        if self.is_http:
            hint = "a web server has no lists; name a file, or a folder that has a manifest"
            raise StoreError(Problem(where=str(self), expected="", got="cannot list", hint=hint))
        with _store_errors("list", self):
            for _ in range(RETRIES):
                try:
                    return call()
                except _obstore().exceptions.GenericError as error:
                    if "list response body" not in str(error):  # a page of HTML has a body, too
                        raise
            return call()

    def create(self, data: bytes) -> None:
        """Writes a new object. Raises FileExistsError if there is one."""
        self._put_once(data, "create")

    def replace(self, data: bytes, stamp: Stamp) -> None:
        """Writes the object if it is still the one of this stamp. Raises FileExistsError if it has
        changed."""
        try:
            self._put_once(data, stamp)
        except (FileExistsError, FileNotFoundError):
            raise FileExistsError(errno.EEXIST, "it has changed", str(self)) from None

    def _put_once(self, data: bytes, mode: Any) -> None:
        """Writes an object with a unique mark: if the answer to a request was lost and the request is
        repeated, the store rejects the second because of the first."""
        mark = uuid.uuid4().hex
        attributes = {_SHA256: hashlib.sha256(data).hexdigest(), _MARK: mark}
        try:
            self._put(data, mode, attributes=attributes)
        except FileExistsError:
            found = self._head()
            if found is None or found.attributes.get(_MARK) != mark:
                raise

    def _put(self, data: Any, mode: Any, **options: Any) -> None:
        exceptions = _obstore().exceptions
        with _store_errors("write", self):
            try:
                _obstore().put(_store(self.root), self.key, data, mode=mode, **options)
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self)) from None

    def upload(self, path: Path, sha256: str) -> bool:
        """Writes a local file, with its sha256 in the object's metadata. Returns False if another object has
        this name. Several writers of the same bytes all succeed.

        Raises StoreError, or OSError of the file.
        """
        size, attributes = path.stat().st_size, {_SHA256: sha256}
        there = self.uploaded()
        if there is None:
            small = size <= _LARGEST_PUT
            try:
                # parts are written without a condition: an empty object takes the name first
                self._put(path.read_bytes() if small else b"", "create", attributes=attributes)
                if small:
                    return True
            except FileExistsError:
                there = self.uploaded()
        if there is not None:
            if there[0] != sha256:
                return False
            if there[1].st_size == size and there[1].age < _OLD:
                return True
        with path.open("rb") as file:
            self._put(file, "overwrite", attributes=attributes, chunk_size=_PART, max_concurrency=4)
        return True

    def put_file(self, path: Path, *, overwrite: bool) -> bool:
        """Writes a local file; False where there is an object that is not to be overwritten."""
        if overwrite:
            with path.open("rb") as file:
                self._put(file, "overwrite", chunk_size=_PART, max_concurrency=4)
            return True
        try:
            self._put(path.read_bytes(), "create")
        except FileExistsError:
            return False
        return True

    def uploaded(self) -> tuple[str | None, ObjectStat] | None:
        """The sha256 that `upload` left in the metadata, None of another object; None if there is none."""
        found = self._head()
        return None if found is None else (found.attributes.get(_SHA256), _stat(found.meta))

    def _head(self) -> Any:
        """The metadata of the object; None if it does not exist."""
        with _store_errors("read", self):
            try:
                return _obstore().get(_store(self.root), self.key, options={"head": True})
            except FileNotFoundError:
                return None

    def unlink(self) -> None:
        """Deletes the object; there need not be one."""
        with _store_errors("delete", self):
            try:
                _obstore().delete(_store(self.root), self.key)
            except FileNotFoundError:
                return


class _RangeReader(io.RawIOBase):
    """An object as an unbuffered file. Requests grow during sequential reads, and are small after a
    seek: reading only headers does not transfer the bytes between them."""

    def __init__(self, path: RemotePath, size: int, first: bytes) -> None:
        self.name = str(path)
        self._path, self._size = path, size
        self._held, self._start, self._place = first, 0, 0  # the bytes from `start` on

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        self._place = start + place
        return self._place

    def readinto(self, view: Any) -> int:
        end = self._start + len(self._held)
        if not self._start <= self._place < end:
            goes_on = self._place == end
            wanted = max(len(view), min(_RANGE, 2 * len(self._held)) if goes_on else _FIRST_RANGE)
            self._held = self._path.read_range(self._place, min(self._size, self._place + wanted))
            self._start = self._place
        at = self._place - self._start
        data = self._held[at : at + len(view)]
        view[: len(data)] = data
        self._place += len(data)
        return len(data)


def is_url(path: object) -> bool:
    """Whether a text is a URL of any scheme."""
    return isinstance(path, str) and _URL.fullmatch(path) is not None


def _has_user(scheme: str, host: str) -> bool:
    """Whether a part of a user or a password may be in what should be the name of a bucket or a server."""
    form = _BUCKET if scheme.lower() in SCHEMES[:3] else _SERVER
    return ("@" in host or ":" in host) and form.fullmatch(host) is None


def shown_url(url: str) -> str:
    """A URL for messages, even if it is invalid: truncated, and without what may be a user, a password or
    a query."""
    match = _ANY_URL.search(url)
    if match is not None:
        scheme, rest = match["scheme"], match["rest"]
        host = re.split("[/?#]", rest, maxsplit=1)[0]
        if _has_user(scheme, host):
            _, user, rest = rest.rpartition("@")
            rest = rest if user else "..."
        rest = re.split("[?#]", rest, maxsplit=1)[0]
        url = f"{url[: match.start()]}{scheme}:{match['slashes']}{rest}"
    return url if len(url) <= _LONGEST_SHOWN else f"{url[: _LONGEST_SHOWN - 3]}..."


def _stamp(found: Any) -> Stamp:
    return {name: str(found[name]) for name in ("e_tag", "version") if found.get(name) is not None}


def _stat(found: Any) -> ObjectStat:
    return ObjectStat(int(found["size"]), str(found["e_tag"]), found["last_modified"])


def _obstore() -> Any:
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError as error:
        raise missing_package("obstore", "data in object stores", "recordspec[remote]", error) from error
    return obstore


@lru_cache(64)
def _store(root: str) -> Any:
    """The store of a bucket. It is cached: it keeps its connections and credentials."""
    obstore = _obstore()
    # any other option of the client would be in place of those of the environment, `AWS_ALLOW_HTTP` too
    options = {"client_options": {"allow_http": True}} if root.startswith("http://") else {}
    try:
        return obstore.store.from_url(root, retry_config=_RETRY, **options)
    except obstore.exceptions.BaseError as error:
        raise StoreError(Problem(where=root, expected="", got=f"cannot connect: {_reason(error)}")) from None


@contextmanager
def _store_errors(action: str, path: RemotePath) -> Iterator[None]:
    """Raises StoreError with the store's message; FileNotFoundError if a bucket has no such object."""
    exceptions = _obstore().exceptions
    try:
        yield
    except FileExistsError:
        raise
    except (FileNotFoundError, NotImplementedError, ValueError, exceptions.BaseError) as error:
        if "NoSuchBucket" in str(error) or "ContainerNotFound" in str(error):
            problem = Problem(where=str(path), expected=f"the bucket of {path.root}", got="none")
            raise StoreError(problem) from None
        if isinstance(error, FileNotFoundError):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
        # without a cause: its text has the requests, which may have signatures
        reason = _reason(error)
        hint = see("stores.md") if reason.startswith(_REFUSED) else ""
        problem = Problem(where=str(path), expected="", got=f"cannot {action}: {reason}", hint=hint)
        raise StoreError(problem) from None


def _reason(error: BaseException) -> str:
    """A store's answer, on one line, without the query and the user of a URL: they may be secrets."""
    if isinstance(error, NotImplementedError):
        return "the store has no such operation"
    text = str(error)
    status, code = _STATUS.search(text), _CODE.search(text)
    if status is None:
        failed = _RETRIED.search(text)
        text = f"{failed[2]} (tried {int(failed[1]) + 1} times)" if failed else text
        first = _USER.sub("//", _QUERY.sub("", text.split("\n", 1)[0])).strip()
        return first[:1].lower() + first[1:]
    known = {"401": _REFUSED, "403": _REFUSED}
    said = known.get(status[1][:3], "the store answers")
    return f"{said}: {status[1].strip()}{f' ({code[1]})' if code else ''}"
