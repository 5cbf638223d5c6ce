from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("torch", "transformers", "tqdm", "safetensors", "openai")


def child(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_labels_are_made_without_torch() -> None:
    loaded = child(
        "import sys, shared_core, shared_core.learning as learning\n"
        "items = [{'question': str(n), 'answer': f'f{n % 3}(g(x))'} for n in range(8)]\n"
        "vectors = [[1.0, n % 4, n] for n in range(8)]\n"
        "for draw in ('random', 'greedy'):\n"
        "    labels = learning.label(items, vectors, learning.CoverageFeedback(), k=2, candidates=5, draw=draw)\n"
        "    assert labels\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert loaded == "[]"


def test_without_torch_everything_else_works_and_fit_says_what_to_install() -> None:
    said = child(
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import shared_core.learning as learning\n"
        "try:\n"
        "    learning.fit([], [], learning.CoverageFeedback())\n"
        "except ImportError as error:\n"
        "    print(error)"
    )
    assert "setselect[train]" in said
