"""The speed benchmark: its arithmetic on made-up values, and what every contender selects."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyperf
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from benchmarks.racing import bounds, contenders, end_to_end, page, turns
from benchmarks.racing.figures import Found, Spread, digits, ratio, spread
from benchmarks.racing.plot import DARK, LIGHT, plot
from benchmarks.racing.points import ANY, BATCHES, LAMBDA, POINTS, SIZES, UNIT, Batch, Point, batch_data, data
from shared_core import select
from shared_core.selectors import _greedy

SMALL = Point(12, 8, 4)


def series(name: str, *runs: Sequence[float], race: object = "race") -> pyperf.Benchmark:
    """A benchmark of one run a process, with these values."""
    about = {"name": f"{race}: {name}", "race": str(race), "contender": name, "platform": "a machine", "cpu_count": 2}
    about |= {"load": "0.1", "versions": "numpy 2", "setselect": "abc", "unit": "second"}
    return pyperf.Benchmark(
        [
            pyperf.Run(values, metadata=about | {"process": process}, collect_metadata=False)
            for process, values in enumerate(runs)
        ]
    )


def suite(slow: float = 1.0, haystack: bool = True) -> pyperf.BenchmarkSuite:
    """Every race: each contender takes longer than the one before it; the whole way is the sum of its parts.

    ``slow`` multiplies the times of pyversity and of the batches.
    """
    found = []
    for point in POINTS:
        times = {name: 1e-5 * (1 + place) for place, name in enumerate((*contenders.OURS, *contenders.PEERS))}
        times[contenders.PYVERSITY] *= slow
        times[contenders.PYVERSITY_DPP] *= slow
        for name, (largest, _) in contenders.LARGEST.items():
            if point.n > largest or (name == contenders.HAYSTACK and not haystack):
                del times[name]
        if point.length == ANY:
            times = {name: time for name, time in times.items() if name not in contenders.FRAMEWORKS}
        found += [series(name, [time, time], race=point) for name, time in times.items()]
    for batch in BATCHES:
        names = [*contenders.NUMPY_ALONE, *contenders.NUMPY_ALONE.values()]
        found += [series(name, [slow * 2e-6 * (1 + place)] * 2, race=batch) for place, name in enumerate(names)]
    found += [
        series(name, [milliseconds / 1000], race=end_to_end.RACE)
        for name, milliseconds in {
            end_to_end.EMBEDDING: 14,
            end_to_end.SEARCH_K: 1,
            end_to_end.SEARCH: 2,
            "selection: LangChain MMR": 3,
            "selection: MMR": 0.5,
            "selection: VRSD": 1,
            **{way.given: 4 for way in end_to_end.WAYS},
            **{way.name: 20 for way in end_to_end.WAYS},
            end_to_end.WAYS[1].given: 6,
        }.items()
    ]
    return pyperf.BenchmarkSuite(found)


def cells(text: str, start: str) -> list[list[str]]:
    """The cells of every row of a Markdown page that begins like this."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith(start)
    ]


def test_ratios_are_taken_turn_by_turn() -> None:
    theirs, ours = series("theirs", [10.0, 40.0, 90.0]), series("ours", [1.0, 4.0, 9.0])
    assert ratio(theirs, ours) == Spread(10, 10, 10)
    assert ratio(ours, theirs) == Spread(0.1, 0.1, 0.1)


def test_a_spread_has_the_quartiles() -> None:
    assert spread([4.0, 1.0, 5.0, 3.0, 2.0]) == Spread(3, 2, 4)
    assert spread([7.0]) == Spread(7, 7, 7)
    assert str(Spread(10.04, 0.994, 1234.4)) == "10.0 (0.99–1,234)"


def test_a_slow_contender_is_compared_in_the_first_turn_of_each_process() -> None:
    slow = series("slow", [10.0], [30.0])
    fast = series("fast", [1.0, 99.0, 99.0], [2.0, 99.0, 99.0])
    assert ratio(slow, fast) == spread([10.0, 15.0])


def test_values_of_different_processes_are_not_paired() -> None:
    first, second = series("a", [1.0], [2.0]), series("b", [1.0], [2.0])
    turned = pyperf.Benchmark(second.get_runs()[::-1])
    with pytest.raises(ValueError, match=r"different processes cannot be paired: \[0, 1\]"):
        ratio(first, turned)
    with pytest.raises(ValueError, match="shorter"):
        ratio(first, pyperf.Benchmark(second.get_runs()[:1]))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.005, "0.01"), (9.994, "9.99"), (9.996, "10.0"), (99.94, "99.9"), (99.96, "100"), (1e6, "1,000,000")],
)
def test_three_digits_are_written(value: float, text: str) -> None:
    assert digits(value) == text


