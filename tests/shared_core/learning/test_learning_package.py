from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import shared_core.learning as learning

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("torch", "transformers", "tqdm", "safetensors", "openai")
NEEDS_TORCH = {"fit", "Fitted", "Epoch"}


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
        "    assert learning.best(labels)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert loaded == "[]"


def test_torch_is_imported_with_the_first_use_of_fit() -> None:
    pytest.importorskip("torch")
    loaded = child(
        "import sys, shared_core.learning as learning\n"
        "before = 'torch' in sys.modules\n"
        "learning.fit\n"
        "print(before, 'torch' in sys.modules)"
    )
    assert loaded == "False True"


def test_without_torch_everything_else_works_and_fit_says_what_to_install() -> None:
    said = child(
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import shared_core.learning as learning\n"
        f"[getattr(learning, name) for name in learning.__all__ if name not in {NEEDS_TORCH!r}]\n"
        "try:\n"
        "    learning.fit\n"
        "except ImportError as error:\n"
        "    print(error)"
    )
    assert "setselect[train]" in said


def test_all_public_names_exist() -> None:
    pytest.importorskip("torch")
    assert sorted(learning.__all__) == list(learning.__all__)
    for name in learning.__all__:
        found = getattr(learning, name)
        assert found.__name__ == name
        assert found.__module__.startswith("shared_core.learning.")
    from shared_core.learning import fit
    from shared_core.learning.fitting import fit as same

    assert fit is same


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'shared_core\.learning' has no attribute 'fits'"):
        learning.fits  # noqa: B018
