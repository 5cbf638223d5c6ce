"""VRSD paper, Table 1: the settings under which OpenBookQA's figures come closest to the paper's."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.common import Block, best, facts, parser, publish, records, require, say, table
from benchmarks.models import MPNET, MPNET_PARTS, is_installed, unit_vectors
from benchmarks.papers._measures import max_difference, win_rate
from benchmarks.papers._paper_figures import VRSD_MPNET
from benchmarks.papers.vrsd import (
    ONE_OF,
    OPENBOOKQA,
    PAPER_MMR,
    SEED,
    SELECTORS,
    TOLERANCE,
    VRSD,
    Floats,
    Indices,
    Values,
    split,
)
from shared_core import select_many

Record = dict[str, Any]
FACTS = "openbookqa/facts.jsonl"
ARC, PUZZLE = "arc_challenge/arc_challenge.jsonl", "puzzle/puzzle.jsonl"
ROWS = (*PAPER_MMR, VRSD)
KS = range(2, 9)
POOLS = (10, 20, 50, 100)
FIRST, RANDOM = "first fifth", "random fifth"
SUM, SINGLE = "cosine of the sum", "mean cosine of the picks"
MEASURES = (SUM, SINGLE)
# What an equal value adds to VRSD's wins.
TIES = {"a win": 1.0, "half a win": 0.5, "no win": 0.0}
BLOCK = 64


@dataclass(frozen=True)
class Texts:
    """What is embedded of a record; without ``item``, the items are OpenBookQA's core facts."""

    title: str
    query: Callable[[Record], str]
    item: Callable[[Record], str] | None
    # Whether the items may or must include the question's own: an item that repeats the query alone may not.
    own: tuple[bool, ...] = (False, True)


def _question(record: Record) -> str:
    return f"{record['question']}?"


def _with_options(record: Record) -> str:
    return f"{record['question']}? The option can be: {'. '.join(choice['text'] for choice in record['choices'])}"


def _then_answer(question: Callable[[Record], str]) -> Callable[[Record], str]:
    return lambda record: f"{question(record)}->{record['answer']}"


# Wording and "->" are those of the published code, which has the first two pairs.
PUBLISHED = Texts("question and options; these and the answer", _with_options, _then_answer(_with_options))
ANSWERED = Texts("question; question and answer", _question, _then_answer(_question))
REPEATED = Texts("question; question", _question, _question, (False,))
TEXTS = (
    PUBLISHED,
    ANSWERED,
    Texts("question; question, options and answer", _question, _then_answer(_with_options)),
    Texts("question and options; question and answer", _with_options, _then_answer(_question)),
    REPEATED,
    Texts("question; core facts", _question, None, (True,)),
)


class Setting(NamedTuple):
    """One way to make Table 1; ``own`` says whether the record of the question is among the items."""

    texts: str
    asked: str
    own: bool
    pool: int
    k: int
    measure: str
    ties: str


# ARC-Challenge and Puzzle have no "?" of their own added.
PLAIN = Texts(ANSWERED.title, lambda record: record["question"], _then_answer(lambda record: record["question"]))
PLAIN_REPEATED = Texts(REPEATED.title, PLAIN.query, PLAIN.query)


# What the published code does. It embeds the picks of each method once more and counts every difference above 0. Equal
# picks then differ by rounding, in favour of either.
CODE = Setting(PUBLISHED.title, FIRST, False, 20, 4, SUM, "half a win")


def judge(queries: Floats, items: Floats, sizes: Sequence[int]) -> dict[tuple[int, str], Values]:
    """For each pool size, measure and method an array (questions, k): column j has the value of j + 1 picks."""
    found: dict[tuple[int, str], dict[str, list[Floats]]] = {
        (size, measure): {name: [] for name in ROWS} for size in sizes for measure in MEASURES
    }
    for start in range(0, len(queries), BLOCK):
        asked = queries[start : start + BLOCK]
        nearest = np.array([best(row, max(sizes)) for row in asked @ items.T])
        for size, name in itertools.product(sizes, ROWS):
            pool = items[nearest[:, :size]]
            rows = select_many(asked, pool, max(KS), **SELECTORS[name]).indices
            picked = np.take_along_axis(pool, rows[:, :, None], axis=1)
            sums = picked.cumsum(axis=1)
            cosines = np.einsum("qkd,qd->qk", picked, asked)
            found[size, SUM][name].append(np.einsum("qkd,qd->qk", sums, asked) / np.linalg.norm(sums, axis=2))
            found[size, SINGLE][name].append(cosines.cumsum(axis=1) / np.arange(1, max(KS) + 1))
    return {key: {name: np.concatenate(rows) for name, rows in of.items()} for key, of in found.items()}


