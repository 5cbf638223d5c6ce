"""One set for several queries: a question and its sub-questions, against fusion of the lists.

Each query is searched for by itself. The methods merge the lists, or select one set from their union. The figures are
from the half of the questions on which nothing was chosen; the other half made the choices. The sub-questions of
2WikiMultihopQA and StrategyQA are part of the data. Those of HotpotQA dev are written by Gemma 3 270M, greedily, from
the question alone.

Data is read from SETSELECT_DATA (default: ../shared/data beside the project) and never copied. Vectors and what
Gemma writes are kept in .cache/. all-mpnet-base-v2 and Gemma are installed by `make models`; without
them their tables are left out.

    python benchmarks/several_queries.py            # prints the tables
    python benchmarks/several_queries.py --write    # and writes benchmarks/results/several_queries.md
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.models import GEMMA, MAX_TOKENS, MINILM, MPNET, PACKAGES, embed, is_installed
from benchmarks.papers._common import ROOT, heading, records, require, table
from benchmarks.papers._language_models import models, resume_file
from benchmarks.regimes import Figures, interval
from benchmarks.regimes_methods import FETCH_K, RRF_K, Search, by_texts, by_vectors, standardised
from benchmarks.regimes_tasks import SEED, Picks, Regime, draw, is_development, steps, strategyqa
from shared_core import NDPP, Coverage, TopK
from shared_core.candidates import Candidates
from shared_core.selectors.coverage import SERVED, _Terms

RESULT = ROOT / "benchmarks" / "results" / "several_queries.md"
KS = (5, 10)
LIST = 25  # candidates of each query
COPIES = 3
VECTORS = (MINILM, MPNET)
FOLDERS = ("2wiki/passages", "2wiki/questions", "strategyqa/facts", "strategyqa/questions")
FILES = [f"{name}.jsonl" for name in (*FOLDERS, "hotpotqa_dev/passages", "hotpotqa_dev/questions")]
WIKI, FIRST_STEP = "2WikiMultihopQA", "2WikiMultihopQA, first step"
STRATEGY, SEARCHABLE = "StrategyQA", "StrategyQA, without #"
HOTPOT = "HotpotQA dev, by Gemma"
STORED = ", stored three times"
# What is asked of one set with all-MiniLM-L6-v2, in percent of the questions, with 5 and 10 texts.
ASKED = {WIKI: (80, 90), WIKI + STORED: (72, 82)}
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


def tasks() -> dict[str, Task]:
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
        print(f"skipped {HOTPOT}: {GEMMA} is not installed; run make models")
    return found | {name + STORED: store_three_times(task) for name, task in found.items()}


def first_step(item: dict[str, Any]) -> list[str]:
    """The sub-questions that a reader can write before any search: those that name no answer to another one."""
    some: list[str] = item["sub_questions"]
    return some if item["type"] == "comparison" else some[: len(some) // 2]


def with_queries(regime: Regime, sub_questions: Sequence[Sequence[str]]) -> Task:
    return Task(regime, [[case.question, *some] for case, some in zip(regime.cases, sub_questions, strict=True)])


def store_three_times(task: Task) -> Task:
    regime = task.regime
    texts, names = ([one for one in some for _ in range(COPIES)] for some in (regime.texts, regime.names or []))
    cases = [
        case._replace(worth=lambda picks, worth=case.worth: worth([row // COPIES for row in picks]))
        for case in regime.cases
    ]
    return Task(regime._replace(texts=texts, cases=cases, names=names or None), task.queries)


def written_by_gemma(questions: Sequence[str]) -> list[list[str]]:
    """The sub-questions in the line with which the model continues the prompt."""
    model = next(models(argparse.Namespace(model=None, endpoint=None, batch_size=16, dtype=None)))
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
    lists = [np.argsort(-(vectors @ query), kind="stable")[:size].tolist() for query in embedded]
    rows = list(dict.fromkeys(chain.from_iterable(lists)))
    texts = [task.regime.texts[row] for row in rows]
    names = None if task.regime.names is None else [task.regime.names[row] for row in rows]
    at = np.array(rows)
    return Fetched(
        " ".join(queries), embedded, at, vectors[at], texts, at[:0], names=names, queries=queries, lists=lists
    )


def fuse(size: int) -> Select:
    """Reciprocal rank fusion of lists of this length."""

    def select(fetched: Fetched, k: int) -> Picks:
        score: dict[int, float] = {}
        for rows in fetched.lists:
            for rank, row in enumerate(rows[:size], 1):
                score[row] = score.get(row, 0) + 1 / (RRF_K + rank)
        return sorted(score, key=lambda row: -score[row])[:k]

    return select


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


# --- what was tried -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tried(Coverage):
    """The default whose parts that are queries have another width, or another weight."""

    served: float = SERVED
    times: float = 1.0

    def _terms(self, candidates: Candidates, shown: list[int]) -> _Terms:
        terms = super()._terms(candidates, shown)
        a, w, queries = terms.a.copy(), terms.w.copy(), slice(len(terms.b), terms.first)
        a[:, queries] **= SERVED / self.served
        w[queries] *= self.times
        return terms._replace(a=a, w=w)


def by_words_of_question(fetched: Fetched, k: int) -> Picks:
    return by_texts(Coverage())(replace(fetched, question=fetched.queries[0]), k)


def standardised_by_query(fetched: Fetched) -> np.ndarray:
    return np.max([standardised(cosines) for cosines in fetched.query @ fetched.vectors.T], axis=0)


def by_relevance(of: Callable[[Fetched], np.ndarray]) -> Select:
    return lambda fetched, k: by_texts(Coverage())(replace(fetched, relevance=of(fetched)), k)


TRIED: dict[str, Select] = {
    "as it is": by_texts(Coverage()),
    **{f"served: {factor} standard deviations": by_texts(Tried(served=factor)) for factor in (0.25, 1.0)},
    "the queries are no parts": by_texts(Tried(times=0.0)),
    **{f"the queries weigh {times:g} times as much": by_texts(Tried(times=times)) for times in (0.5, 2.0)},
    "the words of the question alone": by_words_of_question,
    "relevance: the highest cosine": by_relevance(lambda fetched: fetched.candidates.relevance),
    "relevance: the highest cosine in standard deviations of its query": by_relevance(standardised_by_query),
    "relevance: the mean cosine": by_relevance(lambda fetched: (fetched.vectors @ fetched.query.T).mean(axis=1)),
}


# --- measuring ------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """Whether everything is found, in points, of shape (questions, KS), by method."""

    questions: list[str]
    development: np.ndarray
    found: dict[str, np.ndarray]
    tried: dict[str, np.ndarray]  # 0 on the other half

    def mean(self, method: str) -> np.ndarray:
        mean: np.ndarray = self.found[method][~self.development].mean(axis=0)
        return mean

    def minus(self, method: str, base: str) -> list[Figures]:
        """For each k."""
        values = (self.found[method] - self.found[base])[~self.development]
        questions = [one for one, drop in zip(self.questions, self.development, strict=True) if not drop]
        return [(column, questions) for column in values.T]


def measure(task: Task, model: str) -> Cell:
    vectors = embed(task.regime.texts, model)
    of_text = dict.fromkeys(chain.from_iterable(task.queries))
    vector_of = dict(zip(of_text, embed(list(of_text), model, query=True), strict=True))
    questions = [case.question for case in task.regime.cases]
    development = np.array([is_development(question) for question in questions])
    found, tried = ({name: np.zeros((len(questions), len(KS))) for name in some} for some in (METHODS, TRIED))
    for number, (case, queries) in enumerate(zip(task.regime.cases, task.queries, strict=True)):
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
        for name, select in TRIED.items() if development[number] else ():
            picks = select(fetched["union"], max(KS))
            tried[name][number] = [100 * case.worth(picks[:k]) for k in KS]
    return Cell(questions, development, found, tried)


# --- tables ---------------------------------------------------------------------------------------

Cells = dict[str, Cell]  # by task, with one kind of vectors


def both(means: np.ndarray) -> str:
    """With 5 and with 10 texts."""
    return " / ".join(f"{mean:.1f}" for mean in means)


def found_tables(cells: Cells) -> str:
    """One table for the texts as they are, and one for texts that are stored three times."""
    parts = []
    for stored in (False, True):
        some = {name: cell for name, cell in cells.items() if name.endswith(STORED) == stored}
        rows = [[method, *(both(cell.mean(method)) for cell in some.values())] for method in METHODS]
        rows.append(["questions", *(str((~cell.development).sum()) for cell in some.values())])
        title = "stored three times" if stored else "everything found among 5 / 10 texts"
        parts.append(table([title, *(name.removesuffix(STORED) for name in some)], rows))
    return "\n".join(parts)


def difference_table(cells: Cells, bases: Sequence[str]) -> str:
    rows = [
        [name, *(interval([one]) for base in bases for one in cell.minus(ONE_SET, base))]
        for name, cell in cells.items()
    ]
    return table(["one set minus …", *(f"{base}, k = {k}" for base in bases for k in KS)], rows)


def added(cells: Cells, task: str, to: str) -> dict[str, list[Figures]]:
    """For some methods, what the sub-questions of a task add to the fewer ones of another, for each k."""
    figures = {}
    for stored in ("", STORED):
        more, fewer = cells[task + stored], cells[to + stored]
        for method in (RRF, HIGHEST, ONE_SET):
            two = more._replace(found={"more": more.found[method], "fewer": fewer.found[method]})
            figures[method + stored] = two.minus("more", "fewer")
    return figures


def added_table(cells: Cells, task: str, to: str) -> str:
    rows = [[method, *(interval([one]) for one in figures)] for method, figures in added(cells, task, to).items()]
    return table(["points that they add", *(f"k = {k}" for k in KS)], rows)


def tried_table(cells: Cells) -> str:
    rows = []
    for name in TRIED:
        means = [cell.tried[name][cell.development].mean(axis=0) for cell in cells.values()]
        rows.append([name, *map(both, means), f"{np.mean(means):.1f}"])
    return table(["one set", *cells, "mean"], rows)


def count_table(found: dict[str, Task]) -> str:
    rows = []
    for name, task in found.items():
        if not name.endswith(STORED):
            queries = [query for some in task.queries for query in some[1:]]
            shown = (len(task.regime.texts), len(task.queries), len(queries), sum("#" in query for query in queries))
            rows.append([name, *(f"{count:,}" for count in shown)])
    return table(["", "texts", "questions", "sub-questions", "with #"], rows)


def verdict(cells: Cells) -> str:
    lines = []
    for name, asked in ASKED.items():
        got = cells[name].mean(ONE_SET)
        lines.append(f"- {_holds(all(got >= asked))}: {name}, at least {asked[0]} / {asked[1]}. Found: {both(got)}.")
    losses = {
        f"{name}, k = {k}": figures
        for name, cell in cells.items()
        for k, figures in zip(KS, cell.minus(ONE_SET, HIGHEST), strict=True)
    }
    worst = min(losses, key=lambda name: losses[name][0].mean())
    lines.append(
        f"- {_holds(losses[worst][0].mean() >= -MOST_LOSS)}: never more than {MOST_LOSS:g} point below the highest "
        f"cosine. The lowest figure: {interval([losses[worst]])}, {worst}."
    )
    return "\n".join(lines) + "\n"


def _holds(condition: bool) -> str:
    return "Holds" if condition else "Does not hold"


# --- the page -------------------------------------------------------------------------------------


def page(found: dict[str, Task], cells_of: dict[str, Cells]) -> str:
    cells = cells_of[MINILM]
    packages = ["numpy", "sentence-transformers", "torch", *(PACKAGES[model][0] for model in cells_of)]
    text = heading("One set for several queries", "benchmarks/several_queries.py", FILES, packages, SEED)
    others = "".join(
        f"## With {model}\n\n{found_tables(some)}\n{difference_table(some, (RRF, HIGHEST))}\n"
        for model, some in cells_of.items()
        if model != MINILM
    )
    return f"""{text}
