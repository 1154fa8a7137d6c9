import pytest
from tests.properties.counting import ran


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if ran["sequences"]:
        terminalreporter.write_line(f"{ran['sequences']:,} random sequences of epochs agreed with the reference")
