"""Serves the page on 127.0.0.1, only to clients with its token, and only for the files it was started
with."""

from __future__ import annotations

import asyncio
import resource
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from recordspec.errors import RecordspecError, missing_package, system_errors
from recordspec.viewer.jobs import CLIENT_HAS_LEFT
from recordspec.viewer.selection import Choice
from recordspec.viewer.viewed_files import MOST_ROWS, NotThereError, ViewedFiles

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

HOST = "127.0.0.1"
# Beyond this number, JavaScript cannot represent every integer.
_LARGEST = 1 << 53
_REFUSED = b"the URL that `recordspec view` printed is needed\n"
_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "html": "text/html"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Answers 403 to a request without the token, or with another `Host` header. A page of another site does
    not know the token, and a name of that site that resolves to this machine is another host.

    The first request has the token in its URL. The response sets a cookie with the token, so that the page
    can leave the token out of the URLs it shows.
    """

    def __init__(self, app: Any, token: str, port: int) -> None:
        self._app, self._token = app, token
        self._hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        self._cookie = f"recordspec-{port}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        in_url = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[-1]
        in_cookie = self._in_cookie(headers.get("cookie", ""))
        is_known = self._is_token(in_url) or self._is_token(in_cookie)
        is_allowed = is_known and headers.get("host") in self._hosts
        added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
        if is_allowed and in_url:
            kept = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
            added.append((b"set-cookie", kept.encode()))

        async def send_more(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        if is_allowed:
            await self._app(scope, receive, send_more)
            return
        head = [(b"content-type", b"text/plain; charset=utf-8")]
        await send_more({"type": "http.response.start", "status": 403, "headers": head})
        await send({"type": "http.response.body", "body": _REFUSED})

    def _is_token(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self._token.encode())

    def _in_cookie(self, header: str) -> str:
        try:
            kept = SimpleCookie(header).get(self._cookie)
        except CookieError:
            return ""
        return kept.value if kept else ""


class Routes:
    """The routes of the page. Raises MissingExtra without Starlette."""

    def __init__(self, viewed: ViewedFiles) -> None:
        try:
            from starlette import applications, concurrency, responses, routing
        except ImportError as error:
            raise missing_package("starlette", "the viewer", "recordspec[view]", error) from None
        self._viewed, self._responses = viewed, responses
        self._in_thread = concurrency.run_in_threadpool
        answers = {
            "/": lambda _: self._part("index.html"),
            "/page/{name:path}": lambda request: self._part(request.path_params["name"]),
            "/api/files": lambda _: viewed.described(),
            "/api/rows": self._rows,
            "/api/record": self._record,
            "/api/medium": self._medium,
            "/api/batch": self._batch,
            "/api/statistics": self._statistics,
            "/api/problems": lambda _: viewed.problems(),
            "/api/compare": lambda request: viewed.compared(
                _text(request.query_params, "old"), _text(request.query_params, "new")
            ),
        }
        routes = [routing.Route(path, self._answered(make)) for path, make in answers.items()]
        self.application = applications.Starlette(routes=routes)

    def _answered(self, make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Answers with JSON: 404 for an item that does not exist, 400 for a request that the page never
        sends.

        Errors of the data or of a condition are answered with status 200: for any other status, browsers
        would log an error of the page. An element that gets JSON instead of an image or audio reports an
        error, too, and the page asks for the reason. If the client disconnects, the job that computes the
        answer is notified.
        """

        async def answer(request: Request) -> Any:
            left = threading.Event()
            CLIENT_HAS_LEFT.set(left.is_set)  # for this task and its thread
            leaving = asyncio.create_task(_wait_until_left(request, left))
            try:
                return await self._in_thread(in_thread, request)
            finally:
                leaving.cancel()

        def in_thread(request: Request) -> Any:
            try:
                made = make(request)
                is_response = isinstance(made, self._responses.Response)
                return made if is_response else self._responses.JSONResponse(made)
            except RecordspecError as error:
                return self._refusal(200, map(str, error.problems))
            except ValueError as error:
                return self._refusal(400, [str(error)])
            except (NotThereError, IndexError) as error:
                return self._refusal(404, [f"there is no {error}"])
            except Exception as error:  # records may cause any error, and the remaining rows stay usable
                return self._refusal(500, [f"{type(error).__name__}: {error}"])

        return answer

    def _refusal(self, status: int, problems: Iterable[str]) -> Response:
        return self._responses.JSONResponse({"error": "; ".join(problems)}, status)

    def _part(self, name: str) -> Response:
        if name not in _parts():
            raise NotThereError(name)
        return self._responses.Response(_parts()[name], media_type=_TYPES[name.rpartition(".")[2]])

    def _rows(self, request: Request) -> Any:
        asked = request.query_params
        choice = Choice(
            where=asked.get("where", ""),
            text=asked.get("text", ""),
            sort=asked.get("sort", ""),
            descending="descending" in asked,
        )
        count = _number(asked, "count", MOST_ROWS)
        return self._viewed.page(asked.get("split"), choice, _number(asked, "first"), count)

    def _record(self, request: Request) -> Any:
        return self._viewed.record(request.query_params.get("split"), _number(request.query_params, "row"))

    def _batch(self, request: Request) -> Any:
        asked = request.query_params
        return self._viewed.batch(
            _text(asked, "split"), _number(asked, "epoch", 0), _number(asked, "step", 0)
        )

    def _statistics(self, request: Request) -> Any:
        asked = request.query_params
        return self._viewed.statistics(_number(asked, "seen", 0), first="first" in asked)

    def _medium(self, request: Request) -> Any:
        asked = request.query_params
        place = [int(number) for number in asked.get("place", "").split(".") if number]
        row, large = _number(asked, "row"), "large" in asked
        if "step" in asked and self._viewed.batches is not None:
            step = _text(asked, "split"), _number(asked, "epoch"), _number(asked, "step")
            made = self._viewed.batches.medium(*step, _number(asked, "column"), row, place=place, large=large)
        else:
            made = self._viewed.medium(asked.get("split"), row, _text(asked, "column"), place, large=large)
        return self._responses.Response(made.data, media_type=made.type)


