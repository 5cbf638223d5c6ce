"""Learning an NDPP kernel from the examples that help a language model (NDPP paper, 4.2 and 4.3; extra ``train``)."""

from typing import TYPE_CHECKING, Any

from .._libraries import import_library
from .feedback import CoverageFeedback, Feedback, LanguageModelFeedback, structural_symbols
from .labels import LabelledSubset, label
from .pool import Split, hold_out
from .settings import FitSettings

if TYPE_CHECKING:
    from .fitting import Epoch, Fitted, fit

__all__ = [
    "CoverageFeedback",
    "Epoch",
    "Feedback",
    "FitSettings",
    "Fitted",
    "LabelledSubset",
    "LanguageModelFeedback",
    "Split",
    "fit",
    "hold_out",
    "label",
    "structural_symbols",
]


def __getattr__(name: str) -> Any:
    # Labelling works without torch, so torch is imported at the first use of fit.
    if name in ("Epoch", "Fitted", "fit"):
        import_library("torch", "train")
        from . import fitting

        return getattr(fitting, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