A question and its sub-questions are searched for one by one, and k texts are returned for all of them. All figures are
percent of the questions for which **every text that the answer needs** is among 5 / 10 texts, with {MINILM}
(texts cut after {MAX_TOKENS} tokens) unless another model is named. The questions are those of the half on which
nothing was chosen.

{found_tables(cells)}
- *Question alone*: {FETCH_K} candidates and no sub-questions. *Similarity* takes the nearest, *the default* is
  `Coverage()`.
- The other rows search for {LIST} candidates of each query. *RRF* is reciprocal rank fusion with the constant {RRF_K},
  of the first 10 or all {LIST} candidates of each query. *Round robin* takes the best text of each query that is not
  there yet, query by query. *Highest cosine* takes the k texts with the highest cosine with any of the queries.
- *One set* is the default, `Coverage()`, on the union of the candidates: the words are those of all queries, and each
  query is a part that the set has to cover. `reference_weight=0` leaves out what the texts name.
- *`fetch_k={FETCH_K}` shared out*: as the retrievers search, max(k, ⌈{FETCH_K} / q⌉) candidates of each of q queries.

{count_table(found)}
- {WIKI}: the sub-questions were written by a language model that knew the answers. Each can be searched as it is
  ("When did Albert Zugsmith die?"), as in an agent's second search.
