"""Causal language models from the command line: the log-probability of answers, and answers of their own."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import CACHE, REPEATED, Block, say, slug
from benchmarks.models import GEMMA, GEMMA_SHA256, gemma_folder, is_installed
from shared_core._validation import import_library
from shared_core.signals import language_models
from shared_core.signals.language_models import Item, choose_precision
from shared_core.signals.perplexity import LogPerplexityQuality

BATCH, SEED = 16, 0
Complete = Callable[[list[str], int], list[str]]


class Kept:
    """Results by key in a JSON-lines file, from which an interrupted run resumes; without a file in memory alone."""

    def __init__(self, file: Path | None) -> None:
        self.results: dict[str, Any] = {}
        self._file = file
        for line in file.read_text(encoding="utf-8").splitlines() if file and file.exists() else ():
            # An interrupted run may have left an unfinished line.
            with suppress(ValueError):
                key, result = json.loads(line)
                self.results[key] = result

    def add(self, results: Mapping[str, Any]) -> None:
        self.results |= results
        if self._file:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                # The line break comes first: it ends an unfinished line.
                file.writelines("\n" + json.dumps(entry) for entry in results.items())


@dataclass(frozen=True)
class LanguageModel:
    """``name`` and ``described`` are for people, ``key`` identifies its scores in a file."""

    name: str
    described: str
    key: str
    answers: language_models.LanguageModel
    batch_complete: Complete
    batch_size: int = BATCH

    def quality(self, template: str) -> LogPerplexityQuality:
        """The scorer of the mean log-probability of an answer's tokens (RAGSys, section 3.3.3)."""
        return LogPerplexityQuality(self.answers, template=template, batch_size=self.batch_size)

    def verdicts(self, items: Sequence[Item], resume: Path | None = None) -> list[tuple[float, bool]]:
        """log p(answer | context), summed over the answer's tokens, and whether greedy decoding writes the answer.

        Equal items are scored once. ``resume`` is the file of a :class:`Kept`.
        """
        kept = Kept(resume)
        keys = [_digest(f"{len(item.context)} {item.context}{item.answer}") for item in items]
        missing = {key: item for key, item in zip(keys, items, strict=True) if key not in kept.results}
        names, left = list(missing), list(missing.values())
        with _progress("Scores", len(left)) as bar:
            for batch in self.answers.score_batches(left, self.batch_size) if left else ():
                kept.add({names[place]: [one.mean * one.tokens, one.greedy] for place, one in batch})
                bar.update(len(batch))
        return [tuple(kept.results[key]) for key in keys]

    def totals(self, prompts: Sequence[str], answers: Sequence[str], resume: Path | None = None) -> np.ndarray:
        """log p(answer | prompt), summed over the answer's tokens; the answer directly follows the prompt."""
        items = [Item(row, *pair) for row, pair in enumerate(zip(prompts, answers, strict=True))]
        return np.array([log for log, _ in self.verdicts(items, resume)])

    def complete(self, prompts: Sequence[str], tokens: int, resume: Path | None = None) -> list[str]:
        """The greedy continuations, up to the end of the line or ``tokens``; equal prompts are asked once."""
        kept = Kept(resume)
        keys = {prompt: _digest(f"{tokens} {prompt}") for prompt in prompts}
        # Prompts of similar length share a batch, since each batch is padded to its longest prompt.
        missing = sorted((prompt for prompt in keys if keys[prompt] not in kept.results), key=len, reverse=True)
        with _progress("Answers", len(missing)) as bar:
            for start in range(0, len(missing), self.batch_size):
                batch = missing[start : start + self.batch_size]
                texts = map(first_line, self.batch_complete(batch, tokens))
                kept.add(dict(zip((keys[prompt] for prompt in batch), texts, strict=True)))
                bar.update(len(batch))
        return [kept.results[keys[prompt]] for prompt in prompts]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _progress(what: str, count: int) -> Any:
    return import_library("tqdm", "train").tqdm(desc=what, total=count, disable=not count)


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
    """--model and --questions."""
    parser.add_argument("--model", metavar="NAME", help=f"a name or folder for transformers ({GEMMA})")
    parser.add_argument("--questions", type=int, metavar="N", help="ask only N random questions; the seed is fixed")


def model_of(options: Namespace) -> LanguageModel:
    """The model of the command line; without --model Gemma."""
    return from_transformers(options.model) if options.model else gemma()


def gemma() -> LanguageModel:
    """Gemma 3 270M; if it is not installed, the script ends with exit code 0."""
    if not is_installed(GEMMA):
        say(f"skipped: {GEMMA} is not installed; run make models")
        sys.exit(0)
    os.environ["HF_HUB_OFFLINE"] = "1"
    return from_transformers(gemma_folder(), GEMMA, f"sha256 {GEMMA_SHA256}")


def from_transformers(folder: str | Path, name: str | None = None, weights: str = "") -> LanguageModel:
    """A model of Hugging Face ``transformers``, on the GPU if there is one.

    ``weights`` identifies the weights, by default the folder and the time of its last change.
    """
    torch, transformers = import_library("torch", "train"), import_library("transformers", "train")
    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, padding_side="left", truncation_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    device = "cuda" if torch.cuda.is_available() else "cpu"
    precision = choose_precision(torch, device)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=precision).to(device).eval()
    answers = language_models.LanguageModel(model, tokenizer)

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
    return LanguageModel(name, about, f"{name}, {weights}, {precise}", answers, complete)


def resume_file(model: LanguageModel, what: str = "scores") -> Path:
    """The file of its scores or "answers", from which an interrupted run resumes."""
    folder = CACHE / "papers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{what}-{hashlib.sha256(model.key.encode()).hexdigest()[:20]}.jsonl"


def suffix(options: Namespace) -> str:
    """The end of a file name, so a named model's result does not replace the one that needs no network."""
    return (
        "-" + slug(Path(options.model).name if Path(options.model).is_dir() else options.model) if options.model else ""
    )


def head(script: str, options: Namespace) -> Iterator[Block]:
    """The first paragraph of a page: the command that makes it."""
    given = {"model": options.model, "questions": options.questions}
    command = " ".join([f"python -m benchmarks.papers.{script}", *(f"--{a} {b}" for a, b in given.items() if b)])
    yield "Written by ", f"Written by `{command} --write`. {REPEATED}"


def sample(count: int, size: int) -> list[int]:
    """``size`` random rows of ``count`` in their order; all if there are fewer."""
    rows = range(count) if size >= count else np.random.default_rng(SEED).choice(count, size, replace=False)
    return sorted(int(row) for row in rows)


def _weights(folder: str | Path) -> str:
    # The weights in a folder may change.
    files = Path(folder).iterdir() if Path(folder).is_dir() else ()
    changed = max((file.stat().st_mtime_ns for file in files), default=None)
    return "" if changed is None else f"{Path(folder).resolve()} of {changed}"
