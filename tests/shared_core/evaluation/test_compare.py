import json
import math
from typing import Any

import numpy as np
import pytest

from shared_core.errors import InvalidInputError, InvalidParameterError
from shared_core.evaluation import compare as compare_module
from shared_core.evaluation.compare import compare, compare_candidates, nearest_rows
from shared_core.evaluation.corpus import Document
from shared_core.evaluation.demo import QUESTIONS, demo_corpus
from shared_core.evaluation.judging import SearchResult
from shared_core.evaluation.results import Comparison, Difference
from shared_core.evaluation.settings import named
from tests.embedding import corpus, embed

# By hand: similarity picks b, a; vrsd picks b, c, whose sum has almost the direction of the query.
TINY = [
    {"id": "a", "text": "The cat sat."},
    {"id": "b", "text": "A  CAT and a dog."},
    {"id": "c", "text": "concatenate 42"},
]
TINY_VECTORS = [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]
TINY_QUERY = [1.0, 0.9]
A, B, C = 1 / math.sqrt(1.81), 1.09 / math.sqrt(1.01 * 1.81), 0.9 / math.sqrt(1.81)


def tiny(*queries: dict[str, Any], **options: Any) -> Comparison:
    return compare(TINY, queries, (TINY_VECTORS, [TINY_QUERY] * len(queries)), **{"k": 2, **options})


def mean(comparison: Comparison, label: str, key: str) -> float:
    index = [setting.label for setting in comparison.settings].index(label)
    return comparison.values[index, key].mean


def words(texts: list[str]) -> list[np.ndarray]:
    return [embed(text) for text in texts]


def passages() -> list[dict[str, Any]]:
    return [{"id": f"d{i}", "text": text} for i, (text, _) in enumerate(corpus())]


def test_queries_without_gold_allow_the_measures_from_the_vectors() -> None:
    found = tiny({"text": "?"})
    assert [m.key for m in found.measures] == ["relevance", "redundancy", "sum_cosine"]
    assert mean(found, "similarity", "relevance") == pytest.approx((A + B) / 2)
    assert mean(found, "similarity", "redundancy") == pytest.approx(1 / math.sqrt(1.01))
    assert mean(found, "vrsd", "relevance") == pytest.approx((B + C) / 2)
    assert mean(found, "vrsd", "redundancy") == pytest.approx(0.1 / math.sqrt(1.01))
    # Unit b plus unit c.
    x, y = 1 / math.sqrt(1.01), 0.1 / math.sqrt(1.01) + 1
    assert mean(found, "vrsd", "sum_cosine") == pytest.approx((x + 0.9 * y) / math.hypot(x, y) / math.sqrt(1.81))


def test_gold_gives_recall_ndcg_and_success() -> None:
    found = tiny({"text": "?", "gold": ["b", "c"]}, {"text": "?", "gold": ["c"]}, {"text": "?"})
    assert mean(found, "similarity", "recall") == 0.25
    assert mean(found, "vrsd", "recall") == 1.0
    assert mean(found, "similarity", "success") == 0.5
    # The first query: one of two gold documents, in first place. The second query: none of one.
    assert mean(found, "similarity", "ndcg") == pytest.approx(1 / (1 + 1 / math.log2(3)) / 2)
    assert mean(found, "vrsd", "ndcg") == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert found.values[0, "recall"].queries == 2
    assert found.values[0, "relevance"].queries == 3


def test_subtopics_give_subtopic_recall_and_alpha_ndcg() -> None:
    found = tiny({"text": "?", "subtopics": {"x": ["a", "b"], "y": ["c"]}})
    assert mean(found, "similarity", "subtopic_recall") == 0.5
    assert mean(found, "vrsd", "subtopic_recall") == 1.0
    # The second pick repeats x at half its worth; the ideal has y there.
    discount = 1 / math.log2(3)
    assert mean(found, "similarity", "alpha_ndcg") == pytest.approx((1 + discount / 2) / (1 + discount))


