"""One set for several queries: a question and its sub-questions, against fusion of the lists.

Each query is searched for by itself. The methods merge the lists, or select one set from their union. The figures are
from the half of the questions on which nothing was chosen; the other half made the choices. The sub-questions of
2WikiMultihopQA and StrategyQA are part of the data. Those of HotpotQA dev are written by Gemma 3 270M, greedily, from
the question alone.

Vectors and what Gemma writes are kept in .cache/. `make models` installs Gemma; without it its column is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Block, best, facts, holds, parser, publish, records, require, skip, table
from benchmarks.models import GEMMA, MINILM, PACKAGES, embed, is_installed
from benchmarks.papers._language_models import gemma, resume_file
from benchmarks.regimes import Figures, interval
from benchmarks.regimes_methods import FETCH_K, Search, by_texts, by_vectors, reciprocal_ranks
from benchmarks.regimes_tasks import SEED, Picks, Regime, draw, is_development, steps, strategyqa
from shared_core import NDPP, Coverage, TopK

PAGE = "several_queries.md"
KS = (5, 10)
LIST = 25  # candidates of each query
FOLDERS = ("2wiki/passages", "2wiki/questions", "strategyqa/facts", "strategyqa/questions")
FILES = [f"{name}.jsonl" for name in (*FOLDERS, "hotpotqa_dev/passages", "hotpotqa_dev/questions")]
WIKI, FIRST_STEP = "2WikiMultihopQA", "2WikiMultihopQA, first step"
STRATEGY, SEARCHABLE = "StrategyQA", "StrategyQA, without #"
HOTPOT = "HotpotQA dev, by Gemma"
# What is asked of one set on 2WikiMultihopQA, in percent of the questions, with 5 and 10 texts.
ASKED = (80, 90)
MOST_LOSS = 1.0  # to the highest cosine, in points
TOKENS = 40  # that Gemma writes at most
PROMPT = """\
Question: Which river is longer, the Rhine or the Elbe?
Searches: How long is the Rhine? How long is the Elbe?

Question: In which year was the author of the novel Effi Briest born?
Searches: Who wrote the novel Effi Briest? When was the author of Effi Briest born?

Question: Are the bands Tortoise and Low from the same country?
Searches: Where is the band Tortoise from? Where is the band Low from?

Question: What is the capital of the country in which Mount Elgon lies?
Searches: In which country does Mount Elgon lie? What is the capital of that country?

