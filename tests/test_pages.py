"""Every Python snippet of the README and of docs/ runs, in order, each page in a namespace of its own."""

from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_run(page: Path) -> None:
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(page)
    examples = list(document.examples())
    assert examples, f"{page.name} shows no Python"
    # One test a page: snippets build on each other, and workers share nothing.
    for example in examples:
        example.evaluate()
