"""Objects in stores, by URL: `s3://`, `gs://` and `az://`, and `http(s)://` to read.

Credentials and endpoints come from the environment variables that obstore reads: `AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT_URL`, `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_ACCOUNT_NAME` and so on; credentials of a
profile in `~/.aws` come from boto3. URLs, messages and manifests contain none.

The functions raise FileNotFoundError for an object that does not exist, and StoreError for every other answer
of a store.
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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from recordspec.errors import Problem, SpecError, State, StoreError, missing_package, nearest, see

_T = TypeVar("_T")

# Identifies a version of an object, in the form that obstore accepts: `e_tag`, compared by S3 and Azure, and
# `version`, compared by GCS.
Stamp = dict[str, str]

# Retries of a request that fails for a temporary reason (a 5xx, 408 or 429, a dropped connection, a truncated
# body, no answer): after 0.1 s, 0.2 s and so on up to 5 s, at most this number of times and within a minute.
RETRIES = 8
_RETRY = {
    "max_retries": RETRIES,
    "retry_timeout": timedelta(minutes=1),
    "backoff": {"max_backoff": timedelta(seconds=5)},
}
# The timeout for the next bytes of an answer, however long the whole takes. For an upload it limits the time
# of a part.
_CLIENT = {"connect_timeout": "10s", "read_timeout": "30s", "timeout": "1day"}
_UPLOAD_CLIENT = {**_CLIENT, "read_timeout": "2min"}
_UPLOAD_RETRY = {"retry_timeout": timedelta(minutes=5)}
# By scheme, the prefix of the environment variables with the client's settings, and their names. Settings
# given to obstore replace all settings of the environment.
_PREFIXES = {"s3": "AWS_", "gs": "GOOGLE_", "az": "AZURE_"}
# The variables of another endpoint. obstore does not check them, and panics at the first request.
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_ENDPOINT", "AZURE_STORAGE_ENDPOINT"),
}
_ENDPOINT = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?", re.IGNORECASE)
_SETTINGS = (
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "default_content_type",
    "http1_only",
    "http2_keep_alive_interval",
    "http2_keep_alive_timeout",
    "http2_keep_alive_while_idle",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "randomize_addresses",
    "read_timeout",
    "timeout",
    "user_agent",
)
# The bytes of the first request and of a request after a seek; and of the largest request, whose transfer
# takes about as long as its answer.
_FIRST_RANGE, _RANGE = 256 << 10, 4 << 20
# S3 takes at most 10,000 parts of at least 5 MiB. Smaller files are written by one request.
_PART, _PARTS, _PARTS_AT_ONCE = 5 << 20, 10_000, 4
# The metadata key for the sha256 of objects written by this module.
_SHA256 = "sha256"
# The metadata key that tells apart the requests of two writers, even if they write the same bytes.
_MARK = "written_by"
# An object whose sha256 differs is read again.
_ATTEMPTS = 2
# An object is overwritten instead of reused from this age in seconds on, if an interrupted upload left it and
# the same bytes are uploaded again. This is half of the age at which `recordspec sweep` considers unnamed
# files abandoned.
_OLD = 12 * 3600.0

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<host>[^/?#]*)(?P<key>[^?#]*)(?P<rest>.*)", re.DOTALL
)
SCHEMES = ("s3", "gs", "az", "http", "https")
# The expected value where a URL is allowed.
PLACE = "a path or a URL of s3, gs, az, http or https"
# The names of a bucket or a container, and of a server.
_BUCKET = re.compile(r"[^\s:@\\]+")
_SERVER = re.compile(r"([^\s:@\\\[\]]+|\[[0-9A-Fa-f:.]+\])(:\d+)?")
# obstore accepts no key with these characters.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# The characters that a web URL contains percent-encoded, as `%20`; all others are encoded when the URL is
# sent.
_UNSAFE = re.compile(r"[%?#\s]")
_ANY_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<slashes>/+)(?P<rest>.*)", re.DOTALL)
_LONGEST_SHOWN = 200
_STATUS = re.compile(r"status code: (\d{3}[A-Za-z ]*)")
_CODE = re.compile(r"<Code>([^<]{1,100})</Code>")
# In obstore's error text: the request, the number of retries, and the reason.
_REQUEST = re.compile(r"Error performing \w+ (?P<endpoint>\w+://[^/\s]+)(?P<path>\S*) in (?P<rest>[^\n]+)")
_RETRIED = re.compile(r"after (\d+) retries")
_CAUSE = re.compile(r'(?:message|error): "([^"\n]+)"')
# The services with the credentials of a machine's role, on AWS, Azure and Google Cloud.
_ROLES = re.compile(r"\w+://(169\.254\.|\[fd00:ec2::|metadata\b)")
# The error codes of S3, Google Cloud and Azure for an upload whose parts are gone.
_NO_PARTS = re.compile("<Code>(NoSuchUpload|InvalidBlockList)</Code>")
# The error codes of S3 for expired or invalid credentials, sent with status 400.
_EXPIRED = ("ExpiredToken", "InvalidToken", "TokenRefreshRequired")
_QUERY = re.compile(r"\?\S*")
# Credentials in an endpoint of the environment, `http://user:password@host`.
_USER = re.compile(r"//[^/\s]*@")


@dataclass(frozen=True)
class ObjectStat:
    """The metadata of an object in a store, under the names of `os.stat_result` where it has them.

    Attributes:
        st_size: the size in bytes.
        e_tag: a tag that changes with the content.
        modified: the time of the last write.
    """

    st_size: int
    e_tag: str
    modified: datetime

    st_dev = 0

    @property
    def age(self) -> float:
        """Seconds since the last write, by the clocks of the store and of this machine."""
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
    """A location in an object store. Its methods are those of `pathlib.Path`, except `parse` and `is_http`.

    It is not an `os.PathLike`: a library that opens it as a local file would create the folder `s3:`.

    Attributes:
        root: the scheme and the bucket, container or host: `s3://bucket`.
        key: the rest, without a slash at either end.
    """

    root: str
    key: str

    @classmethod
    def parse(cls, url: str) -> RemotePath:
        """Parses a URL.

        Raises SpecError for an unknown scheme, for a URL without a bucket, and for a URL with a user, a
        password or a query: they may be secrets, and messages show URLs.
        """
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
            got = "a name with other characters" if host else f"no {'host' if http else 'bucket'}"
            if _has_user(scheme, host):
                got, hint = "a user or a password", "credentials come from the environment"
        elif match["rest"]:
            got, hint = "a query", "credentials come from the environment, and `?` is not a wildcard here"
            if match["rest"].startswith("#"):
                got, hint = "a fragment", ""
        key = unquote(key) if http else key
        if not got and _CONTROL.search(key):
            got = "a control character"
        if got:
            raise SpecError(Problem(expected=form, got=f"{got} in `{shown_url(url)}`", hint=hint))
        return cls(f"{scheme}://{host}", "") / key.strip("/")

    def __str__(self) -> str:
        key = _UNSAFE.sub(lambda match: quote(match[0]), self.key) if self.is_http else self.key
        return f"{self.root}/{key}" if key else self.root

    def __truediv__(self, name: str) -> RemotePath:
        """The place `name` below this one. As in a path, `..` leads up, but not above the bucket."""
        key = posixpath.normpath(posixpath.join("/", self.key, name)).strip("/")
        return RemotePath(self.root, key)

    @property
    def is_http(self) -> bool:
        """Whether the place is on a web server, which can be read, but neither written nor listed."""
        return self.root.startswith("http")

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix

    @property
    def parent(self) -> RemotePath:
        return RemotePath(self.root, self.key.rpartition("/")[0])

    @property
    def parents(self) -> tuple[RemotePath, ...]:
        """The folders that contain this place, the closest first, then the bucket."""
        parts = self.key.split("/")
        return tuple(RemotePath(self.root, "/".join(parts[:end])) for end in range(len(parts) - 1, -1, -1))

    def with_name(self, name: str) -> RemotePath:
        return self.parent / name

    def relative_to(self, other: RemotePath) -> PurePosixPath:
        """The path relative to `other`. Raises ValueError for a place that is not below it."""
        if self.root != other.root:
            raise ValueError(f"{self} is not below {other}")
        return PurePosixPath("/", self.key).relative_to(PurePosixPath("/", other.key))

    def stat(self) -> ObjectStat:
        """The metadata of the object. Raises FileNotFoundError, or StoreError."""
        head = _head(self) if self.key else None  # a bucket has no metadata
        if head is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        return _stat(head.meta)

    def exists(self) -> bool:
        """Whether an object with this key exists. Raises StoreError if that cannot be determined."""
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    is_file = exists

    def is_dir(self) -> bool:
        """Whether an object exists below this place; unknown, hence false, for a web server."""
        if self.is_http:
            return False
        listed = _list_folder(self)
        return bool(listed["objects"] or listed["common_prefixes"])

    def iterdir(self) -> Iterator[RemotePath]:
        """The objects in this folder, without those of its folders."""
        return (path for path, _ in entries(self))

    def read_bytes(self) -> bytes:
        """The whole object. Raises FileNotFoundError, or StoreError."""
        return read_stamped(self)[0]

    def unlink(self) -> None:
        """Deletes the object, if it exists."""
        with _store_errors("delete", self):
            try:
                _obstore().delete(_store(self.root), self.key)
            except FileNotFoundError:
                return


def check_writable(path: RemotePath) -> None:
    """Raises SpecError for a place on a web server."""
    if path.is_http:
        expected = "a URL of s3, gs or az to write to"
        raise SpecError(Problem(where=str(path), expected=expected, got="one of a web server"))


def entries(folder: RemotePath) -> Iterator[tuple[RemotePath, ObjectStat]]:
    """The objects in a folder with their metadata, in the order of their keys."""
    for entry in _sorted(folder, _list_folder(folder)["objects"]):
        yield RemotePath(folder.root, entry["path"]), _stat(entry)


def folders(folder: RemotePath) -> list[RemotePath]:
    """The folders in a folder. Raises StoreError."""
    return [RemotePath(folder.root, prefix.strip("/")) for prefix in _list_folder(folder)["common_prefixes"]]


def walk(folder: RemotePath) -> Iterator[tuple[RemotePath, ObjectStat]]:
    """Every object whose key begins with the folder's key and a slash, in the order of the keys."""

    def listed() -> list[Any]:
        pages = _obstore().list(_store(folder.root), _prefix(folder))
        return _sorted(folder, chain.from_iterable(pages))

    for entry in _listed(folder, listed):
        yield RemotePath(folder.root, entry["path"]), _stat(entry)


