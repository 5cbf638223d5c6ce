"""LangChain: few-shot examples selected by NDPP with a kernel that learned which examples help together (GeoQuery)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from _minilm import minilm
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_setselect import SetSelectExampleSelector
from setselect import NDPP
from setselect.learning import CoverageFeedback

DATA = Path(os.environ.get("SETSELECT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
FILE = DATA / "geoquery" / "geoquery.jsonl"
if not FILE.is_file():
    print(f"skipped: no geoquery/geoquery.jsonl under {DATA}; set SETSELECT_DATA")
    sys.exit()

with FILE.open(encoding="utf-8") as lines:
    records = [json.loads(line) for line in lines]
pairs = {record["question"].lower(): record["funql"] for record in records}
items = [{"question": question, "answer": answer} for question, answer in pairs.items()]
items = [items[row] for row in np.random.default_rng(0).permutation(len(items))]
pool, test_items = items[:300], items[300:450]

with tempfile.TemporaryDirectory() as folder:
    file, out = Path(folder) / "pool.jsonl", Path(folder) / "kernel.safetensors"
    file.write_text("\n".join(map(json.dumps, pool)), encoding="utf-8")
    np.save(Path(folder) / "vectors.npy", minilm().embed_documents([item["question"] for item in pool]))
    # The same in a shell: setselect train pool.jsonl --out kernel.safetensors --vectors vectors.npy --epochs 6
    given = ["train", file, "--out", out, "--vectors", f"{folder}/vectors.npy", "--epochs", "6"]
    # With matrices this small, synchronising threads takes longer than the computation.
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "setselect", *given], env=one_thread, stdout=subprocess.PIPE, text=True
    )
    print(done.stdout.replace(folder, "..."))
    learned = NDPP(out)

feedback = CoverageFeedback()
store = InMemoryVectorStore(minilm())
store.add_texts([item["question"] for item in pool], metadatas=pool)
found = {}
for name, method in {"similarity": "similarity", "ndpp": "ndpp", "ndpp, learned": learned}.items():
    selector = SetSelectExampleSelector(vectorstore=store, k=4, fetch_k=100, input_keys=["question"], selector=method)
    found[name] = [selector.select_examples(item) for item in test_items]
    values = [feedback(item, examples) for item, examples in zip(test_items, found[name], strict=True)]
    print(f"{name:<14} covers {np.mean(values):.3f} of {len(test_items)} new answers")
for item, examples in list(zip(test_items, found["ndpp, learned"], strict=True))[:3]:
    print(f"\n{item['question']}  {item['answer']}")
    print("\n".join(f"    {example['question']}  {example['answer']}" for example in examples))