def test_a_turn_runs_every_contender_once_and_a_slow_one_only_in_the_first_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A clock that advances by one second each time it is read.
    monkeypatch.setattr(pyperf, "perf_counter", itertools.count().__next__)
    ran: list[str] = []

    def runs(name: str) -> Callable[[], object]:
        return lambda: ran.append(name)

    race = turns.Race("race", {name: runs(name) for name in "abc"}, inner=2)
    known = {f"race: {name}": turns.Calls(2 if name == "a" else 1, 0.0) for name in "ab"}
    known["race: c"] = turns.Calls(1, 2 * turns.SLOW)
    found = turns.run([race], process=7, turns=3, least=0, known=known, about={"load": "0"})
    # Each contender that is not slow is called once before the first turn. Each turn begins with another contender.
    assert "".join(ran) == "ab" + "aabc" + "baa" + "aab"
    by_name = {benchmark.get_name(): benchmark for benchmark in found.get_benchmarks()}
    assert [by_name[f"race: {name}"].get_nvalue() for name in "abc"] == [3, 3, 1]
    assert [by_name[f"race: {name}"].get_loops() for name in "abc"] == [2, 1, 1]
    # One second for two calls, each of which answers two queries.
    assert by_name["race: a"].get_values() == (0.25, 0.25, 0.25)
    assert by_name["race: a"].get_inner_loops() == 2
    assert by_name["race: a"].get_metadata()["process"] == 7


def test_the_numbers_of_calls_are_kept_in_the_file_of_the_first_process_and_pyperf_reads_it(tmp_path: Path) -> None:
    race = turns.Race("race", {"sum": lambda: sum(range(1000))}, inner=4)
    first = turns.run([race], process=0, turns=2, least=2e-4, known={}, about={})
    first.dump(str(tmp_path / "first.json"))
    known = turns.calls(pyperf.BenchmarkSuite.load(str(tmp_path / "first.json")))
    assert list(known) == ["race: sum"]
    assert known["race: sum"].loops == first.get_benchmarks()[0].get_loops() > 1
    assert known["race: sum"].seconds == pytest.approx(4 * first.get_benchmarks()[0].median())
    second = turns.run([race], process=1, turns=2, least=1e3, known=known, about={})
    first.add_runs(second.get_benchmarks()[0])
    assert [len(run.values) for run in first.get_benchmarks()[0].get_runs()] == [2, 2]


@pytest.mark.parametrize("length", [UNIT, ANY])
def test_equal_points_give_equal_data_with_rows_of_their_length(length: str) -> None:
    point = Point(30, 16, 3, length)
    one, other = data(point), data(point)
    assert one.vectors.tobytes() == other.vectors.tobytes()
    assert one.query.tobytes() == other.query.tobytes()
    assert {one.vectors.dtype, one.query.dtype, one.scores.dtype} == {np.dtype(np.float32)}
    lengths = np.linalg.norm(one.vectors, axis=1)
    assert np.allclose(lengths, 1) == (length == UNIT)
    np.testing.assert_allclose(one.vectors @ one.query, one.scores * lengths * np.linalg.norm(one.query), rtol=1e-5)


def rows_of(result: Any) -> list[int]:
    """The picks, from any form in which a contender returns them."""
    if isinstance(result, tuple):
        result = result[1]
    rows: Any = result if isinstance(result, list) else result.indices
    return [int(getattr(row, "content", row)) for row in rows]


def test_every_contender_selects_what_it_should() -> None:
    picks = {name: rows_of(run()) for name, run in contenders.contenders(SMALL, data(SMALL)).items()}
    expected = {*contenders.OURS, *contenders.PEERS} - (set() if contenders.has_haystack() else {contenders.HAYSTACK})
    assert set(picks) == expected
    assert all(len(set(rows)) == SMALL.k for rows in picks.values())
    # LlamaIndex's MMR is left out: it compares with the last pick only.
    same = expected & {contenders.MMR_NUMPY, contenders.LANGCHAIN, contenders.LANGCHAIN_LISTS, contenders.HAYSTACK}
    assert {name: picks[name] for name in same} == dict.fromkeys(same, picks[contenders.MMR])


