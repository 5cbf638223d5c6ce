"""A server that answers POST /v1/completions with a local model, and log-probabilities token by token."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch


def oracle(model: Any, tokenizer: Any, head: str, answer: str, keep: int | None = None) -> tuple[float, int, int]:
    """The sum of the log-probabilities of the answer's tokens, their number, and that of all tokens.

    The answer has the tokens that end after the head, counted in bytes. ``keep`` is the length to which the text is cut
    at its front, after a start token.
    """
    if tokenizer.is_fast:
        ids = tokenizer(head + answer)["input_ids"]
        lead = int(ids[0] == tokenizer.bos_token_id)
        sizes = [0] * lead + [len(token) for token in tokenizer.convert_ids_to_tokens(ids[lead:])]
    else:
        # ByT5: one token for each byte; the end token that it adds belongs to no answer.
        ids, lead, sizes = [byte + 3 for byte in (head + answer).encode()], 0, [1] * len((head + answer).encode())
    first = next(i for i, end in enumerate(itertools.accumulate(sizes)) if end > len(head.encode()))
    if keep is not None:
        excess = max(len(ids) - keep, 0)
        ids, first = ids[:lead] + ids[lead + excess :], first - excess
    total = 0.0
    with torch.no_grad():
        for i in range(first, len(ids)):
            logits = model(torch.tensor([ids[:i]])).logits[0, -1].double()
            total += float(logits[ids[i]] - torch.logsumexp(logits, 0))
    return total, len(ids) - first, len(ids)


class Completions:
    """What the server does wrong on purpose, and the requests that it got."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.requests: list[dict[str, Any]] = []
        self.authorization: list[str | None] = []
        self.failures = 0
        self.echoes = True
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
        if not (self.echoes and request["echo"]):
            tokens, starts, values, text = tokens[-1:], [0], values[-1:], tokens[-1]
        logprobs = {"tokens": tokens, "text_offset": starts, "token_logprobs": values}
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
