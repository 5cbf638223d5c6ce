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
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import CACHE, Block, facts, parser, publish, records, require, table
from benchmarks.learned.judge import END, Judge
from benchmarks.papers import _language_models as language_models
from benchmarks.papers._language_models import LanguageModel
from benchmarks.regimes import contains, space_words
from benchmarks.regimes_methods import DEFAULT, HYBRID, METHODS, SIMILARITY, Corpus, search_for
from benchmarks.regimes_tasks import REGIMES, SEED, embed_regime, test_half
from shared_core.evaluation.measures import bootstrap_interval
from shared_core.signals.language_models import Item
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
SELECTED = (SIMILARITY, "MMR λ 0.8", HYBRID, DEFAULT)
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
    contained: dict[str, float]  # whether the answer is written in one of them; NaN for yes and no

    @property
    def is_yes_or_no(self) -> bool:
        return self.answer.casefold() in ("yes", "no")


# --- prompts and answers ----------------------------------------------------------------------------


def read_set(name: str) -> list[Asked]:
    """The questions of the test half of a set with the picks of every method."""
    regime = test_half(REGIMES[f"{name}, paragraphs"][0]())
    questions = {record["question"]: record for record in records(f"{FOLDERS[name]}/questions.jsonl")}
    row_of = {passage["id"]: row for row, passage in enumerate(records(f"{FOLDERS[name]}/passages.jsonl"))}
    vectors, queries = embed_regime(regime)
    spaced = [space_words(text) for text in regime.texts]
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
            {row: contains(case, some, spaced) for row, some in picks.items()},
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


def f1(written: str, right: str) -> float:
    """SQuAD's F1 of the words, 0 to 1."""
    given, wanted = normalised(written), normalised(right)
    if wanted in (["yes"], ["no"]):
        return float(given == wanted)
    same = sum((Counter(given) & Counter(wanted)).values())
    return 2 * same / (len(given) + len(wanted)) if same else 0.0


# --- measuring --------------------------------------------------------------------------------------

# What is measured for a question and a row, in this order.
MEASURES = ("all needed texts", "answer in a text", "exact match", "F1", "log P", "log P per token", "tokens")
# The tables show these in percent.
SHARES = MEASURES[:4]
# Per row of the tables: (questions, measures).
Figures = dict[str, np.ndarray]


def ask(judge: Judge, model: LanguageModel, some: Sequence[Asked], prompts: Prompts) -> Figures:
    places = [(asked, row) for row in ROWS for asked in some]
    pairs = [prompts.of(*place) for place in places]
    verdicts = judge.verdicts(pairs)
    contexts = [context(*pair) for pair in pairs]
    written = model.complete(contexts, LONGEST_ANSWER, FOLDER / "written.jsonl")
    lengths = count_tokens(model, contexts)
    answers = count_tokens(model, [asked.answer + END for asked in some])
    values = []
    for place, (asked, row) in enumerate(places):
        log, _ = verdicts[place]
        exact = normalised(written[place]) == normalised(asked.answer)
        shares = [asked.found[row], asked.contained[row], exact, f1(written[place], asked.answer)]
        per_token = log / answers[place % len(some)]
        values.append([*(100 * share for share in shares), log, per_token, lengths[place]])
    return dict(zip(ROWS, np.array(values).reshape(len(ROWS), len(some), len(MEASURES)), strict=True))


def count_tokens(model: LanguageModel, texts: Sequence[str]) -> list[int]:
    """The tokens of each text, without the one that begins every text."""
    counts = model.answers.count_tokens([Item(row, "\n", text) for row, text in enumerate(texts)])
    return [count - 2 for count in counts]


# --- tables -----------------------------------------------------------------------------------------

# The questions of a table: their number, and the figures of each row.
Groups = dict[str, Figures]


def groups(sets: dict[str, list[Asked]], figures: dict[str, Figures]) -> Groups:
    """Both sets, each set, and its questions with and without yes or no as the answer."""
    found = {"both sets": {row: np.concatenate([some[row] for some in figures.values()]) for row in ROWS}}
    for name, asked in sets.items():
        found[name] = figures[name]
        closed = np.array([one.is_yes_or_no for one in asked])
        for words, kept in (("other answers", ~closed), ("yes or no", closed)):
            found[f"{name}, {words}"] = {row: values[kept] for row, values in figures[name].items()}
    return found