Question: {question}
Searches:"""


# --- questions with sub-questions -----------------------------------------------------------------


class Task(NamedTuple):
    """A corpus, and the queries of each of its questions: the question first."""

    regime: Regime
    queries: list[list[str]]


def read_tasks() -> dict[str, Task]:
    wiki, asked = steps("2wiki"), records("2wiki/questions.jsonl")
    strategy = strategyqa()
    decomposed = [item["sub_questions"] for item in draw(records("strategyqa/questions.jsonl"))]
    searchable = [[query for query in some if "#" not in query] for some in decomposed]
    found = {
        WIKI: with_queries(wiki, [item["sub_questions"] for item in asked]),
        FIRST_STEP: with_queries(wiki, [first_step(item) for item in asked]),
        STRATEGY: with_queries(strategy, decomposed),
        SEARCHABLE: with_queries(strategy, searchable),
    }
    if is_installed(GEMMA):
        hotpot = steps("hotpotqa_dev")
        found[HOTPOT] = with_queries(hotpot, written_by_gemma([case.question for case in hotpot.cases]))
    else:
        skip(f"{HOTPOT}: {GEMMA} is not installed; run make models")
    return found


def first_step(item: dict[str, Any]) -> list[str]:
    """The sub-questions that a reader can write before any search: those that name no answer to another one."""
    some: list[str] = item["sub_questions"]
    return some if item["type"] == "comparison" else some[: len(some) // 2]


def with_queries(regime: Regime, sub_questions: Sequence[Sequence[str]]) -> Task:
    return Task(regime, [[case.question, *some] for case, some in zip(regime.cases, sub_questions, strict=True)])


def written_by_gemma(questions: Sequence[str]) -> list[list[str]]:
    """The sub-questions in the line with which the model continues the prompt."""
    model = gemma()
    prompts = [PROMPT.format(question=question) for question in questions]
    return [split_line(line) for line in model.complete(prompts, TOKENS, resume_file(model, "sub_questions"))]


def split_line(line: str) -> list[str]:
    """The questions of a line, without one that was cut.

    >>> split_line("Who is A? When was A born? Where is")
    ['Who is A?', 'When was A born?']
    """
    return [query.strip() for query in re.findall(r"[^?]+\?", line)]


# --- methods --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fetched(Search):
    """The union of the lists of all queries; ``question`` is all of them in one text, ``query`` has a row for each."""

    queries: Sequence[str] = ()
    lists: Sequence[Picks] = ()


# The rows of k texts, the best first.
Select = Callable[[Fetched, int], Picks]


def search(task: Task, vectors: np.ndarray, queries: Sequence[str], embedded: np.ndarray, size: int) -> Fetched:
    lists = [best(vectors @ query, size).tolist() for query in embedded]
    rows = list(dict.fromkeys(chain.from_iterable(lists)))
    texts = [task.regime.texts[row] for row in rows]
    names = None if task.regime.names is None else [task.regime.names[row] for row in rows]
    at = np.array(rows)
    return Fetched(
        " ".join(queries), embedded, at, vectors[at], texts, at[:0], names=names, queries=queries, lists=lists
    )


def fuse(size: int) -> Select:
    return lambda fetched, k: list(reciprocal_ranks(rows[:size] for rows in fetched.lists))[:k]


def take_turns(fetched: Fetched, k: int) -> Picks:
    """The best text of each query that is not there yet, query by query."""
    turns = chain.from_iterable(zip_longest(*fetched.lists))
    return list(dict.fromkeys(row for row in turns if row is not None))[:k]


ALONE, RRF, HIGHEST, ONE_SET = "question alone, the default", "RRF, lists of 10", "highest cosine", "one set"
# With what each selects from: candidates of the question alone, of each query, or fetch_k shared out.
METHODS: dict[str, tuple[str, Select]] = {
    "question alone, similarity": ("alone", by_vectors(TopK())),
    ALONE: ("alone", by_texts(Coverage())),
    RRF: ("union", fuse(10)),
    "RRF, lists of 25": ("union", fuse(LIST)),
    "round robin": ("union", take_turns),
    HIGHEST: ("union", by_vectors(TopK())),
    "`NDPP()`": ("union", by_vectors(NDPP())),
    ONE_SET: ("union", by_texts(Coverage())),
    "one set, `reference_weight=0`": ("union", by_texts(Coverage(reference_weight=0))),
    "one set, `fetch_k=50` shared out": ("shared", by_texts(Coverage())),
}


# --- measuring ------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """Whether everything is found, in points, of shape (questions, KS), by method."""

    questions: list[str]
    found: dict[str, np.ndarray]

    def mean(self, method: str) -> np.ndarray:
        mean: np.ndarray = self.found[method].mean(axis=0)
        return mean

    def minus(self, method: str, base: str) -> list[Figures]:
        """For each k."""
        return [(column, self.questions) for column in (self.found[method] - self.found[base]).T]


def measure(task: Task) -> Cell:
    vectors = embed(task.regime.texts, MINILM)
    of_text = dict.fromkeys(chain.from_iterable(task.queries))
    vector_of = dict(zip(of_text, embed(list(of_text), MINILM), strict=True))
    pairs = zip(task.regime.cases, task.queries, strict=True)
    asked = [(case, queries) for case, queries in pairs if not is_development(case.question)]
    questions = [case.question for case, _ in asked]
    found = {name: np.zeros((len(questions), len(KS))) for name in METHODS}
    for number, (case, queries) in enumerate(asked):
        embedded = np.array([vector_of[query] for query in queries])
        fetched = {
            "alone": search(task, vectors, queries[:1], embedded[:1], FETCH_K),
            "union": search(task, vectors, queries, embedded, LIST),
            "shared": search(task, vectors, queries, embedded, max(*KS, math.ceil(FETCH_K / len(queries)))),
        }
        # All methods are greedy: the first k of a larger set are the set of k.
        for name, (which, select) in METHODS.items():
            picks = select(fetched[which], max(KS))
            found[name][number] = [100 * case.worth(picks[:k]) for k in KS]
    return Cell(questions, found)


# --- tables ---------------------------------------------------------------------------------------

Cells = dict[str, Cell]  # by task


def both(means: np.ndarray) -> str:
    return " / ".join(f"{mean:.1f}" for mean in means)


def found_table(cells: Cells) -> str:
    rows = [[method, *(both(cell.mean(method)) for cell in cells.values())] for method in METHODS]
    rows.append(["questions", *(str(len(cell.questions)) for cell in cells.values())])
    return table(["everything found among 5 / 10 texts", *cells], rows)


def difference_table(cells: Cells, bases: Sequence[str]) -> str:
    rows = [
        [name, *(interval([one]) for base in bases for one in cell.minus(ONE_SET, base))]
        for name, cell in cells.items()
    ]
    return table(["one set minus …", *(f"{base}, k = {k}" for base in bases for k in KS)], rows)


def added_table(cells: Cells, task: str, to: str) -> str:
    """For some methods, what the sub-questions of a task add to the fewer ones of another, for each k."""
    rows = []
    for method in (RRF, HIGHEST, ONE_SET):
        more, fewer = (cells[name].found[method] for name in (task, to))
        rows.append([method, *(interval([(column, cells[task].questions)]) for column in (more - fewer).T)])
    return table(["points that they add", *(f"k = {k}" for k in KS)], rows)


def verdict(cells: Cells) -> str:
    got = cells[WIKI].mean(ONE_SET)
    lines = [f"- {holds(all(got >= ASKED))}: {WIKI}, at least {ASKED[0]} / {ASKED[1]}. Found: {both(got)}."]
    losses = {
        f"{name}, k = {k}": figures
        for name, cell in cells.items()
        for k, figures in zip(KS, cell.minus(ONE_SET, HIGHEST), strict=True)
    }
    worst = min(losses, key=lambda name: losses[name][0].mean())
    lines.append(
        f"- {holds(losses[worst][0].mean() >= -MOST_LOSS)}: never more than {MOST_LOSS:g} point below the highest "
        f"cosine. The lowest figure: {interval([losses[worst]])}, {worst}."
    )
    return "\n".join(lines) + "\n"


# --- the page -------------------------------------------------------------------------------------


def blocks(cells: Cells) -> Iterator[Block]:
    yield facts(FILES, ["numpy", "sentence-transformers", "torch", PACKAGES[MINILM][0]], SEED)
    yield found_table(cells)
    yield ". Found: ", verdict(cells)
    yield difference_table(cells, (RRF, HIGHEST))
    yield (
        "A sub-question that cannot be searched for by itself ",
        f"""\
A sub-question that cannot be searched for by itself adds nothing to one set. In {WIKI}, with 5 / 10 texts, it finds
{both(cells[WIKI].mean(ONE_SET))} with the sub-questions of both steps, {both(cells[FIRST_STEP].mean(ONE_SET))} with
those of the first step, and {both(cells[WIKI].mean(ALONE))} with the question alone. So search for the second step when
the first one is answered. What the sub-questions of the second step add to those of the first, in points:""",
    )
    yield added_table(cells, WIKI, FIRST_STEP)
    yield added_table(cells, STRATEGY, SEARCHABLE)
    yield difference_table(cells, (ALONE,))


def main() -> None:
    options = parser(__doc__, PAGE).parse_args()
    require(*FILES)
    publish(PAGE, blocks({name: measure(task) for name, task in read_tasks().items()}), options.write)


if __name__ == "__main__":
    main()
