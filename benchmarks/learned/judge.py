"""The judge of example sets: a language model that is trained here in minutes, on parts that no table uses.

One model (see ``pointer_lm.py``) serves GeoQuery, MTOP and NL2Bash. It is trained on few-shot prompts (``prompts.py``)
from the language model's part of each data set. A few items are held out to prove that it uses its examples: with
examples from the pool of seed 0 that are selected at random, by cosine, and by coverage of the right answer, the
held-out answers must become more probable in this order. Its weights stay under .cache/ and are never shipped.

    python benchmarks/learned/judge.py         # trains the judge unless it is cached, and prints the proof
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import time
from collections.abc import Callable, Sequence, Set
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.learned.data import FILES, SOURCES, Item, load
from benchmarks.learned.prompts import Texts, TrainingPrompts, stacked, tokenizer_of
from benchmarks.learned.shell import shell_symbols
from benchmarks.papers._common import ROOT, embedded, new_folder, require, table
from shared_core.learning.feedback.symbols import structural_symbols

CACHE = ROOT / ".cache" / "learned"
SEED = 0
SIZES = {"width": 128, "layers": 2, "heads": 4}
STEPS = 1800
TOKENS = 800
RATE = 2e-3
TRUE = 0.15
HELD_OUT = {"geoquery": 40, "mtop": 100, "nl2bash": 100}
# The most tokens in one forward pass of scoring.
BATCH_TOKENS = 16_384
# The lowest probability of a token, so that no answer has a log-probability of -inf.
LEAST = 1e-30

Pair = tuple[Item, Sequence[Item]]


class Judge:
    """Log-probability and exact match of answers, given examples; ``folder`` was written by :func:`train`."""

    def __init__(self, folder: Path) -> None:
        import torch
        from tokenizers import Tokenizer

        from benchmarks.learned.pointer_lm import PointerLM

        self.texts = Texts(Tokenizer.from_file(str(folder / "tokenizer.json")))
        sizes = json.loads((folder / "sizes.json").read_text(encoding="utf-8"))
        self.model = PointerLM(len(self.texts.vocabulary), **sizes).eval()
        weights = (folder / "weights.pt").read_bytes()
        self.model.load_state_dict(torch.load(folder / "weights.pt", weights_only=True))
        self.feedback = JudgeFeedback(self, hashlib.sha256(weights).hexdigest()[:16])

    def score(self, pairs: Sequence[Pair]) -> list[tuple[float, bool]]:
        """For each item with its examples, the most similar last: log P of the whole answer, and whether it matches.

        The sum runs over the answer's tokens and the end token. The match is exact if each of them is the most
        probable token after those before it, so that greedy decoding prints the answer and stops.
        """
        import torch

        made = [self.texts.prompt(item, examples) for item, examples in pairs]
        order = sorted(range(len(made)), key=lambda row: -len(made[row][0]))
        found: list[tuple[float, bool]] = [(0.0, False)] * len(made)
        while order:
            # The order is longest first, so the first prompt of a batch decides how many fit.
            fit = max(1, BATCH_TOKENS // len(made[order[0]][0]))
            batch, order = order[:fit], order[fit:]
            marked = [(ids, np.arange(len(ids)) >= begin) for ids, begin in (made[row] for row in batch)]
            ids, wanted = map(torch.from_numpy, stacked(marked))
            with torch.inference_mode():
                places, chances = self.model.distribution(ids, wanted)
                target = ids.gather(1, places + 1)[:, :, None]
                real = torch.arange(places.shape[1]) < wanted.sum(1)[:, None]
                logs = (chances.gather(2, target)[:, :, 0].clamp(min=LEAST).log().double() * real).sum(1)
                right = ((chances.argmax(2) == target[:, :, 0]) | ~real).all(1)
            for row, log, match in zip(batch, logs.tolist(), right.tolist(), strict=True):
                found[row] = log, match
        return found


class JudgeFeedback:
    """The judge as a feedback function: log P(answer | examples, question)."""

    def __init__(self, judge: Judge, fingerprint: str) -> None:
        self.judge = judge
        self.fingerprint = fingerprint

    def __call__(self, query_item: Item, subset_items: Sequence[Item], /) -> float:
        return self.score([(query_item, subset_items)])[0]

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """The same for many pairs at once."""
        return [log for log, _ in self.judge.score(pairs)]


def judge(steps: int = STEPS) -> Judge:
    """The judge; trains it unless it is cached."""
    parts = training_parts()
    recipe = [Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("pointer_lm.py", "prompts.py")]
    recipe += map(inspect.getsource, (train, training_batch))
    what = [parts, recipe, SIZES, steps, TOKENS, RATE, TRUE, SEED, version("torch"), version("transformers")]
    folder = CACHE / f"judge-{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]}"
    if not folder.is_dir():
        vectors = {name: embedded([item["question"] for item in items]) for name, items in parts.items()}
        train(parts, vectors, folder, steps)
    return Judge(folder)


def training_parts() -> dict[str, list[Item]]:
    """The model's part of each data set, without the items that are held out for the proof."""
    return {name: load(name, 0).lm_part[HELD_OUT[name] :] for name in SOURCES}