def test_frameworks_take_part_with_unit_rows_only_and_slow_peers_up_to_their_largest_n() -> None:
    for point, missing in ((Point(12, 8, 4, ANY), contenders.FRAMEWORKS), (Point(201, 4, 2), contenders.LARGEST)):
        runs = contenders.contenders(point, data(point))
        assert not set(runs) & set(missing)
        assert {contenders.PYVERSITY, *contenders.OURS} <= set(runs)


def test_every_query_of_a_batch_has_its_own_candidates() -> None:
    batch = Batch(3, 12, 8, 4)
    queries, vectors = batch_data(batch)
    assert (queries.shape, vectors.shape) == ((3, 8), (3, 12, 8))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=2), 1, rtol=1e-5)
    runs = contenders.batch_contenders(batch)
    selectors = [contenders.MMR, contenders.VRSD, contenders.REFINED, contenders.NDPP_PLAIN]
    assert set(runs) == {*selectors, *(contenders.NUMPY_ALONE[name] for name in selectors)}
    answers: dict[str, Any] = {name: run() for name, run in runs.items()}
    for name in selectors:
        in_numpy = contenders.NUMPY_ALONE[name]
        assert answers[name].indices.shape == (3, 4)
        np.testing.assert_array_equal(answers[name].indices, answers[in_numpy].indices)
    single = select(queries[1], vectors[1], batch.k, "mmr", lambda_mult=LAMBDA).indices
    np.testing.assert_array_equal(answers[contenders.MMR].indices[1], single)


@pytest.mark.skipif(not find_spec("numba"), reason="needs numba")
def test_numpy_alone_uses_no_compiled_loop_and_lasts_for_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[bool] = []

    class Noting:
        """The compiled loops; notes each use of one."""

        def __getattr__(self, name: str) -> Any:
            used.append(True)
            return getattr(_compiled, name)

    from shared_core.selectors import _compiled

    monkeypatch.setattr(_greedy, "compiled_loops", Noting)
    batch = Batch(3, 12, 8, 4)
    for runs in (contenders.contenders(SMALL, data(SMALL)), contenders.batch_contenders(batch)):
        for name in set(runs) & set(contenders.NUMPY_ALONE):
            in_numpy, uses = contenders.NUMPY_ALONE[name], []
            for run in (runs[name], runs[in_numpy], runs[name]):
                used.clear()
                run()
                uses.append(bool(used))
            assert uses == [True, False, True], name


def test_the_parts_of_a_way() -> None:
    found = end_to_end.parts([(10.0, 2.0, 1.0, 4.0, 15.0), (12.0, 3.0, 1.0, 9.0, 17.0), (11.0, 2.5, 1.0, 5.0, 16.0)])
    # 4 − 2 − 1, 9 − 3 − 1, 5 − 2.5 − 1
    assert found == end_to_end.Parts(embedding=11, search=2.5, selection=1, framework=1.5, whole=16)
    assert found.together == 16


def test_all_ways_lead_from_text_to_documents() -> None:
    model = DeterministicFakeEmbedding(size=16)
    runs = end_to_end.contenders(model, ["one", "two"], n=60, fetch_k=12, k=3)
    answers = {name: run() for name, run in runs.items()}
    wanted = {name for way in end_to_end.WAYS for name in end_to_end.columns(way)}
    assert set(runs) == wanted
    for way in end_to_end.WAYS:
        documents = answers[way.name]
        assert isinstance(documents, list)
        assert [len(each) for each in documents] == [3, 3]
        assert [[d.page_content for d in each] for each in documents] == [
            [d.page_content for d in each]
            for each in answers[way.given]  # type: ignore[attr-defined]
        ]


def test_the_page_has_every_figure_where_it_belongs() -> None:
    text = page.page(Found(suite()))
    # The second contender takes 20 µs, the 16th, pyversity's MMR, 160, the eighth, NDPP, 80, and pyversity's DPP 170.
    times, ratios, against = [row for row in cells(text, "| setselect MMR |") if len(row) > 3][:3]
    assert times == ["setselect MMR", *["20.0"] * len(SIZES)]
    assert ratios == ["setselect MMR", *["8.00 (8.00–8.00)"] * len(SIZES)]
    assert against == ["setselect MMR", *["9.00 (9.00–9.00)"] * len(SIZES)]
    assert [row[1:] for row in cells(text, f"| {contenders.LANGCHAIN_LISTS} |")] == [["190", "190", *"––––"]]
    assert cells(text, f"| {contenders.NDPP_PLAIN} |")[1][1] == "2.12 (2.12–2.12)"
    assert cells(text, "| 100, 768, 10: VRSD |") == [["100, 768, 10: VRSD", "4.00", "18.0"]]
    assert cells(text, "| the store's MMR |")[0][1:] == [
        "20.00", "14.00 (70.0 %)", "2.00 (10.0 %)", "3.00 (15.0 %)", "1.00 (5.0 %)",
    ]  # fmt: skip
    assert cells(text, "| the store's top 10 |")[0][4] == "0.00 (0.0 %)"
    assert "a machine, 2 cores" in text
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1


