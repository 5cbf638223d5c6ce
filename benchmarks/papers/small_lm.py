"""A small causal language model, trained here: it tests the code of the tables, not the papers' methods.

It has about 1.1 million weights (byte-level BPE, Llama's architecture) and trains for about two minutes on one core.
The training data are few-shot prompts from the training parts of WebQuestions, OpenBookQA and ARC-Challenge, without
the questions of the tables. It never sees TruthfulQA and Puzzle. Its weights stay under .cache/ and are never shipped.
The training is seeded and uses one thread: the same machine and versions give the same weights.

    python benchmarks/papers/small_lm.py         # trains it unless it is cached, and prints its folders
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.papers._common import CACHE, new_folder, records, require
from benchmarks.papers.vrsd import DATA_SETS, split

FILES = ("webquestions/webquestions.jsonl", "openbookqa/questions.jsonl", "arc_challenge/arc_challenge.jsonl")
START = "<s>"
SEED = 0
SIZES: dict[str, int] = {
    "vocab_size": 2048,
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "max_position_embeddings": 4096,
}
STEPS = 240
BATCH, LENGTH = 6, 384
SHOTS = (4, 8)
RATE = 3e-3


def plain(question: str, answer: str = "") -> str:
    """One example in a prompt of the tables; without an answer, the end of a prompt.

    >>> plain("Capital of France?", "Paris")
    'Q: Capital of France?\\nA: Paris'
    """
    return f"Q: {question}\nA: {answer}".rstrip(" ")


def with_options(question: str, choices: Sequence[tuple[str, str]]) -> str:
    """A question with its lettered options.

    >>> with_options("The sky is", [("A", "blue"), ("B", "green")])
    'The sky is\\n(A) blue\\n(B) green'
    """
    return "\n".join([question, *(f"({label}) {text}" for label, text in choices)])


def lettered(record: dict[str, Any]) -> tuple[str, str]:
    """A multiple-choice record: the question with its options, and the keyed option with its letter."""
    choices = [(choice["label"], choice["text"]) for choice in record["choices"]]
    return with_options(record["question"], choices), f"({record['answer_key']}) {dict(choices)[record['answer_key']]}"


def training_prompts(seed: int = SEED) -> list[str]:
    """Few-shot prompts without the questions of the tables; each holds examples of one kind, in random order."""
    asked = asked_questions()
    web, book, arc = (
        [
            record
            for record in records(name)
            if record["split"] in ("train", "trainmodel") and record["question"] not in asked
        ]
        for name in FILES
    )
    kinds = [
        [(record["question"], record["answers"][0]) for record in web],
        [(record["question"], record["answer"]) for record in book],
        [(record["question"], record["answers"][0]) for record in arc],
        [lettered(record) for record in book],
        [lettered(record) for record in arc],
    ]
    rng = np.random.default_rng(seed)
    prompts = []
    for kind in kinds:
        order = rng.permutation(len(kind)).tolist()
        while order:
            shots = int(rng.integers(*SHOTS, endpoint=True))
            prompts.append("\n\n".join(plain(*kind[row]) for row in order[:shots]))
            order = order[shots:]
    return [prompts[row] for row in rng.permutation(len(prompts))]


def asked_questions() -> set[str]:
    """The questions of the VRSD tables in the training data sets; the model must not be trained on them."""
    asked: set[str] = set()
    for file in {data_set.file for data_set in DATA_SETS} & set(FILES):
        kept = records(file)
        asked |= {kept[row]["question"] for row in split(len(kept))[0]}
    return asked


def small_lm(steps: int = STEPS) -> tuple[Path, Path]:
    """Folders of the model after half of its training and after all of it; trains it unless they are cached."""
    prompts = training_prompts()
    what = [prompts, SIZES, steps, BATCH, LENGTH, RATE, SEED, version("torch"), version("transformers")]
    key = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]
    half, full = (CACHE / f"small-lm-{key}-{part}" for part in ("half", "full"))
    if not (half.is_dir() and full.is_dir()):
        train(prompts, steps, {steps // 2: half, steps: full})
    return half, full


def train(prompts: Sequence[str], steps: int, saves: dict[int, Path], sizes: dict[str, int] | None = None) -> None:
    """Train a model on these prompts; ``saves`` names the folder in which it is saved after so many steps."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    # One thread adds numbers in one order, so a second training gives the same weights.
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    tokenizer = tokenizer_of(prompts, (sizes or SIZES)["vocab_size"])
    config = LlamaConfig(**(sizes or SIZES), tie_word_embeddings=True, bos_token_id=0, eos_token_id=0, pad_token_id=0)
    model = LlamaForCausalLM(config)
    stream = torch.tensor([token for ids in tokenizer(list(prompts), verbose=False)["input_ids"] for token in ids])
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.05)
    rng = np.random.default_rng(SEED)
    length = min(LENGTH, len(stream) - 1)
    began = time.perf_counter()
    for step in range(1, steps + 1):
        starts = rng.integers(0, len(stream) - length, BATCH, endpoint=True)
        batch = torch.stack([stream[start : start + length] for start in starts])
        loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step} of {steps}: loss {loss:.3f}, {time.perf_counter() - began:.0f} s", file=sys.stderr)
        if step in saves:
            with new_folder(saves[step]) as folder:
                model.save_pretrained(folder)
                tokenizer.save_pretrained(folder)


def tokenizer_of(texts: Sequence[str], size: int) -> Any:
    """Byte-level BPE with merges learned from ``texts``; each text gets a start token in front."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[START],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(f"{START} $A", special_tokens=[(START, 0)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=START, eos_token=START, pad_token=START)


if __name__ == "__main__":
    require(*FILES)
    print("\n".join(map(str, small_lm())))
