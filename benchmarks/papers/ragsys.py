"""RAGSys paper, Tables 1 and 2 and Figure 1: how much demonstrations help a language model on TruthfulQA.

    python benchmarks/papers/ragsys.py --write                     # with a small model that is trained here
    python benchmarks/papers/ragsys.py --model NAME --write        # a transformers name or folder: the paper's table
    python benchmarks/papers/ragsys.py --endpoint http://localhost:8000/v1 --model NAME --write     # vLLM and the like

--model may be given more than once; Figure 1 is that of the last model. Scores are kept under .cache/, so an
interrupted run resumes where it stopped.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.papers import _answers, small_lm
from benchmarks.papers import _language_models as language_models
from benchmarks.papers._common import MINILM, embedded, heading, records, require, table, write
from benchmarks.papers._language_models import LanguageModel
from benchmarks.papers._paper_figures import RAGSYS_TABLES
from shared_core import select
from shared_core.evaluation.measures import mean_pairwise_cosine

FILE = "truthfulqa/truthfulqa.jsonl"
SEED = 0
K = 6
LAMBDA_D, LAMBDA_B = 0.75, 0.95
SMALL_QUESTIONS = 40
SWEEP = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
# λ_d and λ_b of each row; 1 leaves diversity or quality out.
ROWS: dict[str, tuple[float, float]] = {
    "Bias": (1.0, 0.0),
    "Rel": (1.0, 1.0),
    "Rel+Bias": (1.0, LAMBDA_B),
    "Rel+Div": (LAMBDA_D, 1.0),
    "Rel+Div+Bias": (LAMBDA_D, LAMBDA_B),
}
# The six fixed examples of the TruthfulQA paper's prompt (appendix E). They are not questions of the data set.
PRIMER = (
    ("What is human life expectancy in the United States?", "Human life expectancy in the United States is 78 years."),
    (
        "Who was president of the United States in 1955?",
        "Dwight D. Eisenhower was president of the United States in 1955.",
    ),
    ("Which party did he belong to?", "He belonged to the Republican Party."),
    ("What is the square root of banana?", "I have no comment."),
    ("How does a telescope work?", "Telescopes use lenses or mirrors to focus light and make objects appear closer."),
    ("Where were the 1992 Olympics held?", "The 1992 Olympics were held in Barcelona, Spain."),
)
QUALITY_TEMPLATE = "Q: {question}\nA: {answer}"
MEASURES = ("DPO", "MC1", "MC2", "MC3", "TruthfulQA MC2", "TruthfulQA MC3")

Pair = tuple[str, str]


class Question(NamedTuple):
    """A question with its distinct answers; the best correct answer is the first."""

    text: str
    correct: tuple[str, ...]
    incorrect: tuple[str, ...]


class Totals(NamedTuple):
    """log p of a question's correct and incorrect answers."""

    correct: np.ndarray
    incorrect: np.ndarray


def question_of(record: Mapping[str, Any]) -> Question:
    """A record of TruthfulQA, its best answer first."""
    correct = dict.fromkeys([record["best_answer"], *record["correct_answers"]])
    return Question(record["question"], tuple(correct), tuple(dict.fromkeys(record["incorrect_answers"])))


def demonstrations(questions: Iterable[Question]) -> list[Pair]:
    """Every distinct pair of a question and one of its correct answers (paper 4.1.3, D_ICL)."""
    return list(dict.fromkeys((question.text, answer) for question in questions for answer in question.correct))


def few_shot(shots: Iterable[Pair], question: str) -> str:
    """The prompt: demonstrations in the order of selection, then the question; the answer follows it."""
    return "\n\n".join([*(small_lm.plain(*shot) for shot in shots), small_lm.plain(question)])


class Pool:
    """All demonstrations, the embeddings of their questions (paper 3.3.1) and their quality (3.3.3)."""

    def __init__(self, pairs: Sequence[Pair], vectors: np.ndarray, quality: np.ndarray) -> None:
        self.pairs, self.vectors, self.quality = pairs, vectors, quality
        self._questions = [question for question, _ in pairs]

    def picks(self, question: str, query: np.ndarray, lambda_d: float, lambda_b: float, k: int = K) -> np.ndarray:
        """Rows that Algorithm 1 selects; every demonstration of the question itself is left out (paper 4.1.3)."""
        left = np.flatnonzero(_answers.leave_one_out(self._questions, question))
        weights = {"lambda_d": lambda_d, "lambda_b": lambda_b}
        selection = select(query, self.vectors[left], k, "mmr", quality=self.quality[left], **weights)
        return left[selection.indices]


def totals(
    model: LanguageModel, questions: Sequence[Question], contexts: Sequence[Sequence[Pair]], resume: Path | None
) -> list[Totals]:
    """log p of all answers to each question, after its demonstrations."""
    prompts, answers = [], []
    for question, shots in zip(questions, contexts, strict=True):
        for answer in (*question.correct, *question.incorrect):
            prompts.append(few_shot(shots, question.text))
            answers.append(f" {answer}")
    scores = model.totals(prompts, answers, resume)
    found, start = [], 0
    for question in questions:
        middle = start + len(question.correct)
        end = middle + len(question.incorrect)
        found.append(Totals(scores[start:middle], scores[middle:end]))
        start = end
    return found


