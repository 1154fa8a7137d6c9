from __future__ import annotations

from whence.cli.evaluate import reported_errors
from whence.pipeline.extras import extra


def lsp() -> None:
    """Answer an editor about programs (Language Server Protocol).

    What is wrong, types, definitions, names, completion, layout: on its standard input and output; editors start it themselves.
    """
    with reported_errors(), extra("lsp"):
        from whence.lsp.server import serve  # noqa: PLC0415 - an extra

    serve()
