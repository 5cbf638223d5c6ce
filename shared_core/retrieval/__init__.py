"""What the adapters use of the core: settings become a checked request, and a request selects a framework's items."""

from .._validation import as_identifiers, check_integer, check_one_of
from .items import ORDERS, sort_items
from .request import (
    SETTINGS,
    WIDEST,
    EmbeddedQuery,
    Flow,
    Found,
    Request,
    Selected,
    Step,
    check_spelling,
    parameter_names,
    run_flow,
    run_flow_async,
)

__all__ = [
    "ORDERS",
    "SETTINGS",
    "WIDEST",
    "EmbeddedQuery",
    "Flow",
    "Found",
    "Request",
    "Selected",
    "Step",
    "as_identifiers",
    "check_integer",
    "check_one_of",
    "check_spelling",
    "parameter_names",
    "run_flow",
    "run_flow_async",
    "sort_items",
]
