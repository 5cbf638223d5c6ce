"""VRSD paper, Table 2: how well a language model answers with the examples of each method (ROUGE-L, accuracy).

--model NAME takes another model than Gemma 3 270M: a name or folder for transformers.
Answers and scores are kept under .cache/, so an interrupted run resumes where it stopped.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.common import Block, best, facts, parser, publish, records, require, table, with_interval
from benchmarks.models import GEMMA, MINILM, MPNET, is_installed, unit_vectors
from benchmarks.papers import _language_models as language_models
from benchmarks.papers._language_models import LanguageModel, plain
from benchmarks.papers.vrsd import DATA_SETS as EMBEDDED
from benchmarks.papers.vrsd import PAPER_MMR, REFINED, SEED, SELECTORS, SETTINGS, VRSD, split
from shared_core import select
from shared_core.evaluation.measures import bootstrap_interval

POOL, K = SETTINGS[0]
NONE = "no examples"
METHODS = (NONE, *PAPER_MMR, VRSD, REFINED)
# Questions of a data set that are asked unless --questions says otherwise.
QUESTIONS = 200
REPRODUCED, IN_DIRECTION = "reproduced", "reproduced in direction"
MOST_PROBABLE, RIGHT = "accuracy, most probable option", "log p of the right option"

Pair = tuple[str, str]
# The value of an answer, in [0, 1], given the record of the question.
Judge = Callable[[str, Mapping[str, Any]], float]
# For each measure and method one value a question.
Values = dict[str, dict[str, np.ndarray]]


def with_options(question: str, choices: Sequence[Pair]) -> str:
    """A question with its lettered options.

    >>> with_options("The sky is", [("A", "blue"), ("B", "green")])
    'The sky is\\n(A) blue\\n(B) green'
    """
    return "\n".join([question, *(f"({label}) {text}" for label, text in choices)])


def lettered(record: Mapping[str, Any]) -> Pair:
    """A multiple-choice record: the question with its options, and the keyed option with its letter."""
    choices = _choices(record)
    return with_options(record["question"], choices), f"({record['answer_key']}) {dict(choices)[record['answer_key']]}"


def without_options(record: Mapping[str, Any]) -> Pair:
    """A multiple-choice record: the question, and the text of the keyed option."""
    return record["question"], dict(_choices(record))[record["answer_key"]]


def _choices(record: Mapping[str, Any]) -> list[Pair]:
    return [(choice["label"], choice["text"]) for choice in record["choices"]]


def rouge_l(answer: str, references: Sequence[str]) -> float:
    """The highest ROUGE-L (F measure, no stemming) with a reference, in [0, 1].

    >>> rouge_l("the cat sat", ["a dog", "the cat slept"])
    0.6666666666666666
    """
    from rouge_score.rouge_scorer import RougeScorer

    return float(RougeScorer(["rougeL"]).score_multi(list(references), answer)["rougeL"].fmeasure)


def named_option(answer: str, choices: Sequence[Pair]) -> str | None:
    """The option that an answer names, or None: by "(B)", "B" at the front, "answer is B", or the option's text.

    >>> named_option("(B) a fox", [("A", "a hen"), ("B", "a fox")])
    'B'
    >>> named_option("A fox", [("A", "a hen"), ("B", "a fox")])
    'B'
    """
    labels = [label for label, _ in choices]
    letters = "".join(map(re.escape, labels))
    for pattern in (rf"\(([{letters}])\)", rf"^\s*([{letters}])(?:[).:]|\s*$)", rf"answer is:? ([{letters}])\b"):
        if found := re.search(pattern, answer):
            return found[1]
    # The longest option counts: an option may be part of another one.
    named = [(len(text), label) for label, text in choices if text.casefold() in answer.casefold()]
    return max(named)[1] if named else None


def _accuracy(answer: str, record: Mapping[str, Any]) -> float:
    return float(named_option(answer, _choices(record)) == record["answer_key"])


@dataclass(frozen=True)
class DataSet:
    """``read`` returns question and answer as the prompt shows them; ``tokens`` is the longest answer."""

    title: str
    file: str
    read: Callable[[dict[str, Any]], Pair]
    measure: str
    judge: Judge
    tokens: int
    paper: tuple[str, ...]


# The paper's values are those of gpt-3.5-turbo and of open-mistral-7b.
DATA_SETS = (
    DataSet(
        "ARC-Challenge", "arc_challenge/arc_challenge.jsonl", without_options, "ROUGE-L",
        lambda answer, record: rouge_l(answer, record["answers"]), 32,
        ("0.355, 0.216", "0.364, 0.218", "0.347, 0.222", "0.371, 0.233"),
    ),
    DataSet(
        "OpenBookQA", "openbookqa/questions.jsonl", lettered, "accuracy", _accuracy, 24,
        ("0.767, 0.508", "0.772, 0.507", "0.780, 0.510", "0.789, 0.534"),
    ),
    DataSet(
        "Puzzle", "puzzle/puzzle.jsonl", lambda record: (record["story"], record["answer"]), "ROUGE-L",
        lambda answer, record: rouge_l(answer, [record["answer"]]), 96,
        ("0.206, 0.198", "0.202, 0.188", "0.188, 0.186", "0.213, 0.198"),
    ),
)  # fmt: skip


def few_shot(shots: Iterable[Pair], question: str) -> str:
    """The prompt: examples in the order of selection, each on separate lines, then the question."""
    return "\n\n".join([*(plain(*map(_one_paragraph, shot)) for shot in shots), plain(question)])


def _one_paragraph(text: str) -> str:
    # A blank line separates examples, so an example must not contain one.
    return re.sub(r"\s*\n\s*\n\s*", "\n", text)


def picks(query: np.ndarray, items: np.ndarray, size: int = POOL, k: int = K) -> dict[str, Sequence[int]]:
    """The rows of the examples of each method for one question: k items from the pool of the nearest."""
    pool = best(items @ query, size)
    rows = {name: pool[select(query, items[pool], k, **SELECTORS[name]).indices] for name in METHODS if name != NONE}
    return {NONE: ()} | {name: found.tolist() for name, found in rows.items()}


def embedding_model() -> str:
    """The paper's own model if it is installed."""
    return MPNET if is_installed(MPNET) else MINILM


