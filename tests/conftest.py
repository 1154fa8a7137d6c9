import pytest
from hypothesis import settings

# How long something takes says more about what else the machine does than about the code.
settings.register_profile("whence", deadline=None)
settings.load_profile("whence")


@pytest.fixture(autouse=True)
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whence.cli.progress.PATIENCE", 600.0)
