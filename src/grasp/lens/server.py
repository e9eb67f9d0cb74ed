"""The Lens as a small web server on loopback.

The page's files are read once when the server starts, so no request ever names a file on disk. One
thread does all that touches a world or the agent (a renderer belongs to the thread that made it);
reading curves has its own, so that they are drawn while an episode is played.
"""

import asyncio
import json
import secrets
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from grasp.errors import GraspError, UsageError
from grasp.lens.guard import HEADERS, LONGEST_BODY, Guard
from grasp.lens.view import View

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class Lens:
    """A view behind an address that only its page knows."""

    def __init__(self, view: View, port: int = 0):
        self.view = view
        self.socket = _listening(port)
        self.port: int = self.socket.getsockname()[1]
        self.token = secrets.token_urlsafe(24)
        self.url = f"http://127.0.0.1:{self.port}/{self.token}/"
        self._world_thread = ThreadPoolExecutor(1)
        self._curve_thread = ThreadPoolExecutor(1)
        guarded: Any = Guard(self._app(), self.token, self.port)
        self.server = uvicorn.Server(
            uvicorn.Config(
                guarded,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                lifespan="off",
                limit_concurrency=64,
                timeout_graceful_shutdown=2,
            )
        )

    def run(self) -> None:
        """Serve until a signal or `stop`."""
        try:
            self.server.run(sockets=[self.socket])
        finally:
            self.socket.close()
            for thread in (self._world_thread, self._curve_thread):
                thread.shutdown(wait=True, cancel_futures=True)

    def stop(self) -> None:
        self.server.should_exit = True

    def _app(self) -> Starlette:
        view, files = self.view, page_files()

        async def file(request: Request) -> Response:
            name = request.path_params.get("name", "index.html")
            if name not in files:
                return _text(404, f"the page has no file {name!r}")
            kind = KINDS[name.rpartition(".")[2]]
            return Response(files[name], headers=HEADERS | {"content-type": kind})

        def asked(answer: Callable[[], Any], thread: ThreadPoolExecutor) -> Any:
            async def endpoint(request: Request) -> Response:
                return await _answered(answer, thread)

            return endpoint

        def posted(answer: Callable[[Any], Any]) -> Any:
            async def endpoint(request: Request) -> Response:
                body = await _body(request)
                if isinstance(body, Response):
                    return body
                return await _answered(lambda: answer(body), self._world_thread)

            return endpoint

        return Starlette(
            routes=[
                Route("/", file),
                Route("/api/run", asked(view.facts, self._world_thread)),
                Route("/api/training", asked(view.training, self._curve_thread)),
                Route("/api/moment", posted(view.moment), methods=["POST"]),
                Route("/api/compare", posted(view.compare), methods=["POST"]),
                Route("/api/reload", posted(lambda _: view.reload()), methods=["POST"]),
                Route("/{name}", file),
            ]
        )


def page_files() -> dict[str, bytes]:
    """The page, by file name."""
    folder = resources.files("grasp.lens") / "page"
    return {
        entry.name: entry.read_bytes()
        for entry in folder.iterdir()
        if entry.name.rpartition(".")[2] in KINDS
    }


def _listening(port: int) -> socket.socket:
    """A socket on loopback; port 0 takes any that is free."""
    if not 0 <= port < 65536:
        raise UsageError(f"--port is {port}; it must be from 0 (any free one) to 65535")
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
    except OSError as problem:
        listening.close()
        raise UsageError(
            f"--port {port} cannot be used ({problem.strerror}); leave it out for any free port"
        ) from None
    listening.listen(64)
    return listening


async def _answered(answer: Callable[[], Any], thread: ThreadPoolExecutor) -> Response:
    """What a function of the view says, or the sentence of its refusal."""
    try:
        found = await asyncio.get_running_loop().run_in_executor(thread, answer)
    except UsageError as problem:
        return _text(422, str(problem))
    except GraspError as problem:
        return _text(500, str(problem))
    except Exception as problem:  # whatever an environment raises is told, and the Lens goes on
        return _text(500, f"{type(problem).__name__}: {problem}")
    kind = {"content-type": "application/json"}
    return Response(json.dumps(found, allow_nan=False), headers=HEADERS | kind)


async def _body(request: Request) -> Any:
    """The JSON of a request, or a refusal."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return _text(415, "the Lens reads application/json")
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > LONGEST_BODY:
            return _text(413, f"a request has at most {LONGEST_BODY} bytes")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return _text(400, "the request is not JSON")


def _text(status: int, sentence: str) -> Response:
    kind = {"content-type": "text/plain; charset=utf-8"}
    return Response(sentence, status, headers=HEADERS | kind)
