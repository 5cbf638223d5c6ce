"""LlamaIndex and OpenTelemetry: LlamaIndex's own integration makes each selection an event of the retriever's span.

The exporter keeps the spans in memory; use an OTLP exporter in its place to send them to a collector.
"""

from __future__ import annotations

from _minilm import minilm, numpy_docs
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.embeddings.langchain import LangchainEmbedding
from llama_index.observability.otel import LlamaIndexOpenTelemetry
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from llamaindex_setselect import SetSelectIndexRetriever

names, texts, vectors = numpy_docs()
nodes = [
    TextNode(id_=name, text=text, embedding=vector.tolist())
    for name, text, vector in zip(names, texts, vectors, strict=True)
]
index = VectorStoreIndex(nodes, embed_model=LangchainEmbedding(minilm()))

exporter = InMemorySpanExporter()
LlamaIndexOpenTelemetry(span_exporter=exporter, span_processor="simple").start_registering()
SetSelectIndexRetriever(index, similarity_top_k=3, fetch_k=50).retrieve("read numbers from a text file")

for span in exporter.get_finished_spans():
    for event in span.events:
        if event.name == "ReRankEndEvent":
            # A span's name ends with a random number.
            print(f"span {span.name.split('-')[0]}, event {event.name}")
            for key in ("selector", "k", "fetch_k", "candidates", "vector_source", "ids"):
                print(f"  {key} = {event.attributes[f'tags.setselect.{key}']}")
