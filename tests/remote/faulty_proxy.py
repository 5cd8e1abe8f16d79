"""A proxy before a server on this machine that makes requests fail."""

from __future__ import annotations

import http.client
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

_SLOW_PIECE = 64 << 10

Kind = Literal["status", "cut", "flip", "drop", "lost answer", "slow", "no answer"]


@dataclass
class Fault:
    """A fault of some requests.

    Attributes:
        kind: `status`, an error instead of the answer; `cut`, the body ends at its half; `flip`, one bit of
            the body is flipped; `drop`, the connection is closed before the server is asked; `lost answer`,
            it is closed after the server was asked; `slow`, the body is limited to `rate` bytes a second in
            each direction; `no answer`, nothing happens for a minute, and the connection stays open.
        method, path: regular expressions of the requests; the path includes the query.
        times: the number of faulty requests; later requests are answered.
        skip: the number of requests answered before the first fault.
        status: the status of the kind `status`.
        body: the body of the kind `status`.
        rate: the rate of all `slow` requests together.
        then: called when the fault happens; for `lost answer`, after the server has answered.
    """

    kind: Kind
    method: str = ".*"
    path: str = ".*"
    times: int = 1
    skip: int = 0
    status: int = 500
    body: bytes = b""
    rate: float = 1e6
    then: Callable[[], None] = lambda: None
    done: int = field(default=0, init=False)


class LocalServer(ThreadingHTTPServer):
    """A server on a free port of 127.0.0.1, in threads of this process. `LocalHandler` answers."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler: type[LocalHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.port = int(self.server_address[1])
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *arguments: Any) -> None:
        """Ignores an error: the client has disconnected."""

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class LocalHandler(BaseHTTPRequestHandler):
    """Answers all requests by `answer`."""

    protocol_version = "HTTP/1.1"
    # one packet an answer: a second packet would wait 40 ms for the client
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *arguments: Any) -> None:
        pass

    def answer(self) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        self.answer()

    do_PUT = do_POST = do_DELETE = do_HEAD = do_GET  # noqa: N815


class _ProxyHandler(LocalHandler):
    """Forwards a request to the server, unless a fault happens first."""

    proxy: FaultyProxy
    host: str
    port: int

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        self.proxy.seen(self.headers)
        fault = self.proxy.take(self.command, self.path)
        if fault is None:
            return self._forward(*self._asked(body))
        before = {"drop": self._drop, "status": self._say, "no answer": self._wait}
        if fault.kind in before:
            return before[fault.kind](fault)
        if fault.kind == "slow":
            self.proxy.transfer(size, fault.rate)
        answer, data = self._asked(body)
        if fault.kind == "lost answer":
            return self._drop(fault)
        if fault.kind == "flip" and data:
            at = len(data) // 2
            data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        return self._forward(answer, data, fault)

    def _drop(self, fault: Fault) -> None:
        fault.then()
        self.close_connection = True

    def _say(self, fault: Fault) -> None:
        self.send_response(fault.status)
        self.send_header("Content-Length", str(len(fault.body)))
        self.end_headers()
        self.wfile.write(fault.body)

    def _wait(self, fault: Fault) -> None:
        self.proxy.closed.wait(60)
        self.close_connection = True

    def _asked(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        """The answer of the server."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer, data

    def _forward(self, answer: http.client.HTTPResponse, data: bytes, fault: Fault | None = None) -> None:
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length", "server", "date"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        if fault is not None and fault.kind == "cut":
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
        elif fault is not None and fault.kind == "slow":
            for start in range(0, len(data), _SLOW_PIECE):
                self.wfile.write(data[start : start + _SLOW_PIECE])
                self.wfile.flush()
                self.proxy.transfer(len(data[start : start + _SLOW_PIECE]), fault.rate)
        else:
            self.wfile.write(data)


class FaultyProxy:
    """The proxy, with a log of its requests.

    Attributes:
        url: the URL on which it listens.
        faults: the faults; tests set them.
        requests: the number of requests by method.
        log: the method and path of every request, in order.
        closed: set at the end.
        seen: called with the headers of every request; tests set it.
    """

    def __init__(self, host: str, port: int) -> None:
        self.faults: list[Fault] = []
        self.requests: Counter[str] = Counter()
        self.log: list[tuple[str, str]] = []
        self.closed = threading.Event()
        self.seen: Callable[[Message], None] = lambda headers: None
        self._lock, self._line = threading.Lock(), threading.Lock()
        handler = type("Handler", (_ProxyHandler,), {"proxy": self, "host": host, "port": port})
        self._server = LocalServer(handler)
        self.url = f"http://127.0.0.1:{self._server.port}"

    def take(self, method: str, path: str) -> Fault | None:
        """Counts a request. Returns its fault, or None."""
        with self._lock:
            self.requests[method] += 1
            self.log.append((method, path))
            for fault in self.faults:
                if re.fullmatch(fault.method, method) and re.search(fault.path, path):
                    if fault.skip:
                        fault.skip -= 1
                    elif fault.done < fault.times:
                        fault.done += 1
                        return fault
        return None

    def transfer(self, size: int, rate: float) -> None:
        """Waits until these bytes are transferred, after the bytes of earlier requests."""
        with self._line:
            self.closed.wait(size / rate)

    @contextmanager
    def failing(self, *faults: Fault) -> Iterator[None]:
        """A context in which these faults happen; requests are counted from its start."""
        self.faults, self.requests, self.log = list(faults), Counter(), []
        try:
            yield
        finally:
            self.faults = []

    def close(self) -> None:
        self.closed.set()
        self._server.close()