def _list_folder(folder: RemotePath) -> Any:
    return _listed(folder, lambda: _obstore().list_with_delimiter(_store(folder.root), _prefix(folder)))


def _prefix(folder: RemotePath) -> str | None:
    return f"{folder.key}/" if folder.key else None


def _sorted(folder: RemotePath, listed: Iterable[Any]) -> list[Any]:
    """The listing, sorted, without the empty object `key/` that a console creates for a folder."""
    return sorted(
        (entry for entry in listed if entry["path"] != folder.key), key=lambda one: str(one["path"])
    )


def _listed(folder: RemotePath, call: Callable[[], _T]) -> _T:
    """The result of a call that lists a folder. It is repeated if the answer is truncated: obstore does not
    retry that case.
    """
    if folder.is_http:
        hint = "a web server has no lists; name a file, or a folder that has a manifest"
        raise StoreError(Problem(where=str(folder), expected="", got="cannot list", hint=hint))
    with _store_errors("list", folder):
        for _ in range(RETRIES):
            try:
                return call()
            except _obstore().exceptions.GenericError as error:
                if "list response body" not in str(error):  # a page of HTML has a body, too
                    raise
        return call()


def read_stamped(path: RemotePath) -> tuple[bytes, Stamp]:
    """A whole object and its stamp, in one request. Raises FileNotFoundError, or StoreError."""
    data, metadata = _get(path)
    return data, {
        name: str(metadata[name]) for name in ("e_tag", "version") if metadata.get(name) is not None
    }


