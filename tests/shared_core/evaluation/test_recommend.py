"""What is recommended on corpora whose right answer is known, and on figures made up for each rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document as Text
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from shared_core import Candidates, LowRankKernel, Selector, select
from shared_core.evaluation.compare import compare, compare_candidates
from shared_core.evaluation.corpus import Document, Query
from shared_core.evaluation.judging import SearchResult
from shared_core.evaluation.snippets import lines_to_paste, recommend
from shared_core.evaluation.results import Comparison, Measure, Recommendation, Setting
from shared_core.evaluation.settings import named, sweep, with_scores
from shared_core.evaluation.sub_questions import with_merged_lists
from shared_core.evaluation.summary import MeasureValues, summarise

RECALL = Measure("recall@5", "recall", "", True, "gold")
FOUR = ["similarity", "ndpp", "vrsd", "mmr lambda_mult=0.5"]
LABELS = {setting.label: setting for setting, _ in sweep()}
MANY = [*LABELS.values(), *(named("mmr", lambda_mult=value)[0] for value in (0.1, 0.3, 0.6, 0.7, 0.9))]


def advise(values: dict[str, Sequence[float]], measure: Measure = RECALL) -> tuple[str, Recommendation]:
    """The label of the recommended setting, for these values of each query."""
    settings = [setting for label in values for setting in MANY if setting.label == label]
    rows = np.array(list(values.values()), dtype=np.float64)
    column = MeasureValues(measure, rows, tuple(f"q{i}" for i in range(1, rows.shape[1] + 1)))
    advice = recommend(settings, [column], *summarise([column]))
    assert advice.setting is not None
    return settings[advice.setting].label, advice


def corpus(
    make: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray, list[int]]], queries: int, **options: Any
) -> Comparison:
    """Compare on candidates that ``make`` gives for each query: its vector, those of documents, and rows of gold."""
    rng = np.random.default_rng(0)
    made = {}
    for number in range(1, queries + 1):
        query, rows, gold = make(rng)
        # Any rotation leaves all cosines as they are.
        turn = np.linalg.qr(rng.normal(size=(len(query), len(query))))[0]
        documents = [Document(f"{number}-{row}", f"document {row} of {number}") for row in range(len(rows))]
        made[str(number)] = SearchResult(query @ turn, documents, rows @ turn), gold
    asked = [
        Query(name, "?", gold=tuple(found.documents[row].id for row in gold)) for name, (found, gold) in made.items()
    ]
    return compare_candidates(asked, lambda query: made[query.id][0], k=2, **options)


def recommended(found: Comparison) -> str:
    assert found.recommendation.setting is not None
    return found.settings[found.recommendation.setting].label


def test_where_a_query_asks_for_two_things_and_one_is_stored_many_times_a_diverse_setting_wins() -> None:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[int]]:
        # Six documents say the same about one half of the question, one answers the other half, the rest neither.
        query = np.array([1.0, 0.98, 0, 0, 0, 0])
        rows = np.vstack([np.tile([1.0, 0.1, 0, 0, 0, 0], (6, 1)), [[0.05, 1.0, 0, 0, 0, 0]], np.eye(6)[2:]])
        rows += rng.normal(scale=0.02, size=rows.shape)
        nearest = int((rows @ query / np.linalg.norm(rows, axis=1)).argmax())
        return query, rows, [nearest, 6]

    found = corpus(make, 12)
    # All find both parts, so the simplest setting is named.
    assert recommended(found) == "coverage"
    told = found.recommendation
    assert told.p_similarity is not None
    assert told.p_similarity < 0.05
    assert "Take coverage: its recall@2 is 1.000 over 12 queries. That is 0.500 above plain similarity" in told.text
    assert "It makes 100 % of the queries better than similarity, and none worse." in told.text
    assert found.values[0, "recall"].mean == 0.5


def test_similarity_is_enough_where_the_right_documents_are_the_nearest() -> None:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[int]]:
        # The two right passages are alike; the others are unlike them and less relevant.
        rows = np.vstack([[[1.0, 0.02, 0, 0, 0, 0], [1.0, 0, 0.02, 0, 0, 0]], 0.5 * np.eye(6)[1:] + np.eye(6)[0] * 0.3])
        return np.eye(6)[0], rows + rng.normal(scale=0.02, size=rows.shape), [0, 1]

    found = corpus(make, 12, decide_by="recall")
    told = found.recommendation
    assert recommended(found) == "similarity"
    assert "Similarity is enough: its recall@2 is 1.000 over 12 queries" in told.text
    position = [setting.label for setting in found.settings].index("mmr lambda_mult=0.5")
    assert found.differences[position, "recall"].worse == 1.0
    assert told.p_similarity is None


def test_settings_without_a_difference_leave_similarity() -> None:
    label, told = advise({name: [0.5, 1.0, 0.0, 0.25, 0.75, 1.0] for name in FOUR})
    assert label == "similarity"
    assert told.text.startswith("Similarity is enough: its recall@5 is 0.583 ")
    assert "The best of the others, ndpp, has 0.583." in told.text
    assert told.p_runner_up == 1.0


def test_the_simplest_is_taken_of_settings_whose_difference_may_be_chance() -> None:
    rng = np.random.default_rng(1)
    base = rng.uniform(0, 0.3, size=40)
    vrsd = base + 0.4 + rng.normal(0, 0.05, size=40)
    mmr = vrsd + rng.normal(0.002, 0.03, size=40)
    assert mmr.mean() > vrsd.mean()
    label, told = advise({"similarity": base, "vrsd": vrsd, "mmr lambda_mult=0.5": mmr})
    assert label == "vrsd"
    assert told.runner_up == 2
    assert told.p_runner_up is not None
    assert told.p_runner_up >= 0.05
    lead = f"{mmr.mean():.3f}, which is {mmr.mean() - vrsd.mean():.3f} more. That may be chance"
    assert f"mmr lambda_mult=0.5 has {lead}" in told.text
    assert "and vrsd is simpler: it is earlier in the list" in told.text


def test_a_better_setting_is_taken_though_a_simpler_one_beats_similarity_too() -> None:
    rng = np.random.default_rng(2)
    base = rng.uniform(0, 0.3, size=40)
    label, told = advise({"similarity": base, "vrsd": base + 0.1, "mmr lambda_mult=0.5": base + 0.3})
    assert label == "mmr lambda_mult=0.5"
    assert told.runner_up == 1
    assert "The best of the other methods, vrsd" in told.text
    assert "the difference is more than chance" in told.text


def test_the_highest_mean_decides_between_the_values_of_one_parameter() -> None:
    base = np.random.default_rng(3).uniform(0, 0.3, size=40)
    low = base + 0.3 + np.random.default_rng(4).normal(0, 0.1, 40)
    high = base + 0.3 + np.random.default_rng(5).normal(0, 0.1, 40) + 0.03
    assert high.mean() > low.mean()
    values = {"similarity": base, "mmr lambda_mult=0.5": low, "mmr lambda_mult=0.8": high}
    assert advise(values)[0] == "mmr lambda_mult=0.8"
    # Which is earlier in the list makes no difference.
    assert (
        advise({name: values[name] for name in (FOUR[0], "mmr lambda_mult=0.8", FOUR[3])})[0] == "mmr lambda_mult=0.8"
    )


def test_a_simpler_setting_that_does_not_beat_similarity_is_not_taken() -> None:
    rng = np.random.default_rng(6)
    base = rng.uniform(0.3, 0.5, size=30)
    # Its mean is near the best, but its values jump, so it may be no better than similarity.
    jumping = base + rng.permutation(np.repeat([1.1, -0.95], 15))
    steady = base + 0.12 + rng.normal(0, 0.02, size=30)
    label, told = advise({"similarity": base, "ndpp": jumping, "vrsd": steady})
    assert (label, told.runner_up) == ("vrsd", 1)


def test_one_lead_among_many_settings_is_not_more_than_chance() -> None:
    # A coin for each query: by itself the best of thirteen such settings often has p < 0.05.
    rng = np.random.default_rng(12)
    base = np.full(30, 0.5)
    labels = [setting.label for setting in MANY[1:]]
    coins = {label: base + rng.choice([-0.5, 0.5], size=30) for label in labels}
    best = max(coins, key=lambda label: float(coins[label].mean()))
    alone = advise({"similarity": base, best: coins[best]})
    assert alone[0] == best
    label, told = advise({"similarity": base, **coins})
    assert label == "similarity"
    assert told.text.startswith("Similarity is enough, as far as these queries can tell: ")
    assert f"The best of the others, {best}, has {coins[best].mean():.3f}, which is" in told.text
    assert re.search(r"That may be chance \(p = 0\.\d+, corrected for 13 comparisons\)", told.text)
    assert "30 queries show only large differences: compare with 50 or more." in told.text
    assert "That is" in alone[1].text
    assert "corrected" not in alone[1].text


def test_a_recommendation_says_which_queries_it_makes_worse() -> None:
    base = np.full(50, 0.5)
    ndpp = np.concatenate([np.full(38, 0.9), np.full(10, 0.25), [0.0, 0.5]])
    label, told = advise({"similarity": base, "ndpp": ndpp})
    assert label == "ndpp"
    # 11 of 50 lose: ten lose 0.25, one loses 0.5.
    assert "But it makes 22 % of the queries worse than similarity, by 0.273 on average, and 76 % of the" in told.text
    assert "queries better. Query 'q49' loses most: 0.500." in told.text
    ndpp[39] = 0.0
    assert "2 queries lose most, 0.500 each, such as 'q40'." in advise({"similarity": base, "ndpp": ndpp})[1].text
    roots = Measure("p-recall@5", "p_recall", "", True, "perspectives")
    assert "2 root queries lose most, 0.500 each" in advise({"similarity": base, "ndpp": ndpp}, roots)[1].text
    few = np.concatenate([np.full(48, 0.9), [0.25, 0.5]])
    assert " It makes 2 % of the queries worse" in advise({"similarity": base, "ndpp": few})[1].text


@pytest.mark.parametrize(("queries", "words"), [(1, "1 query is too few"), (5, "5 queries are too few")])
def test_too_few_queries_are_called_too_few(queries: int, words: str) -> None:
    label, told = advise({"similarity": [0.0] * queries, "ndpp": [1.0] * queries})
    assert label == "similarity"
    assert words in told.text
    assert (told.p_runner_up is None) == (queries == 1)
    assert advise({"similarity": [0.0] * 6, "ndpp": [1.0] * 6})[0] == "ndpp"


def test_a_list_of_settings_in_another_order_prefers_its_own_first() -> None:
    queries = [{"text": "?", "gold": ["b", "c"]}] * 8
    documents = [{"id": name, "text": name} for name in "abc"]
    vectors = [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], [[1.0, 0.9]] * 8
    for first, second in (("vrsd", "ndpp"), ("ndpp", "vrsd")):
        settings = [named("similarity"), named(first), named(second)]
        assert recommended(compare(documents, queries, vectors, k=2, settings=settings)) == first


def fewer(values: dict[str, dict[int, list[float]]]) -> tuple[Recommendation, str | None]:
    """What is said for these values of each number of picks; similarity is recommended."""
    settings = [setting for label in values for setting in MANY if setting.label == label]
    sizes = {
        k: [MeasureValues(RECALL, np.array([of[k] for of in values.values()]), tuple("abcdef"))]
        for k in values["similarity"]
    }
    [column] = sizes[5]
    advice = recommend(settings, [column], *summarise([column]), sizes)
    said = [claim.text for claim in advice.claims if claim.shown_in == "sizes"]
    return advice, said[0] if said else None


def test_fewer_picks_that_find_as_much_are_named() -> None:
    nothing, half, full = [0.0] * 6, [0.5] * 6, [1.0] * 6
    plain = {2: nothing, 3: nothing, 5: half, 10: full}
    # By hand: the values of the six queries with 3 picks are 0.1 above 1 on average, and one is 0.2 below.
    better = {2: half, 3: [1.2, 1.2, 1.2, 1.2, 1.0, 0.8], 5: full, 10: full}
    advice, said = fewer({"similarity": plain, "coverage": better})
    assert advice.fewer is not None
    assert (advice.fewer.setting, advice.fewer.k, advice.fewer.than) == (1, 3, 10)
    assert advice.fewer.difference == pytest.approx(0.1)
    assert advice.fewer.low < 0 < advice.fewer.high
    assert said is not None
    assert said.startswith("3 texts of coverage find at least as much as 10 texts of similarity: recall 1.100 against ")
    assert f"So they may also find up to {-advice.fewer.low:.3f} less." in said
    assert "The next smaller number that was tried, 2, finds less." in said
    # The lines to paste are those of the recommended setting, and have the number of the tables.
    assert advice.setting == 1
    assert said.endswith("as the tables: for fewer, change the number to 3.")
    # Similarity with 5 picks finds as much as with 10, so 5 is not fewer.
    assert fewer({"similarity": {2: nothing, 5: full, 10: full}, "coverage": {2: half, 5: full, 10: full}})[1] is None
    # Similarity is enough, and coverage is not among the settings.
    assert fewer({"similarity": {2: nothing, 5: full}, "ndpp": {2: full, 5: full}})[0].fewer is None


# --- lines to paste ---------------------------------------------------------------------------------------------------


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
    nodes = [TextNode(text=f"text {i}", embedding=r.tolist(), metadata=metadata[i]) for i, r in enumerate(rows)]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    words = {"question": "text 7", "texts": [f"text {i}" for i in range(1, 10)]}
    limits = {"sources": [one["source"] for one in metadata[1:]], "costs": [6] * 9}
    arrays = {"query": rows[0], "vectors": rows[1:], **words, **limits}
    spaces: list[dict[str, Any]] = [{"store": store}, {"index": index}, arrays]
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
    assert '"kernel": kernel' in lines_to_paste(setting, k=3, fetch_k=8)["LangChain"]


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
    # Nothing is selected from the reranker's own ranking.
    assert lines_to_paste(with_scores([])[0][0], k=2, fetch_k=5) == {}


def test_a_recommended_ranking_says_what_it_needs() -> None:
    settings = [named("similarity")[0], Setting("ranking", "hybrid search", None, "")]
    column = MeasureValues(RECALL, np.array([[0.0] * 8, [1.0] * 8]), tuple("abcdefgh"))
    told = recommend(settings, [column], *summarise([column]))
    assert told.setting == 1
    assert "Hybrid search needs a second index" in told.text
    assert lines_to_paste(settings[1], k=2, fetch_k=5) == {}
