"""A search by words over a store that two threads change returns only texts that the store had during the search."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index
from llama_index.core import Document as LlamaDocument
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

import langchain_setselect
import llamaindex_setselect
from tests.adversarial.conftest import Cases
from tests.stores import harness
from tests.stores.cases import every_store
from tests.stores.harness import DIMENSION, ROWS, LangChainCase, LlamaIndexCase, TableEmbeddings

WORDS = ("harbour", "engine", "violin", "passage")
# The words decide, since all vectors are the same.
VECTORS = defaultdict[str, list[float]](lambda: [1.0] * DIMENSION)
LANGCHAIN = (
    "in memory",
    "FAISS flat, L2",
    "Chroma in memory, l2",
    "LanceDB",
    "PGVector, cosine",
    "PGVectorStore, cosine",
)
LLAMAINDEX = ("simple", "Chroma in memory, l2", "LanceDB", "PostgreSQL, plain")


class Changing:
    """A store, what it has under each id, and the times to which it had a text.

    ``upsert(id, text)`` puts a document in, also in the place of another one if ``replaces``.
    """

    def __init__(
        self,
        retriever: Any,
        upsert: Callable[[str, str], Any],
        delete: Callable[[str], Any],
        replaces: bool = False,
        safe: bool = False,
    ) -> None:
        self.retriever, self.upsert, self.delete, self.replaces, self.safe = retriever, upsert, delete, replaces, safe
        self.texts, self.clock, self.ended = {ROWS[0].id: ROWS[0].text}, 0, dict[str, int]()
        self.lock = threading.Lock()

    def change(self, rng: np.random.Generator) -> None:
        """Add, replace or delete a document."""
        name, text = str(UUID(int=rng.integers(100, 130))), " ".join([*rng.choice(WORDS, 2), str(rng.integers(10**9))])
        with self.lock:
            old, stays = self.texts.pop(name, None), rng.random() < 0.7
            if old is not None and not (stays and self.replaces):
                self.delete(name)
            if old is None or stays:
                self.texts[name] = text
                self.upsert(name, text)
            self.clock += 1
            if old is not None:
                self.ended[old] = self.clock

    def search(self, question: str) -> list[str]:
        if isinstance(self.retriever, langchain_setselect.SetSelectRetriever):
            return [document.page_content for document in self.retriever.invoke(question)]
        return [scored.text for scored in self.retriever.retrieve(question)]

    def check(self, question: str) -> None:
        before = self.clock
        if self.safe:
            found = self.search(question)
        else:
            # Their own searches fail while another thread deletes.
            with self.lock:
                found = self.search(question)
        with self.lock:
            for text in found:
                assert text in self.texts.values() or self.ended.get(text, 0) > before, (text, before)


@contextmanager
def langchain(name: str, folder: Path) -> Iterator[Changing]:
    case: LangChainCase = next(case for case in every_store.LANGCHAIN if case.name == name)
    with case.open(TableEmbeddings(VECTORS), folder) as opened:
        store: Any = opened
        changing = Changing(
            langchain_setselect.SetSelectRetriever(vectorstore=store, k=4, keyword_search=True),
            lambda name, text: store.add_texts([text], [{"number": 1, "colour": "red"}], ids=[name]),
            lambda name: store.delete([name]),
            replaces=name.startswith(("in memory", "Chroma", "PGVector,")),
            safe=name == "in memory",
        )
        yield changing


def retriever_over(index: VectorStoreIndex) -> Any:
    return llamaindex_setselect.SetSelectIndexRetriever(index, similarity_top_k=4, keyword_search=True)


@contextmanager
def nodes(name: str, folder: Path, changed: str = "by nodes") -> Iterator[Changing]:
    case: LlamaIndexCase = next(case for case in every_store.LLAMAINDEX if case.name == name)
    with case.open(folder) as opened:
        store: Any = opened
        index = VectorStoreIndex(
            harness.nodes(),
            storage_context=StorageContext.from_defaults(vector_store=store),
            embed_model=MockEmbedding(embed_dim=DIMENSION),
        )
        if changed == "by documents":
            yield Changing(
                retriever_over(index),
                lambda name, text: index.refresh_ref_docs([LlamaDocument(id_=name, text=text)]),
                lambda name: index.delete_ref_doc(name, delete_from_docstore=True),
                replaces=True,
            )
        else:
            yield Changing(
                retriever_over(index),
                lambda name, text: index.insert_nodes([TextNode(id_=name, text=text)]),
                # The LanceDB store's own deletion by node id writes a query that LanceDB refuses.
                (lambda name: store.table.delete(f"id = '{name}'"))
                if case.name == "LanceDB"
                else lambda name: index.delete_nodes([name], delete_from_docstore=True),
            )


@contextmanager
def indexed(folder: Path) -> Iterator[Changing]:
    """All documents are given to LangChain's ``index`` after each change."""
    with langchain("in memory", folder) as changing:
        store, manager = changing.retriever.vectorstore, InMemoryRecordManager("documents")
        manager.create_schema()

        def update(*_: str) -> None:
            documents = [Document(text, metadata={"of": name}) for name, text in changing.texts.items()]
            index(documents, manager, store, cleanup="full", key_encoder="sha256")

        store.delete([ROWS[0].id])
        changing.upsert = changing.delete = update
        yield changing


@contextmanager
def ingested(folder: Path) -> Iterator[Changing]:
    """All documents go through LlamaIndex's ``IngestionPipeline`` after each change."""
    with nodes("Chroma in memory, l2", folder) as changing:
        pipeline = IngestionPipeline(
            transformations=[SentenceSplitter(), changing.retriever._index._embed_model],
            docstore=SimpleDocumentStore(),
            vector_store=changing.retriever._index.vector_store,
            docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
        )

        def update(*_: str) -> None:
            pipeline.run(documents=[LlamaDocument(id_=name, text=text) for name, text in changing.texts.items()])

        changing.upsert = changing.delete = update
        changing.replaces = True
        yield changing


KINDS: dict[str, Callable[[Path], Any]] = {
    **{name: lambda folder, name=name: langchain(name, folder) for name in LANGCHAIN},
    **{f"LlamaIndex, {name}": lambda folder, name=name: nodes(name, folder) for name in LLAMAINDEX},
    "LangChain's index": indexed,
    "LlamaIndex's refresh_ref_docs": lambda folder: nodes("simple", folder, "by documents"),
    "LlamaIndex's IngestionPipeline": ingested,
}


@pytest.mark.filterwarnings("ignore::setselect.SetSelectWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_no_text_is_returned_that_the_store_does_not_have(
    cases: Cases, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "ROWS", ROWS[:1])
    failures = list[BaseException]()

    def work(changing: Changing, rng: np.random.Generator) -> None:
        try:
            for _ in range(40):
                changing.change(rng)
                # A thread that only searches would not see its own changes.
                if rng.random() < 0.1:
                    changing.check(f"Which {rng.choice(WORDS)} and {rng.choice(WORDS)}?")
        except BaseException as failure:
            failures.append(failure)

    with KINDS[kind](tmp_path) as changing:
        for number, rng in cases(share=0.005, at_most=150):
            threads = [threading.Thread(target=work, args=(changing, child)) for child in rng.spawn(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not failures, (number, failures)
            # Without changes, the last text of each document is found by its number.
            changing.retriever.refresh()
            for text in [*changing.texts.values()][-2:]:
                assert text in changing.search(text)
