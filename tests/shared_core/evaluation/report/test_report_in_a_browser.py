"""The report in headless Chromium: by keyboard, on a phone, in light and dark, and with malicious documents."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shared_core.evaluation.report import write_report
from shared_core.evaluation.results import Comparison
from tests.shared_core.evaluation.report.report_cases import (
    REASONS,
    comparison,
    diagnosis,
    hostile,
    only_similarity,
    unjudged,
)

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None and not os.environ.get("CI"):
    pytest.skip("there is no Chromium: apt-get install chromium", allow_module_level=True)

# The contrast of an element's text with its background, by WCAG 2.
CONTRAST = """element => {
  const light = c => { const s = c / 255; return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; };
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const weights = [0.2126, 0.7152, 0.0722];
  const luminance = colour => weights.reduce((sum, weight, i) => sum + weight * light(parts(colour)[i]), 0);
  let ground = element;
  while (ground && (parts(getComputedStyle(ground).backgroundColor)[3] ?? 1) === 0) ground = ground.parentElement;
  const pair = [luminance(getComputedStyle(element).color),
                luminance(getComputedStyle(ground || document.body).backgroundColor)];
  return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
}"""

Open = Callable[..., Any]
KINDS: dict[str, Callable[[Comparison], Comparison]] = {
    "usual": lambda found: found,
    "hostile": hostile,
    "least": only_similarity,
    "unjudged": unjudged,
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        # A container's root cannot use Chromium's sandbox.
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    for kind, change in KINDS.items():
        write_report(change(comparison()), folder / f"{kind}.html")
    write_report(diagnosis(), folder / "diagnosis.html")
    return {kind: folder / f"{kind}.html" for kind in (*KINDS, "diagnosis")}


@pytest.fixture
def opened(browser: Any, reports: dict[str, Path]) -> Iterator[Open]:
    """Opens a report; every message on the console and every request of the page fails the test."""
    contexts, complaints = [], []

    def open_(kind: str = "usual", width: int = 1280, scheme: str = "light") -> Any:
        path = reports[kind]
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: complaints.append(asked.url) if asked.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "diagnosis"])
def test_the_page_never_scrolls_sideways(opened: Open, kind: str) -> None:
    page = opened(kind)
    for width in (1280, 375):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.body.scrollWidth") <= width


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_in_light_and_dark(opened: Open, scheme: str) -> None:
    page = opened(scheme=scheme)
    for selector in ("h1", ".facts dt", ".hint", ".excerpt", "details.compared[open] .sub"):
        assert page.locator(selector).first.evaluate(CONTRAST) >= 4.5, selector
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


def test_a_malicious_document_is_shown_as_text(opened: Open) -> None:
    page = opened("hostile")
    assert page.evaluate("window.hacked") is None
    assert "<script>window.hacked = 1</script>" in page.locator(".excerpt").first.inner_text()
    assert page.locator("img").count() == 0


@pytest.mark.slow
def test_a_pick_says_why_it_is_there(opened: Open) -> None:
    page = opened()
    page.locator("#slot1").select_option(label="vrsd refine=True")
    picks = page.locator("#columns .column").nth(1).locator(".pick .why")
    first = comparison().queries[0]
    for shown, pick, reason in zip(picks.all_inner_texts(), first.picks[11], REASONS, strict=True):
        assert shown.startswith(f"Rank {pick + 1} by cosine. R{reason[1:]}.")
    assert picks.first.evaluate(CONTRAST) >= 4.5
    assert {*page.locator("mark").all_inner_texts()} == {*first.words}


def test_queries_and_settings_can_be_selected_by_keyboard_and_shared_by_the_address(opened: Open) -> None:
    found = comparison()
    page = opened()
    assert page.locator("#query-text").inner_text() == found.queries[0].text
    # Queries 2 to 4 lose or gain most, and come first in the list.
    assert page.locator("#query optgroup").first.locator("option").first.get_attribute("value") == "1"
    page.locator("#query").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#query-text").inner_text() == found.queries[4].text
    page.locator("#slot0").select_option(label="ndpp relevance_mapping=linear")
    position = [setting.label for setting in found.settings].index("ndpp relevance_mapping=linear")
    shown = page.locator("#columns .column").first.locator(".id").all_inner_texts()
    query = found.queries[4]
    assert shown == [query.candidates[i].id for i in query.picks[position]]
    address = page.url
    page.locator("#query").select_option("0")
    page.evaluate("hash => { location.hash = hash; }", address.partition("#")[2])
    page.wait_for_function("text => document.querySelector('#query-text').textContent === text", arg=query.text)


def test_a_query_that_loses_shows_the_gold_that_is_left_out_and_what_took_its_place(opened: Open) -> None:
    page = opened()
    columns = page.locator("#columns .column")
    # vrsd misses one gold document of the first query that similarity has, and has one that similarity misses.
    assert columns.nth(1).locator(".won").all_inner_texts() == ["missed by similarity"]
    page.locator("#slot0").select_option(label="vrsd refine=True")
    page.locator("#changes-title ~ * a").first.click()
    query = comparison().queries[1]
    assert page.locator("#query-text").inner_text() == query.text
    assert page.locator("#slot0").input_value() == "0"
    ids = [candidate.id for candidate in query.candidates]
    near, ours = ({ids[i] for i in query.picks[setting]} for setting in (0, 10))
    (lost,) = near & {*query.gold} - ours
    assert columns.nth(0).locator(".pick", has_text=lost).locator(".lost").inner_text().startswith("left out by vrsd")
    assert page.locator(".lost").first.evaluate(CONTRAST) >= 4.5
    # Where a query asks for parts, the parts count.
    page.locator("#changes-title ~ * a", has_text="query 3").click()
    assert "Parts, of 2 (price, speed): similarity 1, vrsd 1" in page.locator("#summary").inner_text()
    marked = page.locator("#columns .pick:has(.lost, .won)").all_inner_texts()
    assert {text.split()[1] for text in marked} >= {"docs/page-03.md#1", "docs/page-03.md#8"}
