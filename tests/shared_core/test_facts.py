"""Titles and links as loaders and stores keep them in the metadata of an item."""

from __future__ import annotations

import copy
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from langchain_core.documents import Document
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from shared_core import InvalidInputError
from shared_core.errors import quoted
from shared_core.facts import read_facts
from shared_core.retrieval.request import read_some
from shared_core.texts import Texts

UUID_ID = UUID("123e4567-e89b-12d3-a456-426614174000")
URL = "https://example.org/19"


def documents(*metadata: dict[str, Any]) -> list[Document]:
    return [Document("x", id=f"doc-{row}", metadata=one) for row, one in enumerate(metadata)]


def read(items: list[Any], bodies: list[str] | None = None, **settings: Any) -> Texts:
    given = {name: read_some(items, value, name, tells=False) for name, value in settings.items()}
    return Texts(bodies or [""] * len(items), read_facts(items, [None] * len(items), given))


def links_of(value: Any, **more: Any) -> Any:
    """What the first document links to, beside others with an id, a title and a URL that holds a comma."""
    others = {"title": "Hoosick, New York", "links": "doc-0"}, {"url": "https://example.org/a,b#c"}, more
    items = documents({"links": value}, *others)
    before = copy.deepcopy(items)
    [links, *_] = read(items, links="links").links
    assert [item.id for item in items] == [item.id for item in before]
    return links


# --- titles ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        ({}, ""),
        ({"title": None, "Title": " Ann Lee "}, "Ann Lee"),
        ({"title": 7, "Header 1": "Guide", "Header 2": "Usage"}, "Usage"),
        ({"title": "Handbook", "Header 2": "Untitled"}, "Handbook"),
        ({"header_path": "/Guide/Usage/"}, "Usage"),
        ({"file_name": "report_final.pdf", "filename": "Forbidden_Ground.html"}, "Forbidden Ground"),
        ({"file_name": "北京.md"}, "北京"),
        ({"source": "C:\\texts\\Ann Lee.txt"}, "Ann Lee"),
        ({"source": "https://example.org/wiki/Ann_Lee_(director)?x=A/B#Life"}, "Ann Lee (director)"),
        # A URL that ends in "/" has a last part, if it has a path.
        ({"source": "https://example.org/wiki/Ann_Lee/"}, "Ann Lee"),
        ({"source": "https://example.org/"}, ""),
        # What says nothing is passed over.
        ({"title": "Untitled", "file_name": "Ann_Lee.md"}, "Ann Lee"),
        ({"title": "None", "Header 1": "nan", "document_title": "Ann Lee"}, "Ann Lee"),
        ({"title": "Microsoft Word - Document1.docx", "source": "a/Document1.docx"}, ""),
        ({"file_name": "IMG_1234.jpg"}, ""),
    ],
)
def test_a_title_is_what_loaders_write_and_a_file_name_only_if_it_reads_like_one(
    metadata: dict[str, Any], title: str
) -> None:
    assert read(documents(metadata)).titles == [title]


@pytest.mark.parametrize("value", [None, np.nan, pd.NA, pd.NaT, "", " ", "untitled", "NaN", "Document1"], ids=repr)
def test_where_the_setting_gives_no_title_the_metadata_is_asked(value: Any) -> None:
    items = documents({"name": value, "title": "A Film"}, {"name": "Ann Lee", "title": "A Film"})
    assert read(items, title="name").titles == ["A Film", "Ann Lee"]
    assert read(items, title=lambda item: item.metadata["name"]).titles == ["A Film", "Ann Lee"]
    assert read(items, title={"doc-0": value, "doc-1": "Ann Lee"}).titles == ["A Film", "Ann Lee"]


def test_metadata_that_python_cannot_write_or_parse_are_no_error() -> None:
    large, deep = 10**5000, "[" * 100_000 + "]" * 100_000
    [item] = documents({"name": large, "links": [large, {"url": -large}], "source": large})
    found = read([item], title="name", links="links")
    assert found.titles == [quoted(large)]
    assert found.facts[0].keys == ("doc-0", quoted(large))
    assert found.links == [(quoted(large), quoted(-large))]
    for text in (deep, f"[{'9' * 5000}]", '["\\ud800"]'):
        assert read(documents({"links": text}), links="links").links == [(text,)]


@pytest.mark.parametrize("key", ["source", "file_path", "file_name", "url", "ref_doc_id"])
def test_a_title_that_many_sources_share_gives_way_to_the_heading_of_the_text(key: str) -> None:
    texts = ["# Opening hours\n\nWe open.", "# Prices\n\nIt costs.", "no heading", "# Way\n\nGo."]

    def titles(sources: str) -> list[str]:
        items = []
        for text, source in zip(texts, sources, strict=True):
            node = TextNode(text=text, metadata={"title": "Documentation"})
            if key == "ref_doc_id":
                node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=source)
            else:
                node.metadata[key] = f"docs/{source}.md#{text[:3]}"
            items.append(NodeWithScore(node=node))
        return read(items, texts).titles

    assert titles("abcd") == ["Opening hours", "Prices", "Documentation", "Way"]
    assert titles("aabb") == ["Documentation"] * 4


# --- links ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "links"),
    [
        # Ids, titles and URLs, one or several.
        ("a", ("a",)),
        (UUID_ID, (str(UUID_ID),)),
        (["a", 7, np.int64(8), UUID_ID, URL], ("a", "7", "8", str(UUID_ID), URL)),
        (np.array(["a", "b"]), ("a", "b")),
        ([], ()),
        # Dictionaries and nodes.
        ({"url": URL}, (URL,)),
        (
            [{"url": URL, "target": "_blank", "text": "see"}, {"target": "a"}, {"node_id": "b", "url": None}],
            (URL, "a", "b"),
        ),
        (RelatedNodeInfo(node_id="a"), ("a",)),
        ([RelatedNodeInfo(node_id="a"), RelatedNodeInfo(node_id="b").model_dump()], ("a", "b")),
        # What is missing.
        *((missing, None) for missing in (None, np.nan, pd.NA, pd.NaT, "", " \n")),
        ([None, "a", np.nan, " ", pd.NA, {"url": ""}], ("a",)),
        # Strings of stores that hold nothing else.
        ('["a", "b"]', ("a", "b")),
        (' ["a", null, 7, {"url": "https://example.org/19"}] ', ("a", "7", URL)),
        # One title or URL with a comma, and a title in brackets.
        ("Hoosick, New York", ("Hoosick, New York",)),
        ("https://example.org/a,b", ("https://example.org/a,b",)),
        ("[REC]", ("[REC]",)),
        ("[" * 100_000 + "]" * 100_000, ("[" * 100_000 + "]" * 100_000,)),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_links_as_loaders_and_stores_keep_them(value: Any, links: tuple[str, ...] | None) -> None:
    assert links_of(value) == links


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        (5.5, "5.5"),
        (b"ab", "b'ab'"),
        ({"see": "a"}, "'see'"),
        (["a", ["b"]], r"\['b'\]"),
        (["a", {"text": "b"}], "'text'"),
        ('["a", 5.5]', "5.5"),
        (Document("x", id="a"), "'id', 'a'"),
    ],
    ids=repr,
)
def test_what_is_no_link_is_refused_with_the_id_of_the_document(value: Any, quoted: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"item 0 \(id 'doc-0'\): links.*{quoted}"):
        links_of(value)
