"""The form in which a language model answers :data:`PERSPECTIVE_PROMPT`; loaded by the adapters alone (pydantic)."""

from __future__ import annotations

from pydantic import BaseModel, Field


class SplitQuery(BaseModel):
    """A search query split into its root and its perspective."""

    # The docstring and the descriptions are sent to the model.
    root: str = Field(default="", description="The query without its perspective, in the query's own words")
    perspective: str | None = Field(
        default=None, description="The side the query takes, in the query's own words; empty if it takes none"
    )
