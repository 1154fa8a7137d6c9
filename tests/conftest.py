"""One Spark session for all tests: two cores, few partitions, no web page, nothing left behind."""

import os
import sys
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession
from tests.properties.counting import ran

from whence.backends.spark.session import DAEMON, QUIET

# How long something takes says more about what else the machine does than about the code. `make test` says the same of the
# same code every time; `make test-long` goes where nobody has been.
settings.register_profile("whence", deadline=None, derandomize="WHENCE_EXAMPLES" not in os.environ)
settings.load_profile("whence")


@pytest.fixture(autouse=True)
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whence.cli.progress.PATIENCE", 600.0)


@pytest.fixture(autouse=True, scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> None:
    """How Java runs here and in the processes that tests start.

    A session that lives for a minute and meets a few rows at a time is done before Java's best compiler has warmed up: without
    it, starting Spark costs half. What Spark leaves behind when it is killed is among the files that pytest removes later.
    """
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={tmp_path_factory.mktemp('java')}"]
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(options)


SETTINGS = {
    "spark.python.daemon.module": DAEMON,
    # One session meets the plans of all tests: in Java's default of a gigabyte they may not fit, and it would end there.
    "spark.driver.memory": "3g",
    "spark.driver.extraJavaOptions": QUIET,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]")
    own = {**SETTINGS, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    for key, value in own.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of the gateway to the JVM
        session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[SparkSession]:
    """The session as it is by default: expressions compiled, plans adapted as they run."""
    keys = ("spark.sql.codegen.wholeStage", "spark.sql.adaptive.enabled")
    for key in keys:
        spark.conf.set(key, "true")
    yield spark
    for key in keys:
        spark.conf.set(key, "false")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # of a process among several
        session.config.workeroutput["sequences"] = ran["sequences"]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    ran["sequences"] += getattr(node, "workeroutput", {}).get("sequences", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if ran["sequences"]:
        terminalreporter.write_line(f"{ran['sequences']:,} random sequences of epochs agreed with the reference")
