"""The part of the core that the adapters call. Settings become a checked request, which selects a framework's items."""

from .._validation import as_embeddings, as_identifiers, check_integer, check_one_of
from ..candidates import RELEVANCE_SCALES, RelevanceScale
from .items import ORDERS, join_values, sort_items
from .request import (
    SETTINGS,
    WIDEST,
    EmbeddedQuery,
    Flow,
    Found,
    Order,
    Perspective,
    Request,
    Selected,
    Step,
    as_perspective,
    check_spelling,
    find_registered,
    parameter_names,
    refuse_unknown,
    run_flow,
    run_flow_async,
)

__all__ = [
    "ORDERS",
    "RELEVANCE_SCALES",
    "SETTINGS",
    "WIDEST",
    "EmbeddedQuery",
    "Flow",
    "Found",
    "Order",
    "Perspective",
    "RelevanceScale",
    "Request",
    "Selected",
    "Step",
    "as_embeddings",
    "as_identifiers",
    "as_perspective",
    "check_integer",
    "check_one_of",
    "check_spelling",
    "find_registered",
    "join_values",
    "parameter_names",
    "refuse_unknown",
    "run_flow",
    "run_flow_async",
    "sort_items",
]
