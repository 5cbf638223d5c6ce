"""The query and candidates of one selection: checked arrays, of unit length."""

from .candidates import CONSTRAINTS, Candidates, check_constraints
from .parts import REFERENCE_KINDS, Parts, References, as_parts, as_references
from .unit_vectors import (
    TIE_EPS,
    TIE_TOLERANCE,
    as_unit_queries,
    as_unit_rows,
    count_repeats,
    standardise,
    working_dtype,
)

__all__ = [
    "CONSTRAINTS",
    "REFERENCE_KINDS",
    "TIE_EPS",
    "TIE_TOLERANCE",
    "Candidates",
    "Parts",
    "References",
    "as_parts",
    "as_references",
    "as_unit_queries",
    "as_unit_rows",
    "check_constraints",
    "count_repeats",
    "standardise",
    "working_dtype",
]
