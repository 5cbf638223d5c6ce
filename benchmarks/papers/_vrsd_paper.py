"""The figures that the VRSD paper itself prints (its Tables 1 and 3), to stand beside ours."""

from __future__ import annotations

# For each of the paper's data sets and rows: mean, VRSD's win rate, largest difference; all-mpnet-base-v2.
# Rows of VRSD and MMR are Table 1, similarity (the paper's CS) and BM25 Table 3.
Row = tuple[str, str, str]
MPNET: dict[str, dict[str, Row]] = {
    "ARC-DA": {
        "similarity": (".710", "95.3%", ".158"),
        "BM25, all items": (".550", "98.7%", ".684"),
        "MMR λ 0": (".696", "97.7%", ".160"),
        "MMR λ .5": (".720", "92.5%", ".108"),
        "MMR λ 1": (".710", "95.3%", ".158"),
        "VRSD": (".740", "", ""),
    },
    "OpenBookQA": {
        "similarity": (".812", "96.8%", ".102"),
        "BM25, all items": (".544", "99.9%", ".650"),
        "MMR λ 0": (".809", "97.3%", ".135"),
        "MMR λ .5": (".822", "92.6%", ".101"),
        "MMR λ 1": (".812", "96.8%", ".102"),
        "VRSD": (".833", "", ""),
    },
    "Puzzle": {
        "similarity": (".577", "100%", ".132"),
        "BM25, all items": (".459", "100%", ".262"),
        "MMR λ 0": (".537", "100%", ".161"),
        "MMR λ .5": (".576", "90%", ".052"),
        "MMR λ 1": (".577", "100%", ".132"),
        "VRSD": (".592", "", ""),
    },
}

EVERY_MODEL = """\
## The paper's Table 1 for its other two models

Mean, VRSD's win rate and largest difference, as printed there. One win rate, 88.1%, is below the 90% that section 4.2.1
claims throughout; and in Puzzle the last two figures are the same for text-embedding-3-small as for all-mpnet-base-v2
at λ = .5 and 1, although the means are not.

| model, row | ARC-DA | OpenBookQA | Puzzle |
| --- | ---: | ---: | ---: |
| text-embedding-3-small, VRSD | .695 | .751 | .572 |
| MMR λ 0 | .652, 98.8%, .145 | .724, 98.1%, .137 | .555, 100%, .184 |
| MMR λ .5 | .676, 92.3%, .113 | .738, 93.3%, .130 | .527, 90%, .052 |
| MMR λ 1 | .669, 96.5%, .129 | .729, 97.3%, .085 | .518, 100%, .132 |
| text-embedding-ada-002, VRSD | .905 | .922 | .893 |
| MMR λ 0 | .895, 98.5%, .040 | .915, 97.2%, .043 | .881, 100%, .025 |
| MMR λ .5 | .901, 90.8%, .027 | .918, 88.1%, .032 | .888, 95%, .020 |
| MMR λ 1 | .897, 95.0%, .041 | .915, 95.0%, .028 | .887, 95%, .018 |
"""