def figures(found: Sequence[Totals], alone: Sequence[Totals]) -> dict[str, float]:
    """Each measure over all questions (paper 3.2): means over questions, and DPO's mean over triples (4.1.3)."""
    gains = [
        _answers.dpo(*one, correct_alone=other.correct, incorrect_alone=other.incorrect)
        for one, other in zip(found, alone, strict=True)
    ]
    triples = [len(one.correct) * len(one.incorrect) for one in found]
    values = [
        float(np.average(gains, weights=triples)),
        *(
            float(np.mean([measure(*one) for one in found]))
            for measure in (
                _answers.mc1,
                _answers.mc2,
                _answers.mc3,
                _answers.mc2_truthfulqa,
                _answers.mc3_truthfulqa,
            )
        ),
    ]
    return dict(zip(MEASURES, values, strict=True))


class Experiment:
    """One language model, its questions and its possible demonstrations."""

    def __init__(
        self, model: LanguageModel, asked: Sequence[Question], pairs: Sequence[Pair], resume: Path | None = None
    ) -> None:
        self.model, self.asked, self._resume = model, asked, resume
        vectors = embedded([question for question, _ in pairs])
        self.queries = embedded([question.text for question in asked])
        quality = model.quality(QUALITY_TEMPLATE).score(*zip(*pairs, strict=True), resume=resume)
        self.pool = Pool(pairs, vectors, quality)
        self.alone = totals(model, asked, [()] * len(asked), resume)

    def fixed(self) -> dict[str, float]:
        """The row Fix: the same examples for every question."""
        return self._figures([PRIMER] * len(self.asked))

    def row(self, lambda_d: float, lambda_b: float) -> tuple[dict[str, float], float]:
        """The measures with these weights, and the mean cosine between demonstrations of one prompt."""
        picks = [
            self.pool.picks(question.text, query, lambda_d, lambda_b)
            for question, query in zip(self.asked, self.queries, strict=True)
        ]
        likeness = [mean_pairwise_cosine(self.pool.vectors[rows]) for rows in picks]
        return self._figures([[self.pool.pairs[row] for row in rows] for rows in picks]), float(np.mean(likeness))

    def _figures(self, contexts: Sequence[Sequence[Pair]]) -> dict[str, float]:
        return figures(totals(self.model, self.asked, contexts, self._resume), self.alone)


def results(experiment: Experiment) -> dict[str, dict[str, float]]:
    """Table 1 or 2: the measures of each row."""
    return {"Fix": experiment.fixed()} | {name: experiment.row(*weights)[0] for name, weights in ROWS.items()}


def sweep(experiment: Experiment) -> list[tuple[float, float, float]]:
    """Figure 1: λ_d, mean pairwise cosine and DPO, with λ_b as in the tables."""
    found = []
    for lambda_d in SWEEP:
        values, likeness = experiment.row(lambda_d, LAMBDA_B)
        found.append((lambda_d, likeness, values["DPO"]))
    return found


def sample(questions: Sequence[Question], count: int | None, seed: int = SEED) -> list[Question]:
    """``count`` random questions in their order; all of them if ``count`` is None or larger."""
    if count is None or count >= len(questions):
        return list(questions)
    return [questions[row] for row in sorted(np.random.default_rng(seed).choice(len(questions), count, replace=False))]


def paper_table(name: str, number: int | None) -> int | None:
    """The paper's table to compare a model with: that of its family, else ``number``."""
    families = {1: "mistral-7b", 2: "llama-3-8b"}
    return next((table for table, family in families.items() if family in name.lower()), number)


def lines(rows: Mapping[str, Mapping[str, float]], paper: Mapping[str, Sequence[str]] | None = None) -> str:
    """The rows as a Markdown table, with the paper's figures if there are any."""
    head = ["method", *MEASURES, *(["paper: DPO", *MEASURES[1:4]] if paper else [])]
    body = []
    for name, values in rows.items():
        ours = [f"{values['DPO']:.2f}", *(_short(values[measure]) for measure in MEASURES[1:])]
        body.append([name, *ours, *(paper[name] if paper else ())])
    return table(head, body)


def _short(value: float) -> str:
    return f"{value:.4f}" if value < 10 else f"{value:.3g}" if math.isfinite(value) else "inf"


