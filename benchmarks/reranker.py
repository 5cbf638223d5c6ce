"""A reranker: what its scores find alone, and as the relevance of the default.

Gemma 3 270M ranks the candidates by the likelihood of the question given the text (Sachan et al. 2022, arXiv
2204.07496). It is a weak reranker: a small language model that was not trained to rank. `--score MODULE:NAME` puts
yours in its place, a function of a list of (question, text) pairs that returns their scores. With a module yours.py,
`predict = CrossEncoder("...").predict`, it is `--score yours:predict`. The scores are kept in .cache/reranker, so that
a run that was cut off goes on; delete the folder of a scorer that you changed.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import CACHE, Block, best, facts, is_there, parser, publish, say, skip, slug, table
from benchmarks.models import GEMMA, MINILM, PACKAGES, gemma_folder, is_installed
from benchmarks.papers._language_models import Kept
from benchmarks.regimes import Cell, cell_of, gain, interval, per_question
from benchmarks.regimes_methods import DEFAULT, FETCH_K, METHODS, SIMILARITY, Corpus, Search
from benchmarks.regimes_tasks import (
    REGIMES,
    SEED,
    Picks,
    Regime,
    embed_regime,
    nearest,
    test_half,
    without_copies,
)
from shared_core import rescale
from shared_core.selection.route import DEFAULT_EXTRA_K
from shared_core.texts.word_index import WordIndex
from shared_core.texts.words import Text

PAGE = "reranker.md"
TASKS = ("MetaTool", "PrivacyQA", "HotpotQA dev, paragraphs")
QUESTIONS = 100  # of the other half of a task, drawn where there are more
MOST_TOKENS = 200  # of a text; the language model does not see the rest
BATCH_TOKENS = 1500  # of questions, or of texts, that the language model reads at once
AT_ONCE = 50  # questions whose candidates are scored together
KEPT_AT_ONCE = 200  # pairs whose scores are written together: a run that is cut off loses no more
LOGITS = 256  # tokens that are compared with the whole vocabulary at once
ALONE, GIVEN = "reranker alone", "setselect, `relevance=`"
BY_WORDS = f", {DEFAULT_EXTRA_K} by words"
METHODS_HERE = (DEFAULT, ALONE, GIVEN, *(method + BY_WORDS for method in (DEFAULT, ALONE, GIVEN)))
# The comparisons: the second is taken off the first.
PAIRS = (
    (ALONE, SIMILARITY),
    (ALONE, DEFAULT),
    (GIVEN, DEFAULT),
    (GIVEN, ALONE),
    (GIVEN + BY_WORDS, DEFAULT + BY_WORDS),
)

Pair = tuple[str, str]  # a question and a text
Score = Callable[[list[Pair]], Sequence[float] | np.ndarray]


# --- the language model ---------------------------------------------------------------------------


@cache
def load_gemma() -> tuple[Any, Any, Any]:
    """The model, its tokenizer, and the rows of its output layer for the pieces of ASCII text, a third of all.

    The probabilities are those among these pieces: the others take most of the time, and English has few of them.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from shared_core.signals.language_models import choose_precision

    folder = gemma_folder()
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=choose_precision(torch, "cpu"))
    tokenizer, weights = AutoTokenizer.from_pretrained(folder), model.get_output_embeddings().weight
    pieces = tokenizer.convert_ids_to_tokens([*range(len(tokenizer))])
    ascii_only = [place for place, piece in enumerate(pieces) if piece.replace("▁", " ").isascii()]
    return model.eval(), tokenizer, weights.detach()[ascii_only]


def likelihood(pairs: Sequence[Pair]) -> list[float]:
    """The mean log-probability of the tokens of each question after its text."""
    model, tokenizer, output = load_gemma()
    questions, texts = ([*dict.fromkeys(parts)] for parts in zip(*pairs, strict=True))
    cut = tokenizer([f"Passage: {text}" for text in texts], truncation=True, max_length=MOST_TOKENS)["input_ids"]
    *end, last = tokenizer("\nQuestion:", add_special_tokens=False)["input_ids"]
    before = {text: [*ids, *end] for text, ids in zip(texts, cut, strict=True)}
    asked = tokenizer([f" {question}" for question in questions], add_special_tokens=False)["input_ids"]
    # The last token before the question predicts its first one.
    after = {question: [last, *ids] for question, ids in zip(questions, asked, strict=True)}
    # Each text is read once for all its questions, and with texts of a similar length.
    rows_of: dict[str, list[int]] = {text: [] for text in sorted(texts, key=lambda text: len(before[text]))}
    for row, (_, text) in enumerate(pairs):
        rows_of[text].append(row)
    batches: list[list[str]] = []
    size = np.zeros(2)
    for text, rows in rows_of.items():
        more = np.array([len(before[text]), sum(len(after[pairs[row][0]]) for row in rows)])
        if not batches or max(size + more) > BATCH_TOKENS:
            batches.append([])
            size = np.zeros(2)
        batches[-1].append(text)
        size += more
    scores = np.zeros(len(pairs))
    for batch in batches:
        rows = [row for text in batch for row in rows_of[text]]
        of = [place for place, text in enumerate(batch) for _ in rows_of[text]]
        scores[rows] = read(model, output, [before[text] for text in batch], [after[pairs[row][0]] for row in rows], of)
    return scores.tolist()