def read_at_most(path: RemotePath, most: int) -> bytes | None:
    """A whole object, in one request; None, without a transfer, if it is larger.

    Raises FileNotFoundError, or StoreError.
    """
    data, metadata = _get(path, most)
    return None if metadata["size"] > most else data


def read_start(path: RemotePath, most: int) -> tuple[bytes, int]:
    """The first bytes of an object and its size, in one request. Raises FileNotFoundError, or StoreError."""
    try:
        data, metadata = _get(path, range=(0, most))
        return data, int(metadata["size"])
    except StoreError:  # an empty object has no range
        if path.stat().st_size:
            raise
        return b"", 0


def _get(path: RemotePath, most: int | None = None, **options: Any) -> tuple[bytes, Any]:
    """Returns the bytes of an object and its metadata. The bytes of an object of more than `most` bytes are
    not transferred. Repeats the request once if a whole object does not match its sha256.
    """
    data, sha256 = b"", None
    for _ in range(_ATTEMPTS):
        with _store_errors("read", path):
            answer = _obstore().get(_store(path.root), path.key, options=options)
            if most is not None and answer.meta["size"] > most:
                return b"", answer.meta
            data, sha256 = bytes(answer.bytes()), answer.attributes.get(_SHA256)
        if sha256 is None or len(data) != answer.meta["size"] or hashlib.sha256(data).hexdigest() == sha256:
            return data, answer.meta
    expected, got = f"bytes of the sha256 {str(sha256)[:12]}...", hashlib.sha256(data).hexdigest()
    hint = "from the object's metadata"
    raise StoreError(Problem(where=str(path), expected=expected, got=f"{got[:12]}...", hint=hint))


