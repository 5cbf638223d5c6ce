"""Learning an NDPP kernel from the examples that help a language model (NDPP paper, 4.2 and 4.3; extra ``train``)."""

from .feedback.coverage import CoverageFeedback, Feedback, score_all
from .feedback.language_model import LanguageModelFeedback
from .feedback.symbols import structural_symbols
from .fitting import fit
from .held_out import Split, hold_out
from .labels.draws import GreedyDraws
from .labels.labelling import LabelledSubset, best, label
from .results import Epoch, Fitted
from .settings import FitSettings

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
