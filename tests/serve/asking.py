"""Requests to a server, as a program or a page of some site would make them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from whence.serve import Server


class Client:
    """Has the token, unless told otherwise."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        known: bool = True,
    ) -> tuple[int, Mapping[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        given = {"Authorization": f"Bearer {self.server.token}"} if known else {}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            given["Content-Type"] = "application/json"
        connection.request(method, path, data, {**given, **(headers or {})})
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read()
        connection.close()
        return found

    def get(self, path: str, **parameters: object) -> Any:
        query = urlencode(parameters, doseq=True)
        status, _, text = self.send("GET", f"/api/{path}?{query}")
        assert status == 200, text
        return json.loads(text)

    def refused(self, path: str, **parameters: object) -> tuple[int, str]:
        status, _, text = self.send("GET", f"/api/{path}?{urlencode(parameters, doseq=True)}")
        found = json.loads(text)
        return status, str(found.get("error") or found.get("detail"))

    def post(self, updates: object) -> tuple[int, Any]:
        status, _, text = self.send("POST", "/api/updates", body={"updates": updates})
        return status, json.loads(text)

    def events(self, views: str = "", last: str = "") -> Iterator[tuple[str, str, Any]]:
        """Name, identity and data of each."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        headers = {"Authorization": f"Bearer {self.server.token}", **({"Last-Event-ID": last} if last else {})}
        connection.request("GET", f"/api/events?views={views}", headers=headers)
        answer = connection.getresponse()
        fields: dict[str, str] = {}
        try:
            while line := answer.readline().decode():
                name, _, value = line.rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif "event" in fields:
                    yield fields["event"], fields.get("id", ""), json.loads(fields["data"])
                    fields = {}
        finally:
            answer.close()
            connection.close()
