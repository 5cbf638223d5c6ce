"""VRSD paper, Table 2: how well a language model answers with the examples of each method (ROUGE-L, accuracy).

python benchmarks/papers/vrsd_downstream.py --write                 # with a small model that is trained here
python benchmarks/papers/vrsd_downstream.py --model NAME --write    # a transformers name or folder
python benchmarks/papers/vrsd_downstream.py --endpoint URL --model NAME --write
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.papers import _language_models as language_models
from benchmarks.papers import small_lm
from benchmarks.papers._common import MINILM, embedded, heading, records, require, table, write
from benchmarks.papers._language_models import LanguageModel
from benchmarks.papers.vrsd import DATA_SETS as EMBEDDED
from benchmarks.papers.vrsd import PAPER_MMR, REFINED, SEED, SELECTORS, SETTINGS, VRSD, best, split
from shared_core import select

POOL, K = SETTINGS[0]
NONE = "no examples"
METHODS = (NONE, *PAPER_MMR, VRSD, REFINED)
SMALL_QUESTIONS = 40

Pair = tuple[str, str]
# The value of an answer, in [0, 1], given the record of the question.
Judge = Callable[[str, Mapping[str, Any]], float]


def rouge_l(answer: str, references: Sequence[str]) -> float:
    """The highest ROUGE-L (F measure, no stemming) with a reference, in [0, 1].

    >>> rouge_l("the cat sat", ["a dog", "the cat slept"])
    0.6666666666666666
    """
    from rouge_score.rouge_scorer import RougeScorer

    return float(RougeScorer(["rougeL"]).score_multi(list(references), answer)["rougeL"].fmeasure)


def named_option(answer: str, choices: Sequence[Pair]) -> str | None:
    """The option that an answer names, or None: by a letter in brackets, a letter at the front, or the option's text.

    >>> named_option("(B) a fox", [("A", "a hen"), ("B", "a fox")])
    'B'
    >>> named_option("A fox", [("A", "a hen"), ("B", "a fox")])
    'B'
    """
    labels = [label for label, _ in choices]
    letters = "".join(map(re.escape, labels))
    found = re.search(rf"\(([{letters}])\)", answer) or re.match(rf"\s*([{letters}])(?:[).:]|\s*$)", answer)
    if found:
        return found[1]
    # The longest option counts: an option may be part of another one.
    named = [(len(text), label) for label, text in choices if text.casefold() in answer.casefold()]
    return max(named)[1] if named else None


def _accuracy(answer: str, record: Mapping[str, Any]) -> float:
    choices = [(choice["label"], choice["text"]) for choice in record["choices"]]
    return float(named_option(answer, choices) == record["answer_key"])


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
        "ARC-Challenge",
        "arc_challenge/arc_challenge.jsonl",
        lambda record: (record["question"], record["answers"][0]),
        "ROUGE-L",
        lambda answer, record: rouge_l(answer, record["answers"]),
        32,
        ("0.355, 0.216", "0.364, 0.218", "0.347, 0.222", "0.371, 0.233"),
    ),
    DataSet(
        "OpenBookQA",
        "openbookqa/questions.jsonl",
        small_lm.lettered,
        "accuracy",
        _accuracy,
        24,
        ("0.767, 0.508", "0.772, 0.507", "0.780, 0.510", "0.789, 0.534"),
    ),
    DataSet(
        "Puzzle",
        "puzzle/puzzle.jsonl",
        lambda record: (record["story"], record["answer"]),
        "ROUGE-L",
        lambda answer, record: rouge_l(answer, [record["answer"]]),
        96,
        ("0.206, 0.198", "0.202, 0.188", "0.188, 0.186", "0.213, 0.198"),
    ),
)


def few_shot(shots: Iterable[Pair], question: str) -> str:
    """The prompt: examples in the order of selection, each on separate lines, then the question."""
    return "\n\n".join([*(small_lm.plain(*map(_one_paragraph, shot)) for shot in shots), small_lm.plain(question)])


def _one_paragraph(text: str) -> str:
    # A blank line separates examples, so an example must not contain one.
    return re.sub(r"\s*\n\s*\n\s*", "\n", text)


def prompts(
    query: np.ndarray, question: str, items: np.ndarray, pairs: Sequence[Pair], size: int = POOL, k: int = K
) -> dict[str, str]:
    """The prompt of each method for one question, with k items from the pool of the nearest."""
    pool = best(items @ query, size)
    picks = {name: pool[select(query, items[pool], k, **SELECTORS[name]).indices] for name in METHODS if name != NONE}
    return {name: few_shot([pairs[row] for row in picks.get(name, ())], question) for name in METHODS}


def answer_values(
    data_set: DataSet, kept: Sequence[dict[str, Any]], count: int | None, model: LanguageModel
) -> dict[str, Any]:
    """The value of every answer, for each method; ``count`` random questions are asked, or all."""
    asked, rest = split(len(kept))
    # All questions are embedded, even if only some are asked: the cached embeddings then serve vrsd.py too.
    texts = next(table.read for table in EMBEDDED if table.title == data_set.title)
    queries = embedded([texts(kept[row])[0] for row in asked])
    items = embedded([" ".join(texts(kept[row])) for row in rest])
    pairs = [data_set.read(record) for record in kept]
    examples = [pairs[row] for row in rest]
    drawn = np.arange(len(asked))
    if count is not None and count < len(asked):
        drawn = np.sort(np.random.default_rng(SEED).choice(len(asked), count, replace=False))
    made = [prompts(queries[i], pairs[asked[i]][0], items, examples) for i in drawn]
    answers = model.complete([prompt for of_question in made for prompt in of_question.values()], data_set.tokens)
    worth = np.array(
        [data_set.judge(answer, kept[asked[drawn[i // len(METHODS)]]]) for i, answer in enumerate(answers)]
    ).reshape(-1, len(METHODS))
    return dict(zip(METHODS, worth.T, strict=True))


def mean_with_error(values: np.ndarray) -> str:
    """The mean over questions and its standard error; a single question has no error."""
    mean = f"{values.mean():.3f}"
    return f"{mean} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}" if len(values) > 1 else mean


def lines(data_set: DataSet, values: Mapping[str, np.ndarray]) -> str:
    """One data set as a Markdown table with the paper's figures."""
    paper = dict(zip((*PAPER_MMR, VRSD), data_set.paper, strict=True))
    rows = ([name, mean_with_error(worth), paper.get(name, "")] for name, worth in values.items())
    return table(["examples by", data_set.measure, "paper: gpt-3.5-turbo, open-mistral-7b"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the page; ``--write`` also writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_models.add_arguments(parser)
    options = parser.parse_args(arguments)
    files = [data_set.file for data_set in DATA_SETS]
    if not options.model:
        files = list(dict.fromkeys([*files, *small_lm.FILES]))
    require(*files)
    count = options.questions or (None if options.model else SMALL_QUESTIONS)
    body = ""
    for model in language_models.models(options):
        for data_set in DATA_SETS:
            start = time.perf_counter()
            values = answer_values(data_set, records(data_set.file), count, model)
            body += f"\n## {data_set.title}, {model.name}: {len(values[VRSD])} questions\n\n{lines(data_set, values)}"
            print(f"{data_set.title}, {model.name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    script = language_models.command("benchmarks/papers/vrsd_downstream.py", options)
    packages = ("setselect", "numpy", "sentence-transformers", "torch", "transformers", "rouge-score")
    top = heading("VRSD paper, Table 2", script, files, packages, SEED)
    part = f", or {count} of them if there are more" if count else ""
    text = EXPLAINED.format(part=part, embedding=MINILM, k=K, pool=POOL)
    page = language_models.with_proof(f"{top}\n{text}{body}", options)
    print(page, end="")
    if options.write:
        write(f"vrsd_downstream{language_models.suffix(options)}.md", page)


EXPLAINED = """\
## What this is

The questions are a random fifth of each data set{part}.
The other records are the examples. An example is embedded as one text of question and answer, the query as the question
alone (paper 4.1; {embedding}, the same split and embeddings as in `vrsd.md`). Each method selects {k} of the nearest
{pool}. The prompt is the examples in the order of selection, `Q: …`, `A: …`, then the question. OpenBookQA's questions
are shown with their options, which are not embedded. The answer is the first line that the model writes, greedily.
ROUGE-L is the F measure without stemming. An answer to OpenBookQA is right if it names the keyed option, by letter or
text. ± is the standard error over questions.

Differences from the paper:

- Models: the paper uses gpt-3.5-turbo and open-mistral-7b, which need a network. These commands make its table:

      python benchmarks/papers/vrsd_downstream.py --write --model mistralai/Mistral-7B-v0.1
      python benchmarks/papers/vrsd_downstream.py --write --endpoint http://localhost:8000/v1 --model NAME

- ARC-DA was not available. ARC-Challenge takes its place, with the text of the keyed option as the only answer.
- The paper's ± seems to be over repeated runs of models that sample their answers. A greedy answer is always the same.
- Pool and k are those of the paper's published code. The paper does not give the prompt and the length of answers.
"""


if __name__ == "__main__":
    main()
