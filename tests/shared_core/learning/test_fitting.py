from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared_core import (
    NDPP,
    VRSD,
    Candidates,
    InvalidInputError,
    InvalidParameterError,
    LinearKernel,
    LowRankKernel,
    SetSelectWarning,
)
from shared_core.learning import (
    CoverageFeedback,
    Epoch,
    Fitted,
    LabelledSubset,
    Split,
    fit,
    hold_out,
    label,
)

torch = pytest.importorskip("torch")

Item = Mapping[str, Any]
Matrix = NDArray[np.float64]

COVERAGE = CoverageFeedback(symbols=str.split)
OBJECTIVES: dict[str, dict[str, Any]] = {
    "listwise": {"objective": "listwise"},
    "likelihood": {"objective": "likelihood"},
}
# Each objective and each kernel stands once.
each = pytest.mark.parametrize(("objective", "kernel"), [("listwise", "linear"), ("likelihood", "rows")])


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def topics(n: int, seed: int, noise: float = 2.0, kinds: int = 6, each: int = 2) -> tuple[list[dict[str, str]], Matrix]:
    """Items with some topics; a vector has the topics, and longer noise beside them."""
    rng = np.random.default_rng(seed)
    has = np.zeros((n, kinds))
    for row in has:
        row[rng.choice(kinds, each, replace=False)] = 1
    other = rng.normal(size=(n, 8))
    other *= noise * each**0.5 / np.linalg.norm(other, axis=1, keepdims=True)
    items = [{"question": f"{seed} {i}", "answer": " ".join(map(str, np.flatnonzero(h)))} for i, h in enumerate(has)]
    return items, np.concatenate((has, other), axis=1)


def small(n: int = 24) -> tuple[list[dict[str, str]], Matrix]:
    return topics(n, 5, noise=1.0)


