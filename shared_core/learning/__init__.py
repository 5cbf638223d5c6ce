"""Learning an NDPP kernel from the examples that help a language model (NDPP paper, 4.2 and 4.3; extra ``train``)."""

from .feedback import CoverageFeedback, Feedback, LanguageModelFeedback, structural_symbols
from .fitting import Epoch, Fitted, fit
from .labels import LabelledSubset, label
from .pool import Split, hold_out
from .settings import FitSettings

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
