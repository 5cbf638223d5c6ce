"""The set of tools for a request: what select_tools finds beside other methods, and its time.

MetaTool (Huang et al., ICLR 2024, arXiv 2310.03128): 199 tools of ChatGPT's plugin store, and requests that need two of
them. Choices were made on the development half of the requests; the other half checks. Whether a language model calls
the right tool is not measured. Two larger catalogues are searched by graph-tool-call too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib.util import find_spec
from itertools import cycle, islice
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import StructuredTool

from benchmarks.common import (
    Block,
    best,
    facts,
    parser,
    publish,
    records,
    require,
    say,
    table,
    with_interval,
)
from benchmarks.models import MINILM, MPNET, PACKAGES, Cached, embed, is_installed
from benchmarks.regimes_methods import METHODS, Search, hybrid
from benchmarks.regimes_tasks import Picks, is_development
from langchain_setselect import select_tools
from shared_core.retrieval import tools as core
from shared_core.texts.word_index import WordIndex
from shared_core.texts.words import split_clauses

PAGE = "tools.md"
FILES = "metatool/docs.jsonl", "metatool/queries.jsonl"
CATALOGUES = "seal_tools_dev", "stabletoolbench"
CATALOGUE_REQUESTS = 150  # graph-tool-call takes seconds for one
MODELS = (MINILM, MPNET)
KS, CATALOGUE_KS = (3, 5, 10), (5, 10)
SIMILARITY, OURS, WITHOUT_CLAUSES = "similarity", "select_tools", "select_tools, queries=()"
IN_TURN = "similarity to each clause in turn"
OTHERS = (SIMILARITY, "MMR λ 0.5", "MMR λ 0.8", "hybrid search", "VRSD", IN_TURN)
# What a model writes between two calls.
EMPTY = (
    "Let me look into that for you.",
    "I'll start with the first step.",
    "Sure! Here is what I found so far.",
    "I need to call another tool to finish this.",
    "Now I'll check the result and continue.",
)


class Request(NamedTuple):
    text: str
    gold: frozenset[str]


Messages = Sequence[HumanMessage | AIMessage]
Select = Callable[[Request, int], frozenset[str]]


class Corpus(NamedTuple):
    tools: list[dict[str, Any]]
    requests: list[Request]


def read_corpus(development: bool) -> Corpus:
    """The tools, and one half of the requests."""
    tools = [
        {"name": tool["title"], "description": tool["text"].removeprefix(f"{tool['title']}: ")}
        for tool in records(FILES[0])
    ]
    requests = [Request(query["text"], frozenset(query["gold"])) for query in records(FILES[1])]
    return Corpus(tools, [request for request in requests if is_development(request.text) == development])


def in_turn(known: Cached, text: str, vectors: np.ndarray) -> Picks:
    """The tools nearest to the request, to its first clause, and so on; then the second nearest ones."""
    rankings = [best(vectors @ np.array(known.embed_query(one)), max(KS)) for one in (text, *split_clauses(text))]
    return [*dict.fromkeys(np.array(rankings).T.ravel().tolist())]


def rankings(corpus: Corpus, known: Cached) -> dict[str, Select]:
    """The other methods, among the 50 tools that are nearest to the request; hybrid search also ranks 50 by words."""
    names = [tool["name"] for tool in corpus.tools]
    texts = [f"{tool['name']}: {tool['description']}" for tool in corpus.tools]
    vectors, index = embed(texts, known.model), WordIndex(texts)
    known.learn([text for request in corpus.requests for text in (request.text, *split_clauses(request.text))])
    picks: dict[str, dict[str, Picks]] = {name: {} for name in OTHERS}
    for request in corpus.requests:
        query = known.vectors[request.text]
        rows = best(vectors @ query, 50)
        search = Search(
            request.text, query, rows, vectors[rows], [texts[row] for row in rows], index.best_rows(request.text, 50)[0]
        )
        picks[IN_TURN][request.text] = in_turn(known, request.text, vectors)
        for name in OTHERS[:-1]:
            picks[name][request.text] = (hybrid if name == "hybrid search" else METHODS[name])(search, max(KS))

    def select(name: str, request: Request, k: int) -> frozenset[str]:
        return frozenset(names[row] for row in picks[name][request.text][:k])

    return {name: partial(select, name) for name in OTHERS}


def by_select_tools(
    corpus: Corpus,
    known: Cached,
    read: Callable[[Request], str | Messages] = lambda request: request.text,
    **settings: Any,
) -> Select:
    """The function of the package; ``read`` makes the messages."""

    def select(request: Request, k: int) -> frozenset[str]:
        chosen = select_tools(read(request), corpus.tools, k, embeddings=known, **settings)
        return frozenset(tool["name"] for tool in chosen)

    return select


def measure(corpus: Corpus, select: Select, ks: Sequence[int] = KS) -> dict[int, np.ndarray]:
    """For each k the recall of each request in per cent, (n,)."""
    found: dict[int, list[float]] = {k: [] for k in ks}
    for request in corpus.requests:
        for k in ks:
            found[k].append(100 * len(select(request, k) & request.gold) / len(request.gold))
    return {k: np.array(values) for k, values in found.items()}


def complete(recall: np.ndarray) -> np.ndarray:
    return 100.0 * (recall == 100)


def row_of(name: str, recall: dict[int, np.ndarray]) -> list[str]:
    return [name, *(f"{of(recall[k]).mean():.1f}" for of in (complete, np.array) for k in recall)]


def head(first: str, ks: Sequence[int] = KS) -> list[str]:
    return [first, *(f"{what}, k = {k}" for what in ("complete", "recall") for k in ks)]


# --- the other half --------------------------------------------------------------------------------


def result_tables(corpus: Corpus, known: Sequence[Cached]) -> Iterator[Block]:
    """What each method finds, by model; then the difference to similarity, and to the best of the others."""
    gains: list[list[str]] = []
    for one in known:
        methods = rankings(corpus, one)
        methods[WITHOUT_CLAUSES] = by_select_tools(corpus, one, queries=())
        methods[OURS] = by_select_tools(corpus, one)
        recall = {name: measure(corpus, select) for name, select in methods.items()}
        yield f"## {one.model}"
        yield table(head("method"), [row_of(name, values) for name, values in recall.items()])
        for k in KS:
            ours, base = recall[OURS][k], recall[SIMILARITY][k]
            highest = max(OTHERS, key=lambda name: complete(recall[name][k]).mean())
            gains.append([
                f"{one.model}, k = {k}",
                with_interval(complete(ours) - complete(base), 1),
                with_interval(ours - base, 1),
                f"{highest}: {with_interval(complete(ours) - complete(recall[highest][k]), 1)}",
            ])  # fmt: skip
        say(one.model)
    yield "## Differences"
    columns = ["points more than", "similarity, complete", "similarity, recall", "the best of the others, complete"]
    yield table(columns, gains)


# --- catalogues of endpoints, beside graph-tool-call -----------------------------------------------


def read_catalogue(name: str) -> Corpus:
    """The tools of a catalogue with their parameters, and the first requests of the other half."""
    tools = []
    for row in records(f"{name}/docs.jsonl"):
        description, _, parameters = row["text"].partition(" Parameters: ")
        fields = {field: {"type": "string"} for field in parameters.rstrip(".").split(", ") if field}
        schema = {"type": "object", "properties": fields}
        tools.append({"name": row["id"], "description": description, "parameters": schema})
    requests = [Request(query["text"], frozenset(query["gold"])) for query in records(f"{name}/queries.jsonl")]
    return Corpus(tools, [request for request in requests if not is_development(request.text)][:CATALOGUE_REQUESTS])


def catalogue_rows(name: str, known: Cached) -> Iterator[list[str]]:
    """Complete sets, recall and time of similarity, select_tools and graph-tool-call with the same model."""
    from graph_tool_call import ToolGraph

    corpus = read_catalogue(name)
    known.learn([text for request in corpus.requests for text in (request.text, *split_clauses(request.text))])
    names = [tool["name"] for tool in corpus.tools]
    vectors = embed([tool["description"] for tool in corpus.tools], known.model)
    graph = ToolGraph()
    graph.add_tools(corpus.tools)
    graph.enable_embedding(known.embed_documents)
    ranking = cache(lambda text: [tool.name for tool in graph.retrieve(text, top_k=CATALOGUE_KS[-1])])
    methods: dict[str, Select] = {
        SIMILARITY: lambda request, k: frozenset(names[row] for row in best(vectors @ known.vectors[request.text], k)),
        OURS: by_select_tools(corpus, known),
        "graph-tool-call": lambda request, k: frozenset(ranking(request.text)[:k]),
    }
    for method, select in methods.items():
        # The first request embeds the tools, and compiles.
        select(corpus.requests[0], KS[-1])
        start = time.process_time()
        recall = measure(corpus, select, CATALOGUE_KS[-1:])
        took = 1000 * (time.process_time() - start) / len(corpus.requests)
        recall = measure(corpus, select, CATALOGUE_KS[:-1]) | recall
        yield [f"{name}, {len(corpus.requests)} requests", *row_of(method, recall), f"{took:,.0f}"]


# --- the development half --------------------------------------------------------------------------


def choice_table(corpus: Corpus, known: Sequence[Cached]) -> str:
    """Complete sets at k = 5: what the model writes while it works."""
    drawn = dict(zip(corpus.requests, np.random.default_rng(0).choice(EMPTY, len(corpus.requests)), strict=True))

    def first(request: Request) -> str:
        return (split_clauses(request.text) or [request.text])[0]

    def follow(request: Request, text: str) -> Messages:
        return [HumanMessage(request.text), AIMessage(text)]

    def rest(request: Request) -> Messages:
        begin = first(request)
        return [HumanMessage(begin), AIMessage(f"Now I will {request.text.removeprefix(begin).strip(' ,.')}")]

    readings = [
        lambda request: follow(request, str(drawn[request])),
        rest,
        lambda request: [HumanMessage(request.text), AIMessage("Shall I do that?"), HumanMessage("Yes, please.")],
    ]
    rows = []
    for name, share in (("not read", 9.0), ("all of it", -9.0), *((f"share {s}", s) for s in (0.6, 0.7, 0.8, 1.0))):
        with mock.patch.object(core, "LEAST_SHARE", share):
            scores = [
                [
                    f"{complete(measure(corpus, by_select_tools(corpus, one, read), (5,))[5]).mean():.1f}"
                    for one in known
                ]
                for read in readings
            ]
        rows.append([name, *(" / ".join(pair) for pair in scores)])
    said = ["it says nothing", "it says the rest of the request", '"Yes, please."']
    return table(["what is said besides the request", *said], rows)


# --- time ------------------------------------------------------------------------------------------


def time_table(corpus: Corpus, known: Cached) -> str:
    """Milliseconds of the processor for a request whose texts have been embedded; the time on an idle machine."""
    texts = [request.text for request in corpus.requests[:100]]
    known.learn([*texts, *(clause for text in texts for clause in split_clauses(text))])
    rows = []
    for count in (20, 200, 2_000):
        tools = [
            StructuredTool.from_function(
                lambda text, limit=10: text, name=f"{tool['name']}_{row}", description=f"{tool['description']} ({row})"
            )
            for row, tool in enumerate(islice(cycle(corpus.tools), count))
        ]
        took = []
        # The first requests embed the tools, and compile.
        for text in (*texts[:5], *texts):
            start = time.process_time()
            select_tools(text, tools, 10, embeddings=known)
            took.append(1000 * (time.process_time() - start))
        rows.append([f"{count:,}", *(f"{np.quantile(took[5:], q):.1f}" for q in (0.5, 0.95))])
    return table(["tools", "milliseconds, median", "95 %"], rows)


def blocks() -> Iterator[Block]:
    known = [Cached(model) for model in MODELS]
    development, other = read_corpus(development=True), read_corpus(development=False)
    packages = ["numpy", "langchain-core", "graph-tool-call", *(PACKAGES[model][0] for model in MODELS)]
    yield facts(FILES, packages, 0)
    yield from result_tables(other, known)
    yield "## Beside graph-tool-call"
    rows = [row for name in CATALOGUES for row in catalogue_rows(name, known[0])]
    yield table(["catalogue", *head("method", CATALOGUE_KS), "milliseconds of the processor"], rows)
    yield choice_table(development, known)
    yield time_table(other, known[0])


def main() -> None:
    options = parser(__doc__, PAGE).parse_args()
    require(*FILES)
    for model in MODELS:
        if not is_installed(model):
            sys.exit(f"{model} is not installed: run make models")
    if find_spec("graph_tool_call") is None:
        sys.exit("graph-tool-call is not installed: run make bench FAST=1")
    publish(PAGE, blocks(), options.write)


if __name__ == "__main__":
    main()
