"""The report in headless Chromium: by keyboard, on a phone, in light and dark, and with documents that mean harm."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shared_core.evaluation.report.page import write_report
from shared_core.evaluation.results import Comparison
from tests.shared_core.evaluation.report.report_cases import comparison, hostile, only_similarity

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None and not os.environ.get("CI"):
    pytest.skip("there is no Chromium: apt-get install chromium", allow_module_level=True)

# What text must have beside its ground: WCAG 2, level AA.
CONTRAST = """element => {
  const light = c => { const s = c / 255; return s <= .03928 ? s / 12.92 : ((s + .055) / 1.055) ** 2.4; };
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const luminance = colour => { const [r, g, b] = parts(colour).map(light); return .2126 * r + .7152 * g + .0722 * b; };
  let ground = element;
  while (ground && (parts(getComputedStyle(ground).backgroundColor)[3] ?? 1) === 0) ground = ground.parentElement;
  const pair = [luminance(getComputedStyle(element).color),
                luminance(getComputedStyle(ground || document.body).backgroundColor)];
  return (Math.max(...pair) + .05) / (Math.min(...pair) + .05);
}"""

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        # A container's root cannot use Chromium's sandbox.
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a comparison's report; whatever the console says, or the page asks the world for, fails the test."""
    contexts, complaints = [], []

    def open_(found: Comparison, width: int = 1280, scheme: str = "light") -> Any:
        path = tmp_path / "report.html"
        write_report(found, path)
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


@pytest.mark.parametrize("make", [lambda c: c, hostile, only_similarity], ids=["usual", "hostile", "least"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_never_scrolls_sideways(opened: Open, make: Callable[[Comparison], Comparison], width: int) -> None:
    page = opened(make(comparison()), width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.body.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(opened: Open, scheme: str) -> None:
    page = opened(comparison(), scheme=scheme)
    for selector in (
        "h1",
        ".lead",
        ".facts dt",
        ".advice p",
        ".mean",
        ".interval",
        ".hint",
        ".excerpt",
        ".tags .apart",
    ):
        assert page.locator(selector).first.evaluate(CONTRAST) >= 4.5, selector
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


def test_a_document_that_means_harm_is_text(opened: Open) -> None:
    page = opened(hostile(comparison()))
    assert page.evaluate("window.hacked") is None
    assert "<script>window.hacked = 1</script>" in page.locator(".excerpt").first.inner_text()
    assert page.locator("img").count() == 0


def test_queries_and_settings_are_chosen_by_keyboard(opened: Open) -> None:
    found = comparison()
    page = opened(found)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    assert page.locator("#query-text").inner_text() == found.queries[0].text
    page.locator("#query").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#query-text").inner_text() == found.queries[1].text
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "after"
    page.keyboard.press("Enter")
    assert page.locator("#query-text").inner_text() == found.queries[2].text
    page.locator("#slot0").select_option(label="NDPP linear")
    position = [setting.label for setting in found.settings].index("NDPP linear")
    shown = page.locator("#columns .column").first.locator(".id").all_inner_texts()
    query = found.queries[2]
    assert shown == [query.candidates[i].id for i in query.picks[position]]


def test_what_differs_says_so_in_words(opened: Open) -> None:
    found = comparison()
    page = opened(found)
    page.locator("#slot0").select_option(label="similarity")
    page.locator("#slot1").select_option(label="VRSD")
    page.locator("#slot2").select_option(label="none")
    first, second = (set(found.queries[0].picks[i]) for i in (0, 10))
    tags = page.locator("#columns .column").first.locator(".tags .apart").all_inner_texts()
    assert tags == ["only here"] * len(first - second)
    assert page.locator("#columns .column").first.locator(".tags .gold").count() == len(
        [i for i in first if found.queries[0].candidates[i].id in found.queries[0].gold]
    )


def test_points_tell_their_figures_on_focus_and_by_arrow_keys(opened: Open) -> None:
    found = comparison()
    page = opened(found)
    chart = page.locator("svg.chart.wide")
    chart.locator(".point[tabindex='0']").focus()
    tip = page.locator("figure.tipped:not(.map) .tip")
    assert tip.is_visible()
    first = tip.inner_text()
    page.keyboard.press("ArrowRight")
    assert tip.inner_text() != first
    assert "relevance" in tip.inner_text()
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    chart.locator(".point").nth(3).hover()
    assert tip.is_visible()


def test_on_a_phone_the_narrow_picture_is_shown(opened: Open) -> None:
    page = opened(comparison(), 360)
    assert page.locator("svg.chart.narrow").is_visible()
    assert not page.locator("svg.chart.wide").is_visible()