async def _wait_until_left(request: Request, left: threading.Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    left.set()


def _number(asked: Any, name: str, default: int | None = None) -> int:
    text = asked.get(name, default)
    number = int(text if text is not None else "")
    if not 0 <= number < _LARGEST:
        raise ValueError(f"{name}: expected a number from 0 to 2^53, got {number}")
    return number


def _text(asked: Any, name: str) -> str:
    if name not in asked:
        raise ValueError(f"{name}: expected a text, got none")
    return str(asked[name])


def _parts() -> dict[str, bytes]:
    """The parts of the page by name."""
    folder = files("recordspec.viewer").joinpath("page")
    found = {part.name: part for part in folder.iterdir() if part.is_file()}
    found |= {f"vendor/{part.name}": part for part in folder.joinpath("vendor").iterdir()}
    return {name: part.read_bytes() for name, part in found.items() if name.rpartition(".")[2] in _TYPES}


def limit_memory(most: int) -> None:
    """Limits the memory of this process to `most` bytes (RLIMIT_DATA of setrlimit(2), which Linux enforces).

    DuckDB's limit does not count the values of expressions: the condition `len(range(200000000)) > 0` took
    14 GB for five rows. With this limit, such a condition fails, and the page shows the error.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))


def serve(viewed: ViewedFiles, *, port: int = 0, browser: bool = True) -> None:
    """Prints the URL of the page, alone on a line, and serves the page until it is interrupted.

    Args:
        viewed: the files.
        port: the port to listen on; 0 for any free port.
        browser: whether to open the page in a browser, if stdout is a terminal.

    Raises MissingExtra without Starlette or uvicorn, StoreError for a port that is taken.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise missing_package("uvicorn", "the viewer", "recordspec[view]", error) from None
    app = Routes(viewed).application
    with system_errors("listen", f"{HOST}:{port}"):
        listening = socket.create_server((HOST, port))
    with listening:
        port, token = listening.getsockname()[1], secrets.token_urlsafe(24)
        url = f"http://{HOST}:{port}/?token={token}"
        print(url, flush=True)
        if browser and sys.stdout.isatty():
            webbrowser.open(url)
        config = uvicorn.Config(
            Guard(app, token, port),
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
        )
        with suppress(KeyboardInterrupt):  # the normal way to stop the server
            uvicorn.Server(config).run(sockets=[listening])