def train(
    parts: dict[str, list[Item]],
    vectors: dict[str, Any],
    folder: Path,
    steps: int = STEPS,
    sizes: dict[str, int] | None = None,
) -> None:
    """Train a judge on these items and save it; the same machine and versions give the same weights."""
    import torch

    from benchmarks.learned.pointer_lm import PointerLM

    # One thread adds numbers in one order, so a second training gives the same weights.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    texts = Texts(tokenizer_of(parts))
    source = TrainingPrompts(texts, parts, vectors, TRUE)
    model = PointerLM(len(texts.vocabulary), **(sizes or SIZES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.05)
    rng = np.random.default_rng(SEED)
    began, tokens, losses = time.perf_counter(), 0, []
    for step in range(1, steps + 1):
        ids, wanted = map(torch.from_numpy, stacked(training_batch(source, rng, step / steps)))
        logs, real = model.log_probs(ids, wanted)
        loss = -logs[real].mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        tokens += ids.numel()
        losses.append(float(loss.detach()))
        if step % 200 == 0:
            seconds = time.perf_counter() - began
            recent = sum(losses[-200:]) / 200
            print(f"step {step} of {steps}: loss {recent:.3f}, {tokens:,} tokens, {seconds:.0f} s", file=sys.stderr)
    torch.set_num_threads(threads)
    with new_folder(folder) as unfinished:
        torch.save(model.state_dict(), unfinished / "weights.pt")
        (unfinished / "sizes.json").write_text(json.dumps(sizes or SIZES), encoding="utf-8")
        texts.tokenizer.save(str(unfinished / "tokenizer.json"))


def training_batch(source: TrainingPrompts, rng: np.random.Generator, done: float) -> list[Any]:
    """Prompts of about ``TOKENS`` tokens: short prompts, half of them strange, at first, long prompts at last."""
    shots = int(
        rng.integers(2, 5) if done < 0.35 else rng.integers(2, 9) if done < 0.6 else rng.choice([2, 4, 8, 12, 16])
    )
    batch, size = [], 0
    while size < TOKENS:
        batch.append(source.make(rng, shots, strange=bool(rng.random() < 0.5 and done < 0.3)))
        size += len(batch[-1][0])
    return batch


def select_by(
    how: str,
    near: NDArray[np.float32],
    wanted: Set[Any],
    held: Sequence[Set[Any]],
    size: int,
    rng: np.random.Generator,
) -> list[int]:
    """Rows of the pool, the most similar last; ``near`` holds the similarity and ``held`` the symbols of each row.

    >>> near, held = np.array([0.9, 0.8, 0.1], np.float32), [{"a"}, {"a"}, {"b"}]
    >>> select_by("coverage", near, {"a", "b"}, held, 2, np.random.default_rng(0))
    [2, 0]
    """
    order = np.argsort(-near, kind="stable")
    if how == "random":
        rows = rng.choice(len(near), size, replace=False)
    elif how == "nearest":
        rows = order[:size]
    else:
        covered: set[Any] = set()
        left = order.tolist()
        rows = np.empty(size, dtype=np.int64)
        for place in range(size):
            rows[place] = max(left, key=lambda row: len((covered | held[row]) & wanted))
            covered |= held[int(rows[place])]
            left.remove(int(rows[place]))
    return sorted(rows.tolist(), key=lambda row: near[row])


def proof(score: Callable[[Sequence[Pair]], list[tuple[float, bool]]], size: int) -> list[list[str]]:
    """Rows of a table: mean log-probability and exact matches of the held-out items, by selection of the examples."""
    lines = []
    for name in SOURCES:
        split = load(name, 0)
        queries, pool = split.lm_part[: HELD_OUT[name]], split.pool
        symbols = shell_symbols if name == "nl2bash" else structural_symbols
        wanted, held = ([symbols(item["answer"]) for item in items] for items in (queries, pool))
        near = embedded([item["question"] for item in queries]) @ embedded([item["question"] for item in pool]).T
        for how in ("random", "nearest", "coverage"):
            rng = np.random.default_rng(SEED)
            picks = [select_by(how, near[row], wanted[row], held, size, rng) for row in range(len(queries))]
            pairs = [(item, [pool[row] for row in rows]) for item, rows in zip(queries, picks, strict=True)]
            began = time.perf_counter()
            found = score(pairs)
            rate = len(queries) / (time.perf_counter() - began)
            logs, matches = zip(*found, strict=True)
            lines.append([name, f"{size}", how, f"{np.mean(logs):.2f}", f"{np.mean(matches):.3f}"])
            print(f"{name}, {size} examples, {how}: {rate:.0f} prompts/s", file=sys.stderr)
    return lines


def main() -> None:
    """Train the judge unless it is cached, and print the proof."""
    require(*FILES)
    found = judge()
    print(f"{sum(weight.numel() for weight in found.model.parameters()):,} weights, {found.feedback.fingerprint}\n")
    lines = [line for size in (4, 16) for line in proof(found.score, size)]
    print(table(["data set", "examples", "selected by", "log-probability", "exact match"], lines), end="")


if __name__ == "__main__":
    main()