def read_range(path: RemotePath, start: int, stop: int) -> bytes:
    """The bytes of an object from `start` to `stop`, fewer at its end."""
    if start >= stop:
        return b""
    with _store_errors("read", path):
        return bytes(_obstore().get_range(_store(path.root), path.key, start=start, end=stop))


def read_part(path: RemotePath, start: int, stop: int, e_tag: str | None) -> tuple[memoryview, ObjectStat]:
    """The bytes of an object from `start` to `stop`, and its metadata, in one request. Raises
    FileNotFoundError, or StoreError, also if the object no longer has the tag.
    """
    options: dict[str, Any] = {"range": (start, stop)}
    # a web server may have no tag, or a weak one, which no `If-Match` matches (RFC 9110, 13.1.1)
    if e_tag is not None and e_tag != "None" and not e_tag.startswith("W/"):
        options["if_match"] = e_tag
    for _ in range(_ATTEMPTS):
        with _store_errors("read", path):
            try:
                answer = _obstore().get(_store(path.root), path.key, options=options)
                data = memoryview(answer.bytes())
            except _obstore().exceptions.PreconditionError:
                got, hint = "was replaced while it was read", "open it again"
                raise StoreError(State(where=str(path), got=got, hint=hint)) from None
        if len(data) == stop - start:
            return data, _stat(answer.meta)
    expected = f"{stop - start:,} bytes from {start:,} on"
    raise StoreError(Problem(where=str(path), expected=expected, got=f"{len(data):,}"))


def open_object(path: RemotePath) -> io.BufferedReader:
    """Opens an object as a file that is read by ranges. Raises FileNotFoundError, or StoreError."""
    first, size = read_start(path, _FIRST_RANGE)
    return io.BufferedReader(_RangeReader(path, size, first), _FIRST_RANGE)


