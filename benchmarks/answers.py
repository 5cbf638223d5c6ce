"""What a language model answers from the texts that each method selects: HotpotQA dev and 2WikiMultihopQA.

Gemma 3 270M, which make models installs, gets five texts and a question, after three worked examples. Judged are the
answer that it writes, and the probability of the right one. The prompt was chosen on the development half of the
questions, and the figures are from the other half.

Every score and every answer is kept in .cache/answers/, so an interrupted run resumes. The whole run takes a quarter of
an hour of one core.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.common import CACHE, Block, facts, parser, publish, records, require, table, with_interval
from benchmarks.learned.judge import END, Judge
from benchmarks.papers import _language_models as language_models
from benchmarks.papers._language_models import LanguageModel
from benchmarks.regimes_methods import DEFAULT, HYBRID, METHODS, SIMILARITY, Corpus, search_for
from benchmarks.regimes_tasks import REGIMES, SEED, embed_regime, test_half
from shared_core.evaluation.measures import bootstrap_interval
from shared_core.texts.word_index import WordIndex
from shared_core.texts.words import Text

PAGE = "answers.md"
FOLDER = CACHE / "answers"
FOLDERS = {"HotpotQA dev": "hotpotqa_dev", "2WikiMultihopQA": "2wiki"}
FILES = [f"{folder}/{name}.jsonl" for folder in FOLDERS.values() for name in ("passages", "questions")]
K = 5
QUESTIONS = 100  # of each set
LONGEST_ANSWER = 16  # tokens
# The questions of the worked examples, all of the development half: a date, a name, and yes.
WORKED = ("5a77d31c55429967ab1052c0", "f2d2dcca096611ebbdafac1f6bf848b6", "5a89f6235542993b751ca9c7")
OTHERS = ("MMR λ 0.8", HYBRID)
SELECTED = (SIMILARITY, *OTHERS, DEFAULT)
# The bounds: what the model knows by itself, and what it answers from exactly the texts that are needed.
NOTHING, NEEDED = "no texts", "the needed texts"
ROWS = (NOTHING, *SELECTED, NEEDED)


WORDS = 60  # each text is cut after so many


class Asked(NamedTuple):
    """A question, and for each row of the tables the texts of its prompt, as (title, text), the best first."""

    question: str
    answer: str
    texts: dict[str, list[tuple[str, str]]]
    found: dict[str, float]  # whether all needed texts are there


# --- prompts and answers ----------------------------------------------------------------------------


def read_set(name: str) -> list[Asked]:
    """The questions of the test half of a set with the picks of every method."""
    regime = test_half(REGIMES[f"{name}, paragraphs"][0]())
    questions = {record["question"]: record for record in records(f"{FOLDERS[name]}/questions.jsonl")}
    row_of = {passage["id"]: row for row, passage in enumerate(records(f"{FOLDERS[name]}/passages.jsonl"))}
    vectors, queries = embed_regime(regime)
    names = regime.names or []
    test = []
    corpus = Corpus(regime, vectors, list(map(Text, regime.texts)), WordIndex(regime.texts))
    for case, query in zip(regime.cases, queries, strict=True):
        record = questions[case.question]
        search = corpus.with_words(search_for(regime, case, query, vectors), case)
        picks = {NOTHING: [], NEEDED: [row_of[passage] for passage in record["gold"]]}
        picks |= {method: METHODS[method](search, K) for method in SELECTED}
        asked = Asked(
            case.question,
            record["answer"],
            {row: [(names[pick], regime.texts[pick]) for pick in some] for row, some in picks.items()},
            {row: case.worth(some) for row, some in picks.items()},
        )
        test.append(asked)
    return test


def worked_examples() -> list[tuple[str, str, list[tuple[str, str]]]]:
    found = {}
    for folder in FOLDERS.values():
        passages = {passage["id"]: passage for passage in records(f"{folder}/passages.jsonl")}
        for question in records(f"{folder}/questions.jsonl"):
            if question["id"] in WORKED:
                some = [passages[name] for name in question["gold"]]
                texts = [(passage["title"], " ".join(passage["sentences"])) for passage in some]
                found[question["id"]] = question["question"], question["answer"], texts
    return [found[name] for name in WORKED]


def prompt_item(question: str, answer: str, texts: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The texts, the best one next to the question, and the answer."""
    lines = [" ".join(text.split()[:WORDS]) for _, text in reversed(texts)]
    return {"question": "\n".join([*lines, f"Question: {question}", "Answer:"]), "answer": answer}


class Prompts:
    """The prompts. Without texts, the worked examples have none either."""

    def __init__(self) -> None:
        worked = worked_examples()
        self._with_texts = [prompt_item(*example) for example in worked]
        self._without = [prompt_item(question, answer, []) for question, answer, _ in worked]

    def of(self, asked: Asked, row: str) -> tuple[dict[str, str], list[dict[str, str]]]:
        """The item that is asked, and the worked examples before it."""
        item = prompt_item(asked.question, asked.answer, asked.texts[row])
        return item, self._without if row == NOTHING else self._with_texts


