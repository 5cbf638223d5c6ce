"""Writes clean.jsonl and one file for each converter from texts.html; README.md says how to run it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).parent
# The left column of an A5 page, in points: many words are broken at the ends of lines, but none of a heading.
PAGE, COLUMN = (0, 0, 420, 595), (30, 30, 200, 565)
CSS = """\
body { font-size: 11px; hyphens: auto }
h1 { font-size: 18px } h2 { font-size: 16px } h3 { font-size: 14px } pre { font-size: 8px }
h1, h2, h3, code { hyphens: manual }
"""


def clean(article: str) -> str:
    """What a reader sees, in paragraphs; without marks of footnotes and anchors."""
    text = re.sub(r'<sup>.*?</sup>|<a class="headerlink".*?</a>', "", article, flags=re.DOTALL)
    preformatted = re.search(r"<pre>(.*?)</pre>", text, re.DOTALL)
    text = " ".join(re.sub(r"<pre>.*?</pre>", "<pre></pre>", text, flags=re.DOTALL).split())
    text = text.replace("<pre></pre>", f"\n\n{preformatted[1].strip()}" if preformatted else "")
    text = re.sub(r"</(?:h\d|p|ul|ol|table)>", "\n\n", text)
    text = re.sub(r"</(?:li|tr)>", "\n", text)
    text = re.sub(r"</t[hd]><t[hd]>", " ", text)
    text = html.unescape(re.sub(r"<[^>]*>", "", text)).replace("\u00ad", "").replace("\u00a0", " ")
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" *\n *", "\n", text)).strip()


def by_html2text(article: str) -> str:
    import html2text

    return html2text.HTML2Text().handle(article)


def by_markdownify(article: str) -> str:
    import markdownify

    return markdownify.markdownify(article)


def by_docling(article: str) -> str:
    from docling.datamodel.base_models import DocumentStream, InputFormat
    from docling.document_converter import DocumentConverter

    page = DocumentStream(name="page.html", stream=BytesIO(f"<html><body>{article}</body></html>".encode()))
    return DocumentConverter(allowed_formats=[InputFormat.HTML]).convert(page).document.export_to_markdown()


def pdf(article: str) -> bytes:
    import pymupdf

    file = BytesIO()
    writer = pymupdf.DocumentWriter(file)
    story = pymupdf.Story(f'<html lang="en"><body>{article}</body></html>', user_css=CSS)
    device = writer.begin_page(pymupdf.Rect(PAGE))
    more, _ = story.place(pymupdf.Rect(COLUMN))
    assert not more
    story.draw(device)
    writer.end_page()
    writer.close()
    return file.getvalue()


def by_pymupdf4llm(article: str, layout: bool = True) -> str:
    import pymupdf
    import pymupdf4llm

    pymupdf4llm.use_layout(layout)
    return pymupdf4llm.to_markdown(pymupdf.open("pdf", pdf(article)))


def by_pymupdf(article: str) -> str:
    import pymupdf

    return pymupdf.open("pdf", pdf(article))[0].get_text()


# The name of each file, the package, and the function that calls it.
CONVERTERS: list[tuple[str, str, Callable[[str], str]]] = [
    ("html2text", "html2text", by_html2text),
    ("markdownify", "markdownify", by_markdownify),
    ("docling", "docling", by_docling),
    ("pymupdf4llm", "pymupdf4llm", by_pymupdf4llm),
    ("pymupdf4llm_without_layout", "pymupdf4llm", partial(by_pymupdf4llm, layout=False)),
    ("pymupdf", "pymupdf", by_pymupdf),
]


def main() -> None:
    source = (HERE / "texts.html").read_text(encoding="utf-8")
    articles = re.findall(r'<article id="(.*?)">\n(.*?)</article>', source, re.DOTALL)
    write("clean", [], {key: clean(article) for key, article in articles})
    for name, package, convert in CONVERTERS:
        about = {"converter": package, "version": version(package)}
        write(name, [about], {key: convert(article) for key, article in articles})


def write(name: str, records: list[dict[str, str]], texts: dict[str, str]) -> None:
    rows = [*records, *({"id": key, "text": text} for key, text in texts.items())]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (HERE / f"{name}.jsonl").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
