"""The common part of the replayed servers. Each runs on loopback in place of a server that cannot be installed here: it
keeps what the real client sends, and answers in the format of the vendor's documentation."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit

import numpy as np


class Request(NamedTuple):
    method: str
    path: str
    arguments: dict[str, list[str]]
    body: Any


class Refused(Exception):
    """A request that the real server answers with this status and this JSON."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(str(body))
        self.status, self.body = status, body


class Replay(ThreadingHTTPServer):
    """A server on a free port. ``requests`` are those so far."""

    daemon_threads = True
    block_on_close = False
    scheme = "http"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Request] = []
        self.headers = {"Content-Type": "application/json; charset=UTF-8"}
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def answer(self, request: Request) -> tuple[int, Any]:
        """The status and the JSON of the answer."""
        raise NotImplementedError

    def reply(self, request: Request) -> tuple[int, Any]:
        with self._lock:
            self.requests.append(request)
            try:
                return self.answer(request)
            except Refused as refused:
                return refused.status, refused.body
            except Exception as error:
                return 500, {"message": f"the replay itself failed: {error!r}", "code": 2, "details": []}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing when a client disconnects."""


class _Handler(BaseHTTPRequestHandler):
    # One packet per answer. A separate packet for the head would wait for the client's delayed acknowledgement.
    wbufsize = -1
    server: Replay

    def _serve(self) -> None:
        url = urlsplit(self.path)
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        bulk = [json.loads(line) for line in text.splitlines()] if url.path.endswith("_bulk") else None
        body = bulk or (json.loads(text) if text else None)
        status, found = self.server.reply(Request(self.command, url.path, parse_qs(url.query), body))
        data = b"" if found is None else json.dumps(found).encode()
        self.send_response(status)
        # HTTP/1.0, so that no client keeps a connection that belongs to the event loop of another test.
        for name, value in {**self.server.headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _serve

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


AnyReplay = TypeVar("AnyReplay", bound=Replay)


@contextmanager
def serving(replay: AnyReplay, tls: ssl.SSLContext | None = None) -> Iterator[AnyReplay]:
    """The server, which answers in a separate thread until the block ends."""
    if tls is not None:
        replay.socket = tls.wrap_socket(replay.socket, server_side=True)
    thread = threading.Thread(target=replay.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield replay
    finally:
        replay.shutdown()
        thread.join(10)
        replay.server_close()


def as_written(vector: Any) -> list[float]:
    """Each number as a server that stores float32 writes it: the shortest decimal form that identifies it."""
    return [float(str(number)) for number in np.asarray(vector, dtype=np.float32)]


def scores(vectors: Any, query: Any, metric: str) -> Any:
    """The score of each row; a higher score is nearer. ``metric``: "cosine", "inner" or "l2"."""
    rows, wanted = np.asarray(vectors, dtype=np.float64), np.asarray(query, dtype=np.float64)
    match metric:
        case "cosine":
            return rows @ wanted / (np.linalg.norm(rows, axis=1) * np.linalg.norm(wanted) + 1e-300)
        case "inner":
            return rows @ wanted
        case _:
            return -np.sum((rows - wanted) ** 2, axis=1)
