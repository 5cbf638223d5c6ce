"""Quality inside the index: a FAISS inner-product search that ranks by relevance and quality together."""

from __future__ import annotations

import faiss
import numpy as np
from _minilm import minilm

from setselect import MMR, Candidates, rescale

# Answers from a forum, with their votes.
ANSWERS = {
    "Turn it off and on again, that fixes the printer.": 2,
    "My printer has the same problem!": 0,
    "The printer prints blank pages for me as well.": 1,
    "Same here, blank pages since yesterday, anyone?": 0,
    "Blank pages: take out the cartridge, pull off the tape and clean the print head.": 48,
    "Run the head-cleaning program twice, then print the test page.": 31,
    "Blank pages come from a dry print head; ours was fine after a night with a wet cloth.": 17,
    "Is it a laser printer or an inkjet printer that prints blank pages?": 3,
}
QUESTION = "Why does my printer print blank pages?"

model = minilm()
texts = list(ANSWERS)
# Votes span orders of magnitude, cosines do not. Ranks bring both to one scale.
quality = rescale(list(ANSWERS.values()), "rank")
vectors = np.array(model.embed_documents(texts))
rows = np.column_stack([vectors / np.linalg.norm(vectors, axis=1, keepdims=True), quality])
index = faiss.IndexFlatIP(rows.shape[1])
index.add(rows.astype(np.float32))

query = np.array(model.embed_query(QUESTION))
query /= np.linalg.norm(query)


def weighted(lambda_b: float) -> np.ndarray:
    """The query for this index: inner products are λ_b · cosine + (1 − λ_b) · quality (RAGSys, section 5.3)."""
    return np.append(lambda_b * query, 1 - lambda_b)[None].astype(np.float32)


# One index serves every weight; 1 means relevance alone.
for lambda_b in (1.0, 0.7):
    scores, found = index.search(weighted(lambda_b), 3)
    print(f"lambda_b = {lambda_b}")
    for score, row in zip(scores[0], found[0], strict=True):
        print(f"  {score:.2f}  {ANSWERS[texts[row]]:2} votes  {texts[row]}")

# MMR selects a set from the results. The last column of the stored rows is the quality.
_, found = index.search(weighted(0.7), 6)
stored = index.reconstruct_batch(found[0])
candidates = Candidates(query, stored[:, :-1], quality=stored[:, -1])
selection = MMR(lambda_mult=0.7, lambda_b=0.7).select(candidates, 3)
print("MMR with quality, out of 6:")
for place in selection.indices:
    print(f"        {ANSWERS[texts[found[0][place]]]:2} votes  {texts[found[0][place]]}")
