"""Language models that give answers their log-probability: loaded with transformers, or served by an endpoint."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._validation import check_integer, import_library
from ..errors import InvalidInputError, InvalidParameterError, argument_name, quoted

# A forward pass has room for this many tokens for each text of the batch size. A token of an answer counts four times,
# because it takes logits over the vocabulary.
_TOKENS_PER_TEXT, _ANSWER_WEIGHT = 256, 4
# A rough figure for English text, for the size of requests.
_CHARACTERS_PER_TOKEN = 4
TEMPLATE = "{question}\n{answer}"
# The error messages of OpenAI and vLLM, newer vLLM, llama.cpp, SGLang and TGI for a prompt that is too long.
_TOO_LONG = re.compile(
    r"context.?(length|size|window)|maximum (model )?length|too long|tokens.{0,80}must be <=", re.IGNORECASE | re.DOTALL
)


class Item(NamedTuple):
    """One answer, the text before it, and its row in the caller's lists (for messages)."""

    row: int
    context: str
    answer: str


class Scored(NamedTuple):
    """What a model says about one answer of ``tokens`` tokens; ``mean`` is their mean log-probability, at most 0.

    ``cut`` says whether the context was cut at the front, ``greedy`` whether greedy decoding would write this answer
    (None for a served model).
    """

    mean: float
    cut: bool
    tokens: int
    greedy: bool | None = None


class PromptTooLong(InvalidInputError):
    """An endpoint refused a request for the length of a prompt; ``place`` is that of its first item."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place = place


def read_template(template: str, name: str) -> str:
    """The part of a template before its ``{answer}``, with ``{question}`` in it; ``name`` is that of the argument."""
    head = template.removesuffix("{answer}")
    if head == template or head.count("{question}") != 1 or "{answer}" in head:
        raise InvalidParameterError(
            f"{argument_name(name)} must contain {{question}} once and {{answer}} once, at its end; got "
            f"{quoted(template)}"
        )
    return head


class _Text(NamedTuple):
    """An encoded item: the tokens up to the answer's last, the place of its first, and whether the context was cut."""

    ids: list[int]
    first: int
    cut: bool


