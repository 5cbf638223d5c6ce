"""Quality inside the index: a FAISS inner-product search that ranks by relevance and quality together."""

from __future__ import annotations

import faiss
import numpy as np
from _minilm import minilm

from setselect import MMR, Candidates, rescale, with_quality_column, with_quality_weight

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
rows = with_quality_column(model.embed_documents(texts), quality)
index = faiss.IndexFlatIP(rows.shape[1])
index.add(rows.astype(np.float32))

query = np.array(model.embed_query(QUESTION))
# One index serves every weight; 1 means relevance alone.
for lambda_b in (1.0, 0.7):
    scores, found = index.search(with_quality_weight(query, lambda_b)[None].astype(np.float32), 3)
    print(f"lambda_b = {lambda_b}")
    for score, row in zip(scores[0], found[0], strict=True):
        print(f"  {score:.2f}  {ANSWERS[texts[row]]:2} votes  {texts[row]}")

# MMR selects a set from the results. The last column of the stored rows is the quality.
_, found = index.search(with_quality_weight(query, 0.7)[None].astype(np.float32), 6)
stored = index.reconstruct_batch(found[0])
candidates = Candidates(query, stored[:, :-1], quality=stored[:, -1])
selection = MMR(lambda_mult=0.7, lambda_b=0.7).select(candidates, 3)
print("MMR with quality, out of 6:")
for place in selection.indices:
    print(f"        {ANSWERS[texts[found[0][place]]]:2} votes  {texts[found[0][place]]}")
