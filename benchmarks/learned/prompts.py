"""Few-shot prompts as token ids, and training prompts in which only the examples give names a meaning.

A prompt is a start token, then question, mark, answer and end token of each example and of the queried item. Spaces of
a question are left out, so a word is the same token in questions and answers. In most training prompts the names of
functions, intents, slots, flags and commands are permuted, consistently in the whole prompt, and often other words too.
Then only the examples show what a name means and where a word is to be copied from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.learned.data import Item

START, MARK, END = range(3)
SPECIAL = ["<s>", "<a>", "<e>"]
VOCABULARY = 3000
PATTERN = r" ?\[(?:IN|SL):\w+| ?-{1,2}\w[\w-]*|\w+| ?[^\w\s]+|\s"
# Repetitions in the tokenizer's training, so that the names of a small data set become tokens too.
REPEATS = {"geoquery": 10, "mtop": 1, "nl2bash": 1}
SHARES = {"geoquery": 0.3, "mtop": 0.35, "nl2bash": 0.35}
REACH = 256

Ids = NDArray[np.int64]


class Texts:
    """A tokenizer with a cache of the tokens of items."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.vocabulary = [tokenizer.id_to_token(token) for token in range(tokenizer.get_vocab_size())]
        self._space = tokenizer.token_to_id("Ġ")
        self._kept: dict[tuple[str, str], tuple[Ids, Ids]] = {}

    def ids(self, item: Item) -> tuple[Ids, Ids]:
        """The tokens of a question with the mark, and of its answer with the end token."""
        texts = item["question"], item["answer"]
        if texts not in self._kept:
            question, answer = (self.tokenizer.encode(text).ids for text in texts)
            words = [token for token in question if token != self._space]
            self._kept[texts] = np.array([*words, MARK]), np.array([*answer, END])
        return self._kept[texts]

    def prompt(self, item: Item, examples: Sequence[Item]) -> tuple[Ids, int]:
        """The ids of a prompt with its answer, and the position of the answer."""
        parts = [part for example in (*examples, item) for part in self.ids(example)]
        whole = np.concatenate([[START], *parts])
        return whole, len(whole) - len(parts[-1])


def tokenizer_of(parts: dict[str, list[Item]]) -> Any:
    """Byte-level BPE in which names, flags and words never share a token."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = pre_tokenizers.Split(Regex(PATTERN), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, bytewise])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=SPECIAL,
        show_progress=False,
    )
    pairs = [(item["question"], item["answer"]) for name in parts for item in parts[name] * REPEATS[name]]
    tokenizer.train_from_iterator([text for pair in pairs for text in pair], trainer)
    return tokenizer


def kinds_of(name: str, tokens: Sequence[str]) -> list[int]:
    """For each token of an answer its kind of name, 0 if it is not a name.

    >>> kinds_of("geoquery", ["answer", "(", "stateid", "('", "texas", "'))"])
    [1, 0, 1, 0, 0, 0]
    >>> kinds_of("mtop", ["[IN:GET_ALARM", "Ġ[SL:DATE_TIME", "Ġ", "today", "Ġ]", "Ġ]"])
    [2, 3, 0, 0, 0, 0]
    >>> kinds_of("nl2bash", ["find", "Ġ.", "Ġ-name", "Ġ", "foo", "Ġ|", "Ġ", "wc", "Ġ-l"])
    [5, 0, 4, 0, 0, 0, 0, 5, 4]
    """
    kinds = []
    for place, token in enumerate(tokens):
        before = "".join(tokens[max(0, place - 2) : place]).replace("Ġ", " ").rstrip()
        after = tokens[place + 1] if place + 1 < len(tokens) else ""
        kind = 0
        if name == "geoquery" and re.fullmatch(r"\w+", token) and after.startswith("("):
            kind = 1
        elif name == "mtop" and (found := re.match(r"Ġ?\[(IN|SL):", token)):
            kind = 2 if found[1] == "IN" else 3
        elif name == "nl2bash" and re.match(r"Ġ?--?\w", token):
            kind = 4
        elif name == "nl2bash" and re.fullmatch(r"[a-z]\w+", token) and re.search(r"(^|[|;`(&]|xargs|sudo)$", before):
            kind = 5
        kinds.append(kind)
    return kinds


@dataclass(frozen=True)
class Part:
    """A data set's items as ids, the kinds of their answers' tokens, and each item's neighbours, nearest first."""

    pairs: list[tuple[Ids, Ids]]
    kinds: list[Ids]
    neighbours: Ids