- {FIRST_STEP}: only the sub-questions that name no answer to another one, as a reader can write them
  before any search.
- {STRATEGY}: the sub-questions were written by people. "#1" stands for the answer to the first one, so some cannot be
  searched as they are. *Without #* leaves these out.
{gemma_text(found)}{"".join(f"- {model} was not run." for model in VECTORS if model not in cells_of)}

What was asked beforehand:

{verdict(cells)}
The differences in points, with 95 % bootstrap intervals over questions:

{difference_table(cells, (RRF, HIGHEST))}
## When sub-questions bring nothing

A sub-question that cannot be searched as it is brings one set nothing. In {WIKI}, with 5 / 10 texts, it finds
{both(cells[WIKI].mean(ONE_SET))} with the sub-questions of both steps, {both(cells[FIRST_STEP].mean(ONE_SET))} with
those of the first step, and {both(cells[WIKI].mean(ALONE))} with the question alone. So search for the second step when
the first one is answered. What the sub-questions of the second step add to those of the first, in points:

{added_table(cells, WIKI, FIRST_STEP)}
What the sub-questions of {STRATEGY} with # add to those without:

{added_table(cells, STRATEGY, SEARCHABLE)}
What all sub-questions of a task add to the question alone:

{difference_table(cells, (ALONE,))}
{others}## What was tried, on the development half

