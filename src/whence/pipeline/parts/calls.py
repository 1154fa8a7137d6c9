"""Processes that call each other, on connections that stay open, if they know a secret.

What is said is pickled, so the secret is what keeps others out. A machine that is gone without a word is noticed by the system,
which looks after silent connections.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from threading import Lock, Thread
from typing import Any, NamedTuple

_FAILURES = (AuthenticationError, EOFError, OSError)
# Seconds until a silent connection is looked after, between looks, and how many of them without an answer are enough.
_LOOKS = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}


class Address(NamedTuple):
    """Where a process answers."""

    host: str
    port: int
    process: int


class Unreachable(Exception):
    """Who was called does not answer."""


class Office:
    """Answers the calls of who knows the secret, each caller in a thread of its own."""

    def __init__(self, secret: bytes, host: str, answer: Callable[[Any], object]) -> None:
        self._answer = answer
        self._is_open = True
        self._connections: list[Connection[Any, Any]] = []
        self._listener = Listener((host, 0), backlog=64, authkey=secret)
        found: tuple[str, int] = self._listener.address
        self.address = Address(found[0], found[1], os.getpid())
        Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        self._is_open = False
        # Whoever waits for a call notices with the next one.
        with suppress(OSError), socket.create_connection(self.address[:2]):
            pass
        for each in self._connections:
            with suppress(OSError), _socket_of(each) as own:
                own.shutdown(socket.SHUT_RDWR)

    def _listen(self) -> None:
        with self._listener:
            while self._is_open:
                # Who does not know the secret, or leaves, is not answered.
                with suppress(*_FAILURES):
                    connection = self._listener.accept()
                    self._connections.append(connection)
                    Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection[Any, Any]) -> None:
        with suppress(*_FAILURES), connection:
            _set_up(connection)
            while self._is_open:
                request = pickle.loads(connection.recv_bytes())  # noqa: S301 - from who knows the secret
                connection.send_bytes(pickle.dumps(self._answer(request), pickle.HIGHEST_PROTOCOL))
        self._connections.remove(connection)


class Lines:
    """Connections to others, each made when it is first needed."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._lock = Lock()
        self._open: dict[Address, tuple[Lock, Connection[Any, Any]]] = {}

    def call(self, address: Address, request: object) -> Any:
        """The answer. Raises `Unreachable`."""
        try:
            lock, connection = self._to(address)
            with lock:
                connection.send_bytes(pickle.dumps(request, pickle.HIGHEST_PROTOCOL))
                return pickle.loads(connection.recv_bytes())  # noqa: S301 - from who knows the secret
        except _FAILURES as error:
            raise Unreachable(f"does not answer ({type(error).__name__}: {error})") from error

    def call_all(self, requests: Mapping[Address, object]) -> list[Any]:
        """The answers to calls that are made at the same time. Raises `Unreachable`, once all have ended."""
        if not requests:
            return []
        with ThreadPoolExecutor(len(requests)) as pool:
            calls = [pool.submit(self.call, address, request) for address, request in requests.items()]
        return [each.result() for each in calls]

    def close(self) -> None:
        with self._lock:
            for _, connection in self._open.values():
                connection.close()
            self._open.clear()

    def _to(self, address: Address) -> tuple[Lock, Connection[Any, Any]]:
        with self._lock:
            if address not in self._open:
                connection = Client(address[:2], authkey=self._secret)
                _set_up(connection)
                self._open[address] = Lock(), connection
            return self._open[address]


def _set_up(connection: Connection[Any, Any]) -> None:
    with _socket_of(connection) as own:
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # rounds are made of short messages
        own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _LOOKS.items():
            if hasattr(socket, name):
                own.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _socket_of(connection: Connection[Any, Any]) -> socket.socket:
    return socket.socket(fileno=os.dup(connection.fileno()))
