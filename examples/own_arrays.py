"""No framework: select from your own arrays, and read the result."""

from __future__ import annotations

import numpy as np

from setselect import select, select_many

# Four topics in 64 dimensions, ten near-copies of each. The query is about topic 0, and less about topics 1 and 2.
rng = np.random.default_rng(0)
topics = np.eye(4, 64)
vectors = np.repeat(topics, 10, axis=0) + rng.normal(scale=0.02, size=(40, 64))
query = topics[0] + 0.8 * topics[1] + 0.6 * topics[2]


def topics_of(indices: np.ndarray) -> list[int]:
    return (indices // 10).tolist()


nearest = select(query, vectors, k=2, selector="similarity")
selection = select(query, vectors, k=2, selector="ndpp")  # by the vectors alone; the default also reads texts
print("topics of the 2 nearest:    ", topics_of(nearest.indices))
print("topics of the 2 selected:   ", topics_of(selection.indices))

# A gain is what a pick added to the objective. Those of NDPP are factors: lower for a pick that is less relevant, or
# that repeats an earlier one.
for index, gain, cosine in zip(selection.indices, selection.gains, selection.relevance, strict=True):
    print(f"  row {index:2}: cosine {cosine:.3f}, gain {gain:.3f}")
print(f"  objective {selection.objective:.3f}, the product of the gains")

# With the question and the texts, the default reads their words too.
texts = [f"{topic}, passage {i}" for topic in ("storm", "harbour", "ferry", "museum") for i in range(10)]
by_words = select(query, vectors, k=2, question="Does the ferry run in a storm?", texts=texts)
print("topics that words select:   ", sorted(topics_of(by_words.indices)))

# Many queries over the same vectors: the result has one row for each query.
queries = np.stack([topics[0] + topics[1], topics[1] + topics[2], topics[2] + topics[0]])
many = select_many(queries, vectors, k=2)
print("topics for three queries:   ", [topics_of(row) for row in many.indices])
