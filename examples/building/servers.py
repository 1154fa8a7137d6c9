"""The servers that the building needs, each its own process on this machine: a broker, a database, a page, a calendar."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

HOST = "127.0.0.1"


class Missing(Exception):
    """A program that is not installed."""


@contextmanager
def broker() -> Iterator[int]:
    """The port of an MQTT broker."""
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        raise Missing("mosquitto is not installed: tools/ensure_mosquitto.sh does that")
    with TemporaryDirectory(prefix="whence-mqtt-") as folder:
        port = _free_port()
        settings = Path(folder) / "mosquitto.conf"
        settings.write_text(f"listener {port} {HOST}\nallow_anonymous true\nmax_queued_messages 0\n")
        running = subprocess.Popen([program, "-c", str(settings)], stderr=subprocess.DEVNULL)
        try:
            _wait_for(port)
            yield port
        finally:
            running.terminate()
            running.wait(20)


@contextmanager
def database() -> Iterator[str]:
    """The URL of an empty PostgreSQL server, which listens on a socket in a folder of its own."""
    on_path = shutil.which("initdb")
    found = [Path(on_path)] if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        raise Missing("PostgreSQL is not installed: tools/ensure_postgres.sh does that")
    programs = found[-1].resolve().parent
    with TemporaryDirectory(prefix="whence-db-") as name:
        folder, as_user = Path(name), []
        if os.geteuid() == 0:  # it refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            as_user = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
        data = folder / "data"
        _run([*as_user, str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "whence", "--no-sync"])
        control = [*as_user, str(programs / "pg_ctl"), "-D", str(data), "-w"]
        _run([*control, "start", "-l", str(folder / "log"), "-o", f"-k {folder} -c listen_addresses= -c fsync=off"])
        try:
            yield f"postgresql://whence@/postgres?host={folder}"
        finally:
            _run([*control, "stop", "-m", "immediate"])


@contextmanager
def page(content: Callable[[], str]) -> Iterator[str]:
    """The address of a web page with what the content is at the moment."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(content().encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    end = time.monotonic() + 20
    while True:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
