"""How fast Gemma 3 270M scores answers: setselect, lm-eval and a plain loop over `transformers`, in one run.

Three kinds of work: several answers to one few-shot prompt (TruthfulQA), one answer to each few-shot prompt
(GeoQuery), and one answer to each short question (TruthfulQA). Each way scores the same texts, in turn, in several
rounds. The tokens of a text count once for each answer, however often a way reads them.

It needs `make models`, and the package lm_eval for its two rows, which `make bench-scoring` installs beside the
environment.
"""

from __future__ import annotations

import os

# Nothing comes from a hub. Hugging Face libraries read this when they are imported.
os.environ["HF_HUB_OFFLINE"] = "1"

import importlib.util
import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import Block, facts, parser, publish, records, require, say, table
from benchmarks.models import GEMMA, GEMMA_SHA256, gemma_folder
from shared_core._libraries import import_library
from shared_core.signals.language_models import Item, LanguageModel

TRUTHFULQA, GEOQUERY = "truthfulqa/truthfulqa.jsonl", "geoquery/geoquery.jsonl"
SEED, ROUNDS, BATCH = 0, 3, 8
OURS, PLAIN = "setselect", "plain loop, float32"
# Sums of log-probabilities, one for each item.
Way = Callable[[Sequence[Item]], list[float]]


def main() -> None:
    made = parser(__doc__, "scoring_speed.md")
    made.add_argument("--fast", action="store_true", help="a quarter of the texts, one round")
    options = made.parse_args()
    require(TRUTHFULQA, GEOQUERY)
    ways, count = load_ways()
    works = load_works(1 if options.fast else 4)
    rounds = 1 if options.fast else ROUNDS
    tokens = {work: count(items) for work, items in works.items()}
    for way in ways.values():
        # Warms up.
        way(next(iter(works.values()))[:4])
    seconds: dict[tuple[str, str], list[float]] = {(work, way): [] for work in works for way in ways}
    logs: dict[tuple[str, str], np.ndarray] = {}
    for number in range(rounds):
        for work, items in works.items():
            for name, way in ways.items():
                began = time.perf_counter()
                logs[work, name] = np.array(way(items))
                seconds[work, name].append(time.perf_counter() - began)
                rate = tokens[work] / seconds[work, name][-1]
                say(f"round {number + 1}: {work}, {name}: {rate:,.0f} tokens a second")
    publish("scoring_speed.md", blocks(works, tokens, list(ways), seconds, logs), options.write)


def load_works(size: int) -> dict[str, list[Item]]:
    rng = random.Random(SEED)
    facts, programs = records(TRUTHFULQA), records(GEOQUERY)
    several: list[Item] = []
    for fact in rng.sample(facts, size):
        shown = "".join(f"Q: {one['question']}\nA: {one['best_answer']}\n\n" for one in rng.sample(facts, 6))
        for answer in fact["correct_answers"] + fact["incorrect_answers"]:
            several.append(Item(len(several), f"{shown}Q: {fact['question']}\nA:", f" {answer}"))
    each: list[Item] = []
    for program in rng.sample(programs, 4 * size):
        shown = "".join(f"{one['question']}\n{one['funql']}\n\n" for one in rng.sample(programs, 8))
        each.append(Item(len(each), f"{shown}{program['question']}\n", program["funql"]))
    short = [
        Item(row, f"Q: {fact['question']}\nA:", f" {fact['best_answer']}")
        for row, fact in enumerate(rng.sample(facts, 25 * size))
    ]
    return {
        "several answers to a few-shot prompt": several,
        "one answer to a few-shot prompt": each,
        "short questions and answers": short,
    }


