"""`recordspec doctor` (`cli.doctor`): what it lists, and that a probe sees what is missing or broken."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from types import SimpleNamespace

import PIL
import pytest
import tensorflow as tf

from recordspec.cli.probes import Finding, examine, find
from recordspec.wire import native

SOUNDS = "decoding of flac, mp3 and ogg by TensorFlow"
IMAGES_WRITTEN, SOUNDS_WRITTEN = "encoding of images", "encoding of audio"
FRAMEWORKS = ("training on jax", "training on pytorch")
CAPABILITIES = [
    *("python", "codec", "checksums", "tensorflow", SOUNDS, IMAGES_WRITTEN, SOUNDS_WRITTEN),
    *("csv and parquet files", "pandas frames", "polars frames", "object stores", *FRAMEWORKS),
]
SOMETIMES = [SOUNDS, *FRAMEWORKS, *(["codec"] if native.missing() else [])]
ALWAYS = [name for name in CAPABILITIES if name not in SOMETIMES]

TENSORFLOW = f"TensorFlow {tf.__version__}"
IO = "pip install 'recordspec[io]', which brings TensorFlow 2.16 (Python 3.12 or older)"
STORE_AS_WAV = f"store it as wav or raw, or {IO}"

with_tensorflow_io = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow_io") is None or not tf.__version__.startswith("2.16."),
    reason="needs tensorflow-io and the TensorFlow that it was built for",
)


def findings() -> dict[str, Finding]:
    return {finding.capability: finding for finding in examine()}


@pytest.fixture
def hide(monkeypatch):
    """Makes a package impossible to import; returns how that is told."""

    def hidden(package: str) -> str:
        monkeypatch.setitem(sys.modules, package, None)
        return f"ModuleNotFoundError: import of {package} halted; None in sys.modules"

    return hidden


def test_every_capability_is_named_once():
    assert [finding.capability for finding in examine()] == CAPABILITIES


def test_advice_stands_only_where_something_does_not_work():
    for finding in examine():
        assert (finding.advice == "") == finding.works, finding


def test_what_every_installation_for_tests_has_works():
    found = findings()
    assert [name for name in ALWAYS if not found[name].works] == []
    assert found["python"].found == "Python {}.{}.{}".format(*sys.version_info[:3])
    assert found["tensorflow"].found == TENSORFLOW
    assert found[IMAGES_WRITTEN].found == f"Pillow {PIL.__version__}"
    soundfile = importlib.metadata.version("soundfile")
    assert found[SOUNDS_WRITTEN].found.startswith(f"soundfile {soundfile}, libsndfile 1.")
    assert found["object stores"].found == f"obstore {importlib.metadata.version('obstore')}"


def test_the_reference_codec_is_told_with_its_reason(monkeypatch):
    monkeypatch.setattr(native, "missing", lambda: "it was not compiled")
    found = findings()["codec"]
    assert (found.works, found.found) == (False, "the reference codec, which is slow: it was not compiled")
    assert found.advice == "install a C++ compiler, then pip install recordspec again"


@with_tensorflow_io
def test_tensorflow_io_reads_what_tensorflow_cannot():
    assert findings()[SOUNDS] == Finding(SOUNDS, True, "tensorflow-io 0.37.1")


def test_without_tensorflow_io_some_formats_cannot_be_read(hide):
    told = hide("tensorflow_io").removeprefix("ModuleNotFoundError: ")
    found = findings()
    assert found[SOUNDS] == Finding(SOUNDS, False, told, STORE_AS_WAV)
    assert [name for name in ALWAYS if not found[name].works] == []


def test_tensorflow_io_that_only_imports_does_not_count(monkeypatch):
    def refuse(*_, **__):
        raise NotImplementedError("unable to open file: libtensorflow_io.so")

    class Ops:
        def __getattr__(self, name):
            return refuse

    monkeypatch.setitem(sys.modules, "tensorflow_io", SimpleNamespace(audio=Ops(), image=Ops()))
    version = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "0.37.1" if name == "tensorflow-io" else version(name)
    )
    told = f"tensorflow-io 0.37.1, which does not load with {TENSORFLOW}"
    assert findings()[SOUNDS] == Finding(SOUNDS, False, told, STORE_AS_WAV)


@pytest.mark.parametrize(
    ("package", "names", "advice"),
    [
        ("PIL", [IMAGES_WRITTEN], ["pip install 'pillow>=10.2'"]),
        ("soundfile", [SOUNDS_WRITTEN], ["pip install 'recordspec[audio]'"]),
        (
            "pyarrow",
            ["csv and parquet files", "polars frames"],
            ["pip install 'pyarrow<26'", "pip install 'recordspec[frames]'"],
        ),
        ("pandas", ["pandas frames"], ["pip install 'recordspec[frames]'"]),
        ("polars", ["polars frames"], ["pip install 'recordspec[frames]'"]),
        ("crc32c", ["checksums"], ["pip install crc32c"]),
        ("obstore", ["object stores"], ["pip install 'recordspec[remote]'"]),
    ],
)
def test_a_missing_package_is_told_in_its_rows_and_no_others(hide, package, names, advice):
    told = hide(package)
    found = findings()
    for name, how in zip(names, advice, strict=True):
        assert (found[name].works, found[name].advice) == (False, how)
        assert name == "polars frames" or found[name] == Finding(name, False, told, how)
    assert [name for name in ALWAYS if not found[name].works] == [
        name for name in CAPABILITIES if name in names
    ]


@pytest.mark.parametrize("package", ["tensorflow", "numpy"])
def test_without_what_recordspec_itself_needs_there_are_still_all_rows(package):
    code = f"import sys; sys.modules[{package!r}] = None; sys.argv[1:] = ['doctor', '--json']\nfrom recordspec.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    rows = {row["capability"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert (done.returncode, done.stderr) == (0, "")
    assert list(rows) == CAPABILITIES
    assert rows["tensorflow"] == {
        "capability": "tensorflow",
        "works": False,
        "found": f"import of {package} halted; None in sys.modules",
        "advice": "pip install 'recordspec[tensorflow]'",
    }
    assert rows["checksums"]["works"]


def test_what_a_probe_raises_is_told_in_one_line():
    def broken() -> str:
        raise OSError("the first line " + "x" * 100 + "\nthe second")

    def silent() -> str:
        raise ValueError

    assert find("a", broken, "do") == Finding("a", False, f"OSError: the first line {'x' * 65}", "do")
    assert find("c", silent, "do") == Finding("c", False, "ValueError: ", "do")
    assert find("d", lambda: "here", "do") == Finding("d", True, "here", "")


def test_the_command_prints_one_json_line_a_row_and_nothing_else():
    done = subprocess.run([sys.executable, "-m", "recordspec", "doctor"], capture_output=True, text=True)
    rows = list(map(json.loads, done.stdout.splitlines()))
    assert [row["capability"] for row in rows] == CAPABILITIES
    assert {tuple(row) for row in rows} == {("capability", "works", "found", "advice")}
    assert (done.returncode, done.stderr) == (0, "")  # TensorFlow keeps its log to itself
    found = {row["capability"]: row for row in rows}
    assert found["tensorflow"]["works"]
    assert found["checksums"]["works"]
    assert found[IMAGES_WRITTEN]["works"]
    flac = found[SOUNDS]
    assert flac["works"] or "recordspec[io]" in flac["advice"]