class TrainingPrompts:
    """Makes training prompts; ``vectors`` holds a unit vector for each item's question."""

    def __init__(
        self, texts: Texts, parts: dict[str, list[Item]], vectors: dict[str, NDArray[np.float32]], true: float
    ) -> None:
        self.true = true
        self.size = len(texts.vocabulary)
        self.parts: dict[str, Part] = {}
        names: list[set[int]] = [set() for _ in range(6)]
        for name, items in parts.items():
            pairs = [texts.ids(item) for item in items]
            kinds = [np.array(kinds_of(name, [texts.vocabulary[token] for token in answer])) for _, answer in pairs]
            near = vectors[name] @ vectors[name].T
            np.fill_diagonal(near, -2.0)
            # The item itself comes last and is left out.
            neighbours = np.argsort(-near, axis=1, kind="stable")[:, : min(REACH, len(items) - 1)]
            self.parts[name] = Part(pairs, kinds, neighbours)
            for (_, answer), found in zip(pairs, kinds, strict=True):
                for kind in range(1, 6):
                    names[kind].update(answer[found == kind].tolist())
        self.names = [np.array(sorted(found), dtype=np.int64) for found in names[1:]]
        self.words = np.array([row for row, text in enumerate(texts.vocabulary) if re.fullmatch(r"\w{2,}", text)])

    def make(self, rng: np.random.Generator, shots: int, strange: bool) -> tuple[Ids, NDArray[np.bool_]]:
        """A prompt with ``shots`` examples, and which of its tokens count: those of all answers but the first.

        ``strange``: all names and all words are permuted.
        """
        name = str(rng.choice(list(self.parts), p=_shares(self.parts)))
        part = self.parts[name]
        query = int(rng.integers(len(part.pairs)))
        reach = max(int(rng.choice([shots, 2 * shots, 16, 64, REACH])), shots)
        near = part.neighbours[query, :reach]
        places = rng.choice(len(near), min(shots, len(near)), replace=False)
        # Half of the prompts have the most similar example last, as in use. In the others the order is random, so that
        # the model does not look at the last example only.
        examples = near[np.sort(places)[::-1] if rng.random() < 0.5 else places]
        new_names, new_words = np.arange(self.size), np.arange(self.size)
        if strange or rng.random() >= self.true:
            for found in self.names:
                new_names[found] = rng.permutation(found)
        share = 1.0 if strange else float(rng.choice([0.0, 0.5, 1.0], p=[0.6, 0.3, 0.1]))
        moved = self.words[rng.random(len(self.words)) < share]
        new_words[moved] = rng.permutation(moved)
        ids, counted = [np.array([START])], [np.array([False])]
        for place, row in enumerate([*examples.tolist(), query]):
            question, answer = part.pairs[row]
            ids += [new_words[question], np.where(part.kinds[row] > 0, new_names[answer], new_words[answer])]
            counted += [np.zeros(len(question), bool), np.full(len(answer), place > 0)]
        return np.concatenate(ids), np.concatenate(counted)


def _shares(parts: dict[str, Part]) -> NDArray[np.float64]:
    shares = np.array([SHARES[name] for name in parts])
    return shares / shares.sum()


def stacked(prompts: Sequence[tuple[Ids, NDArray[np.bool_]]]) -> tuple[Ids, NDArray[np.bool_]]:
    """The prompts in two arrays, padded at the end with tokens that do not count."""
    longest = max(len(ids) for ids, _ in prompts)
    whole = np.zeros((len(prompts), longest), dtype=np.int64)
    counts = np.zeros((len(prompts), longest), dtype=bool)
    for row, (ids, counted) in enumerate(prompts):
        whole[row, : len(ids)] = ids
        counts[row, : len(ids)] = counted
    return whole, counts
