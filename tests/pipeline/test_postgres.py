"""Connections: what is said of a URL never includes its password."""

from __future__ import annotations

import pytest

from whence.pipeline.extras import MissingExtra, extra
from whence.pipeline.postgres import PostgresError, connect

PASSWORD = "s3cr/et@wo:rd"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql:/user:{PASSWORD}@localhost/db",
        f"postgres//user:{PASSWORD}@localhost/db",
        f"postgresql://user:{PASSWORD}@localhost/db",
        f"postgresql://user:{PASSWORD}@localhost:port/db",
        f"postgresql://user:{PASSWORD}@/db?host=/nowhere",
        f"postgresql://user:{PASSWORD}",
        f"postgresql://user:{PASSWORD}@localhost/db?sslmode=often",
        f"host=localhost password={PASSWORD} wo rd",
        f"host=/nowhere password='{PASSWORD}",
        f"host=/nowhere password='{PASSWORD}'",
        PASSWORD,
    ],
)
def test_a_bad_url_does_not_show_the_password(url: str) -> None:
    with pytest.raises(PostgresError) as caught:
        connect(url)
    shown = str(caught.value)
    assert not any(part in shown for part in ("s3cr", "et@", "wo:rd", "wo rd", '"et', '"rd', "wo@"))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "hint: write postgresql://" in shown


def test_the_reason_is_told_where_it_is_harmless() -> None:
    with pytest.raises(PostgresError, match="nowhere"):
        connect("postgresql:///db?host=/nowhere")


def test_a_missing_package_is_told_with_the_command_that_installs_it() -> None:
    with (
        pytest.raises(MissingExtra, match=r"^no_such_package is not installed: pip install 'whence\[delta\]'$"),
        extra("delta"),
    ):
        import no_such_package  # noqa: F401, PLC0415