def figures(judged: Values, k: int, tie: float) -> Floats:
    """The ten figures of a table: the mean of each row; for each MMR row VRSD's win rate, then its largest lead."""
    aims = {name: values[:, k - 1] for name, values in judged.items()}
    ours, others = aims[VRSD], [aims[name] for name in PAPER_MMR]
    equal = [(np.abs(ours - theirs) <= TOLERANCE).mean() for theirs in others]
    means = [aims[name].mean() for name in ROWS]
    wins = [win_rate(ours, theirs, TOLERANCE) + tie * same for theirs, same in zip(others, equal, strict=True)]
    return np.array([*means, *wins, *(max_difference(ours, theirs) for theirs in others)])


def paper_figures(data_set: str) -> Floats:
    """The same ten figures as the paper prints them."""
    printed = VRSD_MPNET[data_set]
    means = [float(printed[name][0]) for name in ROWS]
    wins = [float(printed[name][1].rstrip("%")) / 100 for name in PAPER_MMR]
    return np.array([*means, *wins, *(float(printed[name][2]) for name in PAPER_MMR)])


def distance(found: Floats, paper: Floats) -> float:
    """The mean absolute difference of the ten figures; win rates are shares of 1."""
    return float(np.abs(found - paper).mean())


def fifth(n: int, asked: str) -> tuple[Indices, Indices]:
    """The rows of the questions and of the other records."""
    return split(n) if asked == RANDOM else (np.arange(n // ONE_OF), np.arange(n // ONE_OF, n))


def pair(texts: Texts, kept: Sequence[Record], asked: str, own: bool) -> tuple[list[str], list[str]]:
    """The texts of the queries and of the items."""
    questions, rest = fifth(len(kept), asked)
    if texts.item is None:
        items = [fact["text"] for fact in records(FACTS)]
    else:
        items = [texts.item(kept[row]) for row in (range(len(kept)) if own else rest)]
    return [texts.query(kept[row]) for row in questions], items


def embedded_pair(texts: Texts, kept: Sequence[Record], asked: str, own: bool) -> tuple[Floats, Floats]:
    """The vectors of the same texts."""
    queries, items = pair(texts, kept, asked, own)
    return unit_vectors(queries, MPNET), unit_vectors(items, MPNET)


def tried(kept: Sequence[Record]) -> Iterator[tuple[Setting, Floats]]:
    """Every setting with its ten figures."""
    for texts in TEXTS:
        for asked, own in itertools.product((FIRST, RANDOM), texts.own):
            judged = judge(*embedded_pair(texts, kept, asked, own), POOLS)
            for (pool, measure), k, ties in itertools.product(judged, KS, TIES):
                yield (
                    Setting(texts.title, asked, own, pool, k, measure, ties),
                    figures(judged[pool, measure], k, TIES[ties]),
                )


def one_setting(setting: Setting, texts: Texts, kept: Sequence[Record]) -> Floats:
    """The ten figures of one setting on the records of any data set."""
    judged = judge(*embedded_pair(texts, kept, setting.asked, setting.own), [setting.pool])
    return figures(judged[setting.pool, setting.measure], setting.k, TIES[setting.ties])


def lines(rows: Iterable[tuple[str, Setting | None, Floats]], paper: Floats) -> str:
    """Rows of a title, a setting and its ten figures, as a Markdown table; the paper's own figures come first."""
    head = ["", "query; item", "questions", "own record", "pool", "k", "an equal value is", "distance", "farthest"]
    head += ["means, MMR λ 0, 0.5, 1, VRSD", "wins over MMR λ 0, 0.5, 1", "by at most"]
    body = [["paper", *[""] * (len(head) - 4), *_shown(paper)]]
    for title, setting, found in rows:
        how = [""] * 6
        if setting is not None:
            own = "among the items" if setting.own else "no"
            how = [setting.texts, setting.asked, own, str(setting.pool), str(setting.k), setting.ties]
        apart = [f"{distance(found, paper):.4f}", f"{np.abs(found - paper).max():.3f}"]
        body.append([title, *how, *apart, *_shown(found)])
    return table(head, body)


def _shown(found: Floats) -> list[str]:
    """Means, win rates and largest leads, each in one cell."""
    means, wins, leads = np.split(found, [len(ROWS), len(ROWS) + len(PAPER_MMR)])
    return [
        ", ".join(f"{mean:.3f}" for mean in means),
        ", ".join(f"{share:.1%}" for share in wins),
        ", ".join(f"{lead:.3f}" for lead in leads),
    ]


def closest(every: Iterable[tuple[Setting, Floats]], paper: Floats) -> tuple[Setting, Floats]:
    """The setting with the smallest distance, and its figures; among equals the first."""
    return min(every, key=lambda row: distance(row[1], paper))


def chosen(every: Sequence[tuple[Setting, Floats]], paper: Floats) -> list[tuple[str, Setting, Floats]]:
    """The settings that the page shows."""
    figures_of = dict(every)
    top, found = closest(every, paper)
    other = top._replace(asked=RANDOM if top.asked == FIRST else FIRST)
    rows = [("closest of all", top, found), ("the same, other questions", other, figures_of[other])]
    rows.append(("published code", CODE, figures_of[CODE]))
    for title, kept in (
        ("closest with a pool of 20 and k = 4", lambda setting: (setting.pool, setting.k) == (20, 4)),
        ("closest with the published code's texts", lambda setting: setting.texts == CODE.texts and not setting.own),
        ("closest by the mean cosine of the picks", lambda setting: setting.measure == SINGLE),
        *(("closest with these texts", lambda setting, of=texts.title: setting.texts == of) for texts in TEXTS),
    ):
        row = closest([row for row in every if kept(row[0])], paper)
        if row[0] not in [setting for _, setting, _ in rows]:
            rows.append((title, *row))
    return rows


def others() -> Iterator[tuple[str, str, list[Record]]]:
    """The other data sets: a title, the data set of the paper to compare with, and the records."""
    arc = [record | {"answer": ". ".join(record["answers"])} for record in records(ARC)]
    yield "ARC-Challenge (the paper: ARC-DA)", "ARC-DA", arc
    yield "Puzzle", "Puzzle", [record | {"question": record["story"]} for record in records(PUZZLE)]


def elsewhere(top: Setting) -> Iterator[str]:
    """The closest setting and the published code's on the other data sets, beside the paper's figures."""
    nearest = PLAIN_REPEATED if top.texts == REPEATED.title else PLAIN
    for _, data_set, kept in others():
        rows = [
            (name, setting._replace(texts=texts.title), one_setting(setting, texts, kept))
            for name, setting, texts in (("closest on OpenBookQA", top, nearest), ("published code", CODE, PLAIN))
        ]
        yield lines(rows, paper_figures(data_set))


def fewer(openbookqa: Sequence[Record]) -> str:
    """The means with the published code's setting when only some of the items are there, as a Markdown table."""
    rows = []
    kinds = [("OpenBookQA", "OpenBookQA", PUBLISHED, openbookqa), *((t, d, PLAIN, kept) for t, d, kept in others())]
    for title, data_set, texts, kept in kinds:
        queries, items = embedded_pair(texts, kept, CODE.asked, CODE.own)
        for step in (4, 2, 1):
            some = items[::step]
            if len(some) >= CODE.pool:
                judged = judge(queries, some, [CODE.pool])[CODE.pool, CODE.measure]
                means = figures(judged, CODE.k, TIES[CODE.ties])[: len(ROWS)]
                rows.append([title, f"{len(some):,}", *(f"{mean:.3f}" for mean in means)])
        rows.append([title, "paper", *(f"{mean:.3f}" for mean in paper_figures(data_set)[: len(ROWS)])])
    return table(["data set", "items", *ROWS], rows)


def blocks() -> Iterator[Block]:
    packages = ("setselect", "numpy", "torch", "sentence-transformers", MPNET_PARTS[0])
    yield facts((OPENBOOKQA, FACTS, ARC, PUZZLE), packages, SEED, f"Model: {MPNET}")
    kept, paper = records(OPENBOOKQA), paper_figures("OpenBookQA")
    rows = chosen(list(tried(kept)), paper)
    yield lines(rows, paper)
    yield from elsewhere(rows[0][1])
    yield fewer(kept)


def main() -> None:
    options = parser(__doc__, "papers/vrsd_settings.md").parse_args()
    if not is_installed(MPNET):
        say(f"skipped: {MPNET} is not installed; run make models")
        return
    require(OPENBOOKQA, FACTS, ARC, PUZZLE)
    publish("papers/vrsd_settings.md", blocks(), options.write)


if __name__ == "__main__":
    main()
