"""LlamaIndex: retrieval, selection and an answer by a real model, Gemma 3 270M, without a network (`make models`)."""

from __future__ import annotations

from _gemma import WORKED_EXAMPLES, gemma_folder
from _minilm import minilm
from llama_index.core import PromptTemplate, VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.embeddings.langchain import LangchainEmbedding
from llama_index.llms.huggingface import HuggingFaceLLM

from llamaindex_setselect import SetSelectPostprocessor

NOTES = {
    "timetable": "The first ferry leaves at 6:30.",
    "poster": "Ferries leave from 6:30 on.",
    "app": "Departure of the first ferry: 6:30.",
    "guide": "The ferry to the island leaves at 6:30 for the first time.",
    "cars": "A car on the ferry costs 18 euros.",
    "bikes": "Bicycles are free.",
    "kiosk": "The kiosk on deck sells coffee.",
    "storm": "In a storm no ferry leaves.",
    "beach": "The best beach lies in the north of the island.",
    "hotel": "The island has one hotel with 40 rooms.",
    "dogs": "Dogs must be kept on a lead.",
    "crossing": "The crossing takes 50 minutes.",
}
QUESTION = "How long does the ferry take, and what does a car cost?"

folder = str(gemma_folder())
# The model is small: its answers to other questions are often wrong, even where the notes are right.
llm = HuggingFaceLLM(
    model_name=folder,
    tokenizer_name=folder,
    device_map="cpu",
    max_new_tokens=24,
    # Greedy, so that the answer is the same in every run.
    generate_kwargs={"do_sample": False},
    # Token 108 is an empty line, which ends the answer.
    stopping_ids=[108],
)
prompt = PromptTemplate(WORKED_EXAMPLES + "Notes:\n{context_str}\nQuestion: {query_str}\nAnswer:")

nodes = [TextNode(id_=name, text=text) for name, text in NOTES.items()]
index = VectorStoreIndex(nodes, embed_model=LangchainEmbedding(minilm()))

print("Question:  ", QUESTION)
for method in ("similarity", "ndpp"):
    engine = index.as_query_engine(
        llm=llm,
        text_qa_template=prompt,
        similarity_top_k=50,
        node_postprocessors=[SetSelectPostprocessor(selector=method, top_n=4, index=index)],
    )
    answer = engine.query(QUESTION)
    print(f"{method + ':':11}", ", ".join(source.node_id for source in answer.source_nodes))
    print("  Answer:  ", str(answer).strip())
