"""Access to the page's server: only with its cookie, from its own page, under its own name.

Every request passes the `Guard` before anything else looks at it. docs/explanation/page.md lists the attacks
that it stops.
"""

import hmac
import ipaddress
import secrets
from collections.abc import Collection, Iterable
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from threadmark_cli.page.answers import refusal

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The files that the page may load: its own and nothing else. No text can become a script, at any place."""

_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

_METHODS = ("GET", "POST")

_NO_COOKIE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Threadmark</title>
<h1>You cannot open this page in this browser yet</h1>
<p>Open the address that <code>threadmark serve</code> printed. It works once, in the browser that opens it first. To
use another browser, stop the command and start it again.
<p>If you have just opened that address, <a href="/">continue to the page</a>.
"""
"""It has a link for visitors who came by one: a strict cookie comes only with clicks on the page itself."""


class Session:
    """The token that lets one browser in, and the cookie by which it is known from then on."""

    def __init__(self, token: str) -> None:
        self._token: str | None = token
        self._secret = secrets.token_urlsafe(32)

    def redeem(self, token: str) -> str | None:
        """Return the secret for the cookie in exchange for the token, None for a wrong or a used one."""
        if self._token is None or not _same(token, self._token):
            return None
        self._token = None
        return self._secret

    def knows(self, secret: str) -> bool:
        """Return whether a cookie is that of this session."""
        return _same(secret, self._secret)


class Guard:
    """Lets through requests of the page itself, and refuses the rest. Adds the headers that bind the browser."""

    def __init__(self, app: ASGIApp, *, session: Session, hosts: Collection[str], origins: Collection[str]) -> None:
        self._app = app
        self._session = session
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have the app answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # a WebSocket: uvicorn refuses one that is not accepted

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self._refusal(scope) or self._app
        await app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        """Return the refusal to answer with, None to let the app answer."""
        headers = Headers(scope=scope)
        if scope["method"] not in _METHODS:
            return refusal(405, f"the server does not support {scope['method']}", {"allow": ", ".join(_METHODS)})
        is_page = scope["path"] == "/" and scope["method"] == "GET"
        if problem := self._foreign(scope["method"], headers, is_page=is_page):
            return refusal(403, problem)
        known = self._is_known(headers)
        if is_page and (token := _token(scope)) is not None:
            return self._entered(token, headers, known=known)
        if known:
            return None
        if is_page:
            return Response(_NO_COOKIE, 401, media_type="text/html")
        return refusal(401, "your browser has no session here: open the address that `threadmark serve` printed")

    def _is_own_host(self, names: list[str]) -> bool:
        """Return whether a request is for this server by name.

        A foreign page whose name was made to mean this machine (DNS rebinding) sends its own name. An
        address of numbers cannot be made to mean anything else.
        """
        if len(names) != 1:
            return False
        host = _host(names[0])
        return host in self._hosts or _is_address(host)

    def _foreign(self, method: str, headers: Headers, *, is_page: bool) -> str | None:
        """Return why a request cannot come from the page itself, None if it can. Anything may link to the page."""
        if not self._is_own_host(headers.getlist("host")):
            return "the server does not use this host name: open the address that it printed"
        if is_page:
            return None
        site = headers.get("sec-fetch-site")
        if site not in (None, "same-origin", "none"):
            return "this request comes from another site: use the page that the server printed"
        origins = headers.getlist("origin")
        if not origins:
            return "a request that changes something needs an Origin" if method == "POST" else None
        own = {f"{scheme}://{headers['host'].lower()}" for scheme in ("http", "https")}
        if len(origins) == 1 and origins[0].lower() in own | self._origins:
            return None
        return "this request comes from another origin: use the page that the server printed"

    def _is_known(self, headers: Headers) -> bool:
        name = self._cookie_name(headers)
        return any(self._session.knows(value) for value in _cookies(headers.getlist("cookie"), name))

    def _entered(self, token: str, headers: Headers, *, known: bool) -> ASGIApp:
        """Answer the first address: with the cookie, and the way to the page without the token in its address."""
        secret = self._session.redeem(token)
        if secret is None and not known:
            return Response(_NO_COOKIE, 401, media_type="text/html")
        answer = RedirectResponse("/", 303)
        if secret is not None:
            answer.set_cookie(
                self._cookie_name(headers),
                secret,
                path="/",
                httponly=True,
                samesite="strict",
                secure=any(origin.startswith("https:") for origin in self._origins),
            )
        return answer

    def _cookie_name(self, headers: Headers) -> str:
        """Return the cookie's name. Servers on other ports of this host have another one: a browser sends them all."""
        port = headers["host"].rpartition(":")[2]
        return f"threadmark-{port}" if port.isdecimal() else "threadmark"


def _same(presented: str, right: str) -> bool:
    """Compare secrets, in a time that does not tell how much of them is right."""
    return hmac.compare_digest(presented.encode("utf-8", "surrogatepass"), right.encode())


def _host(header: str) -> str:
    """Return the name in a Host header, without the port: a forwarded port (ssh -L) may be any."""
    name, colon, port = header.rpartition(":")
    if not colon or not (port.isdecimal() or port == "") or name.endswith(":") or "]" in port:
        name = header
    return name.strip("[]").rstrip(".").lower()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _token(scope: Scope) -> str | None:
    query = scope["query_string"].decode("latin-1")
    return dict(parse_qsl(query, keep_blank_values=True)).get("token")


def _cookies(headers: Iterable[str], name: str) -> Iterable[str]:
    """Yield the values of a cookie."""
    for header in headers:
        for pair in header.split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                yield value
