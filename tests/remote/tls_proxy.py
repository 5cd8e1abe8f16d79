"""A proxy through which TensorFlow's own `gs://` reads from a server on this machine.

TensorFlow connects to www.googleapis.com and storage.googleapis.com by TLS, and no option names another
server. But it takes a proxy (`https_proxy`) and certificates (`CURL_CA_BUNDLE`) from the environment.
"""

from __future__ import annotations

import select
import socket
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path

from faulty_proxy import LocalHandler, LocalServer

_HOSTS = ("www.googleapis.com", "storage.googleapis.com")


class TlsProxy:
    """Decrypts requests to Google's hosts, and forwards them to a port of 127.0.0.1.

    Args:
        port: the port of the server.
        folder: a folder for the certificate; openssl creates it.

    Attributes:
        environment: the environment variables that make TensorFlow use the proxy.
    """

    def __init__(self, port: int, folder: Path) -> None:
        certificate, key = folder / "certificate.pem", folder / "key.pem"
        names = ",".join(f"DNS:{host}" for host in _HOSTS)
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                f"/CN={_HOSTS[0]}",
            ]
            + ["-addext", f"subjectAltName={names}", "-keyout", str(key), "-out", str(certificate)],
            check=True,
            capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)

        class Handler(LocalHandler):
            def do_CONNECT(self) -> None:  # noqa: N802
                self.close_connection = True
                if self.path.partition(":")[0] not in _HOSTS:
                    self.send_error(502)
                    return
                self.send_response(200)
                self.end_headers()
                self.wfile.flush()
                with (
                    context.wrap_socket(self.connection, server_side=True) as inside,
                    socket.create_connection(("127.0.0.1", port)) as outside,
                    suppress(OSError),
                ):
                    _pass_on(inside, outside)

        self._server = LocalServer(Handler)
        self.environment = {
            "https_proxy": f"http://127.0.0.1:{self._server.port}",
            "CURL_CA_BUNDLE": str(certificate),
            "NO_GCE_CHECK": "true",
        }

    def close(self) -> None:
        self._server.close()


def _pass_on(inside: ssl.SSLSocket, outside: socket.socket) -> None:
    """Forwards data in both directions until one side closes. Uses one thread: two must not use an OpenSSL
    connection."""
    others = {inside: outside, outside: inside}
    while True:
        ready = [inside] if inside.pending() else select.select([*others], [], [])[0]
        for one in ready:
            if not (data := one.recv(1 << 16)):
                return
            others[one].sendall(data)