def quick(**more: Any) -> Fitted:
    """A short fit; its warnings are ignored."""
    items, vectors = small()
    settings: dict[str, Any] = {"k": 2, "fetch_k": 12, "epochs": 3, "skew_rank": 3, "batch_size": 7, **more}
    given = (settings.pop("items", items), settings.pop("vectors", vectors), settings.pop("feedback", COVERAGE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SetSelectWarning)
        return fit(*given, settings.pop("labels", None), **settings)


def arrays(kernel: Any) -> dict[str, Any]:
    names = ("V", "B", "C", "W_V", "W_B", "W_R", "temperature")
    return {name: np.asarray(getattr(kernel, name)) for name in names if getattr(kernel, name, None) is not None}


def assert_same(a: Any, b: Any) -> None:
    found, expected = arrays(a), arrays(b)
    assert set(found) == set(expected)
    for name, array in found.items():
        assert array.tobytes() == expected[name].tobytes(), name


def noise(query: Item, subset: Sequence[Item]) -> float:
    text = repr((query["question"], sorted(item["question"] for item in subset)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


# --- what comes of it -------------------------------------------------------------------------------


@each
def test_the_history_and_the_epoch_that_is_kept(objective: str, kernel: str) -> None:
    told: list[tuple[Epoch, Any]] = []
    settings = {"kernel": kernel, "epochs": 5, "patience": 5, **OBJECTIVES[objective]}
    fitted = quick(on_epoch=lambda *epoch: told.append(epoch), **settings)
    history = fitted.history
    assert tuple(epoch for epoch, _ in told) == history
    assert [epoch.number for epoch in history] == list(range(6))
    assert history[0].loss is None
    assert all((epoch.likelihood is None) == (objective == "listwise") for epoch in history)
    values = [epoch.feedback for epoch in history]
    assert fitted.epoch == values.index(max(values)), "the first of equals"
    assert fitted.feedback == max(values)
    assert type(fitted.kernel) is (LinearKernel if kernel == "linear" else LowRankKernel)
    assert_same(fitted.kernel, told[fitted.epoch][1])
    assert len(fitted.unlearned) == 6
    assert fitted.gain == pytest.approx(fitted.feedback - max(fitted.unlearned.values()))
    assert fitted.helped == (fitted.gain > fitted.standard_error)


def test_the_parameters_shape_the_kernel() -> None:
    kernel: Any = quick(rank=5, skew_rank=3, kernel="rows").kernel
    assert [np.shape(matrix) for matrix in (kernel.V, kernel.B, kernel.W_R)] == [(24, 5), (24, 3), (14, 14)]
    without: Any = quick(skew_rank=0, learn_relevance=False).kernel
    assert np.shape(without.W_B) == (14, 0)
    assert without.W_R is None
    assert without.temperature != 0.1
    assert quick(objective="likelihood", temperature=0.3).kernel.temperature == 0.3
    assert quick(seed=1).held_out != quick(seed=2).held_out


def trained(**more: Any) -> dict[str, Any]:
    """All trained numbers after the last epoch."""
    kernels: list[Any] = []
    fitted = quick(patience=9, on_epoch=lambda epoch, kernel: kernels.append(kernel), **more)
    found = arrays(kernels[-1])
    # The rows of held-out items stay at their start.
    return {n: np.delete(a, fitted.held_out, axis=0) if n in ("V", "B") else a for n, a in found.items()}


@each
def test_all_parts_are_trained(objective: str, kernel: str) -> None:
    settings = {"kernel": kernel, "skew_rank": 4, **OBJECTIVES[objective]}
    first, last = (trained(learning_rate=rate, **settings) for rate in (1e-12, 0.02))
    # The reference code of the paper does not train the rates of C; here they are trained.
    names = {"W_V", "W_B", "C"} if kernel == "linear" else {"V", "B", "C"}
    names |= {"W_R", "temperature"} if objective == "listwise" else {"temperature"}
    assert set(first) == set(last) == names
    for name in names - ({"temperature"} if objective != "listwise" else set()):
        assert np.abs(last[name] - first[name]).max() > 1e-3, name


class Rising:
    """Each new set gets a higher number than all sets before, so new picks always count as better."""

    fingerprint = "rising"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, query: Item, subset: Sequence[Item]) -> float:
        self.calls += 1
        return float(self.calls)


def labels_of(**more: Any) -> list[LabelledSubset]:
    items, vectors = small()
    return label(items, vectors, COVERAGE, **{"k": 2, "candidates": 12, "draw": "greedy", **more})


def test_labels_may_come_with_their_split_and_then_none_is_lost() -> None:
    items, vectors = small()
    split = hold_out(items, vectors, queries=range(4, 24), held_out=0.3, seed=2)
    known = labels_of(queries=split.trained, examples=split.examples, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="learning did not help")
        settings: dict[str, Any] = {"k": 2, "fetch_k": 12, "epochs": 3, "skew_rank": 3, "batch_size": 7, "seed": 2}
        fitted = fit(items, vectors, COVERAGE, known, split=split, **settings)
        same = fit(items, vectors, COVERAGE, split=split, **settings)
    assert fitted.held_out == split.held_out == same.held_out
    assert_same(fitted.kernel, same.kernel)
    with pytest.raises(InvalidParameterError, match="resume"):
        quick(labels=known, resume="labels.jsonl")


def test_a_warning_counts_the_subsets_that_hold_held_out_items() -> None:
    items, vectors = small()
    known = labels_of()
    with pytest.warns(SetSelectWarning) as caught:
        fitted = fit(items, vectors, COVERAGE, known, k=2, fetch_k=12, epochs=1, skew_rank=3)
    ours = [entry for entry in known if entry.query not in fitted.held_out]
    lost = sum(bool(set(entry.subset) & set(fitted.held_out)) for entry in ours)
    told = f"labels: {lost:,} of the {len(ours):,} labelled subsets of trained items hold held-out items"
    assert any(str(warning.message).startswith(told) and warning.filename == __file__ for warning in caught)
    split = Split((0, 1, 2, 3), (0, 1), (4,))
    every = [LabelledSubset(0, (4,), 0.5), LabelledSubset(1, (9,), 0.5)]
    with pytest.raises(InvalidInputError, match="labels: 2 of the 2 "):
        quick(labels=every, split=split)


def test_rows_may_have_names() -> None:
    ids = [f"item {n}" for n in range(24)]
    named, plain = quick(kernel="rows", ids=ids), quick(kernel="rows")
    assert_same(named.kernel, plain.kernel)
    assert named.history == plain.history
    assert isinstance(named.kernel, LowRankKernel)
    assert named.kernel.ids == tuple(ids)
    chosen = named.selector.select(Candidates(small()[1][0], small()[1][3:9], ids=ids[3:9]), 2)
    assert len(chosen.indices) == 2


# --- the same again ---------------------------------------------------------------------------------


@each
def test_the_same_input_gives_the_same_kernel_whatever_the_global_random_states(objective: str, kernel: str) -> None:
    found = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        found.append(quick(kernel=kernel, **OBJECTIVES[objective]))
    assert_same(found[0].kernel, found[1].kernel)
    assert found[0].history == found[1].history


@each
def test_nothing_of_a_held_out_item_changes_a_trained_number(objective: str, kernel: str) -> None:
    """Other vectors of held-out items, and other feedback for them and with them, train the same numbers."""
    items, vectors = small()
    settings = {"kernel": kernel, "rank": 5, **OBJECTIVES[objective]}
    held_out = list(quick(**settings).held_out)
    assert len(held_out) > 2
    secret = {items[row]["question"] for row in held_out}

    def other(query: Item, subset: Sequence[Item]) -> float:
        return 7.0 if secret & {item["question"] for item in (query, *subset)} else COVERAGE(query, subset)

    moved = vectors.copy()
    moved[held_out] = np.random.default_rng(1).normal(size=(len(held_out), vectors.shape[1]))
    labels = labels_of(draw="greedy" if objective == "listwise" else "random", subsets=None)
    rescored = [LabelledSubset(e.query, e.subset, other(items[e.query], [items[i] for i in e.subset])) for e in labels]
    assert sum(a != b for a, b in zip(labels, rescored, strict=True)) > len(labels) / 3
    runs: dict[str, dict[str, Any]] = {
        "own labels": {},
        "own labels, changed": {"vectors": moved, "feedback": other},
        "labels": {"labels": labels},
        "labels, changed": {"labels": rescored, "vectors": moved, "feedback": other},
        "labels, changed for all": {"labels": [LabelledSubset(e.query, e.subset, -e.score) for e in labels]},
    }
    found = {name: trained(**{**settings, **run}) for name, run in runs.items()}
    for name, array in found["own labels"].items():
        assert found["own labels, changed"][name].tobytes() == array.tobytes(), name
    for name, array in found["labels"].items():
        assert found["labels, changed"][name].tobytes() == array.tobytes(), name
    for_all = found["labels, changed for all"]
    assert any(for_all[name].tobytes() != array.tobytes() for name, array in found["labels"].items())


def test_a_gpu_gives_the_same_kernel_up_to_rounding() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    for setting in OBJECTIVES.values():
        for kernel in ("linear", "rows"):
            here, there = (quick(kernel=kernel, feedback=Rising(), device=d, **setting).kernel for d in ("cpu", "cuda"))
            for name, array in arrays(here).items():
                np.testing.assert_allclose(arrays(there)[name], array, atol=1e-6, err_msg=name)


# --- when to stop, and when to warn -----------------------------------------------------------------


def test_a_fit_stops_without_improvement() -> None:
    for patience in (1, 3):
        fitted = quick(labels=labels_of(), feedback=lambda query, subset: 1.0, epochs=9, patience=patience)
        assert len(fitted.history) == 1 + patience
        assert fitted.epoch == 0
    rising = quick(labels=labels_of(), feedback=Rising(), epochs=9, patience=1, learning_rate=0.03)
    assert rising.epoch > 0
    assert len(rising.history) - 1 == min(rising.epoch + 1, 9)


def test_the_likelihood_decides_when_to_stop_and_the_picks_which_epoch_is_kept() -> None:
    items, vectors = topics(60, 5, noise=1.0)
    fitted = quick(
        items=items, vectors=vectors, objective="likelihood", epochs=60, patience=2, learning_rate=0.003
    )  # fmt: skip
    likelihoods = [epoch.likelihood for epoch in fitted.history]
    assert None not in likelihoods
    best = int(np.argmax(np.array(likelihoods)))
    assert len(likelihoods) - 1 == min(best + 2, 60)
    assert 0 < best < 58, "it went up, and stopped"


def test_it_warns_when_learning_did_not_help() -> None:
    items, vectors = topics(60, 3, noise=1.0)
    with pytest.warns(SetSelectWarning, match="did not help") as caught:
        fitted = fit(items, vectors, noise, k=2, fetch_k=20, epochs=2, skew_rank=2, seed=3)
    assert not fitted.helped
    rival = max(fitted.unlearned, key=lambda name: fitted.unlearned[name])
    assert f"those of {rival}, which learns nothing" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_the_relevant_part_of_the_vectors_is_learned_and_serves_later_queries() -> None:
    """The longer half of each vector is noise: for E Eᵀ it separates items, and the learned map ignores it.

    There is no warning here, because pytest turns warnings into errors.
    """
    items, vectors = topics(200, 0)
    fitted = fit(
        items, vectors, COVERAGE, k=2, fetch_k=50, epochs=12, skew_rank=4, held_out=0.3, learning_rate=0.005,
        sharpness=0.3, pull=1e-3,
    )  # fmt: skip
    assert fitted.helped
    assert fitted.gain > 0.05
    assert fitted.gain > 2 * fitted.standard_error
    later, queries = topics(300, 77)
    means = {}
    for name, selector in {"learned": fitted.selector, "plain": NDPP(), "VRSD": VRSD()}.items():
        values = []
        for item, query in zip(later, queries, strict=True):
            among = np.argsort(-(vectors @ query))[:50]
            chosen = selector.select(Candidates(query, vectors[among]), 2).indices
            values.append(COVERAGE(item, [items[row] for row in among[chosen]]))
        means[name] = np.mean(values)
    assert means["learned"] > max(means["plain"], means["VRSD"]) + 0.03


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [{"k": 5, "fetch_k": 4}, {"device": "nonsense"}, {"objective": "paper"}, {"temperature": np.nan}, {"rank": 99}],
)
def test_settings_are_checked_before_anything_is_scored(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=f"^{[*change][-1]} "):
        quick(feedback=None, **change)


SOUND = [LabelledSubset(q, (s,), float(s)) for q in range(4) for s in range(5, 9)]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"vectors": np.ones((3, 2))}, "vectors"),
        ({"labels": []}, "empty"),
        ({"labels": SOUND[:4]}, "2 different queries"),
        ({"labels": [*SOUND, LabelledSubset(0, (24,), 0.5)]}, "number 16"),
        ({"labels": [*SOUND, LabelledSubset(0, (2, 2), 0.5)]}, "number 16"),
        ({"labels": [LabelledSubset(e.query, e.subset, 1.0) for e in SOUND]}, "two subsets"),
        ({"split": Split((0, 1), (0, 2), (3,))}, "hold_out"),
        ({"labels": SOUND, "split": Split(tuple(range(4, 24)), (4, 5), (0, 1))}, "0 of the 0 "),
        ({"feedback": lambda query, subset: float("inf"), "labels": SOUND}, "held-out item"),
    ],
)
def test_input_that_does_not_fit_is_refused(change: dict[str, Any], word: str) -> None:
    with pytest.raises((InvalidInputError, InvalidParameterError), match=word):
        quick(**change)


def test_an_overflow_says_what_to_do() -> None:
    with pytest.raises(InvalidParameterError, match=r"epoch \d: .*learning rate"):
        quick(objective="likelihood", learning_rate=1e200, epochs=5)
