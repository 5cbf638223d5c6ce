"""A search by words over a store that two threads change returns only texts that the store had during the search."""

from __future__ import annotations

import threading
import uuid
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from langchain_community.vectorstores import FAISS
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode

import langchain_setselect
import llamaindex_setselect
from tests.adversarial.conftest import Cases
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding

WORDS = ("harbour", "engine", "violin", "passage")


class Changing:
    """A store, and what it had under each id, with the times from and to which it had it."""

    def __init__(self, kind: str) -> None:
        self.kind, self.texts, self.lock = kind, dict[str, str](), threading.Lock()
        self.clock, self.ended = 0, defaultdict[str, list[int]](list)
        if kind == "simple":
            self.store: Any = VectorStoreIndex([], embed_model=CountingEmbedding())
            self.search: Any = llamaindex_setselect.SetSelectIndexRetriever(
                self.store, similarity_top_k=4, keyword_search=True
            )
            return
        if kind == "FAISS":
            self.store = FAISS.from_texts(["start"], WordEmbeddings(), ids=["start"])
            self.texts["start"] = "start"
        elif kind == "Chroma":
            chromadb, chroma = pytest.importorskip("chromadb"), pytest.importorskip("langchain_chroma")
            self.store = chroma.Chroma(f"c{uuid.uuid4().hex}", WordEmbeddings(), client=chromadb.EphemeralClient())
        else:
            self.store = InMemoryVectorStore(WordEmbeddings())
        self.search = langchain_setselect.SetSelectRetriever(vectorstore=self.store, k=4, keyword_search=True)

    def change(self, rng: np.random.Generator) -> None:
        """Add, replace or delete a document."""
        name, text = f"{rng.integers(30)}", f"{rng.choice(WORDS)} {rng.choice(WORDS)} {rng.integers(10**9)}"
        with self.lock:
            old, replaces = self.texts.pop(name, None), rng.random() < 0.7
            # FAISS and LlamaIndex do not replace by id.
            if old is not None and not (replaces and self.kind in ("in memory", "Chroma")):
                self.delete(name)
            if old is None or replaces:
                self.texts[name] = text
                self.add(name, text)
            self.clock += 1
            if old is not None:
                self.ended[old].append(self.clock)

    def add(self, name: str, text: str) -> None:
        if self.kind == "simple":
            self.store.insert_nodes([TextNode(id_=name, text=text)])
        else:
            self.store.add_documents([Document(text, id=name)])

    def delete(self, name: str) -> None:
        if self.kind == "simple":
            self.store.delete_nodes([name], delete_from_docstore=True)
        else:
            self.store.delete([name])

    def check(self, question: str) -> None:
        before = self.clock
        if self.kind != "in memory":
            # Their own searches fail while another thread deletes.
            with self.lock:
                found = self.search.retrieve(question) if self.kind == "simple" else self.search.invoke(question)
        else:
            found = self.search.invoke(question)
        with self.lock:
            for text in (one.text if self.kind == "simple" else one.page_content for one in found):
                assert text in self.texts.values() or self.ended[text][-1:] > [before], (text, before)


@pytest.mark.filterwarnings("ignore::setselect.SetSelectWarning")
@pytest.mark.parametrize("kind", ["in memory", "FAISS", "Chroma", "simple"])
def test_no_text_is_returned_that_the_store_does_not_have(cases: Cases, kind: str) -> None:
    changing, failures = Changing(kind), list[BaseException]()

    def work(rng: np.random.Generator, number: int) -> None:
        try:
            for step in range(10):
                changing.change(rng)
                # A thread that only searches would not see its own changes.
                if step % 5 == number % 2:
                    changing.check(f"Which {rng.choice(WORDS)} and {rng.choice(WORDS)}?")
        except BaseException as failure:
            failures.append(failure)

    for number, rng in cases(share=0.05):
        threads = [threading.Thread(target=work, args=(child, at)) for at, child in enumerate(rng.spawn(2))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, (number, failures)
        # Without changes, the last text of each document is found by its number.
        for text in [*changing.texts.values()][:2]:
            changing.search.refresh()
            hits = changing.search.retrieve(text) if kind == "simple" else changing.search.invoke(text)
            assert text in [hit.text if kind == "simple" else hit.page_content for hit in hits]
