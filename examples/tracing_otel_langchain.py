"""LangChain and OpenTelemetry: each selection becomes an event of the retriever's span.

OpenInference's instrumentation makes a span of each run, and ignores custom events. The handler adds setselect's event
to the span. The exporter keeps the spans in memory; use an OTLP exporter in its place to send them to a collector.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from _minilm import faiss_store, numpy_docs
from langchain_core.callbacks import BaseCallbackHandler
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from langchain_setselect import SetSelectRetriever

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
instrumentor = LangChainInstrumentor()
instrumentor.instrument(tracer_provider=provider)


class SelectionEvents(BaseCallbackHandler):
    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **more: Any) -> None:
        span = instrumentor.get_span(run_id)
        if name == "setselect" and span is not None:
            # OpenTelemetry has no attributes without a value.
            attributes = {f"setselect.{key}": value for key, value in data.items() if value is not None}
            span.add_event("setselect", attributes)


retriever = SetSelectRetriever(vectorstore=faiss_store(numpy_docs()), k=3, fetch_k=50)
retriever.with_config(callbacks=[SelectionEvents()]).invoke("read numbers from a text file")

for span in exporter.get_finished_spans():
    print(f"span {span.name}")
    for event in span.events:
        print(f"  event {event.name}")
        for key in ("selector", "k", "fetch_k", "candidates", "vector_source", "ids"):
            print(f"    setselect.{key} = {event.attributes[f'setselect.{key}']}")
instrumentor.uninstrument()