class LanguageModel:
    """A causal language model that scores answers: loaded with ``transformers``, or served by an endpoint.

    Parameters
    ----------
    model : str, path or loaded causal language model
        A model given by name or folder is loaded in bfloat16 if the processor computes in it (a GPU, or a CPU with
        avx512_bf16 or AMX), else in float32. A loaded model stays as it is: to choose the precision or quantisation,
        load the model yourself. With ``base_url`` the model's name at the endpoint.
    tokenizer : str, path or loaded tokenizer, optional
        By default the tokenizer of the same name as the model.
    device : str or torch.device, optional
        By default a loaded model stays on its device, and a model given by name goes to the GPU if there is one.
    max_length : int >= 2, optional
        The most tokens of a text with its answer; by default the limit of model and tokenizer. A start-of-text token is
        kept when a text is cut at the front.
    base_url : str, optional
        Up to and including ``/v1``: a server with an OpenAI-compatible ``/v1/completions`` that echoes
        log-probabilities, such as vLLM. Chat models and llama.cpp's server do not. None of ``tokenizer``, ``device``
        and ``max_length`` has an effect there.
    api_key : str, optional
        Sent to the server as given. Without it no key is sent, not even that of the environment variable
        OPENAI_API_KEY.
    timeout, max_retries
        Seconds for a request, and how often the ``openai`` client retries after a temporary failure.

    Examples
    --------
    >>> from transformers import ByT5Tokenizer, GPT2Config, GPT2LMHeadModel
    >>> config = GPT2Config(vocab_size=384, n_embd=8, n_layer=1, n_head=1, bos_token_id=1, eos_token_id=1)
    >>> LanguageModel(GPT2LMHeadModel(config), ByT5Tokenizer(), max_length=50).precision
    'float32'
    >>> LanguageModel("google/gemma-3-1b-pt", base_url="http://127.0.0.1:8000/v1").name
    'google/gemma-3-1b-pt'
    """

    limit: int | None = None
    """The most tokens of context and answer together; None if it is not known."""
    precision = ""
    """The number format of the weights, such as "bfloat16"; "" if it is not known."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        device: Any = None,
        max_length: int | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
    ) -> None:
        self.base_url = base_url
        if base_url is not None:
            self._openai = import_library("openai", "openai")
            # Without a key the client would send OPENAI_API_KEY of the environment to any server at base_url.
            key = "none" if api_key is None else api_key
            self._client = self._openai.OpenAI(base_url=base_url, api_key=key, timeout=timeout, max_retries=max_retries)
            self.name, self._where = str(model), f"model {model!r} at {base_url}"
            return
        torch = import_library("torch", "train")
        if isinstance(model, (str, os.PathLike)):
            tokenizer = model if tokenizer is None else tokenizer
            device = device or ("cuda" if torch.cuda.is_available() else "cpu")
            load = import_library("transformers", "train").AutoModelForCausalLM.from_pretrained
            model = load(model, dtype=choose_precision(torch, device))
        if tokenizer is None:
            raise InvalidParameterError("a loaded model needs its tokenizer: pass tokenizer=, loaded or by name")
        if isinstance(tokenizer, (str, os.PathLike)):
            tokenizer = import_library("transformers", "train").AutoTokenizer.from_pretrained(tokenizer)
        self._torch, self._tokenizer = torch, tokenizer
        self._model = model if device is None else model.to(device)
        self.name = str(getattr(model, "name_or_path", "") or "")
        self.limit = _read_limit(model, tokenizer) if max_length is None else check_integer(max_length, "max_length", 2)
        self.precision = str(model.dtype).removeprefix("torch.")

    def count_tokens(self, items: Sequence[Item]) -> list[int]:
        """How many tokens each item takes, up to the last one of the answer; for a served model a quarter of its text.

        Without a tokenizer four characters count as a token.
        """
        if self.base_url is not None:
            return [math.ceil(_length(item) / _CHARACTERS_PER_TOKEN) for item in items]
        return [len(ids) for ids, _, _ in self._encode(items)]

    def score_batches(self, items: Sequence[Item], batch_size: int) -> Iterator[list[tuple[int, Scored]]]:
        """The result of each item with its place in ``items``, one forward pass or request after the other.

        The longest texts come first, so that a lack of memory shows in the first pass. An endpoint that refuses a
        request for its length raises a :class:`PromptTooLong`.
        """
        if self.base_url is not None:
            order = sorted(range(len(items)), key=lambda place: -_length(items[place]))
            for start in range(0, len(order), batch_size):
                batch = order[start : start + batch_size]
                yield list(zip(batch, self._request(batch, [items[place] for place in batch]), strict=True))
            return
        texts = [self._fit(item, *tokens) for item, tokens in zip(items, self._encode(items), strict=True)]
        for batch in _split(texts, batch_size * _TOKENS_PER_TEXT):
            scores = self._read([texts[place] for place in batch])
            for place, scored in zip(batch, scores, strict=True):
                _check_finite(scored.mean, items[place])
            yield list(zip(batch, scores, strict=True))

    # --- loaded with transformers ---------------------------------------------------------------------

    def _read(self, texts: Sequence[_Text]) -> list[Scored]:
        """The results of one forward pass, padded on the right."""
        torch, device = self._torch, self._model.device
        longest = max(len(text.ids) for text in texts)
        inputs = torch.tensor([text.ids + [0] * (longest - len(text.ids)) for text in texts], device=device)
        mask = torch.tensor([[1] * len(text.ids) + [0] * (longest - len(text.ids)) for text in texts], device=device)
        counts = [len(text.ids) - text.first for text in texts]
        rows = [row for row, count in enumerate(counts) for _ in range(count)]
        # The token before a place predicts the token at this place.
        columns = [place - 1 for text in texts for place in range(text.first, len(text.ids))]
        picked = False

        def pick(_: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
            nonlocal picked
            picked = True
            return states[0][rows, columns][None], *states[1:]

        # A row of logits over Gemma's vocabulary takes longer than reading a token, so the output layer
        # gets only the tokens at these places.
        layer = self._model.get_output_embeddings()
        hook = contextlib.nullcontext() if layer is None else layer.register_forward_pre_hook(pick)
        training = self._model.training
        # Dropout would make scores random.
        self._model.eval()
        try:
            with torch.inference_mode(), hook:
                logits = self._model(input_ids=inputs, attention_mask=mask, use_cache=False).logits
        finally:
            self._model.train(training)
        logits = logits[0] if picked else logits[rows, columns]
        return [self._judge(text, part) for text, part in zip(texts, logits.split(counts), strict=True)]

    def _judge(self, text: _Text, logits: Any) -> Scored:
        # Text by text: the log-probabilities of a whole batch over the vocabulary take gigabytes.
        with self._torch.inference_mode():
            logs = self._torch.log_softmax(logits if logits.dtype == self._torch.float64 else logits.float(), dim=-1)
            answer = self._torch.tensor(text.ids[text.first :], device=logs.device)
            mean = logs.gather(1, answer[:, None]).cpu().double().mean()
            greedy = bool((logs.argmax(-1) == answer).all())
        return Scored(float(mean), text.cut, len(answer), greedy)

    def _encode(self, items: Sequence[Item]) -> list[tuple[list[int], int, int]]:
        """For each item: tokens up to the answer's last, the place of its first, and how many special ones lead."""
        if not items:
            return []
        tokenizer = self._tokenizer
        fast = bool(getattr(tokenizer, "is_fast", False))
        full = tokenizer(
            [item.context + item.answer for item in items],
            return_special_tokens_mask=True,
            return_offsets_mapping=fast,
            # _fit shortens texts that are too long; the tokenizer would only log about them.
            verbose=False,
        )
        heads = None if fast else tokenizer([item.context for item in items], verbose=False)["input_ids"]
        encoded = []
        for row, item in enumerate(items):
            ids, special = full["input_ids"][row], full["special_tokens_mask"][row]
            if heads is None:
                ends = [end for _, end in full["offset_mapping"][row]]
                places = [place for place, end in enumerate(ends) if end > len(item.context)]
            else:
                alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(ids, heads[row], strict=False))
                first = sum(1 for _ in alike)
                places = [place for place in range(first, len(ids)) if not special[place]]
            if not places:
                raise InvalidInputError(f"answer of item {item.row}, {quoted(item.answer)}, has no token of its own")
            lead = next((place for place, is_special in enumerate(special) if not is_special), 0)
            encoded.append((ids[: places[-1] + 1], places[0], lead))
        return encoded

    def _fit(self, item: Item, ids: list[int], first: int, lead: int) -> _Text:
        """The text, cut at the front of the context if it is longer than the limit."""
        if first == 0:
            raise _missing_context(item)
        excess = 0 if self.limit is None else len(ids) - self.limit
        if excess <= 0:
            return _Text(ids, first, False)
        # Special tokens at the front (a start-of-text token) stay, and at least one token stays before the answer.
        if lead + excess > first - (lead == 0):
            raise InvalidInputError(
                f"answer of item {item.row} has {len(ids) - first} tokens, but the model takes {self.limit} in all, "
                "one of them before the answer: shorten the answer, or take a model with a longer context"
            )
        return _Text(ids[:lead] + ids[lead + excess :], first - excess, True)

    # --- served by an endpoint ------------------------------------------------------------------------

    def _request(self, places: Sequence[int], items: Sequence[Item]) -> list[Scored]:
        """One result for each item, in the same order, from one request."""
        try:
            answer = self._client.completions.create(
                model=self.name,
                prompt=[item.context + item.answer for item in items],
                echo=True,
                logprobs=1,
                # Some servers refuse max_tokens=0. _read_reply ignores the token that they add.
                max_tokens=1,
                temperature=0,
            )
        except self._openai.OpenAIError as error:
            # Servers differ in status code and message.
            status, code = getattr(error, "status_code", None), getattr(error, "code", None)
            if status in (400, 413, 422) and (code == "context_length_exceeded" or _TOO_LONG.search(str(error))):
                raise PromptTooLong(places[0], f"{self._where} says: {error}") from error
            error.add_note(f"setselect: while {self._where} scored items {', '.join(str(i.row) for i in items)}")
            raise
        # The client does not check what a server sends.
        try:
            replies = sorted(answer.choices, key=lambda reply: reply.index)
            if len(replies) != len(items):
                raise InvalidParameterError(f"{self._where} sent {len(replies)} choices for {len(items)} prompts")
            return [self._read_reply(item, reply) for item, reply in zip(items, replies, strict=True)]
        except (AttributeError, TypeError, IndexError) as error:
            raise InvalidParameterError(
                f"{self._where} sent no completions, but {quoted(answer)}: check the URL"
            ) from error

    def _read_reply(self, item: Item, reply: Any) -> Scored:
        """The score of one answer, from the server's log-probabilities of the echoed prompt."""
        names = ("tokens", "text_offset", "token_logprobs")
        tokens, starts, logs = (getattr(reply.logprobs, name, None) for name in names)
        if not (tokens and starts and logs and len(tokens) == len(starts) == len(logs)):
            raise InvalidParameterError(
                f"{self._where} sent no logprobs with tokens, text_offset and token_logprobs: use a server that "
                "implements /v1/completions in full, such as vLLM (chat-only servers do not), or a loaded model"
            )
        prompt = item.context + item.answer
        # A start-of-text token is not part of the prompt, but some servers count its characters.
        origin = starts[1] if len(starts) > 1 and not prompt.startswith(tokens[0]) else 0
        begin, end = origin + len(item.context), origin + len(prompt)
        ends = [*starts[1:], starts[-1] + len(tokens[-1])]
        count = next((place for place, start in enumerate(starts) if start >= end), len(starts))
        if ends[count - 1] != end:
            raise InvalidParameterError(
                f"{self._where} does not echo the prompt of item {item.row}, or its text_offset does not fit it: the "
                f"prompt has {len(prompt)} characters, its tokens end at {ends[count - 1] - origin}. Use a server with "
                "echo (vLLM; not llama.cpp's), or a loaded model"
            )
        places = [place for place in range(count) if starts[place] >= begin or ends[place] > begin]
        if places[0] == 0 or logs[places[0]] is None:
            raise _missing_context(item)
        return Scored(_check_finite(float(np.mean([logs[place] for place in places])), item), False, len(places))