def context(item: dict[str, str], examples: list[dict[str, str]]) -> str:
    return END.join([*(f"{one['question']}\n{one['answer']}" for one in examples), f"{item['question']}\n"])


def normalised(answer: str) -> list[str]:
    """The words of an answer as SQuAD compares them: lower case, without punctuation and articles."""
    without = "".join(letter for letter in answer.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", without).split()


# --- measuring --------------------------------------------------------------------------------------

# What is measured for a question and a row, in this order.
MEASURES = ("all needed texts", "exact match", "log P")
# How many digits of each are shown.
DIGITS = dict(zip(MEASURES, (1, 1, 2), strict=True))
# Per row of the tables: (questions, measures).
Figures = dict[str, np.ndarray]


def ask(judge: Judge, model: LanguageModel, some: Sequence[Asked], prompts: Prompts) -> Figures:
    places = [(asked, row) for row in ROWS for asked in some]
    pairs = [prompts.of(*place) for place in places]
    verdicts = judge.verdicts(pairs)
    contexts = [context(*pair) for pair in pairs]
    written = model.complete(contexts, LONGEST_ANSWER, FOLDER / "written.jsonl")
    values = []
    for place, (asked, row) in enumerate(places):
        exact = normalised(written[place]) == normalised(asked.answer)
        values.append([100 * asked.found[row], 100 * exact, verdicts[place][0]])
    return dict(zip(ROWS, np.array(values).reshape(len(ROWS), len(some), len(MEASURES)), strict=True))


# --- tables -----------------------------------------------------------------------------------------

# By set of questions.
BOTH = "both sets"
Groups = dict[str, Figures]


def figure_table(found: Groups) -> str:
    rows = []
    for name, figures in found.items():
        for row, values in figures.items():
            means = zip(MEASURES, values.mean(axis=0), strict=True)
            rows.append(
                [f"{name}: {row}", str(len(values)), *(f"{mean:.{DIGITS[measure]}f}" for measure, mean in means)]
            )
    return table(["", "questions", *MEASURES], rows)


def difference(figures: Figures, row: str, measure: str, base: str = SIMILARITY) -> np.ndarray:
    """The differences to another row, a question each."""
    column = MEASURES.index(measure)
    return figures[row][:, column] - figures[base][:, column]


def difference_table(found: Groups) -> str:
    rows = [
        [f"{name}: {row}", *(with_interval(difference(figures, row, measure), DIGITS[measure]) for measure in MEASURES)]
        for name, figures in found.items()
        for row in ROWS
        if row != SIMILARITY
    ]
    return table(["minus similarity", *MEASURES], rows)


def verdict(figures: Figures) -> str:
    """What the model can tell apart: setselect and similarity, setselect and the others."""
    lines = []
    for measure, base in [
        *((measure, SIMILARITY) for measure in MEASURES[1:]),
        *(("log P", method) for method in OTHERS),
    ]:
        values = difference(figures, DEFAULT, measure, base)
        low, high = bootstrap_interval(values, seed=SEED)
        tells = "Told apart" if low > 0 or high < 0 else "Not told apart"
        lines.append(f"- {tells}: {DEFAULT} minus {base}, {measure}: {with_interval(values, DIGITS[measure])}.")
    return "\n".join(lines) + "\n"


# --- the page ---------------------------------------------------------------------------------------


def blocks(found: Groups) -> Iterator[Block]:
    yield facts(FILES, ["numpy", "bm25s", "sentence-transformers", "torch", "transformers"], SEED)
    count = len(found[BOTH][SIMILARITY])
    yield (
        "The model answered ",
        f"The model answered {count} of the questions, the first of each set.\n"
        "A difference whose interval includes 0 may be chance.",
    )
    yield f": {DEFAULT} minus ", verdict(found[BOTH])
    yield figure_table(found)
    yield difference_table(found)


def main() -> None:
    made = parser(__doc__, PAGE)
    made.add_argument("--questions", type=int, default=QUESTIONS, help=f"of each set, at most ({QUESTIONS})")
    options = made.parse_args()
    require(*FILES)
    model = language_models.gemma()
    figures = {}
    for name, folder in FOLDERS.items():
        judge = Judge(model, FOLDER / f"{folder}.jsonl")
        figures[name] = ask(judge, model, read_set(name)[: options.questions], Prompts())
    both = {row: np.concatenate([one[row] for one in figures.values()]) for row in ROWS}
    publish(PAGE, blocks({BOTH: both} | figures), options.write and options.questions == QUESTIONS)


if __name__ == "__main__":
    main()