def answer_values(data_set: DataSet, kept: Sequence[dict[str, Any]], count: int, model: LanguageModel) -> Values:
    """The measures of each method, question by question; ``count`` random questions are asked, or all."""
    asked, rest = split(len(kept))
    # All questions are embedded, even if only some are asked: the cached embeddings are those of vrsd.py.
    texts = next(table.read for table in EMBEDDED if table.title == data_set.title)
    queries = unit_vectors([texts(kept[row])[0] for row in asked], embedding_model())
    items = unit_vectors([" ".join(texts(kept[row])) for row in rest], embedding_model())
    drawn = language_models.sample(len(asked), count)
    questions = [kept[asked[i]] for i in drawn]
    shown = [[[kept[rest[row]] for row in rows] for rows in picks(queries[i], items).values()] for i in drawn]
    answers = iter(
        model.complete(
            [prompt for of_question in prompts(data_set.read, questions, shown) for prompt in of_question],
            data_set.tokens,
            language_models.resume_file(model, "answers"),
        )
    )
    worth = [[data_set.judge(next(answers), question) for _ in METHODS] for question in questions]
    values = {data_set.measure: _by_method(worth)}
    return values | (_option_values(questions, shown, model) if "choices" in questions[0] else {})


def prompts(
    read: Callable[[dict[str, Any]], Pair],
    questions: Sequence[dict[str, Any]],
    shown: Sequence[Sequence[Sequence[dict[str, Any]]]],
) -> list[list[str]]:
    """For each question one prompt a method; ``shown`` holds the records of its examples."""
    return [
        [few_shot(map(read, shots), read(question)[0]) for shots in of_question]
        for question, of_question in zip(questions, shown, strict=True)
    ]


def _option_values(
    questions: Sequence[dict[str, Any]], shown: Sequence[Sequence[Sequence[dict[str, Any]]]], model: LanguageModel
) -> Values:
    """Whether the right option is the most probable answer, and its log-probability; no prompt shows options."""
    made = prompts(without_options, questions, shown)
    options = [[f" {text}" for _, text in _choices(question)] for question in questions]
    asked = [
        (prompt, option)
        for of_question, texts in zip(made, options, strict=True)
        for prompt in of_question
        for option in texts
    ]
    # Equal prompts are scored once.
    distinct = list(dict.fromkeys(asked))
    scores = model.totals(*zip(*distinct, strict=True), resume=language_models.resume_file(model))
    total = dict(zip(distinct, scores, strict=True))
    hits, logs = [], []
    for question, of_question, texts in zip(questions, made, options, strict=True):
        right = [label for label, _ in _choices(question)].index(question["answer_key"])
        found = np.array([[total[prompt, option] for option in texts] for prompt in of_question])
        hits.append((found.argmax(axis=1) == right).astype(float))
        logs.append(found[:, right])
    return {MOST_PROBABLE: _by_method(hits), RIGHT: _by_method(logs)}


