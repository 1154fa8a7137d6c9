"""A server in a thread of its own, with its address and its token."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Self

import uvicorn

from whence.serve.app import Served, make_app
from whence.serve.guard import Access

HOST = "127.0.0.1"
PORT = 8477
_SHORTEST = 16


class NotSafe(ValueError):
    """Others could listen, or could guess: what has to be given is said."""


@dataclass(frozen=True)
class Bind:
    """Where to listen. Elsewhere than on the own machine it takes TLS files and a token of the user's."""

    host: str = HOST
    port: int = PORT
    token: str = ""
    certificate: Path | None = None
    key: Path | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise NotSafe("a certificate and its key go together (--tls-cert, --tls-key)")
        if self.token and len(self.token) < _SHORTEST:
            raise NotSafe(f"a token has {_SHORTEST} characters at least")
        if not self.is_local and not (self.certificate and self.token):
            raise NotSafe(
                f"{self.host} can be reached from other machines: give a token of your own (--token-file) and TLS files"
                " (--tls-cert, --tls-key), or stay on 127.0.0.1"
            )

    @property
    def is_local(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


class Server:
    """Serves until it is closed. `address` is what to open in a browser."""

    def __init__(self, served: Served, bind: Bind | None = None) -> None:
        self.served = served
        self.bind = bind or Bind()
        self._socket = _listen(self.bind)
        self.port: int = self._socket.getsockname()[1]
        self.token = self.bind.token or secrets.token_urlsafe(24)
        hosts = {f"{name}:{self.port}" for name in self._names()}
        access = Access(self.token, frozenset(hosts), self.bind.certificate is not None, self.port)
        config = uvicorn.Config(
            make_app(served, access),
            log_level="critical",
            access_log=False,
            server_header=False,
            ssl_certfile=self.bind.certificate,
            ssl_keyfile=self.bind.key,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._server.run, args=([self._socket],), name="whence-serve", daemon=True)

    @property
    def url(self) -> str:
        host = f"[{self.bind.host}]" if ":" in self.bind.host else self.bind.host
        return f"{'https' if self.bind.certificate else 'http'}://{host}:{self.port}/"

    @property
    def address(self) -> str:
        return f"{self.url}?token={self.token}"

    def _names(self) -> list[str]:
        own = [f"[{self.bind.host}]" if ":" in self.bind.host else self.bind.host.lower(), *self.bind.names]
        return [*own, "localhost", "127.0.0.1"] if self.bind.is_local else own

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        self.served.events.close()
        self._server.should_exit = True
        self._thread.join(5)
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _listen(bind: Bind) -> socket.socket:
    """Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(bind.host, bind.port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(address)
    listening.listen(128)
    return listening
