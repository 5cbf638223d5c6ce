"""The common part of the replayed servers. Each runs on loopback in place of a server that cannot be installed here: it
keeps what the real client sends, and answers in the format of the vendor's documentation."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import numpy as np


class Request(NamedTuple):
    method: str
    path: str
    arguments: dict[str, list[str]]
    body: Any


class Replay(ThreadingHTTPServer):
    """A server on a free port. ``requests`` are those so far."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def answer(self, request: Request) -> tuple[int, Any]:
        """The status and the JSON of the answer."""
        raise NotImplementedError

    def reply(self, request: Request) -> tuple[int, Any]:
        with self._lock:
            self.requests.append(request)
            try:
                return self.answer(request)
            except Exception as error:
                return 500, {"message": f"the replay itself failed: {error!r}", "code": 2, "details": []}

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing when a client disconnects."""

    def hang_up(self) -> None:
        # Handlers wait on connections that clients keep alive.
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # One packet per answer. A separate packet for the head would wait for the client's delayed acknowledgement.
    wbufsize = -1
    server: Replay

    def _serve(self) -> None:
        url = urlsplit(self.path)
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, found = self.server.reply(
            Request(self.command, url.path, parse_qs(url.query), json.loads(text) if text else None)
        )
        data = b"" if found is None else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = _serve

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextmanager
def serving(replay: Replay, tls: ssl.SSLContext | None = None) -> Iterator[None]:
    """The server, which answers in a separate thread until the block ends."""
    if tls is not None:
        replay.socket = tls.wrap_socket(replay.socket, server_side=True)
    thread = threading.Thread(target=replay.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        replay.shutdown()
        thread.join(10)
        replay.hang_up()
        replay.server_close()


def as_written(vector: Any) -> list[float]:
    """Each number as a server that stores float32 writes it: the shortest decimal form that identifies it."""
    return [float(str(number)) for number in np.asarray(vector, dtype=np.float32)]


def scores(vectors: Any, query: Any, metric: str) -> Any:
    """The score of each row; a higher score is nearer."""
    rows, wanted = np.asarray(vectors, dtype=np.float64), np.asarray(query, dtype=np.float64)
    match metric:
        case "cosine":
            return rows @ wanted / (np.linalg.norm(rows, axis=1) * np.linalg.norm(wanted) + 1e-300)
        case "dotproduct":
            return rows @ wanted
        case _:
            return -np.sum((rows - wanted) ** 2, axis=1)
