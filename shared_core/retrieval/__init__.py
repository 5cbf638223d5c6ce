"""The part of the core that the adapters call. Settings become a checked request, which selects a framework's items."""

from .._validation import as_embeddings, as_identifiers, check_bool, check_integer
from ..scaling import Scale
from ..selectors.base import DEFAULT_SELECTOR
from .items import ORDERS, join_values
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
    as_vector,
    check_spelling,
    find_registered,
    is_default,
    parameter_names,
    refuse_unknown,
    run_flow,
    run_flow_async,
)

__all__ = [
    "DEFAULT_SELECTOR",
    "ORDERS",
    "SETTINGS",
    "WIDEST",
    "EmbeddedQuery",
    "Flow",
    "Found",
    "Order",
    "Perspective",
    "Request",
    "Scale",
    "Selected",
    "Step",
    "as_embeddings",
    "as_identifiers",
    "as_perspective",
    "as_vector",
    "check_bool",
    "check_integer",
    "check_spelling",
    "find_registered",
    "is_default",
    "join_values",
    "parameter_names",
    "refuse_unknown",
    "run_flow",
    "run_flow_async",
]
