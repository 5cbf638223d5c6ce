"""Learning an NDPP kernel from the examples that help a language model (NDPP paper, 4.2 and 4.3; extra ``train``)."""

from typing import TYPE_CHECKING, Any

from .._libraries import import_library
from .feedback.coverage import CoverageFeedback, Feedback, score_all
from .feedback.language_model import LanguageModelFeedback
from .feedback.symbols import structural_symbols
from .held_out import Split, hold_out
from .labels.draws import GreedyDraws
from .labels.labelling import LabelledSubset, best, label
from .results import Epoch, Fitted
from .settings import FitSettings

if TYPE_CHECKING:
    from .fitting import fit

__all__ = [
    "CoverageFeedback",
    "Epoch",
    "Feedback",
    "FitSettings",
    "Fitted",
    "GreedyDraws",
    "LabelledSubset",
    "LanguageModelFeedback",
    "Split",
    "best",
    "fit",
    "hold_out",
    "label",
    "score_all",
    "structural_symbols",
]


def __getattr__(name: str) -> Any:
    # Labelling works without torch, so torch is imported at the first use of fit.
    if name == "fit":
        import_library("torch", "train")
        from .fitting import fit

        return fit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