{tried_table(cells)}
The first row is `Coverage()`. Each other row changes one thing: how many standard deviations below the highest cosine
with a query a text covers it by 1/e ({SERVED:g} in the package), what the queries weigh beside the words, which words
count, or what stands for the cosine in the relevance (T is one standard deviation of ρ then, as for one query).
"""


def gemma_text(found: dict[str, Task]) -> str:
    if HOTPOT not in found:
        return f"- HotpotQA dev with sub-questions by {GEMMA} was not run. `make models`, then this script runs it.\n"
    written = next(queries for queries in found[HOTPOT].queries if len(queries) > 2)
    some = " ".join(written[1:])
    return f"""\
- {HOTPOT}: {GEMMA} (270 million weights) wrote the sub-questions from the question alone, after four examples, greedily
  and with at most {TOKENS} tokens. For "{written[0]}" it wrote: "{some}"
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.relative_to(ROOT)}")
    write = parser.parse_args().write
    require(*FILES)
    found = tasks()
    cells_of: dict[str, Cells] = {}
    for model in VECTORS:
        if not is_installed(model):
            print(f"skipped: {model} is not installed; run make models")
            continue
        cells_of[model] = {name: measure(task, model) for name, task in found.items()}
        print(model, flush=True)
    text = page(found, cells_of)
    print(text)
    if write:
        RESULT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