def _by_method(worth: Sequence[Sequence[float] | np.ndarray]) -> dict[str, np.ndarray]:
    return dict(zip(METHODS, np.array(worth).T, strict=True))


def mean_with_error(values: np.ndarray) -> str:
    """The mean over questions and its standard error; a single question has no error."""
    mean = f"{values.mean():.3f}"
    return f"{mean} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}" if len(values) > 1 else mean


def lines(data_set: DataSet, values: Values) -> str:
    """One data set as a Markdown table: each measure, what VRSD adds to each row, and the paper's figures."""
    paper = dict(zip((*PAPER_MMR, VRSD), data_set.paper, strict=True))
    head, rows = ["examples by"], {name: [name] for name in METHODS}
    for measure, of_methods in values.items():
        head += [measure, "VRSD adds"]
        for name, worth in of_methods.items():
            rows[name] += [
                mean_with_error(worth),
                "" if name == VRSD else with_interval(of_methods[VRSD] - worth, seed=SEED),
            ]
    head.append(f"paper: {data_set.measure}, gpt-3.5-turbo, open-mistral-7b")
    return table(head, [[*row, paper.get(name, "")] for name, row in rows.items()])


def verdict(values: Values) -> dict[str, str]:
    """For each measure, whether VRSD's examples give better answers than those of the paper's MMR rows, and by what."""
    said = {}
    for measure, of_methods in values.items():
        added = [of_methods[VRSD] - of_methods[name] for name in PAPER_MMR]
        intervals = [bootstrap_interval(one, seed=SEED) for one in added]
        above, below = sum(low > 0 for low, _ in intervals), sum(high < 0 for _, high in intervals)
        ahead = sum(one.mean() > 0 for one in added)
        kind = REPRODUCED if above == len(added) else IN_DIRECTION if ahead == len(added) else "not reproduced"
        said[measure] = (
            f"**{kind}**. VRSD is ahead of {ahead} of the {len(added)} MMR rows. "
            f"The interval is above 0 for {above} of them and below 0 for {below}."
        )
    return said


def summary(said: Sequence[str]) -> str:
    """How often the paper's claim is reproduced, over all measures of all data sets."""
    whole, direction = (sum(f"**{kind}**" in one for one in said) for kind in (REPRODUCED, IN_DIRECTION))
    return (
        f"The paper's claim is reproduced for {whole} of {len(said)} measures, reproduced in direction for "
        f"{direction}, and not reproduced for {len(said) - whole - direction}.\n"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    made = parser(__doc__, "papers/vrsd_downstream.md")
    language_models.add_arguments(made)
    options = made.parse_args(arguments)
    files = [data_set.file for data_set in DATA_SETS]
    require(*files)
    count = options.questions or QUESTIONS
    model = language_models.model_of(options)
    figures = {d: answer_values(d, records(d.file), count, model) for d in DATA_SETS}
    page = f"papers/vrsd_downstream{language_models.suffix(options)}.md"
    write = options.write and not options.questions
    publish("papers/vrsd_downstream.md", blocks(figures, model, options), write, page)


def blocks(figures: Mapping[DataSet, Values], model: LanguageModel, options: Namespace) -> Iterator[Block]:
    yield from language_models.head("vrsd_downstream", options)
    packages = ("setselect", "numpy", "sentence-transformers", "torch", "transformers", "rouge-score")
    yield facts([data_set.file for data_set in figures], packages, SEED)
    verdicts = {data_set: verdict(values) for data_set, values in figures.items()}
    yield f"## {GEMMA}", f"## {model.name}"
    yield ", weights in ", model.described
    yield "The paper's claim is reproduced for ", summary([said for one in verdicts.values() for said in one.values()])
    for data_set, values in figures.items():
        yield lines(data_set, values)
        yield ": **", "".join(f"- {measure}: {said}\n" for measure, said in verdicts[data_set].items())


if __name__ == "__main__":
    main()