def test_precision_is_the_share_of_the_picks_that_are_right() -> None:
    found = tiny({"text": "?", "gold": ["b"], "subtopics": {"x": ["a", "b"], "y": ["c"]}}, {"text": "?"}, k=3)
    assert mean(found, "similarity", "precision") == pytest.approx(1 / 3)
    assert mean(found, "similarity", "topic_precision") == 1.0
    found = tiny({"text": "?", "gold": ["b", "c"], "subtopics": {"x": ["a"]}})
    assert [mean(found, label, "precision") for label in ("similarity", "vrsd")] == [0.5, 1.0]
    assert [mean(found, label, "topic_precision") for label in ("similarity", "vrsd")] == [0.5, 0.0]


def test_every_size_is_what_a_comparison_with_that_k_finds() -> None:
    asked = [
        {"text": "hidden northern harbour engine", "gold": ["d1", "d9"], "subtopics": {"x": ["d4", "d8"], "y": ["d1"]}},
        {"text": "old bread", "gold": ["d2"]},
    ]
    settings = [named("similarity"), named("coverage"), named("vrsd", refine=True)]
    found = compare(passages(), asked, words, k=4, fetch_k=9, settings=settings)
    assert [size.k for size in found.sizes] == [2, 3, 4, 5, 8]
    for size in found.sizes:
        alone = compare(passages(), asked, words, k=size.k, fetch_k=9, settings=settings)
        assert set(size.values) == {(i, m) for i, m in alone.values if m not in ("sum_cosine", "ndcg", "alpha_ndcg")}
        for name, estimate in size.values.items():
            assert estimate == alone.values[name], name
        for position, characters in enumerate(size.characters):
            picked = [[view.candidates[i].text for i in view.picks[position]] for view in alone.queries]
            assert characters == np.mean([sum(map(len, texts)) for texts in picked])
    several = compare(passages(), asked, words, k=np.array([4, 30, 2]))  # type: ignore[arg-type]
    assert ([size.k for size in several.sizes], several.corpus.k, several.corpus.fetch_k) == ([2, 4, 30], 4, 60)
    assert several.measures[3].name == "recall@4"


def test_the_same_input_gives_the_same_result_as_json() -> None:
    queries = [
        {"text": f"{trait} harbour", "subtopics": {"x": ["d4"], "y": ["d1"]}} for trait in ("old", "red", "loud")
    ]
    first, second = (compare(passages(), queries, words, fetch_k=20).to_json() for _ in range(2))
    assert first == second
    read = json.loads(first)
    assert len(read["values"]) == len(read["settings"]) * len(read["measures"])
    assert len(read["differences"]) == len(read["values"])
    assert read["differences"][-1].keys() == {"setting", "measure", *Difference.__dataclass_fields__}
    assert read["queries"][0]["picks"]["0"] == [0, 1, 2, 3, 4]


def test_the_deciding_measure_can_be_given() -> None:
    query = {"text": "?", "gold": ["b"]}
    assert tiny(query).recommendation.measure == "recall"
    assert tiny(query, decide_by="ndcg").recommendation.measure == "ndcg"
    for wrong in ("point", "relevance"):
        with pytest.raises(InvalidParameterError, match=f"decide_by must be one of .*got '{wrong}'"):
            tiny(query, decide_by=wrong)


def test_ids_that_no_document_has_are_noted_and_left_out() -> None:
    found = tiny({"text": "?", "gold": ["b", "gone"], "subtopics": {"x": ["gone"], "y": ["c"]}})
    assert mean(found, "similarity", "recall") == 1.0
    assert mean(found, "similarity", "subtopic_recall") == 0.0
    notes = [note for note in found.notes if "1 of the 2" in note and "'gone'" in note]
    assert ["subtopics" in note for note in notes] == [False, True]


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ({"gold": ["doc-b", "doc-c"]}, "gold ids"),
        ({"gold": ["b"], "subtopics": {"x": ["doc-b"], "y": []}}, "ids under subtopics"),
    ],
)
def test_ids_none_of_which_a_document_has_are_an_error_before_anything_is_embedded(
    query: dict[str, Any], what: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"none of the {what} .*'doc-b'.* document has the id 'a'"):
        compare(TINY, [{"text": "?", **query}], refuse_to_embed)


