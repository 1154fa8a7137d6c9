"""Who may ask: those who have the token, from pages of this server.

The token comes once in an address, which is answered with a cookie that pages of other sites cannot use, or with each request in
a header. The host that a request names has to be one that the server knows itself by, so that no other name that somebody lets
point here makes a page of theirs one of ours.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 1 << 20
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """`hosts` are the names, with ports, by which the server may be asked."""

    token: str
    hosts: frozenset[str]
    secure: bool
    port: int

    @property
    def cookie(self) -> str:
        """Cookies do not know ports: servers on one host would take each other's."""
        return f"whence-{self.port}"

    def knows(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


class Guard:
    """In front of everything else."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._judged(scope)
        if refusal is not None:
            await refusal(scope, receive, send_guarded)
        else:
            await self.app(scope, receive, send_guarded)

    def _judged(self, scope: Scope) -> Response | None:
        """What is answered instead, if it may not be."""
        headers = Headers(scope=scope)
        method, path = scope["method"], scope["path"]
        if headers.get("host", "").lower() not in self.access.hosts:
            return _refused(421, "this server does not go by that name")
        own = f"{'https' if self.access.secure else 'http'}://{headers['host'].lower()}"
        if headers.get("origin", own).lower() != own or (headers.get("sec-fetch-site") == "cross-site" and path != "/"):
            return _refused(403, "requests from other sites are not answered")
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if path == "/" and method == "GET" and "token" in query:
            return self._let_in(query)
        if not self._is_known(headers):
            return _refused(401, "the token is missing: open the address that whence serve printed")
        if method not in ("GET", "HEAD"):
            if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                return _refused(415, "send application/json")
            if not headers.get("content-length", "").isdecimal() or int(headers["content-length"]) > MAX_BODY:
                return _refused(413, f"send at most {MAX_BODY:,} bytes, and say how many")
        return None

    def _let_in(self, query: dict[str, list[str]]) -> Response:
        if not self.access.knows(query["token"][0]):
            return _refused(401, "this is not the token: open the address that whence serve printed")
        rest = urlencode({name: values[0] for name, values in query.items() if name != "token"})
        response = RedirectResponse(f"/?{rest}" if rest else "/", status_code=303)
        response.set_cookie(
            self.access.cookie, self.access.token, httponly=True, samesite="strict", secure=self.access.secure, path="/"
        )
        return response

    def _is_known(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.access.knows(given.strip()):
            return True
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.access.cookie)
        except CookieError:
            return False
        return found is not None and self.access.knows(found.value)


def _refused(status: int, reason: str) -> Response:
    return JSONResponse({"error": reason}, status_code=status)
