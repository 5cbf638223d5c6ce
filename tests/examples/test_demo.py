"""The demo on its real corpus, and the pictures of the documentation that show what is selected."""

from __future__ import annotations

import html
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Other packages may warn of deprecations on import.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def demo() -> Iterator[ModuleType]:
    sys.path.insert(0, str(EXAMPLES))
    yield importlib.import_module("demo")
    sys.path.remove(str(EXAMPLES))
    for name in ("demo", "_minilm", "_picture", "_hotpotqa", "_reference_picture", "_queries_picture", "_bar_pictures"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def docs(demo: ModuleType) -> Any:
    return importlib.import_module("_minilm").numpy_docs()


@pytest.fixture(scope="module")
def both(demo: ModuleType, docs: Any) -> tuple[Any, Any]:
    return demo.faiss_store(docs), demo.llamaindex_index(docs)


def test_both_adapters_agree_in_order_and_score(demo: ModuleType, both: tuple[Any, Any]) -> None:
    for question in demo.QUESTIONS:
        for method in demo.METHODS:
            names, cosines = demo.through_langchain(both[0], question, method)
            others, scores = demo.through_llamaindex(both[1], question, method)
            assert names == others, (question, method)
            assert len(set(names)) == demo.K
            np.testing.assert_allclose(cosines, scores, atol=1e-6)


def check_drawn(files: dict[Path, Any], draw: Any, words: set[str]) -> None:
    """Each file is what ``draw(palette)`` draws, and has these words."""
    for file, palette in files.items():
        drawn = file.read_text(encoding="utf-8")
        assert drawn == draw(palette), f"run the script of examples/ that draws {file.name} again"
        assert words <= {element.text for element in ElementTree.fromstring(drawn).iter()}


def in_assets(picture: ModuleType) -> dict[Path, Any]:
    return {picture.ASSETS / name: palette for name, palette in picture.FILES.items()}


def test_the_pictures_show_what_the_demo_picks(demo: ModuleType, docs: Any, both: tuple[Any, Any]) -> None:
    picture = importlib.import_module("_picture")
    shown = picture.panels(docs, both[0])
    # What the picture is meant to show: similarity repeats itself and misses a part of the question.
    assert [set(panel.part) for panel in shown] == [{0}, {0, 1}]
    nearest, best = (sum(panel.picks.repeats) for panel in shown)
    assert nearest == demo.K - 1
    assert best < nearest
    words = {picked.removeprefix("numpy.") for panel in shown for picked in panel.picks.names}
    check_drawn(in_assets(picture), lambda palette: picture.draw(shown, palette), words)


@pytest.mark.slow
@pytest.mark.usefixtures("demo")
def test_the_pictures_of_a_reference_show_what_setselect_selects() -> None:
    picture = importlib.import_module("_reference_picture")
    if picture.MISSING:
        pytest.skip(picture.MISSING)
    nearest, best = shown = picture.panels()
    # What the picture is meant to show: the second text that the answer needs is one that the first text names.
    assert (sum(nearest.needed), sum(best.needed)) == (1, 2)
    assert [best.titles[row] for row in best.referred_by if row is not None] == ["Yannick Ferreira Carrasco"]
    words = {picture.shorten(title) for panel in shown for title in panel.titles}
    check_drawn(in_assets(picture), lambda palette: picture.draw(shown, palette), words)


@pytest.mark.usefixtures("demo")
def test_the_pictures_of_a_citation_show_what_setselect_selects() -> None:
    picture = importlib.import_module("_reference_picture")
    nearest, best = shown = picture.citing_panels()
    assert (sum(nearest.needed), sum(best.needed)) == (1, 2)
    assert [(title, row) for title, row in zip(best.titles, best.referred_by, strict=True) if row is not None] == [
        ("Rule 7.2", best.titles.index("Rule 3.1"))
    ]
    given = shown, picture.CITING, picture.CITED_NOTE, "cited by"
    drawn = {picture.ASSETS / name: palette for name, palette in picture.CITED_FILES.items()}
    check_drawn(drawn, lambda palette: picture.draw(given[0], palette, *given[1:]), {*best.titles, *nearest.titles})


@pytest.mark.slow
@pytest.mark.usefixtures("demo")
def test_the_pictures_of_sub_questions_show_what_setselect_selects() -> None:
    picture = importlib.import_module("_queries_picture")
    if picture.MISSING:
        pytest.skip(picture.MISSING)
    sub_questions, (fused, best) = picture.panels()
    # What the picture is meant to show: fusion misses the text of a sub-question, and each of ours serves its own.
    assert (sum(fused.needed), sum(best.needed)) == (1, 2)
    rows = zip(best.titles, best.needed, best.serves, strict=True)
    served = {title: query for title, needed, query in rows if needed}
    assert served == {name: row for row, name in enumerate(picture.NAMES, 1)}
    words = {picture.shorten(title) for panel in (fused, best) for title in panel.titles}
    check_drawn(in_assets(picture), lambda palette: picture.draw(sub_questions, [fused, best], palette), words)


@pytest.mark.parametrize(
    ("name", "page"), [("learning", "learning"), ("reranking", "reranking"), ("losses", "when-diversity-hurts")]
)
@pytest.mark.usefixtures("demo")
def test_the_pictures_of_figures_show_those_of_the_results(name: str, page: str) -> None:
    picture = importlib.import_module("_bar_pictures")
    chart = picture.CHARTS[name]()
    words = {bar.shown for bars in chart.groups.values() for bar in bars}
    check_drawn(picture.files(name), lambda palette: picture.draw(chart, palette), words)
    text = (EXAMPLES.parent / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert f'assets/{name}.svg" alt="{html.escape(chart.in_words)}"' in text, "examples/_bar_pictures.py prints it"
