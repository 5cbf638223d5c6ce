"""What setselect does: five docstrings of NumPy for each question, by five methods, in ten seconds.

python examples/demo.py                    three questions
python examples/demo.py "How do I ...?"    your own
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from _minilm import Docs, faiss_store, minilm, numpy_docs
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table
from rich.text import Text

# Frameworks and model take seconds to import. Functions import them, so that the first lines appear at once.
if TYPE_CHECKING:
    from langchain_community.vectorstores import FAISS
    from llama_index.core import VectorStoreIndex

QUESTIONS = (
    "Draw normal random numbers and save them to a text file",
    "Compute the Fourier transform and pad the array with zeros",
    "Join two arrays along a new axis and flip the result",
)
K, FETCH_K = 5, 50
# Docstrings with a cosine of at least this value differ in little more than the name of the function.
REPEAT = 0.75
# Width of the column with the names of the rows.
_LABELS = 9
# λ is 0.5 by default in LangChain and LlamaIndex; 0.8 is often better.
METHODS: dict[str, dict[str, Any]] = {
    "similarity": {"selector": "similarity"},
    "MMR 0.5": {"selector": "mmr", "lambda_mult": 0.5},
    "MMR 0.8": {"selector": "mmr", "lambda_mult": 0.8},
    "VRSD": {"selector": "vrsd"},
    "coverage": {},  # the default
}


@dataclass(frozen=True)
class Picks:
    """What one method picked, in its order, and the measures of the set."""

    names: list[str]
    cosines: list[float]
    repeats: list[bool]
    pairwise: float
    together: float


def measure(docs: Docs, query: Sequence[float], names: list[str], cosines: list[float]) -> Picks:
    """The measures of a set, from its stored vectors."""
    vectors = docs.vectors[[docs.names.index(name) for name in names]].astype(np.float64)
    between = vectors @ vectors.T
    earlier = np.tril(between, -1)
    total = vectors.sum(axis=0)
    return Picks(
        names,
        cosines,
        repeats=(earlier.max(axis=1) >= REPEAT).tolist(),
        pairwise=float(earlier.sum() / (len(names) * (len(names) - 1) / 2)),
        together=float(total @ query / (np.linalg.norm(total) * np.linalg.norm(query))),
    )


def through_langchain(store: FAISS, question: str, method: str) -> tuple[list[str], list[float]]:
    """Names and cosines of what a LangChain retriever returns."""
    from langchain_setselect import SetSelectRetriever

    retriever = SetSelectRetriever(vectorstore=store, k=K, fetch_k=FETCH_K, scores=True, **METHODS[method])
    found = retriever.invoke(question)
    return [d.id or "" for d in found], [d.metadata["relevance_score"] for d in found]


def through_llamaindex(index: VectorStoreIndex, question: str, method: str) -> tuple[list[str], list[float]]:
    """Names and cosines of what a LlamaIndex retriever returns."""
    from llamaindex_setselect import SetSelectIndexRetriever

    found = SetSelectIndexRetriever(index, similarity_top_k=K, fetch_k=FETCH_K, **METHODS[method]).retrieve(question)
    return [n.node_id for n in found], [n.score or 0.0 for n in found]


def llamaindex_index(docs: Docs) -> VectorStoreIndex:
    """A LlamaIndex index over the same vectors; nothing is embedded again."""
    import faiss
    from llama_index.core import StorageContext, VectorStoreIndex
    from llama_index.core.schema import TextNode
    from llama_index.embeddings.langchain import LangchainEmbedding
    from llama_index.vector_stores.faiss import FaissVectorStore

    rows = zip(docs.names, docs.texts, docs.vectors.tolist(), strict=True)
    return VectorStoreIndex(
        [TextNode(id_=name, text=text, embedding=vector) for name, text, vector in rows],
        storage_context=StorageContext.from_defaults(
            vector_store=FaissVectorStore(faiss_index=faiss.IndexFlatIP(docs.vectors.shape[1]))
        ),
        embed_model=LangchainEmbedding(minilm()),
    )


def table(picked: dict[str, Picks], width: int) -> Table:
    """One column for each method: its picks from top to bottom, then the measures."""
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    shown.add_column("", style="dim", width=_LABELS)
    column_width = max(12, (width - _LABELS - len(picked)) // len(picked))
    for method in picked:
        style = "bold" if METHODS[method] else "bold cyan"
        shown.add_column(f" {method}", header_style=style, width=column_width, overflow="fold")
    nearest = set(picked["similarity"].names)
    for i in range(max(len(p.names) for p in picked.values())):
        shown.add_row(f"pick {i + 1}", *(_cell(p, i, nearest, column_width) for p in picked.values()))
    shown.add_section()
    best = max(p.together for p in picked.values())
    shown.add_row("repeats", *(f" {sum(p.repeats)}" for p in picked.values()))
    shown.add_row("pairwise", *(f" {p.pairwise:.3f}" for p in picked.values()))
    shown.add_row(
        "together",
        *(Text(f" {p.together:.3f}", "bold" if best - p.together < 5e-4 else "") for p in picked.values()),
    )
    return shown


def _cell(picks: Picks, i: int, nearest: set[str], width: int) -> Text:
    if i >= len(picks.names):
        return Text("")
    module, function = picks.names[i].split(".")[-2:]
    start = f"{'*' if picks.repeats[i] else ' '}{picks.cosines[i]:.2f} "
    if module == "numpy":
        name = function
    else:
        fits = len(start) + len(module) + 1 + len(function) <= width
        name = f"{module}.{function}" if fits else f"{module}.\n{' ' * len(start)}{function}"
    new = picks.names[i] not in nearest
    return Text(start + name, "red" if picks.repeats[i] else "green" if new else "")


def reasons(store: FAISS, question: str) -> dict[str, str]:
    """Why the default picks each text, in words, by the name of the text."""
    from langchain_setselect import SetSelectRetriever

    retriever = SetSelectRetriever(vectorstore=store, k=K, fetch_k=FETCH_K, scores=True)
    return {d.id or "": d.metadata["selection_reason"] for d in retriever.invoke(question)}


def main(argv: Sequence[str]) -> int:
    """Print the comparison; return 1 if the two adapters disagree, else 0."""
    questions = [text for text in argv if text.strip()] or list(QUESTIONS)
    # Without a terminal rich assumes 80 columns, which are too few for five methods.
    columns = os.environ.get("COLUMNS", "")
    width = None if sys.stdout.isatty() else int(columns) if columns.isdigit() else 120
    console = Console(highlight=False, width=width)
    console.print(
        "\n[bold]setselect[/] selects the documents for a prompt as a set. The nearest documents often all answer one "
        "half of a question, and none answers the other half.\n"
        f"Below: the {K} docstrings that each method picks from the {FETCH_K} that are nearest to the question."
    )
    docs = numpy_docs(lambda batches, _: track(batches, "Embedding the docstrings (first run only)", console=console))
    with console.status("Loading the model, indexing ..."):
        store, index = faiss_store(docs), llamaindex_index(docs)
    differing = []
    for question in questions:
        query = minilm().embed_query(question)
        picked = {}
        for method in METHODS:
            names, cosines = through_langchain(store, question, method)
            picked[method] = measure(docs, query, names, cosines)
            others, _ = through_llamaindex(index, question, method)
            if names != others:
                differing.append((question, method, names, others))
        console.print(f"\n[bold]{escape(question)}[/]\n")
        console.print(table(picked, console.width))
        console.print("Why coverage picks them:")
        for name, reason in reasons(store, question).items():
            console.print(f"  {name.removeprefix('numpy.')}: {escape(reason)}")
    console.print(
        "\nThe number before each pick is its cosine with the question. [red]*[/] marks a pick that nearly repeats an "
        f"earlier one (cosine {REPEAT} or more). [green]Green[/] marks a pick that similarity does not have.\n"
        "[bold]repeats[/]: the number of marks. [bold]pairwise[/]: mean cosine between the picks; lower means fewer "
        "repetitions. [bold]together[/]: cos(sum of the picks, question); higher means that the set matches it better. "
        "The number after MMR is its λ, the weight of relevance. [bold cyan]coverage[/] is the default. It also reads "
        "the words of the question and of the texts. A percentage is the share of a pick's worth: of its relevance "
        "above the least relevant candidate, and of the words that no earlier pick has.\n"
        "Single questions are no evidence; docs/choosing.md has figures."
    )
    if len(questions) > 1:
        console.print(
            'Try your own question: make demo QUERY="How do I ...?" The methods differ less for a question of one part.'
        )
    return _verdict(console, len(questions) * len(METHODS), differing)


def _verdict(console: Console, sets: int, differing: list[tuple[str, str, list[str], list[str]]]) -> int:
    for question, method, langchain, llamaindex in differing:
        console.print(
            f'[red]{method} differs[/] for "{escape(question)}"\n  LangChain  {langchain}\n  LlamaIndex {llamaindex}'
        )
    agree = sets - len(differing)
    console.print(
        f"\nIn {agree} of {sets} sets LangChain and LlamaIndex, each with its own adapter and FAISS store, give the "
        "same picks in the same order."
    )
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
