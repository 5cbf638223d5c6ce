"""What the page of the RAGSys tables says besides its figures, the paper's own figures, and Figure 1 as a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

# DPO, MC1, MC2, MC3 as printed: Table 1 with Mistral-7B-v0.1, Table 2 with Llama-3-8B-chat.
PAPER: dict[int, dict[str, tuple[str, ...]]] = {
    1: {
        "Fix": ("-20.40", ".2815", ".2086", ".4285"),
        "Bias": ("-33.56", ".2411", ".1652", ".3596"),
        "Rel": ("-12.71", ".4455", ".3664", ".5925"),
        "Rel+Bias": ("-13.63", ".4602", ".3663", ".5969"),
        "Rel+Div": ("-12.37", ".5177", ".3930", ".6616"),
        "Rel+Div+Bias": ("-14.54", ".4676", ".3592", ".6255"),
    },
    2: {
        "Fix": ("-22.12", ".3623", ".2709", ".5195"),
        "Bias": ("-17.55", ".3831", ".2876", ".5729"),
        "Rel": ("-17.20", ".4920", ".4046", ".6518"),
        "Rel+Bias": ("-17.14", ".5043", ".4083", ".6570"),
        "Rel+Div": ("-16.14", ".5520", ".4173", ".7009"),
        "Rel+Div+Bias": ("-15.80", ".5177", ".4007", ".6841"),
    },
}


def explained(*, asked: int, questions: int, pairs: int, triples: int, embedding: str) -> str:
    """What was measured, how, and where that differs from the paper."""
    part = f"all {asked}" if asked == questions else f"{asked}, drawn by the seed, of the {questions}"
    return f"""\
## What this is

TruthfulQA, {part} questions. The demonstrations are all {pairs:,} pairs of a question and a correct answer; for each
question its own are left out (paper 4.1.3). Six are shown (k = 6), chosen from all the others by Algorithm 1 with
λ_d = .75 and λ_b = .95 where a row has diversity and bias, and with 1 where it has not; **Bias** is quality alone
(λ_b = 0), **Fix** the six examples of TruthfulQA's own prompt. Relevance is the cosine between the two questions;
quality is the mean log-probability of the answer's tokens under the same model, unscaled, as Algorithm 1 has it. The
prompt is `Q: …`, `A: …` for each demonstration in order of choice, then the question.

**DPO** compares with the same answers without demonstrations, as a mean over triples of question, correct and
incorrect answer; a context that changes nothing has log ½ = -0.69. **MC1**, **MC2** and **MC3** are as printed in
paper 3.2. **TruthfulQA MC2** is the share of the correct answers in the probability of all reference answers,
**TruthfulQA MC3** what the paper calls MC2. Higher is better. The standard error of MC1 is at most
{0.5 / asked**0.5:.3f}.

What differs from the paper:

- Models: the paper's are Mistral-7B-v0.1 (Table 1) and Llama-3-8B-chat (Table 2, Figure 1). The two tables differ in
  nothing else. Neither can be had without a network; these make their tables:

      python benchmarks/papers/ragsys.py --write --model mistralai/Mistral-7B-v0.1
      python benchmarks/papers/ragsys.py --write --model meta-llama/Meta-Llama-3-8B-Instruct
      python benchmarks/papers/ragsys.py --write --endpoint http://localhost:8000/v1 --model NAME

  Without a name the tables are of the small model after half and after all of its training.
- MC3 as printed is a ratio without an upper bound, so that a few questions rule the mean; the paper's figures look
  like the share, TruthfulQA MC2. Compare those. To the small model a long answer is easily 1e60 times less probable
  than a short one, so that its MC3 says nothing at all.
- Counts: cutting the answers of the data set at its semicolons gives {pairs:,} pairs and {triples:,} triples; the paper
  has 2,846 and 12,485 and does not say how it got them.
- Embeddings: the paper says BERT without naming a model; here it is {embedding}.
- Prompt format, order of demonstrations, and which values of λ_d Figure 1 has, are not in the paper.
"""


def chart(path: Path, swept: Sequence[tuple[float, float, float]], model: str) -> None:
    """Write Figure 1 as SVG: DPO against mean pairwise cosine, each point with its λ_d. Equal points, equal files."""
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
        axes.set_title(f"{model}, k = 6, λ_b = .95")
        axes.margins(0.12)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})