def read(model: Any, output: Any, before: list[list[int]], after: list[list[int]], of: list[int]) -> list[float]:
    """The mean log-probability of the tokens of each row of ``after`` but its first, after row ``of`` of ``before``."""
    import torch

    def pad(rows: list[list[int]]) -> tuple[Any, Any]:
        longest = max(map(len, rows))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        return ids, torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])

    (texts, seen), (asked, mask) = pad(before), pad(after)
    inputs, wanted, mask = asked[:, :-1], asked[:, 1:], mask[:, 1:]
    with torch.inference_mode():
        past = model.model(input_ids=texts, attention_mask=seen, use_cache=True).past_key_values
        past.batch_select_indices(torch.tensor(of))
        seen = seen[of]
        places = seen.sum(1, keepdim=True) + torch.arange(inputs.shape[1])
        states = model.model(
            input_ids=inputs,
            attention_mask=torch.cat([seen, mask], 1),
            position_ids=places,
            past_key_values=past,
            use_cache=True,
        ).last_hidden_state
        states, wanted, weights = states[mask == 1], wanted[mask == 1], model.get_output_embeddings().weight
        logs = (states.float() * weights[wanted].float()).sum(1)
        for start in range(0, len(states), LOGITS):
            # Summed in float32: in bfloat16 the logarithm of the sum would have two digits.
            total = (states[start : start + LOGITS] @ output.T).exp_().sum(1, dtype=torch.float32)
            logs[start : start + LOGITS] -= total.log()
    counts = mask.sum(1)
    return [float(part.mean()) for part in logs.split(counts.tolist())]


# --- measuring ------------------------------------------------------------------------------------


def keep(score: Score, path: Path) -> Score:
    """``score`` with its results kept in a file."""
    kept = Kept(path)

    def scores(pairs: list[Pair]) -> list[float]:
        keys = [hashlib.sha256("\0".join(pair).encode()).hexdigest()[:24] for pair in pairs]
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in kept.results}
        # The pairs of a text come together, because a scorer may read it once for all of them.
        order = sorted(new, key=lambda key: new[key][1])
        for start in range(0, len(order), KEPT_AT_ONCE):
            some = order[start : start + KEPT_AT_ONCE]
            kept.add(dict(zip(some, map(float, score([new[key] for key in some])), strict=True)))
        return [kept.results[key] for key in keys]

    return scores


def select(method: str, search: Search, scores: np.ndarray, k: int) -> Picks:
    """The picks of one method; ``scores`` are the reranker's."""
    if method == ALONE:
        return [int(row) for row in search.rows[best(scores, k)]]
    relevance = rescale(scores, "minmax") if method == GIVEN else None
    return METHODS[SIMILARITY if method == SIMILARITY else DEFAULT](replace(search, relevance=relevance), k)