def stream(path: RemotePath) -> Iterator[Any]:
    """A whole object as buffers of about 256 KiB, without copies. Resumes a truncated answer where it ended.
    Raises FileNotFoundError, or StoreError.
    """
    options: dict[str, Any] = {}
    done = left = 0
    with _store_errors("read", path):
        while True:
            answer = _obstore().get(_store(path.root), path.key, options=options)
            try:
                for piece in answer.stream(min_chunk_size=_FIRST_RANGE):
                    yield piece
                    done, left = done + len(piece), _ATTEMPTS
                return
            except _obstore().exceptions.GenericError:
                # obstore retries a request for a minute from its start; a large object takes longer
                if not left or answer.meta["e_tag"] is None:
                    raise
                left -= 1
                options = {"range": {"offset": done}, "if_match": answer.meta["e_tag"]}


def create(path: RemotePath, data: bytes) -> None:
    """Writes a new object. Raises FileExistsError if there is one."""
    _put_once(path, data, "create")


def replace(path: RemotePath, data: bytes, stamp: Stamp | None) -> None:
    """Writes an object if its stamp is still `stamp`, or for None, if it does not exist.

    Raises FileExistsError if it has changed.
    """
    if stamp is None:
        return create(path, data)
    try:
        _put_once(path, data, stamp)
    except (FileExistsError, FileNotFoundError):
        raise FileExistsError(errno.EEXIST, "it has changed", str(path)) from None


def _put_once(path: RemotePath, data: bytes, mode: Any) -> None:
    """Writes an object with a unique mark. If the answer to a request was lost and the request is repeated,
    the store rejects the second request because of the first; the mark identifies the object as ours.
    """
    mark = uuid.uuid4().hex
    attributes = {_SHA256: hashlib.sha256(data).hexdigest(), _MARK: mark}
    try:
        _put(path, data, mode=mode, attributes=attributes)
    except FileExistsError:
        head = _head(path)
        if head is None or head.attributes.get(_MARK) != mark:
            raise


def _put(path: RemotePath, data: bytes | Path, **options: Any) -> None:
    """Writes an object, of bytes or a local file. Raises FileExistsError if a condition is not met.

    The write is repeated in two cases: if a request was not answered, which obstore repeats only where that
    is safe; and if the answer to the request that completes an upload was lost, since repeating that request
    alone finds no parts.
    """
    exceptions = _obstore().exceptions
    with _store_errors("write", path):
        for attempt in range(_ATTEMPTS + 1):
            try:
                with nullcontext(data) if isinstance(data, bytes) else data.open("rb") as file:
                    _obstore().put(_upload_store(path.root), path.key, file, **options)
                return
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
            except (exceptions.GenericError, FileNotFoundError) as error:
                lost = _is_timeout(error) or _NO_PARTS.search(str(error))
                if not lost or attempt == _ATTEMPTS:
                    raise


