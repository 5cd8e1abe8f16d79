"""A server of Google Cloud Storage on this machine, in memory. It has the parts of the API that the package
uses.

obstore speaks the XML API (https://cloud.google.com/storage/docs/xml-api/overview). TensorFlow speaks the
JSON API, except for the bytes of objects. Nothing is authenticated. An unimplemented conditional header is
refused, so that no condition is mistaken for met.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from faulty_proxy import LocalHandler, LocalServer

SMALLEST_PART = 5 << 20
_META = ("content-type", "content-encoding", "cache-control")
_UNKNOWN = ("if-none-match", "x-goog-if-metageneration-match", "x-goog-copy-source")


@dataclass(frozen=True)
class StoredObject:
    """The bytes and the metadata of an object.

    Attributes:
        generation: a number that grows with each new content of a key.
        headers: the given headers: `content-type`, `x-goog-meta-*` and so on.
        modified: the time of modification, in seconds since 1970.
    """

    data: bytes
    generation: int
    headers: dict[str, str]
    modified: float

    @property
    def e_tag(self) -> str:
        return f'"{hashlib.md5(self.data).hexdigest()}"'


@dataclass
class Upload:
    """An incomplete multipart upload."""

    key: str
    headers: dict[str, str]
    parts: dict[int, bytes] = field(default_factory=dict)


class RefusedError(Exception):
    """An error to send as the answer."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


