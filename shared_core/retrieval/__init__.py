"""The part of the core that the adapters call. Settings become a request, which selects a framework's items."""

from .._validation import as_embeddings
from .flow import Flow, Step, run_flow, run_flow_async
from .items import join_values
from .lookup import find_registered, nearest_name, refuse_unknown
from .request import EmbeddedQuery, Found, Request, Selected

__all__ = [
    "EmbeddedQuery",
    "Flow",
    "Found",
    "Request",
    "Selected",
    "Step",
    "as_embeddings",
    "find_registered",
    "join_values",
    "nearest_name",
    "refuse_unknown",
    "run_flow",
    "run_flow_async",
]