def refuse_to_embed(texts: list[str]) -> Any:
    raise AssertionError("embedded before the check")


def test_titles_that_are_put_before_the_texts_are_noted() -> None:
    notes = compare([{"text": "A", "title": "T"}, "B"], ["?"], (np.eye(2), np.eye(2)[:1]), k=1).notes
    assert "Titles were put before the texts of 1 of 2 documents." in notes


def test_what_cannot_be_reached_is_noted() -> None:
    found = tiny({"text": "?", "gold": ["b", "c"], "subtopics": {"x": [], "y": ["b"]}}, fetch_k=2)
    assert mean(found, "similarity", "subtopic_recall") == 1.0
    assert any("50.0%" in note for note in found.notes)
    # Then no gold document at all.
    [note] = [note for note in tiny({"text": "?", "gold": ["c"]}, k=1, fetch_k=1).notes if "'c'" in note]
    assert "'b'" in note


def test_candidates_may_come_from_anywhere_in_any_order() -> None:
    documents = [Document(str(record["id"]), str(record["text"])) for record in TINY]
    order = [2, 0, 1]

    def candidates_of(query: Any) -> SearchResult:
        if query.text == "nothing?":
            return SearchResult(TINY_QUERY, [], np.empty((0, 2)))
        return SearchResult(TINY_QUERY, [documents[i] for i in order], [TINY_VECTORS[i] for i in order])

    found = compare_candidates([{"text": "?", "gold": ["b", "c"]}, "nothing?"], candidates_of, k=2)
    everywhere = tiny({"text": "?", "gold": ["b", "c"]})
    for at, value in found.values.items():
        assert value.mean == pytest.approx(everywhere.values[at].mean, abs=1e-12)
    assert any("1 query ('nothing?')" in note for note in found.notes)
    with pytest.raises(InvalidInputError, match="no candidates were found for any of 1 query"):
        compare_candidates(["nothing?"], candidates_of, k=2)


def test_search_is_exact_in_one_block_and_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    rows, queries = rng.normal(size=(300, 8)) * rng.uniform(0.1, 1e6, size=(300, 1)), rng.normal(size=(11, 8))
    expected = [np.argsort(-(rows @ q / np.linalg.norm(rows, axis=1)), kind="stable")[:7].tolist() for q in queries]
    assert nearest_rows(queries, rows, 7).tolist() == expected
    monkeypatch.setattr(compare_module, "_BLOCK", 1000)
    assert nearest_rows(queries, rows, 7).tolist() == expected
    # Of rows that tie for the last place, the lower ones are found.
    repeated = np.eye(3)[rng.integers(3, size=300)]
    lowest = [np.flatnonzero(column)[:7].tolist() for column in repeated.T]
    assert nearest_rows(np.eye(3), repeated, 7).tolist() == lowest


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"k": 0}, "k must be"),
        ({"k": 3, "fetch_k": 2}, "fetch_k = 2 is below k = 3"),
        ({"k": 4}, "only 3 documents"),
        ({"k": []}, "k holds no number"),
        ({"k": [2, 0]}, "k must be"),
        ({"k": [2, 3], "fetch_k": 2}, "fetch_k = 2 is below k = 3"),
        ({"settings": []}, "plain similarity"),
        ({"settings": [named("mmr")]}, "plain similarity"),
        ({"settings": [named("similarity", score_threshold=0.9)]}, "plain similarity"),
        ({"settings": [named("similarity"), (named("mmr")[0], "mmr")]}, "selector"),
        ({"decide_by": "best"}, "decide_by"),
        ({"decide_by": "recall"}, "allow no deciding measure"),
    ],
)
def test_wrong_parameters_are_refused_before_anything_is_embedded(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidParameterError, match=word):
        compare(TINY, ["?"], refuse_to_embed, **{"k": 2, **options})
    if word != "only 3 documents":
        with pytest.raises(InvalidParameterError, match=word):
            compare_candidates(["?"], refuse_to_embed, **{"k": 2, **options})


