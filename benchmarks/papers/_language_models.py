"""Causal language models from the command line: the log-probability of answers, and answers of their own."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.models import GEMMA, GEMMA_SHA256, gemma_folder, is_installed
from benchmarks.papers._common import CACHE
from shared_core._libraries import import_library
from shared_core.signals.language_models import (
    AnswerModel,
    EndpointModel,
    Item,
    Scored,
    TransformersModel,
    choose_precision,
)
from shared_core.signals.perplexity import LogPerplexityQuality

BATCH = 16
TIMEOUT, RETRIES = 120.0, 4
Complete = Callable[[list[str], int], list[str]]


@dataclass(frozen=True)
class LanguageModel:
    """``name`` and ``described`` are for people, ``key`` identifies its scores in a file."""

    name: str
    described: str
    key: str
    answers: AnswerModel
    batch_complete: Complete
    batch_size: int = BATCH

    def quality(self, template: str) -> LogPerplexityQuality:
        """The scorer of the mean log-probability of an answer's tokens (RAGSys, section 3.3.3)."""
        return LogPerplexityQuality(self.answers, template=template, batch_size=self.batch_size, model_id=self.key)

    def totals(self, prompts: Sequence[str], answers: Sequence[str], resume: Path | None = None) -> np.ndarray:
        """log p(answer | prompt), summed over the answer's tokens; the answer directly follows the prompt."""
        model_id = f"total of {self.key}"
        scorer = LogPerplexityQuality(
            _Totals(self.answers), template="{question}{answer}", batch_size=self.batch_size, model_id=model_id
        )
        return scorer.score(prompts, answers, progress=True, resume=resume)

    def complete(self, prompts: Sequence[str], tokens: int, resume: Path | None = None) -> list[str]:
        """The greedy continuations, up to the end of the line or ``tokens``; equal prompts are asked once.

        ``resume`` is a file that keeps the answers, from which an interrupted run resumes.
        """
        resume = resume or Path(os.devnull)
        keys = {prompt: hashlib.sha256(f"{tokens} {prompt}".encode()).hexdigest() for prompt in prompts}
        found = _kept_answers(resume)
        # Prompts of similar length share a batch, since each batch is padded to its longest prompt.
        missing = sorted((prompt for prompt in keys if keys[prompt] not in found), key=lambda prompt: -len(prompt))
        bar = import_library("tqdm", "train").tqdm(
            total=sum(map(len, missing)), desc="Answers", unit=" characters", unit_scale=True, disable=not missing
        )
        with bar, resume.open("a", encoding="utf-8") as file:
            for start in range(0, len(missing), self.batch_size):
                batch = missing[start : start + self.batch_size]
                for prompt, text in zip(batch, self.batch_complete(batch, tokens), strict=True):
                    found[keys[prompt]] = first_line(text)
                    # The line break comes first: it ends a line that an interrupted run left unfinished.
                    file.write("\n" + json.dumps([keys[prompt], first_line(text)]))
                file.flush()
                bar.update(sum(map(len, batch)))
        return [found[keys[prompt]] for prompt in prompts]


def _kept_answers(file: Path) -> dict[str, str]:
    """The answers in a file by the keys of their prompts, without unfinished lines."""
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        with suppress(ValueError):
            key, answer = json.loads(line)
            found[key] = answer
    return found


