"""An LLM's answer becomes root and perspective, and the query is projected as in the core."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor, extractor_from_llm
from shared_core import NDPP, PAP, Candidates, InvalidParameterError, PerspectiveError, SetSelectWarning
from shared_core.signals.extraction import PERSPECTIVE_PROMPT, PerspectiveExtractor, QueryParts
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    QUERY,
    CountingEmbedding,
    bundle,
    embedding,
    ids_of,
    matrix,
    scores_of,
)

ROOT, SIDE = "effects of coffee and tea", "on sleep and memory"
PARTS = QueryParts(ROOT, SIDE)
JSON = json.dumps(PARTS._asdict())


class Writer(CustomLLM):
    """Has no function calling, so the answer is parsed from its text."""

    answer: str = JSON
    _prompts: list[str] = PrivateAttr(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        if self.answer == "down":
            raise ConnectionError("the model is down")
        self._prompts.append(prompt)
        return CompletionResponse(text=self.answer)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class ToolCaller(MockFunctionCallingLLM):
    """Calls its tool, as models with function calling do."""

    arguments: dict[str, Any]

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        return [ToolSelection(tool_id="1", tool_name="SplitQuery", tool_kwargs=self.arguments)]


async def test_an_answer_in_text_is_parsed_and_cached() -> None:
    llm = Writer(answer=f"Here you are:\n{JSON}")
    extractor = extractor_from_llm(llm)
    assert extractor.extract(QUERY) == await extractor.aextract(QUERY) == PARTS
    assert len(llm._prompts) == 1
    assert llm._prompts[0].startswith(PERSPECTIVE_PROMPT.replace("{query}", QUERY))
    assert await extractor_from_llm(llm, cache_size=0).aextract(QUERY) == PARTS


async def test_tool_calls_are_parsed() -> None:
    extractor = extractor_from_llm(ToolCaller(arguments=PARTS._asdict()), cache_size=0)
    assert extractor.extract(QUERY) == await extractor.aextract(QUERY) == PARTS


@pytest.mark.parametrize("answer", ['{"root": "x", "perspective": ""}', '{"root": "x", "perspective": null}', "{}"])
def test_no_perspective(answer: str) -> None:
    assert extractor_from_llm(Writer(answer=answer)).extract(QUERY) == QueryParts(QUERY, None)


async def test_an_invalid_answer_is_quoted() -> None:
    extractor = extractor_from_llm(Writer(answer='{"root": "effects", "perspective": "at night"}'))
    with pytest.warns(SetSelectWarning, match=r"\(at, night\).*'at night'"):
        assert extractor.extract(QUERY) == QueryParts(QUERY, None)
    with pytest.warns(SetSelectWarning, match="at night"):
        assert await extractor.aextract(QUERY) == QueryParts(QUERY, None)


async def test_the_error_of_a_failing_call_is_raised_unchanged() -> None:
    extractor = extractor_from_llm(Writer(answer="down"))
    with pytest.raises(ConnectionError, match="down"):
        extractor.extract(QUERY)
    with pytest.raises(ConnectionError, match="down"):
        await extractor.aextract(QUERY)


@pytest.mark.parametrize("answer", ["no JSON at all", '{"root": ["a list"]}'])
async def test_an_answer_that_cannot_be_parsed_is_invalid(answer: str) -> None:
    extractor = extractor_from_llm(Writer(answer=answer))
    with pytest.warns(SetSelectWarning, match="not a pair of root and perspective"):
        assert extractor.extract(QUERY) == QueryParts(QUERY, None)
    with pytest.warns(SetSelectWarning, match="not a pair of root and perspective"):
        assert await extractor.aextract(QUERY) == QueryParts(QUERY, None)


class Silent(MockFunctionCallingLLM):
    """Has tools, but calls none."""

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        return []


async def test_an_answer_without_a_tool_call_is_invalid() -> None:
    extractor = extractor_from_llm(Silent())
    with pytest.warns(SetSelectWarning):
        assert extractor.extract(QUERY) == QueryParts(QUERY, None)
    with pytest.warns(SetSelectWarning):
        assert await extractor.aextract(QUERY) == QueryParts(QUERY, None)


def test_prompts() -> None:
    llm = Writer()
    extractor_from_llm(llm, 'As {"root": …}: {query}').extract(QUERY + " {x} {query}")
    assert llm._prompts[0].startswith(f'As {{"root": …}}: {QUERY} {{x}} {{query}}\n')
    with pytest.raises(InvalidParameterError, match=r"the prompt must contain \{query\}"):
        extractor_from_llm(llm, "Split the query")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_extract_the_same(copied: Callable[[Any], PerspectiveExtractor]) -> None:
    assert copied(extractor_from_llm(Writer())).extract(QUERY) == PARTS


def explicit(p: Sequence[float] | None, ids: Sequence[str], k: int, **settings: Any) -> tuple[list[str], list[float]]:
    """What the core picks from ``ids`` under an explicit projection on ``p``."""
    candidates = Candidates(embedding(QUERY), matrix(ids))
    if p is not None:
        candidates = PAP(p, **settings).apply(candidates)
    chosen = NDPP().select(candidates, k)
    return [ids[i] for i in chosen.indices], chosen.relevance.tolist()


def nearest(p: Sequence[float] | None, n: int, direction: str = "remove") -> list[str]:
    query = embedding(QUERY) if p is None else PAP(p, direction=direction).project(embedding(QUERY))
    order = np.argsort(-(matrix(ALL) @ np.asarray(query)), kind="stable")[:n]
    return [ALL[i] for i in order]


def one_side(query: str) -> str:
    return SIDE


def both_parts(query: str) -> QueryParts:
    return PARTS


def nothing(query: str) -> None:
    return None


TEXT = embedding(SIDE)
DIFFERENCE = (np.array(embedding(QUERY)) - np.array(embedding(ROOT))).tolist()
FORMS: list[Any] = [
    ({"perspective": SIDE}, TEXT),
    ({"perspective": TEXT}, TEXT),
    ({"perspective": one_side}, TEXT),
    ({"perspective": both_parts}, TEXT),
    ({"perspective": extractor_from_llm(Writer())}, TEXT),
    ({"perspective": both_parts, "perspective_vector": "difference"}, DIFFERENCE),
    ({"perspective": extractor_from_llm(Writer()), "perspective_vector": "difference"}, DIFFERENCE),
    ({"perspective": nothing}, None),
    ({"perspective": nothing, "perspective_vector": "difference"}, None),
    ({"perspective": lambda query: QueryParts(query, "tea"), "perspective_vector": "difference"}, None),
    ({"perspective": extractor_from_llm(Writer(answer="{}"))}, None),
]
SIDES: list[dict[str, Any]] = [{}, {"corpus": True}, {"direction": "emphasize"}]


@pytest.mark.parametrize("how", SIDES, ids=str)
@pytest.mark.parametrize(("setting", "p"), FORMS)
@pytest.mark.parametrize("embedded", [True, False])
async def test_the_postprocessor_projects_like_the_core(
    setting: dict[str, Any],
    p: list[float] | None,
    how: dict[str, Any],
    embedded: bool,
    index: VectorStoreIndex,
    nodes: list[NodeWithScore],
) -> None:
    wanted, relevance = explicit(p, ALL, 6, **how)
    asked = bundle() if embedded else QueryBundle(QUERY)
    post = SetSelectPostprocessor(top_n=6, index=index, **setting, **how)
    for chosen in (post.postprocess_nodes(nodes, asked), await post.apostprocess_nodes(nodes, asked)):
        assert ids_of(chosen) == wanted
        assert scores_of(chosen) == pytest.approx(relevance, rel=1e-9)


@pytest.mark.parametrize("how", SIDES, ids=str)
@pytest.mark.parametrize(("setting", "p"), FORMS)
async def test_the_retriever_searches_and_selects_with_the_projection(
    setting: dict[str, Any], p: list[float] | None, how: dict[str, Any], index: VectorStoreIndex
) -> None:
    fetched = nearest(p, 15, how.get("direction", "remove"))
    wanted, relevance = explicit(p, fetched, 5, **how)
    retriever = SetSelectIndexRetriever(index, top_n=5, fetch_k=15, **setting, **how)
    for chosen in (retriever.retrieve(QUERY), await retriever.aretrieve(QUERY)):
        assert ids_of(chosen) == wanted
        assert scores_of(chosen) == pytest.approx(relevance, rel=1e-9)


async def test_the_async_path_awaits_the_extractor_and_the_model(
    index: VectorStoreIndex, model: CountingEmbedding, nodes: list[NodeWithScore]
) -> None:
    awaited = []

    def split(query: str) -> QueryParts:
        raise AssertionError("the async path must not block")

    async def asplit(query: str) -> QueryParts:
        awaited.append(query)
        return PARTS

    post = SetSelectPostprocessor(top_n=4, index=index, perspective=PerspectiveExtractor(split, asplit))
    await post.apostprocess_nodes(nodes, QueryBundle(QUERY))
    assert awaited == [QUERY]
    assert model.asynchronous == [QUERY, SIDE]


def test_a_perspective_is_embedded_once_while_it_stays_the_same(
    index: VectorStoreIndex, model: CountingEmbedding, nodes: list[NodeWithScore]
) -> None:
    post = SetSelectPostprocessor(top_n=4, index=index, perspective=lambda query: query.split()[-1])
    plain = {side: SetSelectPostprocessor(top_n=4, index=index, perspective=side) for side in ("memory", "mood")}
    for side in ("memory", "memory", "mood", "memory"):
        asked = QueryBundle(f"tea and {side}", embedding=embedding(QUERY))
        assert ids_of(post.postprocess_nodes(nodes, asked)) == ids_of(plain[side].postprocess_nodes(nodes, asked))
    assert model.queries == ["memory", "memory", "mood", "mood", "memory"]


async def test_with_hyde_the_difference_uses_the_query_itself(
    index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    """HyDE searches for hypothetical documents instead of the query. The perspective is still the query's."""
    asked = QueryBundle(QUERY, custom_embedding_strs=["tea has effects on mood"])
    post = SetSelectPostprocessor(top_n=4, index=index, perspective=both_parts, perspective_vector="difference")
    plain = SetSelectPostprocessor(top_n=4, index=index, perspective=DIFFERENCE)
    assert ids_of(post.postprocess_nodes(nodes, asked)) == ids_of(plain.postprocess_nodes(nodes, asked))
    assert ids_of(await post.apostprocess_nodes(nodes, asked)) == ids_of(plain.postprocess_nodes(nodes, asked))