def figure_table(found: Groups) -> str:
    rows = []
    for name, figures in found.items():
        for row, values in figures.items():
            if len(values):
                means = [
                    f"{mean_of(column):.{2 if 'log' in measure else 0 if measure == 'tokens' else 1}f}"
                    for measure, column in zip(MEASURES, values.T, strict=True)
                ]
                rows.append([f"{name}: {row}", str(len(values)), *(mean.replace("nan", "") for mean in means)])
    return table(["", "questions", *MEASURES], rows)


def mean_of(values: np.ndarray) -> float:
    """The mean of the known values; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def difference(figures: Figures, row: str, measure: str, base: str = SIMILARITY) -> tuple[float, float, float] | None:
    """The mean difference to another row, and its 95 % bootstrap interval over questions."""
    column = MEASURES.index(measure)
    values = figures[row][:, column] - figures[base][:, column]
    values = values[~np.isnan(values)]
    return (float(values.mean()), *bootstrap_interval(values, seed=SEED)) if len(values) else None


def shown(found: tuple[float, float, float] | None, measure: str) -> str:
    if found is None:
        return ""
    mean, low, high = (f"{value:+.{1 if measure in SHARES else 2}f}" for value in found)
    return f"{mean} ({low} to {high})"


def difference_table(found: Groups) -> str:
    rows = [
        [f"{name}: {row}", *(shown(difference(figures, row, measure), measure) for measure in MEASURES[:-1])]
        for name, figures in found.items()
        if len(figures[SIMILARITY]) > 1
        for row in ROWS
        if row != SIMILARITY
    ]
    return table(["minus similarity", *MEASURES[:-1]], rows)


def text_table(sets: dict[str, list[Asked]]) -> str:
    """What the selected texts of all questions hold, without a model."""
    rows = []
    for name, some in sets.items():
        for measure, of in (("all needed texts", "found"), ("answer in a text", "contained")):
            values = {row: 100 * np.array([getattr(asked, of)[row] for asked in some]) for row in SELECTED}
            known = ~np.isnan(values[SIMILARITY])
            more = values[DEFAULT][known] - values[SIMILARITY][known]
            interval = shown((float(more.mean()), *bootstrap_interval(more, seed=SEED)), measure)
            means = [f"{values[row][known].mean():.1f}" for row in SELECTED]
            rows.append([f"{name}: {measure}", str(known.sum()), *means, interval])
    return table(["percent of the questions", "questions", *SELECTED, f"{DEFAULT} minus similarity"], rows)


def verdict(found: Groups) -> str:
    """What the model can tell apart: setselect and similarity, setselect and the others."""
    lines = []
    for measure, base in [(measure, SIMILARITY) for measure in MEASURES[1:-1]] + [
        ("log P", method) for method in SELECTED[1:-1]
    ]:
        some = difference(found["both sets"], DEFAULT, measure, base)
        assert some is not None
        tells = "Told apart" if some[1] > 0 or some[2] < 0 else "Not told apart"
        lines.append(f"- {tells}: {DEFAULT} minus {base}, {measure}: {shown(some, measure)}.")
    return "\n".join(lines) + "\n"


# --- the page ---------------------------------------------------------------------------------------


def blocks(sets: dict[str, list[Asked]], found: Groups) -> Iterator[Block]:
    yield facts(FILES, ["numpy", "bm25s", "sentence-transformers", "torch", "transformers"], SEED)
    yield text_table(sets)
    count = len(found["both sets"][SIMILARITY])
    yield (
        "The model answered ",
        f"""\
The model answered {count} of these questions, the first of each set.
A difference whose interval includes 0 may be chance.""",
    )
    yield f": {DEFAULT} minus ", verdict(found)
    yield figure_table(found)
    yield difference_table(found)


def main() -> None:
    made = parser(__doc__, PAGE)
    made.add_argument("--questions", type=int, default=QUESTIONS, help=f"of each set, at most ({QUESTIONS})")
    options = made.parse_args()
    require(*FILES)
    model = language_models.gemma()
    sets, some, figures = {}, {}, {}
    for name, folder in FOLDERS.items():
        judge = Judge(model, FOLDER / f"{folder}.jsonl")
        sets[name] = read_set(name)
        some[name] = sets[name][: options.questions]
        figures[name] = ask(judge, model, some[name], Prompts())
    publish(PAGE, blocks(sets, groups(some, figures)), options.write and options.questions == QUESTIONS)


if __name__ == "__main__":
    main()
