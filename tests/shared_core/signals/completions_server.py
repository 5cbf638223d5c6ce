"""An HTTP server that answers POST /v1/completions with a local model, in OpenAI's format."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch


class Completions:
    """What the server does wrong on purpose, and the requests that it got."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.requests: list[dict[str, Any]] = []
        self.authorization: list[str | None] = []
        self.failures = 0
        self.echoes = True
        self.tells_best = False
        self.has_logprobs = True
        self.start_token = ""
        self.shuffles = False
        self.drift = 0
        self.limit: int | None = None
        self.status, self.words = 400, "This model's maximum context length is exceeded"

    def refuses(self, request: dict[str, Any]) -> bool:
        counts = [len(self.tokenizer(prompt)["input_ids"]) for prompt in request["prompt"]]
        return self.limit is not None and max(counts) > self.limit

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        choices = [self._choice(index, prompt, request) for index, prompt in enumerate(request["prompt"])]
        return {
            "id": "cmpl-0",
            "object": "text_completion",
            "created": 0,
            "model": request["model"],
            "choices": choices[::-1] if self.shuffles else choices,
        }

    def _choice(self, index: int, prompt: str, request: dict[str, Any]) -> dict[str, Any]:
        encoded = self.tokenizer(prompt, return_offsets_mapping=True)
        ids, starts = encoded["input_ids"], [start for start, _ in encoded["offset_mapping"]]
        with torch.no_grad():
            logs = torch.log_softmax(self.model(torch.tensor([ids])).logits[0].double(), dim=-1)
        made = int(logs[-1].argmax())
        # As with OpenAI and vLLM, the first token has no log-probability.
        values = [None, *(float(logs[place, token]) for place, token in enumerate([*ids[1:], made]))]
        # The bytes of one character share its offset, and all but the last have no text.
        starts.append(len(prompt))
        tokens = [prompt[a:b] for a, b in itertools.pairwise(starts)] + [self.tokenizer.decode([made])]
        starts = [start + self.drift * (place > 3) for place, start in enumerate(starts)]
        if self.start_token:
            tokens.insert(0, self.start_token)
            starts = [0, *(start + len(self.start_token) for start in starts)]
            values.insert(0, None)
            values[1] = -1.0
        text = prompt + tokens[-1]
        top = [None, *({str(int(row.argmax())): float(row.max())} for row in logs)]
        if not (self.echoes and request["echo"]):
            tokens, starts, values, text = tokens[-1:], [0], values[-1:], tokens[-1]
        logprobs = {
            "tokens": tokens,
            "text_offset": starts,
            "token_logprobs": values,
            "top_logprobs": top if self.tells_best else None,
        }
        return {
            "index": index,
            "text": text,
            "finish_reason": "length",
            "logprobs": logprobs if self.has_logprobs and request["logprobs"] else None,
        }


@contextlib.contextmanager
def serving(completions: Completions) -> Iterator[str]:
    """The base URL of a server on this machine, up while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            completions.requests.append(request)
            completions.authorization.append(self.headers["Authorization"])
            failing = completions.failures > 0
            completions.failures -= failing
            found = self.path == "/v1/completions"
            status = (
                503 if failing else 404 if not found else completions.status if completions.refuses(request) else 200
            )
            words = "busy" if failing or not found else completions.words
            body = json.dumps(completions.answer(request) if status == 200 else {"error": {"message": words}})
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
