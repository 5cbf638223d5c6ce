"""The figures that the papers themselves print, to stand beside ours."""

from __future__ import annotations

# VRSD, for each data set and row: mean, VRSD's win rate and largest difference, with all-mpnet-base-v2.
# The rows of VRSD and MMR are Table 1, those of similarity (CS in the paper) and BM25 are Table 3.
Row = tuple[str, str, str]
VRSD_MPNET: dict[str, dict[str, Row]] = {
    "ARC-DA": {
        "similarity": ("0.710", "95.3%", "0.158"),
        "BM25, all items": ("0.550", "98.7%", "0.684"),
        "MMR λ 0": ("0.696", "97.7%", "0.160"),
        "MMR λ 0.5": ("0.720", "92.5%", "0.108"),
        "MMR λ 1": ("0.710", "95.3%", "0.158"),
        "VRSD": ("0.740", "", ""),
    },
    "OpenBookQA": {
        "similarity": ("0.812", "96.8%", "0.102"),
        "BM25, all items": ("0.544", "99.9%", "0.650"),
        "MMR λ 0": ("0.809", "97.3%", "0.135"),
        "MMR λ 0.5": ("0.822", "92.6%", "0.101"),
        "MMR λ 1": ("0.812", "96.8%", "0.102"),
        "VRSD": ("0.833", "", ""),
    },
    "Puzzle": {
        "similarity": ("0.577", "100%", "0.132"),
        "BM25, all items": ("0.459", "100%", "0.262"),
        "MMR λ 0": ("0.537", "100%", "0.161"),
        "MMR λ 0.5": ("0.576", "90%", "0.052"),
        "MMR λ 1": ("0.577", "100%", "0.132"),
        "VRSD": ("0.592", "", ""),
    },
}

# RAGSys, DPO, MC1, MC2 and MC3 as printed: Table 1 with Mistral-7B-v0.1, Table 2 with Llama-3-8B-chat.
RAGSYS_TABLES: dict[int, dict[str, tuple[str, ...]]] = {
    1: {
        "Fix": ("-20.40", "0.2815", "0.2086", "0.4285"),
        "Bias": ("-33.56", "0.2411", "0.1652", "0.3596"),
        "Rel": ("-12.71", "0.4455", "0.3664", "0.5925"),
        "Rel+Bias": ("-13.63", "0.4602", "0.3663", "0.5969"),
        "Rel+Div": ("-12.37", "0.5177", "0.3930", "0.6616"),
        "Rel+Div+Bias": ("-14.54", "0.4676", "0.3592", "0.6255"),
    },
    2: {
        "Fix": ("-22.12", "0.3623", "0.2709", "0.5195"),
        "Bias": ("-17.55", "0.3831", "0.2876", "0.5729"),
        "Rel": ("-17.20", "0.4920", "0.4046", "0.6518"),
        "Rel+Bias": ("-17.14", "0.5043", "0.4083", "0.6570"),
        "Rel+Div": ("-16.14", "0.5520", "0.4173", "0.7009"),
        "Rel+Div+Bias": ("-15.80", "0.5177", "0.4007", "0.6841"),
    },
}

# PIR: Table 2 (p-Recall@5), Table 3 (percent), Table 4 (mean p-Recall@5 with SimCSE-sup).
PIR_TABLE_2 = {
    "BM25": (9.1, 71.3, 39.1, 23.8, 17.6, 53.7, 35.8),
    "DPR": (8.0, 45.3, 35.3, 55.9, 7.8, 47.1, 33.2),
    "SimCSE-sup": (11.0, 86.1, 52.1, 53.3, 10.8, 52.4, 44.3),
    "SimCSE-unsup": (10.4, 76.4, 50.0, 48.1, 13.0, 53.0, 41.8),
    "Contriever": (3.5, 9.1, 10.4, 1.5, 2.8, 1.9, 4.9),
    "TART": (1.0, 12.3, 9.2, 0.8, 1.7, 21.8, 7.8),
}
PIR_TABLE_3 = {
    "BM25": (55.6, 44.4, 27.9, 44.3, 27.9),
    "DPR": (55.5, 44.5, 29.4, 37.6, 32.9),
    "SimCSE-sup": (58.8, 41.2, 32.0, 41.2, 26.8),
    "SimCSE-unsup": (59.2, 40.8, 26.1, 39.6, 34.2),
    "Contriever": (66.1, 33.9, 28.6, 42.9, 28.6),
    "TART": (55.6, 51.9, 33.3, 66.7, 0.0),
}
PIR_TABLE_4 = {
    "base": 44.3,
    "add": 45.8,
    "concat": 45.4,
    "cast": 43.7,
    "cast+": 46.0,
    "dual-sum": 45.0,
    "tri-sum": 45.4,
    "PAP": 46.0,
    "PAP+": 46.4,
}
