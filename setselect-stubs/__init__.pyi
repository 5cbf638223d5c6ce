# The types of setselect.py. A single file cannot carry the marker py.typed, so type checkers would treat it as untyped.
# They read this stub package instead (PEP 561). The names after the first import are those of LAZY in setselect.py.
from shared_core import *  # noqa: F403
from shared_core import learning as learning
from shared_core.batch.dataset import Summary as Summary
from shared_core.batch.dataset import read_vectors_by_id as read_vectors_by_id
from shared_core.batch.dataset import select_dataset as select_dataset
from shared_core.batch.dataset import select_table as select_table
from shared_core.evaluation import measures as measures
from shared_core.evaluation.advice import lines_to_paste as lines_to_paste
from shared_core.evaluation.compare import compare as compare
from shared_core.evaluation.compare import diagnose_documents as diagnose_documents
from shared_core.evaluation.corpus import beir_files as beir_files
from shared_core.evaluation.corpus import read_documents as read_documents
from shared_core.evaluation.corpus import read_judged as read_judged
from shared_core.evaluation.corpus import read_queries as read_queries
from shared_core.evaluation.demo import demo_corpus as demo_corpus
from shared_core.evaluation.diagnosis import Diagnosis as Diagnosis
from shared_core.evaluation.report import write_report as write_report
from shared_core.evaluation.results import Comparison as Comparison
from shared_core.evaluation.settings import named as named
from shared_core.evaluation.shadow_log import compare_log as compare_log
from shared_core.learning import CoverageFeedback as CoverageFeedback
from shared_core.learning import Feedback as Feedback
from shared_core.learning import FitSettings as FitSettings
from shared_core.learning import Fitted as Fitted
from shared_core.learning import GreedyDraws as GreedyDraws
from shared_core.learning import LabelledSubset as LabelledSubset
from shared_core.learning import LanguageModelFeedback as LanguageModelFeedback
from shared_core.learning import fit as fit
from shared_core.learning import hold_out as hold_out
from shared_core.learning import label as label
from shared_core.learning import structural_symbols as structural_symbols
from shared_core.signals.embedding_models import CachedEmbedding as CachedEmbedding
from shared_core.signals.embedding_models import load_model as load_model

LAZY: tuple[str, ...]
__version__: str
