import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared_core.errors import InvalidInputError
from shared_core.signals.embedding_cache import CachedEmbedding, default_cache
from tests.embedding import embed


class Counting:
    """An embedding that remembers what it was asked, and may fail at some text."""

    def __init__(self, fails_at: str | None = None) -> None:
        self.asked: list[str] = []
        self.fails_at = fails_at

    def __call__(self, texts: list[str]) -> list[np.ndarray]:
        if self.fails_at in texts:
            raise KeyboardInterrupt
        self.asked += texts
        return [embed(text) for text in texts]


TEXTS = ["one river", "two", "three old rivers", "two", "four"]


def test_rows_are_those_of_the_texts_each_embedded_once(tmp_path: Path) -> None:
    model = Counting()
    vectors = CachedEmbedding(model, "words", tmp_path, batch=2)(TEXTS)
    np.testing.assert_allclose(vectors, [embed(text) for text in TEXTS], rtol=1e-6)
    assert vectors.dtype == np.float32
    assert sorted(model.asked) == sorted(set(TEXTS))


def test_a_second_run_embeds_only_what_is_new(tmp_path: Path) -> None:
    first = CachedEmbedding(Counting(), "words", tmp_path)(TEXTS)
    again = Counting()
    second = CachedEmbedding(again, "words", tmp_path)([*TEXTS, "new"])
    assert again.asked == ["new"]
    np.testing.assert_array_equal(second[:-1], first)


def test_another_model_has_its_own_vectors(tmp_path: Path) -> None:
    CachedEmbedding(Counting(), "words", tmp_path)(TEXTS)
    other = Counting()
    CachedEmbedding(other, "words, version 2", tmp_path)(TEXTS)
    assert len(other.asked) == 4


def test_what_was_embedded_before_a_break_is_kept(tmp_path: Path) -> None:
    # Shorter texts go first, one a batch.
    with pytest.raises(KeyboardInterrupt):
        CachedEmbedding(Counting(fails_at="one river"), "words", tmp_path, batch=1)(TEXTS)
    rest = Counting()
    CachedEmbedding(rest, "words", tmp_path)(TEXTS)
    assert rest.asked == ["one river", "three old rivers"]


def test_batches_go_through_the_tracker_unless_there_are_none(tmp_path: Path) -> None:
    tracked: list[tuple[int, str]] = []

    def track(items: Sequence[Any], description: str) -> Iterable[Any]:
        tracked.append((len(items), description))
        return items

    cached = CachedEmbedding(Counting(), "words", tmp_path, batch=3, track=track, description="Documents")
    cached(TEXTS)
    cached(TEXTS)
    assert tracked == [(2, "Documents")]


def test_more_texts_than_one_statement_may_ask_for(tmp_path: Path) -> None:
    texts = [f"text {i}" for i in range(2000)]
    first = CachedEmbedding(lambda some: [[len(t), int(t[5:])] for t in some], "numbers", tmp_path)(texts)
    again = CachedEmbedding(lambda some: pytest.fail("embedded again"), "numbers", tmp_path)(texts)
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(first[:, 1], range(2000))


@pytest.mark.parametrize(
    ("gives", "message"),
    [
        ([[1.0, 2.0]], r"shape \(1, 2\) for 2 texts"),
        ([1.0, 2.0], r"shape \(2,\) for 2 texts"),
        ([[1.0, float("nan")], [1.0, 2.0]], "NaN or inf for 'a'"),
        ([["x"], ["y"]], "must be numbers"),
    ],
)
def test_what_is_no_vector_for_each_text_is_refused(tmp_path: Path, gives: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        CachedEmbedding(lambda texts: gives, "odd", tmp_path)(["a", "b"])
    # Nothing of it may have been kept.
    assert CachedEmbedding(lambda texts: [[1.0], [2.0]], "odd", tmp_path)(["a", "b"]).tolist() == [[1.0], [2.0]]


def test_a_model_that_changes_its_length_under_one_name_is_found_out(tmp_path: Path) -> None:
    CachedEmbedding(lambda texts: [[1.0]], "m", tmp_path)(["a"])
    with pytest.raises(InvalidInputError, match=r"lengths \[1, 2\].*delete"):
        CachedEmbedding(lambda texts: [[1.0, 2.0]], "m", tmp_path)(["a", "b"])


def test_a_file_that_is_no_cache_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "embeddings.sqlite").write_text("no database " * 100, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"embeddings\.sqlite, cannot be used"):
        CachedEmbedding(Counting(), "words", tmp_path)(TEXTS)


def test_errors_of_the_model_stay_its_own(tmp_path: Path) -> None:
    def unreachable(texts: list[str]) -> list[list[float]]:
        raise ConnectionError("no network")

    with pytest.raises(ConnectionError, match="no network"):
        CachedEmbedding(unreachable, "remote", tmp_path)(TEXTS)


def test_two_processes_may_share_a_cache(tmp_path: Path) -> None:
    def meanwhile(texts: list[str]) -> list[list[float]]:
        # Another run, as it would be in the middle of this one.
        CachedEmbedding(lambda some: [[2.0] for _ in some], "m", tmp_path)(texts)
        return [[2.0] for _ in texts]

    assert CachedEmbedding(meanwhile, "m", tmp_path)(["a"]).tolist() == [[2.0]]
    with sqlite3.connect(tmp_path / "embeddings.sqlite") as database:
        assert database.execute("SELECT count(*) FROM embeddings").fetchone() == (1,)
    database.close()


def test_the_folder_can_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SETSELECT_CACHE", str(tmp_path))
    assert default_cache() == tmp_path
    monkeypatch.delenv("SETSELECT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "setselect"
