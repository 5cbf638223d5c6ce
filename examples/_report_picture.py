"""Takes docs/assets/report.png and report-dark.png: the report of `setselect compare` on 94 questions of HotpotQA dev.

They are those of the half on which nothing was chosen (benchmarks/regimes.py).

.venv/bin/python examples/_report_picture.py
"""

from __future__ import annotations

import hashlib
import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from _hotpotqa import HOTPOTQA, MISSING, read_records
from _minilm import minilm
from _picture import ASSETS
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from setselect.evaluation import Comparison, compare, write_report

FILES = {"report.png": "light", "report-dark.png": "dark"}
WIDTH, SCALE, COLOURS, MARGIN = 880, 2, 128, 24


def comparison() -> Comparison:
    """What the picture shows."""
    documents = [
        {"id": str(passage["id"]), "title": passage["title"], "text": " ".join(passage["sentences"])}
        for passage in read_records(HOTPOTQA, "passages.jsonl")
    ]
    queries = [
        {"id": str(number), "text": question["question"], "gold": [str(row) for row in question["gold"]]}
        for number, question in enumerate(read_records(HOTPOTQA, "questions.jsonl"), 1)
        if hashlib.sha256(question["question"].encode()).digest()[0] % 2
    ]
    vectors, of_queries = (minilm().embed_documents([one["text"] for one in ones]) for ones in (documents, queries))
    return compare(documents, queries, (vectors, of_queries), title="HotpotQA", model="all-MiniLM-L6-v2")


def photograph(browser: Browser, page: Path, scheme: Any) -> Image.Image:
    """The best row and the numbers of texts, in a few colours."""
    tab = browser.new_page(
        viewport={"width": WIDTH, "height": 900},
        color_scheme=scheme,
        device_scale_factor=SCALE,
        reduced_motion="reduce",
    )
    tab.goto(page.as_uri())
    boxes: list[Any] = [tab.locator(part).bounding_box() for part in ("#advice-title", "#sizes-title ~ .scroll")]
    top, bottom = boxes[0]["y"] - MARGIN, boxes[1]["y"] + boxes[1]["height"] + MARGIN
    shot = tab.screenshot(full_page=True, clip={"x": 0, "y": top, "width": WIDTH, "height": bottom - top})
    picture = Image.open(io.BytesIO(shot)).convert("RGB")
    # The colours that most pixels have. A palette of averages would change the grounds.
    most: list[tuple[int, Any]] = sorted(picture.getcolors(picture.width * picture.height) or [], reverse=True)
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in most[:COLOURS] for part in colour])
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


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
