"""Servers of object stores, one of each kind a test process, and fresh folders in them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from faulty_proxy import FaultyProxy
from servers import SCHEMES, NoServerError, Server, forget_stores, start

from recordspec import remote
from recordspec.locations import Location, location
from recordspec.remote import RemotePath

_numbers = itertools.count()


def _fresh() -> str:
    """A name unique to this process: the local folder of a build is named by its URL."""
    return f"test-{os.getpid()}-{next(_numbers)}"


@pytest.fixture(scope="session")
def servers(tmp_path_factory) -> Iterator[Callable[[str], Server]]:
    """Starts the server of a scheme, once. Skips the test if the server is not available."""
    started: dict[str, Server | NoServerError] = {}
    patch = pytest.MonkeyPatch()

    def server(scheme: str) -> Server:
        if scheme not in started:
            try:
                started[scheme] = found = start(scheme, tmp_path_factory.mktemp(scheme))
                for name, value in found.environment.items():
                    patch.setenv(name, value)
            except NoServerError as error:
                started[scheme] = error
        one = started[scheme]
        if isinstance(one, NoServerError):
            pytest.skip(str(one))
        return one

    yield server
    patch.undo()
    forget_stores()
    for one in started.values():
        if isinstance(one, Server):
            one.proxy.close()
            one.close()


@pytest.fixture(params=SCHEMES)
def server(request, servers) -> Server:
    """The server of each scheme."""
    return servers(request.param)


@pytest.fixture
def bucket(server) -> RemotePath:
    """A fresh folder in the bucket of each server."""
    return RemotePath.parse(f"{server.root}/{_fresh()}")


@dataclass(frozen=True)
class Store:
    """A fresh location for data.

    Attributes:
        url: a local folder that does not exist yet, or a URL.
        proxy: the proxy before the server; None for a local folder.
    """

    url: str
    proxy: FaultyProxy | None

    def __truediv__(self, name: str) -> str:
        return f"{self.url}/{name}"

    def put(self, name: str, data: bytes) -> str:
        """Writes a file. Returns its path."""
        place = location(self / name)
        if isinstance(place, Path):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        else:
            remote.create(place, data)
        return str(place)

    def upload(self, folder: Path, name: str = "") -> str:
        """Writes all files of a folder. Returns the path of the copy."""
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            self.put(f"{name}/{path.relative_to(folder)}".lstrip("/"), path.read_bytes())
        return (self / name).rstrip("/")

    def files(self, name: str = "") -> dict[str, bytes]:
        """All files of a folder, by name."""
        place: Location = location((self / name).rstrip("/"))
        if isinstance(place, Path):
            return {
                str(one.relative_to(place)): one.read_bytes() for one in place.rglob("*") if one.is_file()
            }
        return {str(one.relative_to(place)): one.read_bytes() for one, _ in remote.walk(place)}


@pytest.fixture(params=["local", *SCHEMES])
def store(request, tmp_path, servers) -> Store:
    """A fresh location on this machine and in each store."""
    if request.param == "local":
        return Store(str(tmp_path / "store"), None)
    server = servers(request.param)
    return Store(f"{server.root}/{_fresh()}", server.proxy)