def load_ways() -> tuple[dict[str, Way], Callable[[Sequence[Item]], int]]:
    """The ways to score, and the number of tokens of some items."""
    torch, transformers = import_library("torch", "train"), import_library("transformers", "train")
    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(gemma_folder())
    single, half = (
        transformers.AutoModelForCausalLM.from_pretrained(gemma_folder(), dtype=dtype).eval()
        for dtype in (torch.float32, torch.bfloat16)
    )
    chosen = LanguageModel(gemma_folder())
    ways: dict[str, Way] = {
        f"{OURS} (its choice here: {chosen.precision})": ours(chosen),
        f"{OURS}, float32": ours(LanguageModel(single, tokenizer)),
    }
    if importlib.util.find_spec("lm_eval"):
        ways |= {"lm-eval, bfloat16": lm_eval(half, tokenizer), "lm-eval, float32": lm_eval(single, tokenizer)}
    ways |= {"plain loop, bfloat16": plain(half, tokenizer), PLAIN: plain(single, tokenizer)}
    return ways, lambda items: sum(chosen.count_tokens(items))


def ours(model: LanguageModel) -> Way:
    def score(items: Sequence[Item]) -> list[float]:
        scores = dict(itertools.chain.from_iterable(model.score_batches(items, BATCH)))
        return [scores[place].mean * scores[place].tokens for place in range(len(items))]

    return score


def plain(model: Any, tokenizer: Any) -> Way:
    """Batches of 8 in the given order, padded, and the logits of all tokens: as most people write it."""
    torch = import_library("torch", "train")

    def score(items: Sequence[Item]) -> list[float]:
        found = []
        for start in range(0, len(items), BATCH):
            batch = items[start : start + BATCH]
            firsts = [len(tokenizer(item.context)["input_ids"]) for item in batch]
            encoded = tokenizer(
                [item.context + item.answer for item in batch], return_tensors="pt", padding=True, padding_side="right"
            )
            with torch.inference_mode():
                logs = torch.log_softmax(model(**encoded).logits.float(), dim=-1)
            for row, first in enumerate(firsts):
                ids = encoded["input_ids"][row, first : int(encoded["attention_mask"][row].sum())]
                found.append(float(logs[row, first - 1 : first - 1 + len(ids)].gather(1, ids[:, None]).sum()))
        return found

    return score


def lm_eval(model: Any, tokenizer: Any) -> Way:
    """The loop of EleutherAI's lm-evaluation-harness."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    harness = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=BATCH, backend="causal", add_bos_token=True)

    def score(items: Sequence[Item]) -> list[float]:
        requests = [Instance("loglikelihood", {}, (item.context, item.answer), item.row) for item in items]
        return [log for log, _ in harness.loglikelihood(requests, disable_tqdm=True)]

    return score


def blocks(
    works: dict[str, list[Item]], tokens: dict[str, int], ways: list[str],
    seconds: dict[tuple[str, str], list[float]], logs: dict[tuple[str, str], np.ndarray],
) -> Iterator[Block]:  # fmt: skip
    torch = import_library("torch", "train")
    packages = ["setselect", "torch", "transformers", *(["lm_eval"] if importlib.util.find_spec("lm_eval") else [])]
    model = f"Model: {GEMMA} (pretrained), converted from the GGUF file with sha256 `{GEMMA_SHA256}`"
    threads = f"Threads: {torch.get_num_threads()}; cores: {os.cpu_count()} ({torch.backends.cpu.get_cpu_capability()})"
    yield facts((TRUTHFULQA, GEOQUERY), packages, SEED, model, threads)
    rows = []
    for name in ways:
        cells = [name]
        for work in works:
            pairs = zip(seconds[work, name], seconds[work, ways[0]], strict=True)
            rate = tokens[work] / statistics.median(seconds[work, name])
            cells += [f"{rate:,.0f}", f"{statistics.median(other / mine for other, mine in pairs):.1f}"]
        off = np.concatenate([np.abs(logs[work, name] - logs[work, PLAIN]) for work in works])
        rows.append([*cells, f"{off.mean():.3f}"])
    yield table(["", *(cell for work in works for cell in (work, "factor")), "Δ log P"], rows)
    sizes = "; ".join(f"{work}: {len(items)} answers, {tokens[work]:,} tokens" for work, items in works.items())
    yield " answers, ", f"{sizes}."


if __name__ == "__main__":
    main()
