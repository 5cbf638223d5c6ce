"""The comparison of all methods on your own corpus (extra ``eval``); docs/your-corpus.md."""

from shared_core.evaluation import measures
from shared_core.evaluation.compare import compare, diagnose_documents
from shared_core.evaluation.corpus import beir_files, read_documents, read_judged, read_queries
from shared_core.evaluation.demo import demo_corpus
from shared_core.evaluation.diagnosis import Diagnosis
from shared_core.evaluation.report import write_report
from shared_core.evaluation.results import Comparison
from shared_core.evaluation.settings import named

__all__ = [
    "Comparison",
    "Diagnosis",
    "beir_files",
    "compare",
    "demo_corpus",
    "diagnose_documents",
    "measures",
    "named",
    "read_documents",
    "read_judged",
    "read_queries",
    "write_report",
]
