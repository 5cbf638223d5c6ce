"""What the default gains where the text next to a pick gets a bonus, on corpora whose chunks have an order.

The candidates are the 50 nearest texts by all-MiniLM-L6-v2, these and the neighbours of the ten nearest, or these and
the 25 best by words. Recall is the mean of k = 5 and 10, in points above the default without the bonus. The weight,
0.75, is that of an earlier trial of 0.5, 0.75 and 1. The development half alone prefers 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.common import Block, facts, holds, parser, publish, records, require, say, table, with_interval
from benchmarks.regimes_methods import FETCH_K
from benchmarks.regimes_tasks import SEED, Regime, company, embed_regime, is_development, nearest, steps
from shared_core import Candidates, Coverage
from shared_core.selection.route import DEFAULT_EXTRA_K
from shared_core.selectors.coverage import REFERRED
from shared_core.texts import Texts, as_texts
from shared_core.texts.word_index import WordIndex

PAGE = "neighbours.md"
WEIGHTS = (0.5, 0.75, 1.0)
# So many of the nearest texts have their neighbours fetched.
FETCHED = 10
NEAR, BESIDE, BY_WORDS = "50 nearest", "and neighbours of the ten nearest", "50 nearest and 25 by words"
# The documents of companies whose chunks have an order, and windows of two sentences, each of which shares one with the
# next. Of ObliQA the questions with at least two right texts.
COMPANY, WINDOWS = (
    ("privacy_qa", "anthropic_docs", "anthropic_code", "chunking", "obliqa"),
    ("hotpotqa", "hotpotqa_dev", "2wiki"),
)
FILES = [f"{name}/docs.jsonl" for name in COMPANY] + [f"{name}/passages.jsonl" for name in WINDOWS]
# What is asked of the documents of companies: their mean, and the lowest of them.
ASKED, LEAST = 1.0, -0.7
# The gains of a corpus by pool and weight, over all its questions, and which of these are of the development half.
Gains = dict[tuple[str, float], np.ndarray]


class Corpus:
    """A corpus whose texts stand in the order of their documents, with its vectors."""

    def __init__(self, folder: str) -> None:
        self.regime, documents = read_corpus(folder)
        self.documents = documents
        self.identifiers = None
        if folder == "obliqa":
            self.identifiers = [one["section"] for one in records(f"{folder}/docs.jsonl")]
        self.vectors, self.queries = embed_regime(self.regime)
        self.index = WordIndex(self.regime.texts)

    def beside(self, row: int) -> list[int]:
        """The rows directly before and after this one, in its document."""
        near = (row - 1, row + 1)
        return [i for i in near if 0 <= i < len(self.documents) and self.documents[i] == self.documents[row]]

    def read(self, rows: Sequence[int]) -> Texts:
        names, called = self.regime.names, self.identifiers
        return as_texts(
            [self.regime.texts[row] for row in rows],
            None if names is None else [names[row] for row in rows],
            None if called is None else [called[row] for row in rows],
            [self.documents[row] for row in rows],
            rows,
        )

    def gains(self) -> Gains:
        """What each pool and weight adds to the default, in points; (NEAR, 0) is the default over similarity."""
        worth: dict[tuple[str, float], list[float]] = {}
        for case, query in zip(self.regime.cases, self.queries, strict=True):
            near = nearest(case, query, self.vectors, FETCH_K).tolist()
            beside = [other for row in near[:FETCHED] for other in self.beside(row)]
            by_words = self.index.best_rows(case.question, DEFAULT_EXTRA_K, None)[0].tolist()
            picks = {("similarity", 0.0): near}
            for pool, more in ((NEAR, []), (BESIDE, beside), (BY_WORDS, by_words)):
                rows = [*dict.fromkeys([*near, *more])]
                texts = self.read(rows)
                candidates = Candidates(query, self.vectors[rows], words=texts.match_words(case.question))
                for weight in (0.0, *WEIGHTS):
                    references = texts.find_references(neighbours=weight > 0)
                    selector = Coverage(neighbour_weight=weight / REFERRED[-1])
                    found = selector.select(candidates.with_checked(references=references), max(self.regime.ks))
                    picks[pool, weight] = [rows[i] for i in found.indices.tolist()]
            for key, chosen in picks.items():
                value = np.mean([case.worth(chosen[:k]) for k in self.regime.ks])
                worth.setdefault(key, []).append(100 * float(value))
        points = {key: np.array(values) for key, values in worth.items()}
        similarity = points.pop(("similarity", 0.0))
        return {
            (pool, weight): values - (points[pool, 0.0] if weight else similarity)
            for (pool, weight), values in points.items()
        }


def read_corpus(folder: str) -> tuple[Regime, list[str]]:
    """The texts and questions, and the document of each text; the texts of a document are in its order."""
    if folder in WINDOWS:
        regime = steps(folder, windows=True)
        return regime, list(regime.names or ())
    regime = company(folder, 2 if folder == "obliqa" else 1)
    return regime, [one.get("source") or one["id"].rpartition(":")[0] for one in records(f"{folder}/docs.jsonl")]


def gain_table(head: str, gains: dict[str, Gains], half: dict[str, np.ndarray], pool: str) -> str:
    """A row for each corpus: the default over similarity, and what the bonus adds by its weight."""
    rows = []
    for name, of_corpus in gains.items():
        keep = half[name]
        cells = [with_interval(of_corpus[pool, weight][keep], 1) for weight in WEIGHTS]
        rows.append([name, str(keep.sum()), f"{of_corpus[pool, 0.0][keep].mean():+.1f}", *cells])
    cells = [f"{mean:+.1f}, {low:+.1f}" for mean, low in (summary(gains, half, pool, w) for w in WEIGHTS)]
    rows.append(["mean and lowest of the documents of companies", "", "", *cells])
    return table([head, "questions", "over similarity", *(f"weight {weight:g}" for weight in WEIGHTS)], rows)


def summary(gains: dict[str, Gains], half: dict[str, np.ndarray], pool: str, weight: float) -> tuple[float, float]:
    """The mean and the lowest gain of the documents of companies."""
    means = [gains[name][pool, weight][half[name]].mean() for name in COMPANY]
    return float(np.mean(means)), float(min(means))


def blocks(folders: Sequence[str]) -> Iterator[Block]:
    gains: dict[str, Gains] = {}
    development: dict[str, np.ndarray] = {}
    for folder in folders:
        corpus = Corpus(folder)
        gains[folder] = corpus.gains()
        development[folder] = np.array([is_development(case.question) for case in corpus.regime.cases])
        say(f"{folder}: {len(corpus.regime.cases)} questions")
    other = {name: ~half for name, half in development.items()}
    yield facts(FILES, ["numpy", "sentence-transformers", "torch"], SEED)
    for pool in (NEAR, BESIDE, BY_WORDS):
        yield gain_table(f"{pool}, development half", gains, development, pool)
    for pool in (NEAR, BESIDE, BY_WORDS):
        yield gain_table(f"{pool}, other half", gains, other, pool)
    mean, low = summary(gains, other, NEAR, REFERRED[-1])
    yield (
        ". Found: ",
        f"- {holds(mean >= ASKED)}: the mean is at least {ASKED:+g}. Found: {mean:+.2f}.\n"
        f"- {holds(low >= LEAST)}: no corpus is below {LEAST:+g}. Found: {low:+.2f}.\n",
    )
    fetched = [
        (gains[name][BESIDE, REFERRED[-1]] + gains[name][BESIDE, 0.0] - gains[name][NEAR, 0.0])[other[name]].mean()
        for name in COMPANY
    ]
    yield (
        "neighbours are fetched",
        f"Where the neighbours are fetched too, the mean is {np.mean(fetched):+.1f} above the default without them on "
        f"the 50 nearest, and the lowest {min(fetched):+.1f}.\n",
    )


def main() -> None:
    options = parser(__doc__, PAGE).parse_args()
    require(*FILES)
    publish(PAGE, blocks((*COMPANY, *WINDOWS)), options.write)


if __name__ == "__main__":
    main()
