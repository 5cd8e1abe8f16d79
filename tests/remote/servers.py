"""Servers of object stores on this machine, each behind a proxy that can make requests fail."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from faulty_proxy import FaultyProxy
from gcs_server import GcsServer

from recordspec import remote

ROOT = Path(__file__).parents[2]
BUCKET = "datasets"
SCHEMES = ("s3", "gs", "az")
SECRET, SESSION = "s3cr3t-of-the-tests-0123456789", "t0ken-of-the-session-9876543210"
_SECONDS = 240.0
# The account and key of Azurite, as published in its manual.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

# Port 0 picks a free port. Only this API of moto returns its number.
_MOTO = """
import logging, signal
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").disabled = True
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://%s:%s" % server.get_host_and_port(), flush=True)
signal.pause()
"""


class NoServerError(Exception):
    """The reason why a server cannot be started here."""


@dataclass(frozen=True)
class Server:
    """A store with one empty bucket, behind a proxy.

    Attributes:
        scheme: the scheme of its URLs.
        proxy: the proxy that the processes of tests connect to.
        environment: the environment variables by which obstore finds the server.
        gcs: the server itself, for the scheme `gs`; otherwise None.
    """

    scheme: str
    proxy: FaultyProxy
    environment: dict[str, str]
    close: Callable[[], None]
    gcs: GcsServer | None = None

    @property
    def root(self) -> str:
        return f"{self.scheme}://{BUCKET}"


def start(scheme: str, folder: Path) -> Server:
    """Starts a server of a scheme with its files in a folder. Raises NoServerError if it cannot run here."""
    return {"s3": _s3, "gs": _gs, "az": _azure}[scheme](folder)


@contextmanager
def fresh_stores() -> Iterator[None]:
    """A context that creates the clients of stores again, with the current environment and settings."""
    forget_stores()
    try:
        yield
    finally:
        forget_stores()


def forget_stores() -> None:
    """Forgets the stores of buckets: they are created again on the next request."""
    for made in (remote._store, remote._upload_store):
        made.cache_clear()


def moto(folder: Path) -> tuple[int, Callable[[], None]]:
    """Starts a server of S3 with a bucket. Returns its port, and a function that stops it."""
    python = ROOT / ".venvs/moto/bin/python"
    if not python.exists():
        raise NoServerError("moto is not there: make .venvs/moto/ready")
    port, close = _started([str(python), "-c", _MOTO], folder)
    _ask(f"http://127.0.0.1:{port}/{BUCKET}", "PUT")
    return port, close


def s3_environment(url: str) -> dict[str, str]:
    """The environment variables by which obstore finds the server."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "AKIDOFTHETESTS",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_SESSION_TOKEN": SESSION,
        "AWS_REGION": "us-east-1",
    }


def _s3(folder: Path) -> Server:
    port, close = moto(folder)
    proxy = FaultyProxy("127.0.0.1", port)
    return Server("s3", proxy, s3_environment(proxy.url), close)


def _gs(folder: Path) -> Server:
    gcs = GcsServer()
    _ask(f"http://127.0.0.1:{gcs.port}/{BUCKET}", "PUT")
    proxy = FaultyProxy("127.0.0.1", gcs.port)
    account = folder / "account.json"
    names = {"client_email": "tests", "private_key": SECRET, "private_key_id": "1"}
    account.write_text(json.dumps({"gcs_base_url": proxy.url, "disable_oauth": True} | names))
    return Server("gs", proxy, {"GOOGLE_SERVICE_ACCOUNT": str(account)}, gcs.close, gcs)


def _azure(folder: Path) -> Server:
    program = ROOT / ".venvs/azurite/node_modules/.bin/azurite-blob"
    if not program.exists() or shutil.which("node") is None:
        raise NoServerError("azurite is not there: make .venvs/azurite/ready, where npm is installed")
    options = [
        "--blobHost",
        "127.0.0.1",
        "--blobPort",
        "0",
        "--location",
        str(folder),
        "--skipApiVersionCheck",
    ]
    port, close = _started([str(program), *options, "--silent", "--disableTelemetry"], folder)
    date, version = formatdate(usegmt=True), "2021-08-06"
    signed = f"x-ms-date:{date}\nx-ms-version:{version}\n/{_ACCOUNT}/{_ACCOUNT}/{BUCKET}\nrestype:container"
    mac = hmac.new(base64.b64decode(_KEY), ("PUT" + "\n" * 12 + signed).encode(), hashlib.sha256)
    headers = {
        "x-ms-date": date,
        "x-ms-version": version,
        "Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(mac.digest()).decode()}",
    }
    _ask(f"http://127.0.0.1:{port}/{_ACCOUNT}/{BUCKET}?restype=container", "PUT", headers)
    proxy = FaultyProxy("127.0.0.1", port)
    environment = {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": proxy.url}
    return Server("az", proxy, environment, close)


def _started(command: list[str], folder: Path) -> tuple[int, Callable[[], None]]:
    """Starts a server that prints its address. Returns its port, and a function that stops it. It also ends
    with this process."""
    log = folder / "server.log"
    with log.open("wb") as output:
        # The shell reads until its input ends. The input ends with this process, however the process ends.
        process = subprocess.Popen(
            ["sh", "-c", '"$@" & read -r _; kill $!', "sh", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C would end the shell, but not the server
        )

    def close() -> None:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()

    deadline = time.monotonic() + _SECONDS
    while (address := re.search(r"http://127\.0\.0\.1:([1-9]\d*)", log.read_text())) is None:
        if time.monotonic() > deadline:
            close()
            raise NoServerError(f"{command[0]} did not start in {_SECONDS:.0f} s: {log.read_text()[-300:]}")
        time.sleep(0.05)
    return int(address[1]), close


def _ask(url: str, method: str, headers: dict[str, str] | None = None) -> None:
    request = urllib.request.Request(url, method=method, headers={"Content-Length": "0"} | (headers or {}))
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=_SECONDS):
        pass
