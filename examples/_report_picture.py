"""Takes docs/assets/report.png and report-dark.png: the report of `setselect compare` on 200 questions of HotpotQA dev.

.venv/bin/python examples/_report_picture.py
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from _hotpotqa import MISSING, hotpotqa
from _picture import ASSETS
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from langchain_setselect import compare_store
from setselect import Comparison, write_report

FILES = {"report.png": "light", "report-dark.png": "dark"}
WIDTH, SCALE, COLOURS = 880, 2, 48


def comparison() -> Comparison:
    """What the picture shows."""
    store, questions = hotpotqa()
    queries = [
        {"id": str(number), "text": question["question"], "gold": [str(row) for row in question["gold"]]}
        for number, question in enumerate(questions, 1)
    ]
    return compare_store(store, queries, title="HotpotQA: questions of several steps", model="all-MiniLM-L6-v2")


def photograph(browser: Browser, page: Path, scheme: Any) -> Image.Image:
    """The recommendation and the curves, without the lines of code between them; few colours make a small file."""
    tab = browser.new_page(
        viewport={"width": WIDTH, "height": 900},
        color_scheme=scheme,
        device_scale_factor=SCALE,
        reduced_motion="reduce",
    )
    tab.goto(page.as_uri())
    tab.evaluate("document.querySelector('.code').remove()")
    end = tab.locator(".pair").bounding_box()
    assert end is not None
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": end["y"] + end["height"] + 16}
    shot = Image.open(io.BytesIO(tab.screenshot(full_page=True, clip=clip))).convert("RGB")  # type: ignore[arg-type]
    return shot.quantize(COLOURS, dither=Image.Dither.NONE)


def main() -> None:
    """Write both files."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if MISSING or chromium is None:
        sys.exit(MISSING or "there is no Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        page = Path(folder) / "report.html"
        write_report(comparison(), page)
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, scheme in FILES.items():
            photograph(browser, page, scheme).save(ASSETS / name, optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