def measure(name: str, regime: Regime, score: Score) -> Cell:
    """The worth of the picks of each method for each question."""
    vectors, queries = embed_regime(regime)
    corpus = Corpus(regime, vectors, list(map(Text, regime.texts)), WordIndex(regime.texts))
    picks: list[dict[str, Picks]] = []
    for start in range(0, len(regime.cases), AT_ONCE):
        cases = regime.cases[start : start + AT_ONCE]
        pools = []
        for case, query in zip(cases, queries[start:], strict=False):
            near = nearest(case, query, vectors, FETCH_K).tolist()
            pools.append([*dict.fromkeys([*near, *corpus.best_by_words(case, DEFAULT_EXTRA_K).tolist()])])
        pairs = [(case.question, regime.texts[row]) for case, rows in zip(cases, pools, strict=True) for row in rows]
        found = iter(score(pairs))
        for case, query, rows in zip(cases, queries[start:], pools, strict=False):
            scores = np.array([next(found) for _ in rows])
            empty = np.empty(0, dtype=np.intp)
            search = Search(case.question, query, empty, vectors[:0], [], empty)
            picks.append({})
            for method in (SIMILARITY, *METHODS_HERE):
                size = len(rows) if method.endswith(BY_WORDS) else min(FETCH_K, len(case.rows(len(vectors))))
                weigh = corpus.index.weigh if method.endswith(BY_WORDS) else None
                of = replace(corpus.search(search, rows[:size]), weigh=weigh)
                picks[-1][method] = select(method.removesuffix(BY_WORDS), of, scores[:size], max(regime.ks))
        say(f"{name}: {start + len(cases)} of {len(regime.cases)} questions")
    return cell_of(name, regime, picks)


def draw_questions(regime: Regime, count: int) -> Regime:
    """The regime with at most ``count`` of the questions of its other half; a smaller count is a part of a larger."""
    cases = test_half(regime).cases
    return regime._replace(cases=[cases[row] for row in np.random.default_rng(SEED).permutation(len(cases))[:count]])


def time_question(regime: Regime, score: Score) -> float:
    """The median of the seconds of the processor that FETCH_K candidates take, over three questions."""
    vectors, queries = embed_regime(regime)
    took = []
    for case, query in zip(regime.cases[:3], queries, strict=False):
        pairs = [(case.question, regime.texts[row]) for row in nearest(case, query, vectors, FETCH_K)]
        start = time.process_time()
        score(pairs)
        took.append(time.process_time() - start)
    return float(np.median(took))


# --- figures --------------------------------------------------------------------------------------


def task_table(cells: Sequence[Cell]) -> str:
    """What each method finds, in points over similarity."""
    rows = []
    for cell in cells:
        base = per_question([cell], lambda cell, k: cell.worth[k][SIMILARITY])[0].mean()
        gains = (f"{gain([cell], method)[0].mean():+.1f}" for method in METHODS_HERE)
        rows.append([cell.regime, str(len(cell.questions)), f"{base:.1f}", *gains])
    return table(["points more than similarity", "questions", SIMILARITY, *METHODS_HERE], rows)


def difference_table(cells: Sequence[Cell]) -> str:
    """Differences between two methods with their intervals."""
    rows = [
        [f"{one}, minus {other}", *(interval([gain([cell], one, other)]) for cell in cells)] for one, other in PAIRS
    ]
    return table(["difference", *(f"{cell.regime}, {len(cell.questions)} questions" for cell in cells)], rows)


def blocks(cells: Sequence[Cell], seconds: dict[str, float]) -> Iterator[Block]:
    files = [file for cell in cells for file in REGIMES[cell.regime][1]]
    yield facts(files, ["numpy", "torch", "transformers", PACKAGES[MINILM][0], PACKAGES[GEMMA][0]], SEED)
    yield task_table(cells)
    yield difference_table(cells)
    yield table(
        ["one question with 50 candidates", "seconds of a processor core"],
        [[name, f"{took:.1f}"] for name, took in seconds.items()],
    )


def load(place: str) -> Score:
    """The function that ``MODULE:NAME`` names."""
    module, _, name = place.partition(":")
    found: Score = attrgetter(name)(importlib.import_module(module))
    return found


def main() -> None:
    made = parser(__doc__, PAGE)
    made.add_argument(
        "--questions", type=int, default=QUESTIONS, help="of each task; no page is written with another number"
    )
    made.add_argument("--score", metavar="MODULE:NAME", help="your reranker, a function; no page is written")
    options = made.parse_args()
    if (options.questions, options.score) != (QUESTIONS, None):
        skip("what the page has")
    if not options.score and not is_installed(GEMMA):
        sys.exit(f"{GEMMA} is not installed: run make models")
    score = load(options.score) if options.score else likelihood
    cells, seconds = [], {}
    for name in TASKS:
        make, needed = REGIMES[name]
        if is_there(*needed):
            regime = draw_questions(without_copies(make()), options.questions)
            path = CACHE / "reranker" / slug(options.score or GEMMA) / f"{slug(name)}.jsonl"
            cells.append(measure(name, regime, keep(score, path)))
            seconds[name] = time_question(regime, score)
    if cells:
        publish(PAGE, blocks(cells, seconds), options.write)


if __name__ == "__main__":
    main()