class _Totals:
    """The same model with an answer's total in place of its mean, for the measures of RAGSys 3.2."""

    def __init__(self, model: AnswerModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def limit(self) -> int | None:
        return self._model.limit

    @property
    def precision(self) -> str:
        return self._model.precision

    def score_batches(self, items: Sequence[Item], batch_size: int) -> Iterator[list[tuple[int, Scored]]]:
        for batch in self._model.score_batches(items, batch_size):
            yield [(place, found._replace(mean=found.mean * found.tokens)) for place, found in batch]


def plain(question: str, answer: str = "") -> str:
    """One example in a prompt of the tables; without an answer, the end of a prompt.

    >>> plain("Capital of France?", "Paris")
    'Q: Capital of France?\\nA: Paris'
    """
    return f"Q: {question}\nA: {answer}".rstrip(" ")


def first_line(text: str) -> str:
    """The first non-blank line, without white space at its ends; "" if there is none.

    >>> first_line(" Paris\\nQ: What")
    'Paris'
    """
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def add_arguments(parser: ArgumentParser) -> None:
    """--model, --endpoint, --api-key-variable, --dtype, --batch-size, --questions and --write."""
    parser.add_argument(
        "--model",
        action="append",
        metavar="NAME",
        help="a causal language model: a transformers name or folder, or the name at --endpoint; may be given more "
        f"than once. Default: {GEMMA}, which make models installs",
    )
    parser.add_argument("--endpoint", metavar="URL", help="an OpenAI-compatible server, up to and with /v1")
    parser.add_argument("--api-key-variable", metavar="NAME", help="environment variable with the key of the endpoint")
    parser.add_argument(
        "--dtype",
        choices=("bfloat16", "float32"),
        help="precision of a local model's weights. Default: bfloat16 where the processor has it",
    )
    parser.add_argument("--batch-size", type=int, default=BATCH, metavar="N", help=f"answers in one batch ({BATCH})")
    parser.add_argument("--questions", type=int, metavar="N", help="ask only N random questions; the seed is fixed")
    parser.add_argument("--write", action="store_true", help="write the result under benchmarks/results/papers/")


def models(options: Namespace) -> Iterator[LanguageModel]:
    """The models of the command line, loaded one at a time; without --model Gemma, which comes from packages.

    Without --model and without these packages the script ends with exit code 0.
    """
    if options.endpoint or all(Path(name).is_dir() for name in options.model or ()):
        # Hugging Face libraries read this when they are imported. No model comes from a hub.
        os.environ["HF_HUB_OFFLINE"] = "1"
    if options.endpoint and not options.model:
        sys.exit("--endpoint needs --model, the name of the model at the endpoint")
    if options.endpoint:
        variable = options.api_key_variable
        if variable and variable not in os.environ:
            sys.exit(f"--api-key-variable: {variable} is not set")
        key = os.environ[variable] if variable else None
        yield from (at_endpoint(options.endpoint, name, key, options.batch_size) for name in options.model)
    elif options.model:
        yield from (from_transformers(name, options.batch_size, options.dtype) for name in options.model)
    elif is_installed(GEMMA):
        yield from_transformers(gemma_folder(), options.batch_size, options.dtype, GEMMA, f"sha256 {GEMMA_SHA256}")
    else:
        print(f"skipped: {GEMMA} is not installed; run make models, or name a model with --model", file=sys.stderr)
        sys.exit(0)


def from_transformers(
    folder: str | Path, batch_size: int = BATCH, dtype: str | None = None, name: str | None = None, weights: str = ""
) -> LanguageModel:
    """A model of Hugging Face ``transformers``, on the GPU if there is one.

    ``dtype`` is a precision of torch by name, by default the one that :class:`TransformersModel` takes. ``weights``
    identifies the weights, by default the folder and the time of its last change.
    """
    torch, transformers = import_library("torch", "train"), import_library("transformers", "train")
    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, padding_side="left", truncation_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    device = "cuda" if torch.cuda.is_available() else "cpu"
    precision = getattr(torch, dtype) if dtype else choose_precision(torch, device)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=precision).to(device).eval()
    answers = TransformersModel(model, tokenizer)

    # transformers' own stop_strings reads the whole vocabulary again for each batch.
    @cache
    def ends() -> list[int]:
        texts = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
        return [tokenizer.eos_token_id, *(token for token, text in enumerate(texts) if "\n" in text)]

    def complete(prompts: list[str], tokens: int) -> list[str]:
        longest = None if answers.limit is None else answers.limit - tokens
        encoded = tokenizer(
            prompts, return_tensors="pt", padding=True, truncation=longest is not None, max_length=longest
        ).to(model.device)
        with torch.inference_mode():
            written = model.generate(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                max_new_tokens=tokens,
                do_sample=False,
                num_beams=1,
                # A model's own generation settings may set these; greedy decoding would warn about them.
                temperature=None,
                top_p=None,
                top_k=None,
                pad_token_id=tokenizer.pad_token_id,
                eos_token_id=ends(),
            )
        width = encoded["input_ids"].shape[1]
        return tokenizer.batch_decode(written[:, width:], skip_special_tokens=True)

    precise = answers.precision
    name, weights = name or str(folder), weights or _weights(folder)
    about = f"{name}, weights in {precise}" + (f", of the model with {weights}." if "sha256" in weights else ".")
    return LanguageModel(name, about, f"{name}, {weights}, {precise}", answers, complete, batch_size)


def at_endpoint(url: str, name: str, key: str | None, batch_size: int = BATCH) -> LanguageModel:
    """A model behind an OpenAI-compatible ``/v1/completions``; scoring needs one that echoes log-probabilities."""
    answers = EndpointModel(url, name, api_key=key, timeout=TIMEOUT, max_retries=RETRIES)
    # As in EndpointModel: without a key none is sent, not even one from the environment.
    client = import_library("openai", "openai").OpenAI(
        base_url=url, api_key="none" if key is None else key, timeout=TIMEOUT, max_retries=RETRIES
    )

    def complete(prompts: list[str], tokens: int) -> list[str]:
        found: Any = client.completions.create(
            model=name, prompt=prompts, max_tokens=tokens, temperature=0, stop=["\n"]
        )
        return [one.text for one in sorted(found.choices, key=lambda one: one.index)]

    return LanguageModel(name, f"{name}, behind an endpoint.", f"{name} at {url}", answers, complete, batch_size)


def resume_file(model: LanguageModel, what: str = "scores") -> Path:
    """The file of its scores or "answers", from which an interrupted run resumes."""
    CACHE.mkdir(parents=True, exist_ok=True)
    return CACHE / f"{what}-{hashlib.sha256(model.key.encode()).hexdigest()[:20]}.jsonl"


def suffix(options: Namespace) -> str:
    """The end of a file name, so a named model's result does not replace the one that needs no network."""
    names = [Path(name).name if Path(name).is_dir() else name for name in options.model or ()]
    return "".join("-" + re.sub(r"\W+", "-", name).strip("-").lower() for name in names)


def command(script: str, options: Namespace) -> str:
    """The command that makes this result, without --write."""
    parts = [script, *(f"--model {name}" for name in options.model or ())]
    parts += [f"--endpoint {options.endpoint}"] if options.endpoint else []
    parts += [f"--questions {options.questions}"] if options.questions else []
    return " ".join(parts)


def _weights(folder: str | Path) -> str:
    # The weights in a folder may change.
    files = Path(folder).iterdir() if Path(folder).is_dir() else ()
    changed = max((file.stat().st_mtime_ns for file in files), default=None)
    return "" if changed is None else f"{Path(folder).resolve()} of {changed}"