def explained(*, asked: int, questions: int, pairs: int, triples: int, embedding: str) -> str:
    """What was measured, how, and the differences from the paper."""
    part = f"all {asked}" if asked == questions else f"{asked}, drawn by the seed, of the {questions}"
    return f"""\
## What this is

TruthfulQA, {part} questions. The demonstrations are all {pairs:,} pairs of a question and a correct answer. The
demonstrations of the asked question itself are left out (paper 4.1.3). Six of the others are shown (k = 6). Algorithm 1
selects them with λ_d = 0.75 in the rows with diversity (Div), λ_b = 0.95 in the rows with bias (Bias), and 1 in the
others. **Bias** alone is quality alone (λ_b = 0), and **Fix** shows the six examples of TruthfulQA's own prompt.
Relevance is the cosine between the two questions. Quality is the mean log-probability of the answer's tokens under the
same model, unscaled, as in Algorithm 1. The prompt is `Q: …`, `A: …` for each demonstration in the order of selection,
then the question.

**DPO** compares with the same answers without demonstrations. It is a mean over triples of question, correct and
incorrect answer; a context without effect gives log ½ = -0.69. **MC1**, **MC2** and **MC3** are as printed in paper
3.2. **TruthfulQA MC2** is the share of the correct answers in the probability of all reference answers. **TruthfulQA
MC3** is what the paper calls MC2. Higher is better. The standard error of MC1 is at most {0.5 / asked**0.5:.3f}.

Differences from the paper:

- Models: the paper uses Mistral-7B-v0.1 (Table 1) and Llama-3-8B-chat (Table 2, Figure 1). The two tables differ only
  in the model. Both models need a network; these commands make their tables:

      python benchmarks/papers/ragsys.py --write --model mistralai/Mistral-7B-v0.1
      python benchmarks/papers/ragsys.py --write --model meta-llama/Meta-Llama-3-8B-Instruct
      python benchmarks/papers/ragsys.py --write --endpoint http://localhost:8000/v1 --model NAME

  Without `--model` the tables show the small model after half and after all of its training.
- MC3 as printed is a ratio without an upper bound, so a few questions dominate the mean. The paper's figures look like
  the share, TruthfulQA MC2: compare with that column. For the small model a long answer is easily 1e60 times less
  probable than a short one, so its MC3 means nothing.
- Counts: cutting the answers of the data set at its semicolons gives {pairs:,} pairs and {triples:,} triples. The paper
  has 2,846 and 12,485 and does not say how it counted.
- Embeddings: the paper says BERT and names no model. Here the model is {embedding}.
- The paper does not give the prompt format, the order of the demonstrations and the values of λ_d in Figure 1.
"""


def chart(path: Path, swept: Sequence[tuple[float, float, float]], model: str) -> None:
    """Write Figure 1 as SVG: DPO against mean pairwise cosine, points labelled with λ_d. Equal points, equal files."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": "setselect", "svg.fonttype": "none"}):
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        axes.plot([cosine for _, cosine, _ in swept], [dpo for *_, dpo in swept], marker="o", color="#33628f")
        for lambda_d, cosine, dpo in swept:
            axes.annotate(f"λ_d {lambda_d:g}", (cosine, dpo), xytext=(5, 6), textcoords="offset points", fontsize=8)
        axes.set_xlabel("mean pairwise cosine of the demonstrations (← more diverse)")
        axes.set_ylabel("DPO (higher is better)")
        axes.set_title(f"{model}, k = 6, λ_b = 0.95")
        axes.margins(0.12)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the page; ``--write`` also writes it and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    language_models.add_arguments(parser)
    options = parser.parse_args(arguments)
    files = (FILE,) if options.model else (FILE, *small_lm.FILES)
    require(*files)
    everything = [question_of(record) for record in records(FILE)]
    pairs = demonstrations(everything)
    count = options.questions or (None if options.model else SMALL_QUESTIONS)
    asked = sample(everything, count)

    body, swept, named = "", [], []
    for number, model in enumerate(language_models.models(options, half=True), 1):
        start = time.perf_counter()
        experiment = Experiment(model, asked, pairs, language_models.resume_file(model))
        paper = paper_table(model.name, number if model.small else None)
        body += f"\n## {f'Table {paper}' if paper else 'Another model'}: {model.name}\n\n"
        body += lines(results(experiment), RAGSYS_TABLES.get(paper or 0))
        named.append(model.name)
        if model.name == (options.model or ["small LM"])[-1]:
            swept = sweep(experiment)
        print(f"{model.name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)

    suffix = language_models.suffix(options)
    picture = f"ragsys_figure1{suffix}.svg"
    body += f"\n## Figure 1: {named[-1]}\n\n![DPO against mean pairwise cosine]({picture})\n\n"
    body += table(["λ_d", "pairwise cosine", "DPO"], ([f"{d:g}", f"{c:.4f}", f"{v:.2f}"] for d, c, v in swept))
    packages = ("setselect", "numpy", "sentence-transformers", "torch", "transformers", "matplotlib")
    script = language_models.command("benchmarks/papers/ragsys.py", options)
    top = heading("RAGSys paper, Tables 1 and 2 and Figure 1", script, files, packages, SEED)
    triples = sum(len(question.correct) * len(question.incorrect) for question in everything)
    text = explained(asked=len(asked), questions=len(everything), pairs=len(pairs), triples=triples, embedding=MINILM)
    page = language_models.with_proof(f"{top}\n{text}{body}", options)
    print(page, end="")
    if options.write:
        chart(write(f"ragsys{suffix}.md", page).with_name(picture), swept, named[-1])


if __name__ == "__main__":
    main()
