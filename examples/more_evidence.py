"""LangChain: for how many questions of HotpotQA do 5 texts hold all the evidence, with setselect and without?

python examples/more_evidence.py             the documents have their titles, and nothing is set
python examples/more_evidence.py --follow    names in the picks are searched for too; embedding them takes a minute once
"""

from __future__ import annotations

import sys

from _hotpotqa import MISSING, hotpotqa
from langchain_core.retrievers import BaseRetriever

from langchain_setselect import SetSelectRetriever
from setselect import Coverage

if MISSING:
    print(MISSING)
    sys.exit()
store, questions = hotpotqa()
retrievers: dict[str, BaseRetriever] = {
    "store.as_retriever": store.as_retriever(search_kwargs={"k": 5}),
    "SetSelectRetriever": SetSelectRetriever(vectorstore=store, k=5),
    "  reference_weight=0": SetSelectRetriever(vectorstore=store, k=5, selector=Coverage(reference_weight=0)),
}
if "--follow" in sys.argv:
    retrievers["  follow=True"] = SetSelectRetriever(vectorstore=store, k=5, follow=True)

print(f"{len(questions)} questions, {store.index.ntotal} passages. All evidence among 5 texts:")
for name, retriever in retrievers.items():
    found = 0
    for question in questions:
        texts = retriever.invoke(question["question"])
        found += {*map(str, question["gold"])} <= {text.id for text in texts}
    print(f"  {name:<23}{100 * found / len(questions):.1f} % of the questions")