def test_the_page_says_whether_haystack_took_part() -> None:
    assert "Haystack was not installed" in page.page(Found(suite(haystack=False)))
    assert "half a minute a call" in page.page(Found(suite()))


def test_equal_figures_give_equal_files(tmp_path: Path) -> None:
    found = Found(suite())
    assert page.page(found) == page.page(Found(suite()))
    for name, palette in (("a", LIGHT), ("b", LIGHT), ("c", DARK)):
        plot(tmp_path / name, found, palette)
    drawn = (tmp_path / "a").read_text(encoding="utf-8")
    assert drawn == (tmp_path / "b").read_text(encoding="utf-8")
    assert drawn != (tmp_path / "c").read_text(encoding="utf-8")
    assert "LangChain's MMR, Python lists" in drawn
    assert "<dc:date>" not in drawn
    assert DARK.text in (tmp_path / "c").read_text(encoding="utf-8")


def test_each_bound_gets_one_verdict_with_numba_and_one_in_numpy_alone() -> None:
    lines = list(map(str, bounds.verdicts(Found(suite()))))
    assert len(lines) == 2 * len(bounds.BOUNDS)
    # MMR takes 20 and 30 µs, VRSD 40 and 50, NDPP 80 and 90, with a skew part 120, pyversity's MMR 160 and its DPP 170.
    assert lines[0] == (
        "holds: setselect MMR, with numba, n=100 d=768 k=10, unit length: 8.00 (8.00–8.00) × pyversity's MMR, "
        "required: at least 3 ×"
    )
    assert lines[3].startswith("holds: setselect VRSD, numpy alone, n=100 d=768 k=10, unit length: 3.20")
    assert lines[5] == (
        "stated: setselect MMR, numpy alone, n=20 d=384 k=4, unit length (the worst of 4): "
        "5.33 (5.33–5.33) × pyversity's MMR"
    )
    assert lines[14].startswith("DOES NOT HOLD: setselect NDPP, LowRankKernel with skew part, rank 64, with numba")
    assert lines[10] == (
        "holds: setselect NDPP, no kernel, with numba, n=20 d=384 k=4, unit length (the worst of 4): "
        "2.12 (2.12–2.12) × pyversity's DPP, required: at least 1.5 ×"
    )
    assert lines[-2] == (
        "holds: setselect NDPP, no kernel, with numba, batch of 1000, n=20 d=384 k=4: 8.00 (8.00–8.00) µs a query, "
        "required: at most 10 µs"
    )


def test_a_bound_over_several_races_is_judged_by_the_worst() -> None:
    worst = Point(*SIZES[2])
    slow = series(contenders.VRSD, [1.0, 1.0], race=worst)
    kept = [b for b in suite().get_benchmarks() if b.get_name() != slow.get_name()]
    found = Found(pyperf.BenchmarkSuite([*kept, slow]))
    judged = {(v.bound.contender, v.case): (v.word, v.race) for v in bounds.verdicts(found) if len(v.bound.races) > 1}
    assert judged[contenders.VRSD, bounds.WITH_NUMBA] == ("DOES NOT HOLD", worst)
    assert judged[contenders.VRSD, bounds.NUMPY] == ("stated", Point(*SIZES[0]))
    assert judged[contenders.MMR, bounds.WITH_NUMBA][0] == "holds"


def test_no_bound_holds_where_the_peer_takes_no_time_and_batches_take_long() -> None:
    words = {
        (v.limit is None, v.word)
        for slow, batches in ((1e-3, False), (1e3, True))
        for v in bounds.verdicts(Found(suite(slow)))
        if isinstance(v.race, Batch) is batches
    }
    assert words == {(True, "stated"), (False, "DOES NOT HOLD")}
