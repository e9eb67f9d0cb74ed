"""Who may talk to the Lens: the page that was opened with its address, and nobody else.

Any web page in a browser can send requests to a server on loopback. So the address begins with a
random token (`/TOKEN/...`), which relative links carry along; the host must be ours, against names
that were bound to 127.0.0.1; and a request that another site's page sent is refused, token or not.
"""

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LONGEST_BODY = 64 * 1024  # bytes
HEADERS = {
    # The page runs its own files and asks its own server, and no page can hold it in a frame.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Passes on what the page itself asks, with the token taken off the path."""

    def __init__(self, app: App, token: str, port: int):
        self.app = app
        self.token = token.encode()
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no WebSocket is spoken here
        refusal = self.refusal(scope)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        inner = dict(scope)
        inner["path"] = "/" + scope["path"].split("/", 2)[2]
        inner["raw_path"] = inner["path"].encode()
        await self.app(inner, receive, send)

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and sentence for a request that is not the page's own, or None."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        host = headers.get("host", [])
        if len(host) != 1 or host[0].lower() not in self.hosts:
            return 403, "this Lens answers only under the address that it printed"
        if any(origin != f"http://{host[0].lower()}" for origin in headers.get("origin", [])):
            return 403, "requests from another origin are refused"
        if any(site not in ("same-origin", "none") for site in headers.get("sec-fetch-site", [])):
            return 403, "requests from another site are refused; paste the address into the browser"
        parts = scope["path"].split("/", 2)
        given = parts[1].encode("utf-8", "surrogateescape") if len(parts) == 3 else b""
        if not secrets.compare_digest(given, self.token):
            return 403, "the token is missing or wrong; open the address that `grasp lens` printed"
        raw = scope.get("raw_path", b"")
        if b"%" in raw or b"\\" in raw or ".." in parts[2] or "//" in scope["path"]:
            return 400, "a path holds plain names only"
        return None


async def _answer(send: Send, status: int, sentence: str) -> None:
    kinds = HEADERS | {"content-type": "text/plain; charset=utf-8"}
    headers = [(name.encode(), value.encode()) for name, value in kinds.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": sentence.encode()})