class GcsServer:
    """The server.

    Attributes:
        port: the port on 127.0.0.1.
        buckets: the objects of each bucket, by key.
        uploads: the incomplete multipart uploads, by id.
        page: the largest number of keys in an answer to a listing.
    """

    def __init__(self) -> None:
        self.buckets: dict[str, dict[str, StoredObject]] = {}
        self.uploads: dict[str, Upload] = {}
        self.page = 1000
        self._generations = itertools.count(int(time.time() * 1e6))
        self._lock = threading.Lock()
        store = self

        class Handler(LocalHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                try:
                    with store._lock:
                        status, headers, data = store._do(self.command, self.path, self.headers, body)
                except RefusedError as error:
                    text = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{error.code}</Code></Error>"
                    status, headers, data = error.status, {"Content-Type": "application/xml"}, text.encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header(
                    "Content-Length", headers.get("x-goog-stored-content-length", str(len(data)))
                )
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def send_header(self, name: str, value: str) -> None:
                if name != "x-goog-stored-content-length":
                    super().send_header(name, value)

        self._server = LocalServer(Handler)
        self.port = self._server.port

    def close(self) -> None:
        self._server.close()

    def _do(self, method: str, path: str, headers: Any, body: bytes) -> tuple[int, dict[str, str], bytes]:
        split = urlsplit(path)
        bucket, _, key = unquote(split.path).lstrip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(split.query, keep_blank_values=True).items()}
        if any(name in headers for name in _UNKNOWN) or ("if-match" in headers and method != "GET"):
            raise RefusedError(501, "NotImplemented")
        if method == "PUT" and not key:
            self.buckets.setdefault(bucket, {})
            return 200, {}, b""
        if bucket == "storage":
            return self._json(method, split.path.split("/")[4:], query)
        if bucket not in self.buckets:
            raise RefusedError(404, "NoSuchBucket")
        if not key and method == "GET" and query.get("list-type") == "2":
            return 200, {"Content-Type": "application/xml"}, self._list(bucket, query)
        if not key:
            raise RefusedError(501, "NotImplemented")
        if "uploads" in query or "uploadId" in query:
            return self._multipart(method, bucket, key, query, headers, body)
        return self._object(method, bucket, key, headers, body)

    def _object(
        self, method: str, bucket: str, key: str, headers: Any, body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        objects = self.buckets[bucket]
        if method == "PUT":
            _check_generation(objects.get(key), headers)
            return self._put(bucket, key, body, _kept(headers))
        found = objects.get(key)
        if found is None:
            raise RefusedError(404, "NoSuchKey")
        if method == "DELETE":
            del objects[key]
            return 204, {}, b""
        if headers.get("if-match", found.e_tag) != found.e_tag:
            raise RefusedError(412, "PreconditionFailed")
        return _get(found, headers.get("range"), head=method == "HEAD")

    def _put(
        self, bucket: str, key: str, data: bytes, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        stored = StoredObject(data, next(self._generations), headers, time.time())
        self.buckets[bucket][key] = stored
        return 200, {"ETag": stored.e_tag, "x-goog-generation": str(stored.generation)}, b""

    def _list(self, bucket: str, query: dict[str, str]) -> bytes:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token", query.get("start-after", ""))
        objects = self.buckets[bucket]
        left = [name for name in _grouped(objects, prefix, delimiter) if name > after]
        page = left[: min(self.page, int(query.get("max-keys", self.page)))]
        more = (
            f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
            if len(left) > len(page)
            else ""
        )
        listed = "".join(
            _contents(name, objects[name])
            if name in objects
            else f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            for name in page
        )
        return (
            f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}{listed}</ListBucketResult>"
        ).encode()

    def _json(
        self, method: str, parts: list[str], query: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        """Answers TensorFlow's requests of the JSON API: for `bucket`, `bucket/o` and `bucket/o/object`,
        without bytes."""
        bucket, *rest = map(unquote, parts)
        if method != "GET":
            raise RefusedError(501, "NotImplemented")
        if bucket not in self.buckets:
            raise RefusedError(404, "NoSuchBucket")
        objects, told = self.buckets[bucket], {"name": bucket}
        if len(rest) > 1:
            found = objects.get(rest[1])
            if found is None:
                raise RefusedError(404, "NoSuchKey")
            updated = datetime.fromtimestamp(found.modified, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            told = {"size": str(len(found.data)), "generation": str(found.generation), "updated": updated}
        elif rest:
            after, prefix, delimiter = (query.get(name, "") for name in ("pageToken", "prefix", "delimiter"))
            names = [name for name in _grouped(objects, prefix, delimiter) if name > after]
            page = names[: min(self.page, int(query.get("maxResults", self.page)))]
            told = {
                "items": [{"name": name} for name in page if name in objects],
                "prefixes": [name for name in page if name not in objects],
                **({"nextPageToken": page[-1]} if len(names) > len(page) else {}),
            }
        return 200, {"Content-Type": "application/json"}, json.dumps(told).encode()

    def _multipart(
        self, method: str, bucket: str, key: str, query: dict[str, str], headers: Any, body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        xml = {"Content-Type": "application/xml"}
        names = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
        if method == "POST" and "uploads" in query:
            name = str(next(self._generations))
            self.uploads[name] = Upload(key, _kept(headers))
            return 200, xml, _element("InitiateMultipartUploadResult", f"{names}<UploadId>{name}</UploadId>")
        upload = self.uploads.get(query.get("uploadId", ""))
        if upload is None or upload.key != key:
            raise RefusedError(404, "NoSuchUpload")
        if method == "PUT":
            upload.parts[int(query["partNumber"])] = body
            return 200, {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}, b""
        if method == "DELETE":
            del self.uploads[query["uploadId"]]
            return 204, {}, b""
        if method != "POST":
            raise RefusedError(501, "NotImplemented")
        numbers = [int(one) for one in re.findall(r"<PartNumber>(\d+)</PartNumber>", body.decode())]
        tags = [
            one.strip('"') for one in re.findall(r"<ETag>(.*?)</ETag>", body.decode().replace("&quot;", '"'))
        ]
        found = [upload.parts.get(number) for number in numbers]
        told = [None if part is None else hashlib.md5(part).hexdigest() for part in found]
        if not numbers or numbers != sorted(set(numbers)) or told != tags:
            raise RefusedError(400, "InvalidPart")
        parts = [part for part in found if part is not None]
        if any(len(part) < SMALLEST_PART for part in parts[:-1]):
            raise RefusedError(400, "EntityTooSmall")
        del self.uploads[query["uploadId"]]
        status, told_of, _ = self._put(bucket, key, b"".join(parts), upload.headers)
        tag = escape(told_of["ETag"], {'"': "&quot;"})
        return status, told_of | xml, _element("CompleteMultipartUploadResult", f"{names}<ETag>{tag}</ETag>")


def _grouped(objects: dict[str, StoredObject], prefix: str, delimiter: str) -> list[str]:
    """The keys with a prefix. Keys with a delimiter after the prefix are replaced by their common
    prefixes."""
    found = set()
    for key in (key for key in objects if key.startswith(prefix)):
        head, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key[len(prefix) :], "", "")
        found.add(f"{prefix}{head}{cut}")
    return sorted(found)


def _check_generation(found: StoredObject | None, headers: Any) -> None:
    wanted = headers.get("x-goog-if-generation-match")
    if wanted is not None and int(wanted) != (0 if found is None else found.generation):
        raise RefusedError(412, "PreconditionFailed")


def _kept(headers: Any) -> dict[str, str]:
    """The headers that are stored with an object."""
    return {
        name.lower(): value
        for name, value in headers.items()
        if name.lower() in _META or name.lower().startswith("x-goog-meta-")
    }


def _get(found: StoredObject, asked: str | None, *, head: bool) -> tuple[int, dict[str, str], bytes]:
    headers = found.headers | {
        "ETag": found.e_tag,
        "x-goog-generation": str(found.generation),
        "Last-Modified": formatdate(found.modified, usegmt=True),
        "Accept-Ranges": "bytes",
    }
    size = len(found.data)
    if head:
        return 200, headers | {"x-goog-stored-content-length": str(size)}, b""
    ranged = re.fullmatch(r"bytes=(\d+)-(\d*)", asked or "")
    if ranged is None:
        return 200, headers, found.data
    start, stop = int(ranged[1]), min(size, int(ranged[2] or size - 1) + 1)
    if start >= size:
        raise RefusedError(416, "InvalidRange")
    return 206, headers | {"Content-Range": f"bytes {start}-{stop - 1}/{size}"}, found.data[start:stop]


def _contents(key: str, found: StoredObject) -> str:
    modified = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(found.modified))
    return (
        f"<Contents><Key>{escape(key)}</Key><Generation>{found.generation}</Generation>"
        f"<LastModified>{modified}.{int(found.modified % 1 * 1000):03d}Z</LastModified>"
        f"<ETag>{escape(found.e_tag)}</ETag><Size>{len(found.data)}</Size></Contents>"
    )


def _element(name: str, content: str) -> bytes:
    return f"<?xml version='1.0' encoding='UTF-8'?><{name}>{content}</{name}>".encode()
