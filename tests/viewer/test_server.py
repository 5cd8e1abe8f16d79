"""The server of `cli.view` answers those who have its token, under its own name, and opens nothing else."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import pytest

import recordspec as rs
from recordspec.viewer.jobs import CLIENT_HAS_LEFT
from recordspec.viewer.selection import Choice
from recordspec.viewer.server import Routes
from recordspec.viewer.viewed_files import ViewedFiles
from waiting import wait_until

SCHEMA = """
schema: s
features:
  n: int64
  text: {dtype: string, default: ""}
  side: {kind: label, names: [left, right]}
"""
PATHS = (
    "/",
    "/page/view.js",
    "/api/files",
    "/api/rows?first=0",
    "/api/record?row=0",
    "/api/statistics",
    "/api/problems",
    "/api/compare?old=train&new=test",
    "/api/medium?row=0&column=n",
)


class Server:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.port, self.token = parts.port, parts.query.removeprefix("token=")

    def ask(self, path, *, method="GET", token=True, **headers):
        """The status, the headers and the body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        path += f"{'&' if '?' in path else '?'}token={self.token}" if token is True else ""
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def json(self, path):
        status, _, body = self.ask(path)
        assert status == 200, body
        return json.loads(body)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("viewed")
    rows = [{"n": row, "text": f"<b>{row}", "side": row % 2} for row in range(250)]
    rs.write(rows, rs.Schema.loads(SCHEMA), folder / "data", shuffle=None, split={"train": 80, "test": 20})
    return folder


@pytest.fixture(scope="module")
def server(folder):
    command = [sys.executable, "-m", "recordspec", "view", "data", "--no-browser"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        yield Server(process.stdout.readline().rstrip("\n"))
        process.send_signal(signal.SIGINT)
        assert process.wait(120) in (0, 130)
        assert (process.stdout.read(), process.stderr.read()) == ("", "")


def test_the_url_answers_itself_and_keeps_its_token_in_a_cookie(server):
    status, headers, body = server.ask("/")
    assert status == 200
    assert b"/page/view.js" in body
    cookie, *attributes = headers["set-cookie"].split("; ")
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict"}
    for path in PATHS[:-1]:
        assert server.ask(path, token=None, cookie=f"other=1; {cookie}")[0] == 200


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_or_under_another_name_nothing_is_answered(server, path):
    of_token = f"recordspec-{server.port}={server.token}"
    asked = (
        {"token": None},
        {"token": None, "cookie": f"recordspec-{server.port}={server.token[:-1]}"},
        {"token": None, "cookie": "recordspec-1=\x01"},
        {"host": "evil.example"},
        {"host": f"evil.example:{server.port}"},
        {"token": None, "cookie": of_token, "host": "127.0.0.1.evil.example"},
    )
    for given in asked:
        status, headers, body = server.ask(path, **given)
        assert (status, body) == (403, b"the URL that `recordspec view` printed is needed\n")
        assert "set-cookie" not in headers


def test_every_answer_forbids_what_the_page_does_not_need(server):
    for path, token in ((PATHS[0], True), (PATHS[3], True), ("/none", True), ("/", None)):
        _, headers, _ = server.ask(path, token=token)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/page/../server.py", 404),
        ("/page/%2e%2e%2fserver.py", 404),
        ("/page//etc/passwd", 404),
        ("/page/vendor/htm.LICENSE", 404),
        ("/api/rows?first=-1", 400),
        ("/api/rows?first=x", 400),
        ("/api/rows?first=99999999999999999999", 400),
        ("/api/rows", 400),
        ("/api/rows?first=0&split=none", 404),
        ("/api/record?row=250", 404),
        ("/api/medium?row=0&column=none", 404),
        ("/api/medium?row=0&column=n&place=1.x", 400),
        ("/api/medium?row=0&column=n&place=1", 404),
    ],
)
def test_what_no_page_asks_for_is_refused(server, path, status):
    answered, _, body = server.ask(path)
    assert answered == status
    assert "Traceback" not in body.decode()


def test_the_reason_why_there_is_no_image_is_told(server):
    said = server.json("/api/medium?row=0&column=n")["error"]
    assert said == "expected an image or audio, got int64"


def test_only_reading_is_allowed(server):
    assert [server.ask("/api/files", method=method)[0] for method in ("POST", "PUT", "DELETE")] == [405] * 3


def polled(server, path):
    """The answer when it is done, asked again with the version that was seen; or what is wrong with the request."""
    answer, value = {"done": False, "version": 0}, None
    while not answer["done"]:
        answer = server.json(f"{path}{'&' if '?' in path else '?'}seen={answer['version']}")
        if "error" in answer:
            return answer
        value = answer.get("value") or value
    return {**answer, "value": value}


def test_rows_and_records(server, folder):
    described = server.json("/api/files")
    assert [column["name"] for column in described["columns"]] == ["n", "text", "side"]
    assert (described["splits"], described["total"]) == (["train", "test"], 250)
    assert described["facts"][:2] == ["250 rows", "train 198, test 52"]
    assert described["facts"][3:] == ["schema s, version 1"]
    assert [column["type"] for column in described["columns"]] == ["int64", "string", "label, 2 classes"]
    assert [column["number"] for column in described["columns"]] == [True, False, False]
    assert described["pair"] == ["train", "test"]
    page = polled(server, "/api/rows?first=200&count=100")
    assert [row["row"] for row in page["rows"]] == list(range(200, 250))
    assert (len(polled(server, "/api/rows?first=0&count=1000")["rows"]), page["total"]) == (100, 250)
    record = server.json("/api/record?row=3&split=train")
    n, text, side = record["cells"]
    assert (text, side) == (f"<b>{n}", {"is": "label", "text": ["left", "right"][n % 2]})
    assert record["stored"]["features"] == {"n": n, "text": text, "side": side["text"]}
    data = (folder / record["file"]).read_bytes()[record["offset"] :]
    assert int.from_bytes(data[:8], "little") == record["length"]
    assert data[12 : 12 + record["length"]].hex() == record["bytes"]
    assert data[12 + record["length"] :][:4] == bytes.fromhex(record["crc"])[::-1]
    shown = subprocess.run(
        [sys.executable, "-m", *record["command"].split()], cwd=folder, capture_output=True, text=True
    )
    assert json.loads(shown.stdout)["features"] == record["stored"]["features"]


