"""One Spark session for all tests, with two executors in separate JVMs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from recordspec.store.manifest import Manifest

sys.path.append(str(Path(__file__).parents[1] / "remote"))
from servers import NoServerError, Server, start


def java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin" if home else None)


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    """Servers of object stores by scheme, or the reason why there is none. The environment of executors names
    them."""
    found: dict[str, Server | NoServerError] = {}
    for scheme in ("s3", "gs"):
        try:
            found[scheme] = start(scheme, tmp_path_factory.mktemp(scheme))
            os.environ.update(found[scheme].environment)
        except NoServerError as error:
            found[scheme] = error
    yield found
    for one in found.values():
        if isinstance(one, Server):
            one.proxy.close()
            one.close()


@pytest.fixture(params=["s3", pytest.param("gs", marks=pytest.mark.newest)])
def store(request, stores) -> str:
    """The URL of a bucket."""
    found = stores[request.param]
    if isinstance(found, NoServerError):
        pytest.skip(str(found))
    return found.root


@pytest.fixture(scope="session")
def session(tmp_path_factory, stores):
    if java() is None:
        pytest.skip("Spark needs Java: there is no `java`")
    pyspark_sql = pytest.importorskip("pyspark.sql")
    folder = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # a JVM that lives for minutes: half of its time went into compiling hot code twice
    os.environ["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    builder = pyspark_sql.SparkSession.builder.master("local-cluster[2,1,1024]").appName("recordspec")
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.deploy.maxExecutorRetries": -1,  # tests kill executors on purpose
        "spark.local.dir": folder,
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": 2,
        "spark.log.level": "ERROR",
    }
    for name, value in options.items():
        builder = builder.config(name, str(value))
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    work = Path(os.environ.get("SPARK_HOME") or Path(sys.modules["pyspark"].__file__).parent, "work")
    application = made.sparkContext.applicationId
    yield made
    made.stop()
    shutil.rmtree(work / application, ignore_errors=True)


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, with its content."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def same():
    """Compares two datasets byte for byte. Returns their manifest."""

    def compare(made: Path, expected: Path) -> Manifest:
        assert list(files_of(made)) == list(files_of(expected))
        assert files_of(made) == files_of(expected)
        assert not [path for path in made.parent.iterdir() if path.name.startswith(".")]
        return Manifest.load(made)

    return compare
