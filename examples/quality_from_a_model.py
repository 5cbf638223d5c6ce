"""Few-shot examples with a quality: how well a language model knows their answers (RAGSys, section 3.3.3)."""

from __future__ import annotations

import numpy as np
from _tiny_lm import read, tiny_model, tiny_tokenizer

from setselect import LanguageModel, LogPerplexityQuality, rescale, select

# Every question occurs twice, once with a wrong answer.
CAPITALS = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo", "Peru": "Lima"}
EXAMPLES = [
    {"question": f"What is the capital of {country}?", "answer": f"It is {city}.", "right": city == CAPITALS[country]}
    for wrong in (True, False)
    for country, city in zip(CAPITALS, np.roll(list(CAPITALS.values()), wrong).tolist(), strict=True)
]

# Use your own model here: LanguageModel("your/model"), or LanguageModel(name, base_url=url). This small model is
# trained on the right answers only.
known = [f"{example['question']}\n{example['answer']}" for example in EXAMPLES if example["right"]]
tokenizer = tiny_tokenizer(known)
model = tiny_model(len(tokenizer), width=32, spread=0.05)
read(model, tokenizer, known)

# Score once, offline, and keep the result. With many examples add progress=True.
quality = LogPerplexityQuality(LanguageModel(model, tokenizer))
logs = quality.score([example["question"] for example in EXAMPLES], [example["answer"] for example in EXAMPLES])
ranked = rescale(logs, "rank").tolist()
examples = [{**example, "quality": rank} for example, rank in zip(EXAMPLES, ranked, strict=True)]
print("log p/token  rank")
for example, log in sorted(zip(examples, logs, strict=True), key=lambda pair: -pair[1]):
    print(f"{log:11.2f}  {example['quality']:.2f}  {example['question']} {example['answer']}")


def embed(text: str) -> np.ndarray:
    """Stands in for an embedding model: hashed counts of letter pairs."""
    counts = np.zeros(997)
    for first, second in zip(text.lower(), text.lower()[1:], strict=False):
        counts[(31 * ord(first) + ord(second)) % 997] += 1
    return counts


vectors = np.stack([embed(example["question"]) for example in examples])
query = embed("What is the capital of Portugal?")
ranks = [example["quality"] for example in examples]
# lambda_b weighs the cosine against quality.
for words, given in {"without quality": {}, "with quality": {"quality": ranks, "lambda_b": 0.5}}.items():
    selection = select(query, vectors, 3, "mmr", lambda_mult=0.75, **given)
    right = sum(examples[i]["right"] for i in selection.indices)
    print(f"\nMMR {words}: {right} of 3 answers are right")
    for i in selection.indices:
        print(f"  {examples[i]['question']} {examples[i]['answer']}")