@pytest.mark.parametrize(
    ("vectors", "query", "message"),
    [
        (TINY_VECTORS[:2], TINY_QUERY, r"vectors of documents must have shape \(3, d\), got \(2, 2\)"),
        (TINY_VECTORS, [1.0, 2.0, 3.0], "vectors of documents have length 2, those of queries 3"),
        (TINY_VECTORS, [1.0, math.nan], "vectors of queries: row 0 holds NaN or inf"),
        (TINY_VECTORS, [0.0, 0.0], r"query '\?': .*zero"),
    ],
)
def test_invalid_vectors_are_refused(vectors: Any, query: list[float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        compare(TINY, ["?"], (vectors, [query]), k=2)


def test_the_demo_names_functions_that_numpy_has() -> None:
    documents, queries = demo_corpus()
    known = {document.id for document in documents}
    assert len(queries) == len(QUESTIONS)
    for query, (_, parts) in zip(queries, QUESTIONS, strict=True):
        assert set(query.subtopics) == set(parts), query.text
        assert known.issuperset(query.gold)
        assert known.issuperset(name for names in query.subtopics.values() for name in names)


RNG = np.random.default_rng(3)
VECTORS = RNG.standard_normal((12, 8))


def compared(queries: list[dict[str, Any]], **options: Any) -> Any:
    texts = [{"id": f"d{i}", "text": f"text {i}"} for i in range(12)]
    return compare(texts, queries, (VECTORS, RNG.standard_normal((len(queries), 8))), k=3, fetch_k=8, **options)


def test_a_measure_that_one_query_allows_or_that_is_0_for_all_does_not_decide() -> None:
    queries: list[dict[str, Any]] = [{"text": f"q{i}", "gold": [f"d{i}"]} for i in range(10)]
    queries[0]["subtopics"] = {"x": [f"d{i}" for i in range(12)]}
    assert compared(queries).recommendation.measure == "recall"
    assert compared(queries, decide_by="subtopic_recall").recommendation.measure == "subtopic_recall"
    alone = compare(["A", "B"], [{"text": "q", "gold": ["2"]}], (np.eye(2), [[1.0, 0.0]]), k=1, fetch_k=1)
    assert alone.recommendation.setting is None


def test_a_text_is_cited_by_the_number_under_the_usual_keys() -> None:
    texts = ["bread: see Rule 1.1", "bread and butter", "of ovens", "of ships"]
    sections, sources = ["2", "3", "1.1", "1.1"], ["a", "a", "a", "b"]
    rows: dict[str, Any] = {"text": texts, "section": sections, "source": sources}
    vectors = np.array([[1, 0, 0, 0], [0.7, 0.7, 0, 0], [0.1, 0, 1, 0], [0.1, 0, 0, 1.0]])
    query = [{"text": "bread?", "gold": ["1"]}]

    def cited(*names: str) -> list[int]:
        documents = [{name: rows[name][i] for name in names} for i in range(len(texts))]
        found = compare(
            documents, query, (vectors, [[1.0, 0.1, 0, 0]]), k=4, settings=[named("similarity"), named("coverage")]
        )
        [view] = found.queries
        return [i for i, reason in zip(view.picks[1], view.reasons[1], strict=True) if "cited by" in reason]

    assert cited("text", "section", "source") == [2]
    assert cited("text", "source") == []