def _length(item: Item) -> int:
    return len(item.context) + len(item.answer)


def _split(texts: Sequence[_Text], room: int) -> list[list[int]]:
    """Batches of texts, the longest first, that fit into the room of a forward pass; a longer text is alone."""
    batches: list[list[int]] = []
    answers = 0
    for place in sorted(range(len(texts)), key=lambda place: -len(texts[place].ids)):
        ids, first, _ = texts[place]
        answers += len(ids) - first
        padded = (len(batches[-1]) + 1) * len(texts[batches[-1][0]].ids) if batches else room
        if padded + (_ANSWER_WEIGHT - 1) * answers > room:
            batches.append([])
            answers = len(ids) - first
        batches[-1].append(place)
    return batches


def choose_precision(torch: Any, device: Any) -> Any:
    """bfloat16 where the processor computes in it, else float32."""
    kind = torch.device(device).type
    if kind == "cuda":
        has = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        # Older versions of torch do not report this.
        known: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)() if kind == "cpu" else {}
        has = known.get("avx512_bf16") or known.get("amx_bf16")
    return torch.bfloat16 if has else torch.float32


def _check_finite(mean: float, item: Item) -> float:
    if not math.isfinite(mean):
        raise InvalidInputError(
            f"the answer of item {item.row} gets log-probability {mean}: the model's numbers overflow. Load it in "
            "bfloat16 or float32, or leave the item out"
        )
    return mean


def _read_limit(model: Any, tokenizer: Any) -> int | None:
    config = model.config.get_text_config()
    known = (getattr(config, "max_position_embeddings", None), getattr(tokenizer, "model_max_length", None))
    # A tokenizer without a limit reports 1e30.
    return min((length for length in known if isinstance(length, int) and 1 < length < 10**9), default=None)


def _missing_context(item: Item) -> InvalidInputError:
    return InvalidInputError(
        f"the first token of the answer of item {item.row} has nothing before it, so the model gives it no "
        "probability: put some text before {answer} in the template"
    )


@contextlib.contextmanager
def progress_bar(shown: bool, total: int, unit: str, what: str, done: int = 0) -> Iterator[Callable[..., None]]:
    """A function ``advance(count=1, **figures)`` that moves a progress bar (tqdm), with the figures beside it."""
    if not shown:
        yield lambda count=1, **figures: None
        return
    with import_library("tqdm", "train").tqdm(total=total, initial=done, unit=unit, desc=what) as bar:

        def advance(count: int = 1, **figures: str) -> None:
            bar.set_postfix(figures, refresh=False)
            bar.update(count)

        yield advance