def test_without_nodes_the_model_is_not_called(index: VectorStoreIndex) -> None:
    llm = Writer()
    assert (
        SetSelectPostprocessor(index=index, perspective=extractor_from_llm(llm)).postprocess_nodes([], bundle()) == []
    )
    assert llm._prompts == []


@pytest.mark.parametrize("make", [SetSelectPostprocessor, SetSelectIndexRetriever])
def test_impossible_settings_are_refused_at_construction(make: Any, index: VectorStoreIndex) -> None:
    for perspective in (SIDE, TEXT):
        with pytest.raises(InvalidParameterError, match="needs the root query"):
            make(index=index, perspective=perspective, perspective_vector="difference")
    for name in ("root", "auto"):
        with pytest.raises(InvalidParameterError, match="perspective_vector must be one of text, difference"):
            make(index=index, perspective=both_parts, perspective_vector=name)
    with pytest.raises(InvalidParameterError, match="direction must be one of remove, emphasize"):
        make(index=index, perspective=both_parts, direction="auto")


def test_a_function_without_a_root_cannot_give_a_difference(index: VectorStoreIndex) -> None:
    retriever = SetSelectIndexRetriever(index, perspective=one_side, perspective_vector="difference")
    with pytest.raises(PerspectiveError, match=r"return QueryParts\(root, perspective\)"):
        retriever.retrieve(QUERY)


@pytest.mark.parametrize("perspective", [one_side, extractor_from_llm(Writer())])
def test_to_dict_refuses_functions_and_extractors(perspective: Any, index: VectorStoreIndex) -> None:
    with pytest.raises(InvalidParameterError, match="a function or an extractor"):
        SetSelectPostprocessor(index=index, perspective=perspective).to_dict()


def test_to_dict_keeps_perspective_vector(index: VectorStoreIndex) -> None:
    data = SetSelectPostprocessor(index=index, perspective_vector="difference").to_dict()
    assert SetSelectPostprocessor.from_dict(data, index=index).perspective_vector == "difference"


def test_copies_share_the_extractor_and_pickles_contain_it(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    extractor = extractor_from_llm(Writer())
    post = SetSelectPostprocessor(top_n=4, index=index, perspective=extractor)
    assert copy.deepcopy(post).perspective is extractor
    assert copy.copy(post).perspective is extractor
    carried = pickle.loads(pickle.dumps(SetSelectPostprocessor(top_n=4, perspective=both_parts)))
    assert carried.perspective is both_parts
