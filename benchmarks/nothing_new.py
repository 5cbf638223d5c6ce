"""Can a retriever tool of an agent tell that nothing worth reading is left? Three rules, on corpora with right texts.

Each question is asked six times, as an agent does that is not content. A call selects 4 of the 50 nearest texts that no
earlier call returned (``shown``), with the default selector and all-MiniLM-L6-v2. A call is *useful* if it finds
something right that the earlier calls did not find. A rule would end the run before a call whose figure is below a
limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.common import Block, facts, is_there, parser, publish, records, say, table
from benchmarks.models import MINILM, PACKAGES
from benchmarks.regimes_methods import FETCH_K
from benchmarks.regimes_tasks import (
    COMPANIES,
    REGIMES,
    SEED,
    Case,
    Regime,
    draw,
    embed_regime,
    nearest,
    share,
    singles,
)  # fmt: skip
from shared_core import Candidates, Coverage
from shared_core.selection.route import select_set
from shared_core.texts import as_texts

PAGE = "nothing_new.md"
K, CALLS, QUESTIONS = 4, 6, 150
# The figures of a call: the highest cosine of a new text; its share of the highest cosine of all candidates; and the
# gain of the first pick as ``min_gain`` reads it, a share of what the most relevant candidate is worth by itself.
RULES = {
    "lowest cosine": (0.2, 0.3, 0.4),
    "share of the best cosine": (0.5, 0.6, 0.7, 0.8),
    "share of the best gain": (0.001, 0.002, 0.005, 0.02),
}


def by_paragraph(folder: str) -> Regime:
    """Questions of several steps: the share of the paragraphs."""
    passages = records(f"{folder}/passages.jsonl")
    cases = [
        share(question["question"], singles(passages), frozenset(question["gold"]))
        for question in draw(records(f"{folder}/questions.jsonl"))
    ]
    texts = [" ".join(passage["sentences"]) for passage in passages]
    return Regime(texts, cases, "paragraphs found", names=[passage["title"] for passage in passages])


def of_steps(folder: str) -> tuple[Callable[[], Regime], tuple[str, ...]]:
    return lambda: by_paragraph(folder), (f"{folder}/passages.jsonl", f"{folder}/questions.jsonl")


TASKS: dict[str, tuple[Callable[[], Regime], tuple[str, ...]]] = {
    **COMPANIES,
    "HotpotQA": of_steps("hotpotqa"),
    "2WikiMultihopQA": of_steps("2wiki"),
    **{name: REGIMES[name] for name in ("SciFact", "PIR, paraphrases", "Perspectrum", "Ambient", "ArgKP")},
}


class Calls(NamedTuple):
    """The calls of a task: their numbers from 0, whether they are useful, and each rule's figure (calls, rules)."""

    number: np.ndarray
    useful: np.ndarray
    figures: np.ndarray

    def later(self) -> Calls:
        """The calls after the first one of each question."""
        return Calls(*(column[self.number > 0] for column in self))

    def stopped(self, rule: int, limit: float) -> tuple[float, float]:
        """The shares of the useful calls and of the other ones that a rule leaves out, in percent."""
        stops, useful = self.figures[:, rule] < limit, self.useful
        return 100 * float(stops[useful].mean()), 100 * float(stops[~useful].mean())


def ask(regime: Regime, case: Case, query: np.ndarray, vectors: np.ndarray) -> Iterator[tuple[bool, list[float]]]:
    """For each call of a question whether it is useful, and the figure of each rule."""
    read: list[int] = []
    for _ in range(CALLS):
        rows = nearest(case, query, vectors, FETCH_K + len(read)).tolist()
        candidates = Candidates(query, vectors[rows])
        texts = as_texts(
            [regime.texts[row] for row in rows], [regime.names[row] for row in rows] if regime.names else None
        )
        shown = [rows.index(row) for row in read if row in rows]
        found = select_set(candidates, Coverage(), K, question=case.question, texts=texts, shown=shown)
        if not len(found):
            return
        before, read = read, [*read, *(rows[pick] for pick in found.indices)]
        best, best_of_all = found.relevance.max(), candidates.relevance.max()
        yield case.worth(read) > case.worth(before), [best, best / best_of_all, np.exp(min(found.gains[0], 0))]


def measure(regime: Regime) -> Calls:
    cases = regime.cases[:: max(1, len(regime.cases) // QUESTIONS)][:QUESTIONS]
    vectors, queries = embed_regime(regime._replace(cases=cases))
    calls = [
        (number, useful, figures)
        for case, query in zip(cases, queries, strict=True)
        for number, (useful, figures) in enumerate(ask(regime, case, query, vectors))
    ]
    number, useful, figures = zip(*calls, strict=True)
    return Calls(np.array(number), np.array(useful), np.array(figures))


def blocks(measured: dict[str, Calls]) -> Iterator[Block]:
    yield facts([file for name in measured for file in TASKS[name][1]], ["numpy", *PACKAGES[MINILM]], SEED)
    rows = []
    for rule, (name, limits) in enumerate(RULES.items()):
        for limit in limits:
            stopped = {task: calls.later().stopped(rule, limit) for task, calls in measured.items()}
            useful, others = np.array(list(stopped.values())).T
            worst = max(stopped, key=lambda task: stopped[task][0])
            figures = f"{limit:g}", f"{others.mean():.0f}", f"{useful.mean():.0f}", f"{useful.max():.0f} ({worst})"
            rows.append([name, *figures])
    yield table(["rule", "limit", "useless calls left out, %", "useful calls left out, %", "worst task"], rows)
    rows = [
        [task, *(f"{100 * calls.useful[calls.number == number].mean():.0f}" for number in range(CALLS))]
        for task, calls in measured.items()
    ]
    yield table(["useful calls, %", *(f"call {number + 1}" for number in range(CALLS))], rows)


def main() -> None:
    options = parser(__doc__, PAGE).parse_args()
    measured = {}
    for name, (make, files) in TASKS.items():
        if is_there(*files):
            say(name)
            measured[name] = measure(make())
    publish(PAGE, blocks(measured), options.write)


if __name__ == "__main__":
    main()
