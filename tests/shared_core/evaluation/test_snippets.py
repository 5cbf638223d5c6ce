"""The lines to paste run, and select what the setting of the comparison selects."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document as Text
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from shared_core import Candidates, LowRankKernel, Selector, select
from shared_core.evaluation.advice import lines_to_paste
from shared_core.evaluation.results import Setting
from shared_core.evaluation.settings import named, sweep, with_merged_lists, with_scores


@pytest.mark.parametrize(
    ("setting", "selector", "keep_duplicates"),
    [(*one, False) for one in sweep()]
    + [(*named("vrsd", refine=True), True), (*named("mmr", max_per_source=2, budget=18), False)]
    + [(*named("similarity", drop_near_duplicates=0.5, score_threshold=-1), False)],
)
def test_the_lines_to_paste_run_and_select_with_the_setting(
    setting: Setting, selector: Selector, keep_duplicates: bool
) -> None:
    lines = lines_to_paste(setting, k=3, fetch_k=8, drop_duplicates=not keep_duplicates)
    rows = np.random.default_rng(0).standard_normal((10, 4))
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    metadata = [{"source": str(i % 3)} for i in range(10)]
    store.add_texts([f"text {i}" for i in range(10)], metadata)
    documents = [Text(entry["text"], id=name, metadata=entry["metadata"]) for name, entry in store.store.items()]
    nodes = [TextNode(text=f"text {i}", embedding=r.tolist(), metadata=metadata[i]) for i, r in enumerate(rows)]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    words = {"question": "text 7", "texts": [f"text {i}" for i in range(1, 10)]}
    limits = {"sources": [one["source"] for one in metadata[1:]], "costs": [6] * 9}
    arrays = {"query": rows[0], "vectors": rows[1:], **words, **limits}
    spaces: list[dict[str, Any]] = [{"store": store, "documents": documents}, {"index": index, "nodes": nodes}, arrays]
    for code, space in zip(lines.values(), spaces, strict=True):
        exec(code, space)
    assert list(lines) == ["LangChain", "LlamaIndex", "Arrays"]
    retriever, other, selection = spaces[0]["retriever"], spaces[1]["retriever"], spaces[2]["selection"]
    assert 0 < len(retriever.invoke("text")) <= 3
    assert 0 < len(other.retrieve("text")) <= 3
    if "max_per_source" not in setting.label:
        expected = selector.select(Candidates(rows[0], rows[1:]), 3)
        if setting.reads_words:
            expected = select(rows[0], rows[1:], 3, selector, **words)
        assert selection.indices.tolist() == expected.indices.tolist()
    if setting.label != "similarity":
        assert ("drop_duplicates" in lines["LangChain"]) == keep_duplicates
        assert ("drop_duplicates" in lines["LlamaIndex"]) == keep_duplicates


def test_the_lines_of_keyword_search() -> None:
    lines = lines_to_paste(named("coverage", keyword_search=True)[0], k=3, fetch_k=8)
    assert all("keyword_search=True" in lines[framework] for framework in ("LangChain", "LlamaIndex"))
    assert "keyword_search" not in lines["Arrays"]
    # After a reranker, the searches before it are the user's.
    scored = lines_to_paste(named("coverage", keyword_search=True, relevance="scores")[0], k=3, fetch_k=8)
    assert not any("keyword_search" in one for one in scored.values())


def test_the_lines_for_sub_questions_name_them() -> None:
    settings = with_merged_lists(sweep(), 50)
    lines = {setting.label: lines_to_paste(setting, k=3, fetch_k=8) for setting, _ in settings}
    assert lines["RRF over the queries"] == {}
    for label in ("highest cosine", "coverage", "mmr lambda_mult=0.5"):
        assert all("queries=split" in lines[label][framework] for framework in ("LangChain", "LlamaIndex"))
        space = {"queries": np.eye(4)[:2], "vectors": np.random.default_rng(0).standard_normal((9, 4))}
        exec(lines[label]["Arrays"], space | {"questions": ["a", "b"], "texts": ["a b"] * 9})
        ast.parse("\n".join(lines[label].values()))
    assert not any("queries" in one for label in ("similarity", "vrsd") for one in lines[label].values())


def test_the_lines_of_a_kernel_name_it_as_a_variable() -> None:
    setting, _ = named("ndpp", kernel=LowRankKernel(np.eye(3)))
    assert "kernel=kernel" in lines_to_paste(setting, k=3, fetch_k=8)["Arrays"]
    assert "selector=NDPP(kernel=kernel)" in lines_to_paste(setting, k=3, fetch_k=8)["LangChain"]


def test_the_lines_after_a_reranker_select_by_its_scores() -> None:
    setting, _ = named("mmr", lambda_mult=0.7, relevance="scores", score_threshold=2)
    scores = {"a": 5.0, "b": 1.0, "c": 4.0, "d": 3.0, "e": 2.0}
    rows = np.random.default_rng(3).standard_normal((5, 4))
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_texts([*scores], ids=[*scores])
    index = VectorStoreIndex([], embed_model=MockEmbedding(embed_dim=4))
    above = np.array([*scores.values()]) >= 2
    arrays = {"query": rows[0], "vectors": rows[above], "scores": np.array([*scores.values()])[above]}
    spaces: list[dict[str, Any]] = [{"store": store}, {"index": index}, arrays]
    for code, space in zip(lines_to_paste(setting, k=2, fetch_k=5).values(), spaces, strict=True):
        exec(code, space)
    documents = [Text(name, id=name, metadata={"relevance_score": score}) for name, score in scores.items()]
    picked = spaces[0]["compressor"].compress_documents(documents, "?")
    nodes = [
        NodeWithScore(node=TextNode(id_=name, text=name, embedding=row.tolist()), score=score)
        for (name, score), row in zip(scores.items(), rows, strict=True)
    ]
    selected = spaces[1]["postprocessor"].postprocess_nodes(nodes, QueryBundle("?", embedding=rows[0].tolist()))
    assert picked[0].id == selected[0].node_id == "a"
    assert "b" not in {one.id for one in picked} | {one.node_id for one in selected}
    assert [one.node_id for one in selected] == [["a", "c", "d", "e"][i] for i in spaces[2]["selection"].indices]
    # Nothing is selected from a ranking.
    for setting in (with_scores([])[0][0], Setting("ranking", "hybrid search", "")):
        assert lines_to_paste(setting, k=2, fetch_k=5) == {}
