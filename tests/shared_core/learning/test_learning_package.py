from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_labels_are_made_without_torch_and_fit_says_what_to_install() -> None:
    code = """
import sys
sys.modules["torch"] = None
import shared_core.learning as learning
items = [{"question": str(n), "answer": f"f{n % 3}(g(x))"} for n in range(8)]
vectors = [[1.0, n % 4, n] for n in range(8)]
for draw in ("random", "greedy"):
    assert learning.label(items, vectors, learning.CoverageFeedback(), k=2, candidates=5, draw=draw)
assert not {"transformers", "tqdm", "safetensors", "openai"} & {*sys.modules}
try:
    learning.fit([], [], learning.CoverageFeedback())
except ImportError as error:
    print(error)
"""
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert "setselect[train]" in done.stdout
