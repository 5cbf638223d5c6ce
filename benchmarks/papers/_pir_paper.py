"""What the PIR paper reports, and how our figures differ from it."""

# Figures of the paper: Table 2 (p-Recall@5), Table 3 (percent), Table 4 (mean p-Recall@5 with SimCSE-sup).
TABLE_2 = {
    "BM25": (9.1, 71.3, 39.1, 23.8, 17.6, 53.7, 35.8),
    "DPR": (8.0, 45.3, 35.3, 55.9, 7.8, 47.1, 33.2),
    "SimCSE-sup": (11.0, 86.1, 52.1, 53.3, 10.8, 52.4, 44.3),
    "SimCSE-unsup": (10.4, 76.4, 50.0, 48.1, 13.0, 53.0, 41.8),
    "Contriever": (3.5, 9.1, 10.4, 1.5, 2.8, 1.9, 4.9),
    "TART": (1.0, 12.3, 9.2, 0.8, 1.7, 21.8, 7.8),
}
TABLE_3 = {
    "BM25": (55.6, 44.4, 27.9, 44.3, 27.9),
    "DPR": (55.5, 44.5, 29.4, 37.6, 32.9),
    "SimCSE-sup": (58.8, 41.2, 32.0, 41.2, 26.8),
    "SimCSE-unsup": (59.2, 40.8, 26.1, 39.6, 34.2),
    "Contriever": (66.1, 33.9, 28.6, 42.9, 28.6),
    "TART": (55.6, 51.9, 33.3, 66.7, 0.0),
}
TABLE_4 = {
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

NOTES = """
## What differs from the paper

- **The data.** The paper measures on its full edition (7,494 queries, 10,286 items). This is its published demo
  edition: 500 items a subset, and 480 of the queries. A smaller corpus is easier, so that most figures here are higher.
- **Copies.** A corpus that holds one text several times counts it once. Otherwise the gold item loses to its own
  copies, and which of them comes first is left to chance: see the table above. Whether the paper merges them is not
  said.
- **The model.** The paper's best retriever is SimCSE-sup; {model} is another one, so that only the direction of
  a change can be compared, not the figure. BM25 is the same method with other details (bm25s: Lucene's formula,
  k1 = 1.5, b = .75, English stop words, no stemming).
- **Texts are cut** where the model cuts them (256 word pieces for all-MiniLM-L6-v2): of an AllSides article, over a
  thousand words on average, only the beginning is seen.
- **AmbigQA gives the query itself for perspective.** With p = perspective's text, PAP, PAP+, cast and cast+ then leave
  nothing of the query; its queries are searched as they are instead. With p = q − root they are not affected.
- **p = q − root** is not in the paper. It makes add and concat the plain search and cast the search with the root.
- **Unit vectors.** The vectors have length 1, where the paper takes the means of token vectors as they are. So dual-sum
  ranks as add does, and the differences and sums weigh both parts alike. (concat ranks as add does for any vectors.)
- **Table 3** counts the gold items among a root query's first k, by the perspective that they are gold for.
  Perspectrum's "general" queries do not count: their gold items are those of both sides together. The row of all gold
  items says what an even-handed search would give. The paper names neither k nor how it counts, and its row for TART
  exceeds 100 in Perspectrum.

## How the measures are defined

success@k of a query is 1 when one of its gold items is among the first k (paper 2.3); the tables give its mean over
queries. p-Recall@k is the mean over root queries of the mean over their queries. Equal scores are taken in the order
of the corpus. The mean of the six subsets gives each the same weight.
With 11 to 43 root queries a subset, differences of a few points between rows mean nothing.
"""
