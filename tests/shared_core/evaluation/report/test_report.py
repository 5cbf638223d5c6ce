"""The report as text: complete, deterministic, and without markup from the comparison."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from shared_core.evaluation.report import render, write_report
from shared_core.evaluation.results import percent
from tests.shared_core.evaluation.report.report_cases import (
    HOSTILE,
    comparison,
    diagnosis,
    hostile,
    unjudged,
)


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text outside of scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else self._inside

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data: str) -> None:
        self.text += "" if self._inside else data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def data_of(html: str) -> Any:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)[1])  # type: ignore[index]


def test_nothing_is_loaded_and_the_policy_allows_only_our_script_and_style() -> None:
    html = render(comparison())
    page = Page(html)
    for _, attributes in page.elements:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:")), (name, target)
        assert not any(name.startswith("on") for name in attributes), attributes
        assert "style" not in attributes, "the policy forbids style attributes"
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", html)
    policy = next(m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_recommendation_and_tables_need_no_script() -> None:
    found = comparison()
    html = render(found)
    page = Page(html)
    assert all(claim in page.text for claim in found.recommendation.claims)
    assert "p < 0.001" in page.text
    for setting in found.settings:
        assert setting.label in page.text
    best = max(range(len(found.settings)), key=lambda i: found.values[i, "R@5"].mean)
    assert f"{found.values[best, 'R@5'].mean:.3f}" in page.text
    assert "95 %" in page.text
    text = " ".join(page.text.split())
    assert "Setting 2 texts 3 texts 5 texts 8 texts 10 texts similarity 0.168 0.138 – 0.198 precision 0.08" in text
    assert "How many texts" not in Page(render(replace(found, sizes=found.sizes[:1]))).text
    assert render(found) == html
    assert found.notes[0] in page.text


def test_the_limits_of_the_figures_stand_beside_them() -> None:
    found = comparison()
    measures = tuple(replace(one, most=0.4) if one.key == "R@5" else one for one in found.measures)
    found = replace(found, measures=measures, corpus=replace(found.corpus, gold_in_reach=0.879))
    text = " ".join(Page(render(found)).text.split())
    assert "recall@5 ↑ higher is better at most 0.400" in text
    assert "Gold documents among the nearest88 %" in text
    assert "Queries with gold120 of 120 Queries with subtopics44 of 120" in text
    assert "Gold documents among" not in Page(render(comparison())).text


def test_each_measure_has_a_table_of_gains_and_losses_and_the_one_that_decides_is_open() -> None:
    found = comparison()
    html = render(found)
    page = Page(html)
    tables = [a for a in page.all("details") if a.get("class") == "compared"]
    assert len(tables) == len(found.measures)
    assert ["open" in a for a in tables] == [True] + [False] * (len(tables) - 1)
    text = " ".join(page.text.split())
    names = re.findall(r'<summary id="by-\d"><bdi>(.*?)</bdi>', html)
    assert names == ["recall@5", "nDCG@5", "subtopic recall@5", "relevance", "redundancy", "cos(sum, query)"]
    # One setting loses nothing by recall, and another has a worst query among those shown.
    to = found.differences[1, "R@5"]
    mean = f"{to.mean:+.3f} {to.low:+.3f} to {to.high:+.3f}"
    shares = f"{percent(to.worse)} by {to.loss:.3f} better: {percent(to.better)}"
    assert f"mmr lambda_mult=0.1 {mean} {shares} −{to.worst_loss:.3f} How does query 4".replace("-", "−") in text
    assert [a["data-query"] for a in page.all("a") if "data-query" in a][:1] == ["3"]
    assert found.queries[3].id == "q4"


def test_every_link_of_the_page_has_a_target() -> None:
    for found in (comparison(), unjudged(comparison())):
        page = Page(render(found))
        ids = [a["id"] for _, a in page.elements if "id" in a]
        assert len(ids) == len(set(ids))
        assert {(a["href"] or "")[1:] for a in page.all("a")} <= set(ids)
        assert {a["aria-labelledby"] for _, a in page.elements if "aria-labelledby" in a} <= set(ids)


def test_the_queries_that_lose_and_gain_most_lead_to_their_views() -> None:
    found = comparison()
    html = render(found)
    text = " ".join(Page(html).text.split())
    assert re.search(
        r"Lose most 1\.000 → 0\.250 How does query 2 .* How does query 4 .*Gain most .* 0\.750 How does query 3",
        text,
    )
    for change in found.changes:
        place = next(i for i, query in enumerate(found.queries) if query.id == change.query)
        assert f'data-query="{place}" data-setting="10"' in html
    assert "No query." in Page(render(replace(found, changes=found.changes[2:]))).text


def test_without_a_judged_query_the_page_says_what_would_change() -> None:
    found = unjudged(comparison())
    page = Page(render(found))
    text = " ".join(page.text.split())
    assert "What would change" in text
    # mmr lambda_mult=0.2 is the third setting, and its query is shown by its text.
    assert re.search(r"mmr lambda_mult=0\.2 8 % 0\.6 3 texts How does query 2", text)
    assert "What would change" not in Page(render(comparison())).text


def test_a_diagnosis_alone_is_a_page_that_loads_nothing_and_shows_markup_as_text(tmp_path: Path) -> None:
    write_report(diagnosis(HOSTILE), tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.all("script") == page.all("img") == []
    assert len(page.all("h1")) == 1
    assert "<img src=x onerror='window.hacked = 2'>" in page.text
    assert "3,412 documents" in page.text


def test_tables_and_headings_have_roles_and_labels() -> None:
    page = Page(render(comparison()))
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == 1
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(a.get("scope") for a in page.all("th"))
    assert all(a.get("id") for a in page.all("select"))
    assert {a["for"] for a in page.all("label")} == {a["id"] for a in page.all("select")}


def test_markup_in_every_text_is_shown_as_text() -> None:
    for found in (comparison(), unjudged(comparison())):
        html = render(hostile(found))
        page = Page(html)
        assert len(page.all("script")) == len(Page(render(found)).all("script"))
        assert page.all("img") == []
        assert "window.hacked" in page.text
        assert "{{ 7 * 7 }}" in page.text
        assert data_of(html)["queries"][0]["text"].startswith("</script><script>"), "the data hold the whole text"
        assert HOSTILE[:40] not in re.sub(r"&lt;|\\u003c", "", html)


def test_fifty_queries_of_fifty_candidates_stay_small() -> None:
    found = comparison(queries=50, candidates=50)
    long = tuple(
        replace(query, candidates=tuple(replace(view, text=view.text * 40) for view in query.candidates))
        for query in found.queries
    )
    for one in (found, replace(found, queries=long)):
        assert len(render(one).encode()) < 1_500_000