def test_a_port_that_is_taken_and_files_that_are_missing_are_told(server, folder):
    for arguments, said in (
        (
            ["data", "--port", str(server.port)],
            f"127.0.0.1:{server.port}: cannot listen: address already in use\n",
        ),
        (["none"], "`none` does not exist"),
    ):
        command = [sys.executable, "-m", "recordspec", "view", *arguments, "--no-browser"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert run.returncode
        assert run.stderr.startswith(said)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the data of a process")
def test_a_condition_takes_no_more_memory_than_the_page_may(folder):
    program = """if True:
        from recordspec import StoreError
        from recordspec.store.dataset import StoredDataset
        from recordspec.store.scan import Scanner
        from recordspec.tables.sql import Condition
        from recordspec.viewer.server import limit_memory
        limit_memory(1 << 30)
        for where in ("len(range(200000000 + n)) > 0", "n < 3"):
            try:
                scanner = Scanner.of_rows(StoredDataset.of("data"))
                print(sum(map(len, Condition(where, scanner).matching(scanner.batches()))))
            except StoreError as error:
                print(error)
        # `getrusage` reports the memory of the process that started this one, if it is larger
        print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
    """
    run = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    refused, found, peak = run.stdout.splitlines()
    assert refused.startswith("`where` needs more memory: ")
    assert (found, int(peak) < 2 << 20) == ("3", True)  # the program itself has its own


def test_rows_that_are_chosen_are_found_and_sorted(server):
    path = "/api/rows?first=1&count=2&where=n+%25+2+%3D+0+AND+side+%3D+%27left%27&sort=n&descending="
    answer = polled(server, path)
    assert (answer["total"], answer["skipped"], answer["ends"]) == (125, 0, "")
    assert [row["cells"][0] for row in answer["rows"]] == [246, 244]
    assert answer["rows"][0]["cells"][1:] == ["<b>246", {"is": "label", "text": "left"}]
    assert polled(server, "/api/rows?first=0&count=5&text=%3CB%3E17")["total"] == 11
    assert polled(server, "/api/rows?split=test&first=0&count=0&sort=n")["rows"] == []
    assert polled(server, "/api/rows?first=0&where=n+%3D") == {
        "error": "where: expected a condition in SQL, got `n =` (syntax error at its end)"
    }
    assert polled(server, "/api/rows?first=0&sort=m") == {"error": "sort: expected a column, got `m`"}


def test_statistics_problems_and_comparisons_are_read_to_their_end(server):
    statistics = polled(server, "/api/statistics")["value"]
    assert [split["rows"] for split in statistics["splits"]] == [198, 52]
    assert [feature["name"] for feature in statistics["features"]] == ["n", "text", "side"]
    found = {"count": 0, "records": 250, "problems": [], "checked": True}
    assert polled(server, "/api/problems")["value"] == found
    compared = polled(server, "/api/compare?old=train&new=test")["value"]
    assert [split["name"] for split in compared["splits"]] == ["train", "test"]
    assert server.ask("/api/compare?old=train&new=elsewhere")[0] == 404
    assert server.ask("/api/compare?old=train")[0] == 400


def test_a_page_and_a_choice_of_two_rows_are_told_apart(server):
    assert len(polled(server, "/api/rows?first=0&count=100")["rows"]) == 100
    few = polled(server, "/api/rows?first=0&count=100&where=n+%3D+0+OR+n+%3D+100&sort=n")
    assert [row["cells"][0] for row in few["rows"]] == [0, 100]


def test_files_that_change_are_opened_anew_when_the_page_is_loaded(tmp_path):
    schema = rs.Schema.loads("{schema: s, features: {n: int64}}")
    rs.write({"n": [1, 2]}, schema, tmp_path / "d")
    viewed = ViewedFiles(tmp_path / "d")
    assert viewed.described()["total"] == 2
    rs.write({"n": [1, 2, 3]}, schema, tmp_path / "d", force=True)
    assert viewed.described()["total"] == 3
    assert len(viewed.page(None, Choice(), 0, 100)["rows"]) == 3


def test_what_works_for_a_request_is_told_that_its_client_leaves():
    told, working = [], threading.Event()

    class Viewed:
        def described(self):
            working.set()
            wait_until(CLIENT_HAS_LEFT.get())
            told.append(True)
            return {}

    messages = [{"type": "http.request", "body": b""}, {"type": "http.disconnect"}]

    async def receive():
        if len(messages) == 1:
            await asyncio.to_thread(working.wait)
        return messages.pop(0)

    async def send(message):
        pass

    path = "/api/files"
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "root_path": "",
        "query_string": b"",
        "headers": [],
    }
    asyncio.run(Routes(Viewed()).application(scope, receive, send))
    assert told == [True]
    assert not CLIENT_HAS_LEFT.get()()