def _overwrite(path: RemotePath, file: Path, attributes: dict[str, str]) -> None:
    """Writes a local file in place of any object, in parts; each part is retried by itself."""
    size = max(_PART, -(-file.stat().st_size // _PARTS))
    _put(path, file, attributes=attributes, chunk_size=size, max_concurrency=_PARTS_AT_ONCE)


def upload(path: RemotePath, file: Path, sha256: str) -> bool:
    """Writes a local file, with its sha256 in the object's metadata. Returns False if another object has this
    name. Several writers of the same bytes all succeed.

    Raises StoreError, or OSError of the file.
    """
    size, attributes = file.stat().st_size, {_SHA256: sha256}
    there = uploaded(path)
    if there is None:
        small = size <= _PART
        try:
            # parts are written without a condition: an empty object takes the name first
            _put(path, file.read_bytes() if small else b"", mode="create", attributes=attributes)
            if small:
                return True
        except FileExistsError:
            there = uploaded(path)
    if there is not None:
        if there[0] != sha256:
            return False
        if there[1].st_size == size and there[1].age < _OLD:
            return True
    _overwrite(path, file, attributes)
    return True


def put_file(path: RemotePath, file: Path, *, overwrite: bool, sha256: str = "") -> bool:
    """Writes a local file, with its sha256 in the object's metadata, if given. Returns False if the object
    exists and `overwrite` is false.
    """
    if not overwrite:
        try:
            create(path, b"")  # takes the name
        except FileExistsError:
            return False
    try:
        _overwrite(path, file, {_SHA256: sha256} if sha256 else {})
    except BaseException:
        if not overwrite:
            with suppress(StoreError):
                path.unlink()
        raise
    return True


def uploaded(path: RemotePath) -> tuple[str | None, ObjectStat] | None:
    """The sha256 that `upload` stored in the metadata (None for an object written otherwise), and the
    metadata; None if there is no object.
    """
    head = _head(path)
    return None if head is None else (head.attributes.get(_SHA256), _stat(head.meta))


def _head(path: RemotePath) -> Any:
    """The metadata of an object; None if it does not exist."""
    with _store_errors("read", path):
        try:
            return _obstore().get(_store(path.root), path.key, options={"head": True})
        except FileNotFoundError:
            return None
        except _obstore().exceptions.BaseError as error:
            if _status(error).startswith("4"):
                # an answer to HEAD has no body, and the reason is in the body
                _obstore().get_range(_store(path.root), path.key, start=0, end=1)
            raise


class _RangeReader(io.RawIOBase):
    """An object as an unbuffered file. Requests grow during sequential reads and are small after a seek, so
    that reading only headers does not transfer the bytes between them.
    """

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
        if self._place >= self._size:  # the held bytes may be read again
            return 0
        end = self._start + len(self._held)
        if not self._start <= self._place < end:
            goes_on = self._place == end
            wanted = max(len(view), min(_RANGE, 2 * len(self._held)) if goes_on else _FIRST_RANGE)
            self._held = read_range(self._path, self._place, min(self._size, self._place + wanted))
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
    """Whether a bucket's or server's name may contain a part of a user name or a password."""
    form = _BUCKET if scheme.lower() in SCHEMES[:3] else _SERVER
    return ("@" in host or ":" in host) and form.fullmatch(host) is None


def shown_url(url: str) -> str:
    """A URL for messages, even if it is invalid: truncated, and without parts that may be a user, a password
    or a query.
    """
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


def _stat(meta: Any) -> ObjectStat:
    return ObjectStat(int(meta["size"]), str(meta["e_tag"]), meta["last_modified"])


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
    """The store of a bucket, cached to keep its connections and credentials."""
    return _connected(root, _CLIENT, {})


@lru_cache(64)
def _upload_store(root: str) -> Any:
    """The store of a bucket for uploads, which are answered only after they have ended; cached as well."""
    return _connected(root, _UPLOAD_CLIENT, _UPLOAD_RETRY)


def _connected(root: str, client: Mapping[str, str], retry: Mapping[str, Any]) -> Any:
    obstore = _obstore()
    scheme = root.partition(":")[0]
    _check_endpoints(scheme)
    options: dict[str, Any] = {"client_options": _settings(scheme, client)}
    try:
        if (credentials := _profile(scheme)) is not None:
            options["credential_provider"] = credentials
        return obstore.store.from_url(root, retry_config={**_RETRY, **retry}, **options)
    except (obstore.exceptions.BaseError, ValueError) as error:
        raise StoreError(Problem(where=root, expected="", got=f"cannot connect: {_reason(error)}")) from None


def _check_endpoints(scheme: str) -> None:
    """Raises StoreError for a variable whose value is not the URL of an endpoint."""
    problems = []
    for name in _ENDPOINTS.get(scheme, ()):
        value = os.environ.get(name)
        if value is None or _ENDPOINT.fullmatch(value):
            continue
        hint = "unset it for the endpoint of the provider"
        if value and "//" not in value and "@" not in value:
            hint = f"is `http://{value}` meant?"
        got = f"`{shown_url(value)}`" if value else "an empty value"
        expected = "the URL of an endpoint such as https://minio.example.com"
        problems.append(Problem(where=name, expected=expected, got=got, hint=hint))
    if problems:
        raise StoreError(problems)


def _settings(scheme: str, client: Mapping[str, str]) -> dict[str, str]:
    """The client's settings; settings of the environment, such as `AWS_READ_TIMEOUT`, override ours."""
    # Google Cloud serves a machine's credentials over HTTP
    client = {**client, "allow_http": str(scheme in ("http", "gs")).lower()}
    prefix = _PREFIXES.get(scheme)
    settings = {name: os.environ.get(f"{prefix}{name.upper()}") for name in _SETTINGS if prefix}
    return {**client, **{name: value for name, value in settings.items() if value}}


def _profile(scheme: str) -> Any:
    """boto3's credentials of a profile of `~/.aws`, including SSO, which obstore does not read. None if the
    environment has credentials or there is no profile. Raises MissingExtra if a profile is asked for by name
    and boto3 is not installed.
    """
    if scheme != "s3" or os.environ.get("AWS_ACCESS_KEY_ID"):
        return None
    name = os.environ.get("AWS_PROFILE")
    files = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}
    places = [os.path.expanduser(os.environ.get(variable) or path) for variable, path in files.items()]
    if not name and not any(map(os.path.exists, places)):
        return None
    try:
        import boto3
        from botocore.exceptions import BotoCoreError
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError as error:
        if not name:
            return None
        raise missing_package("boto3", "the profiles of ~/.aws", "boto3", error) from error
    try:
        session = boto3.Session()
        return None if session.get_credentials() is None else Boto3CredentialProvider(session)
    except BotoCoreError as error:
        raise StoreError(Problem(expected="", got=f"cannot read the profiles of ~/.aws: {error}")) from None


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
        # without a cause: its text contains the requests, which may have signatures
        reason = _reason(error)
        hint = see("stores") if "credentials" in reason else ""
        problem = Problem(where=str(path), expected="", got=f"cannot {action}: {reason}", hint=hint)
        raise StoreError(problem) from None


def _is_timeout(error: BaseException) -> bool:
    return "kind: Timeout" in str(error)


def _status(error: BaseException) -> str:
    """The status of a store's answer, `403 Forbidden`; empty if there is none."""
    status = _STATUS.search(str(error))
    return "" if status is None else status[1].strip()


def _reason(error: BaseException) -> str:
    """A store's answer on one line, without the query and the user of URLs, which may be secrets."""
    if isinstance(error, NotImplementedError):
        return "the store has no such operation"
    text = _USER.sub("//", str(error))
    request = _REQUEST.search(text)
    if request is None:
        first = _QUERY.sub("", text.split("\n", 1)[0]).strip()
        return first[:1].lower() + first[1:]
    endpoint, status, code = request["endpoint"], _status(error), _CODE.search(text)
    if _ROLES.match(endpoint) or endpoint == os.environ.get("AWS_METADATA_ENDPOINT"):
        return "no credentials were found: the environment has none, and this machine no role"
    if status:
        answer = f"{status} ({code[1]})" if code else status
        refused = status.startswith(("401", "403")) or (code is not None and code[1] in _EXPIRED)
        return f"{endpoint} refuses the credentials: {answer}" if refused else f"{endpoint} answers: {answer}"
    tried = _RETRIED.search(request["rest"])
    times = f" (tried {int(tried[1]) + 1} times)" if tried else ""
    if _is_timeout(error):
        return f"no answer from {endpoint}{times}"
    cause = _CAUSE.search(text, request.end())
    said = cause[1] if cause else request["rest"].rpartition(" - ")[2].removeprefix("HTTP error: ")
    said = _QUERY.sub("", said)
    return f"{endpoint}: {said[:1].lower()}{said[1:]}{times}"
