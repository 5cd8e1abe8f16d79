"""Web servers, which are read, and neither written nor listed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import recordspec as rs
from recordspec.integrity.verify import verify
from recordspec.locations import location, output_file
from recordspec.statistics.count import count
from recordspec.store.expand import expand
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.parquet import Parquet

pytestmark = pytest.mark.newest

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {a: int64}")
FOLDER = "a b%/ü?"
IN_URL = "a%20b%25/%C3%BC%3F"


class Handler(SimpleHTTPRequestHandler):
    """Serves files, and parts of them if `ranges` says so; keeps the requests."""

    ranges = True
    tag: str | None = None
    requests: list[str]
    folder: Path

    def __init__(self, *args) -> None:
        super().__init__(*args, directory=str(self.folder))

    def log_request(self, *args) -> None:
        self.requests.append(f"{self.command} {self.path}")

    def log_message(self, *args) -> None:
        pass

    def send_head(self):
        path, wanted = Path(self.translate_path(self.path)), self.headers.get("Range")
        if wanted is None or not self.ranges or not path.is_file():
            return super().send_head()
        if self.headers.get("If-Match", self.tag) != self.tag or str(self.headers.get("If-Match")).startswith(
            "W/"
        ):
            return self.send_error(412)
        data = path.read_bytes()
        first, last = (int(one) for one in wanted.removeprefix("bytes=").split("-"))
        part = data[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
        self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        if self.tag is not None:
            self.send_header("ETag", self.tag)
        self.end_headers()
        return BytesIO(part)


@pytest.fixture
def handler(tmp_path) -> type[Handler]:
    return type("OfTest", (Handler,), {"folder": tmp_path, "requests": []})


@pytest.fixture
def web(handler) -> Iterator[str]:
    """The URL of a server of the test's folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def data(web, tmp_path) -> str:
    rs.write([{"a": row} for row in range(10)], SCHEMA, tmp_path / FOLDER, shards=2)
    return f"{web}/{IN_URL}"


def test_a_dataset_is_looked_at(data, handler):
    assert [one.records for one in count(data)] == [5, 5]
    assert handler.requests == [f"GET /{IN_URL}/manifest.json"]
    assert [str(one) for one in expand(f"{data}/train-*1-of-*")] == [
        f"{data.replace('%C3%BC', 'ü')}/train-00001-of-00002.tfrecord"
    ]
    assert [one.problems for one in verify(data)] == [(), ()]
    assert rs.Schema.load(f"{data}/schema.yaml") == SCHEMA


@pytest.mark.tensorflow
@pytest.mark.parametrize("ranges", [True, False])
def test_a_dataset_is_read(data, handler, ranges, tmp_path):
    handler.ranges = ranges  # shards are read whole
    found = rs.read(data, SCHEMA, staging={"folder": str(tmp_path / "copies")})
    assert sorted(int(row["a"]) for row in found) == [*range(10)]


@pytest.mark.parametrize("tag", [None, '"1"', 'W/"1"'])
def test_rows_are_read_by_ranges_with_any_tag(web, handler, tmp_path, tag):
    handler.tag = tag
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64, blob: string}")
    rs.write(({"n": n, "blob": bytes(6000)} for n in range(100)), schema, tmp_path / "rows")
    rows = rs.open(f"{web}/rows")
    assert [rows[place]["n"] for place in (0, 99, 50)] == [0, 99, 50]
    assert rows._files.counters.requests == 3


def test_a_table_is_read_by_ranges(web, handler, tmp_path):
    parquet.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "rows.parquet")
    assert rs.write(Parquet(files=f"{web}/rows.parquet"), SCHEMA, tmp_path / "three").rows("train") == 3
    (tmp_path / "rows#1.csv").write_text("a\n1\n2\n")
    assert rs.write(Csv(files=f"{web}/rows%231.csv"), SCHEMA, tmp_path / "data").rows("train") == 2
    handler.ranges = False
    with pytest.raises(rs.StoreError) as caught:
        rs.write(Csv(files=f"{web}/rows%231.csv"), SCHEMA, tmp_path / "other")
    assert str(caught.value) == (
        f"{web}/rows%231.csv: cannot read: operation not supported: Range request not supported by rows#1.csv"
    )


def test_nothing_is_written_or_listed(web, handler):
    for writing in (
        lambda: rs.write([{"a": 1}], SCHEMA, f"{web}/new"),
        lambda: output_file(location(f"{web}/new"), force=True).__enter__(),
    ):
        with pytest.raises(rs.SpecError) as caught:
            writing()
        expected = "expected a URL of s3, gs or az to write to, got one of a web server"
        assert str(caught.value) == f"{web}/new: {expected}"
    assert handler.requests == []
    with pytest.raises(rs.StoreError) as caught:
        expand(f"{web}/none/train-*")
    hint = "(a web server has no lists; name a file, or a folder that has a manifest)"
    assert str(caught.value) == f"{web}/none: cannot list {hint}"
    assert handler.requests == ["GET /none/manifest.json"]
