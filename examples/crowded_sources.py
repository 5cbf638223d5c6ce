"""One source with many near-copies: a cap on the documents of each source, and no two near-duplicates."""

from __future__ import annotations

from _minilm import minilm
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_setselect import SetSelectRetriever
from setselect import Coverage

PASSAGES = {
    "manual": [
        "To descale the coffee machine, fill the tank with water and vinegar and run it twice.",
        "Descaling the coffee machine: run water with vinegar through it two times.",
        "Descale the coffee machine every three months with vinegar and water.",
        "Before descaling the coffee machine, take out the filter.",
        "After descaling, run the coffee machine with clear water.",
        "A coffee machine that is not descaled takes longer for a cup.",
    ],
    "leaflet": ["To descale the coffee machine, fill the tank with vinegar and water and run it twice."],
    "forum": ["Citric acid smells less than vinegar when you descale a coffee machine."],
    "shop": ["Vinegar and citric acid remove limescale from kettles and coffee machines alike."],
    "test": ["In our test a descaled machine used a fifth less power per cup."],
    "warranty": ["Damage by limescale is not covered by the warranty of the machine."],
}
QUESTION = "How do I descale the coffee machine with vinegar?"

store = InMemoryVectorStore(minilm())
store.add_documents(
    [
        Document(text, id=f"{source}-{i}", metadata={"source": source})
        for source, texts in PASSAGES.items()
        for i, text in enumerate(texts, start=1)
    ]
)

retriever = SetSelectRetriever(vectorstore=store, search_type="similarity", search_kwargs={"k": 4})
for title, constraints in {
    "No constraint": {},
    "One of each source": {"max_per_source": 1},
    "No near-duplicates": {"drop_near_duplicates": 0.9},
    "Both": {"max_per_source": 1, "drop_near_duplicates": 0.9},
    # Softer: a new source counts like a word of the question that the set does not have yet.
    "Sources covered": {"selector": Coverage(cover_weight=0.5), "cover": "source"},
    # ``source`` may be any function of the document. The constraints work with every selector.
    "Two of each, by NDPP": {"search_type": "ndpp", "max_per_source": 2, "source": lambda d: d.id.split("-")[0]},
}.items():
    print(f"{title + ':':21}", ", ".join(d.id or "" for d in retriever.invoke(QUESTION, **constraints)))
