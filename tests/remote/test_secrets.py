"""Secrets of the environment are in no message, log, manifest or traceback, whatever fails."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from faulty_proxy import Fault
from servers import SECRET, SESSION, fresh_stores

import recordspec as rs
from recordspec import remote

pytestmark = [pytest.mark.slow, pytest.mark.newest]

SCHEMA = rs.Schema.loads("schema: s\nfeatures:\n  id: int64\n")
FAULTS = {
    "refused": Fault(
        "status", status=403, times=99, body=b"<Error><Code>SignatureDoesNotMatch</Code></Error>"
    ),
    "broken": Fault("status", status=500, times=99),
    "no bucket": Fault("status", status=404, times=99, body=b"<Error><Code>NoSuchBucket</Code></Error>"),
    "told": Fault(
        "status", status=400, times=99, body=f"<Error><Code>x</Code>{SECRET} {SESSION}</Error>".encode()
    ),
    "dropped": Fault("drop", times=99),
    "flipped": Fault("flip", times=99),
}
# With every log that there is, and the whole traceback.
PROGRAM = """
import logging, os, sys, traceback
logging.basicConfig(level=0, force=True)
from recordspec import remote
remote._RETRY.update(max_retries=1)
remote.RETRIES = 1
import recordspec as rs
schema = rs.Schema.loads("schema: s\\nfeatures:\\n  id: int64\\n")
for action in (
    lambda: rs.write({"id": [1, 2, 3]}, schema, sys.argv[1]),
    lambda: rs.Manifest.load(sys.argv[1]),
    lambda: list(rs.write({"id": [1]}, schema, sys.argv[1], append=True)),
    lambda: [print(repr(remote._store(remote.RemotePath.parse(sys.argv[1]).root)))],
    lambda: print(repr(remote.RemotePath.parse(sys.argv[1])), vars(remote.RemotePath.parse(sys.argv[1]))),
):
    try:
        action()
    except BaseException as error:
        traceback.print_exc()
        while error is not None:
            print(repr(error), error.args, getattr(error, "problems", ""))
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
"""


def assert_no_secret(text: str) -> None:
    for secret in (SECRET, SESSION):
        assert secret not in text


@pytest.mark.parametrize("fault", [*FAULTS])
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_no_output_has_a_secret(servers, tmp_path, scheme, fault):
    server = servers(scheme)
    environment = {"RUST_LOG": "trace", "RUST_BACKTRACE": "full", "TMPDIR": str(tmp_path)}
    # another process, whose logs are all on its stderr
    given = [sys.executable, "-X", "dev", "-c", PROGRAM, f"{server.root}/secret-{fault.replace(' ', '-')}"]
    with server.proxy.failing(FAULTS[fault]):
        done = subprocess.run(
            given, env=os.environ | environment, capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 0, done.stderr
    assert "recordspec.errors.StoreError" in done.stderr
    assert_no_secret(done.stdout + done.stderr)


def test_no_file_has_a_secret(store, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    rs.write({"id": [*range(100)]}, SCHEMA, store.url, shards=3)
    rs.write({"id": [*range(100)]}, SCHEMA, store.url, append=True, shards=3)
    for name, data in store.files().items():
        for secret in (SECRET, SESSION, "AKIDOFTHETESTS"):
            assert secret.encode() not in data, name
    assert_no_secret(caplog.text)


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:pass-word@bucket/data",
        "s3://bucket/data?X-Amz-Signature=pass-word",
        "https://user:pass-word@host/a.csv",
        "s3://bucket/data#pass-word",
    ],
)
def test_a_url_with_a_secret_is_refused_without_it(command, tmp_path, url):
    for action in (
        lambda: rs.write({"id": [1]}, SCHEMA, url),
        lambda: rs.read(url, SCHEMA),
        lambda: rs.Manifest.load(url),
    ):
        with pytest.raises(rs.SpecError) as error:
            action()
        assert "pass-word" not in str(error.value)
    for arguments in (["count", url], ["verify", url], ["build", url], ["lint", url], ["infer", url]):
        code, out, err = command(*arguments)
        assert (code, out) == (2, ""), arguments
        assert err.startswith(("FILES: ", "CONFIG: "))
        assert "pass-word" not in err
    config = tmp_path / "config.yaml"
    config.write_text(f"schema: schema.yaml\ndata: '{url}'\nwrite: {{source: {{csv: '{url}'}}}}\n")
    (tmp_path / "schema.yaml").write_text(SCHEMA.dump())
    _, out, err = command("lint", config)
    assert "pass-word" not in out + err
    assert str(Path(config)) in out + err


def test_the_store_is_not_made_of_secrets_in_messages(servers, monkeypatch):
    server = servers("s3")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://user:{SECRET}@127.0.0.1:1")
    monkeypatch.setitem(remote._RETRY, "max_retries", 0)
    with fresh_stores(), pytest.raises(rs.StoreError) as error:
        rs.Manifest.load(f"{server.root}/nothing")
    assert_no_secret(str(error.value))
