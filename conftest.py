"""Every Python snippet of the README and of docs/ runs as a test, in order, each page in a namespace of its own."""

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["README.md", "docs/*.md"]
).pytest()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a page's snippets, which build on each other, with one worker."""
    for item in items:
        if item.path.suffix == ".md":
            item.add_marker(pytest.mark.xdist_group(str(item.path)))


@pytest.fixture(autouse=True, scope="session")
def _offline() -> None:
    """Nothing in the tests may ask a model hub for anything."""
    import os

    os.environ["HF_HUB_OFFLINE"] = "1"
