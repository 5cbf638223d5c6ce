"""Learning an NDPP kernel from what a language model answers best with (NDPP paper, 4.2 and 4.3; extra ``train``)."""

from typing import TYPE_CHECKING, Any

from ..signals.language_models import library
from .draws import GreedyDraws
from .feedback import CoverageFeedback, Feedback, score_all
from .labelling import LabelledSubset, best, label
from .model_feedback import LanguageModelFeedback
from .symbols import structural_symbols

if TYPE_CHECKING:
    from .fitted import Epoch, Fitted
    from .fitting import fit

__all__ = [
    "CoverageFeedback",
    "Epoch",
    "Feedback",
    "Fitted",
    "GreedyDraws",
    "LabelledSubset",
    "LanguageModelFeedback",
    "best",
    "fit",
    "label",
    "score_all",
    "structural_symbols",
]


def __getattr__(name: str) -> Any:
    # Labels need no torch, so it is imported with the first fit.
    if name == "fit":
        library("torch", "train")
        from .fitting import fit

        return fit
    if name in ("Epoch", "Fitted"):
        from . import fitted

        return getattr(fitted, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
