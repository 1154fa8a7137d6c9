import pytest

from whence.backends.local.compiling import compile_all


@pytest.fixture(autouse=True, scope="session")
def compiled_loops() -> None:
    """Commands that have to compile say so, which the examples do not show."""
    list(compile_all())
