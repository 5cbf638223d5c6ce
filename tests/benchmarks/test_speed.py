"""The arithmetic of the speed benchmark on values made up for it; and that every contender does what it should."""

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

from benchmarks.racing import asked, contenders, end_to_end, page, turns
from benchmarks.racing.figures import Found, Spread, ratio, spread, written
from benchmarks.racing.limits import LIMITS, limits
from benchmarks.racing.plot import DARK, LIGHT, plot
from benchmarks.racing.points import ANY, LAMBDA, OTHER_LAMBDA, POINTS, SIZES, UNIT, Point, data
from shared_core.selectors import compiled

SMALL = Point(12, 8, 4)
MMRS = {contenders.MMR: 2e-6, contenders.MMR_NUMPY: 4e-6, contenders.PYVERSITY: 8e-6}


def series(name: str, *runs: Sequence[float], **facts: object) -> pyperf.Benchmark:
    """A benchmark of one run a process, with these values."""
    about = {"name": name, "contender": name, "platform": "a machine", "cpu_count": 2, "load": "0.1"}
    about |= {"versions": "numpy 2", "setselect": "abc", "unit": "second", **facts}
    return pyperf.Benchmark(
        [
            pyperf.Run(values, metadata=about | {"process": process}, collect_metadata=False)
            for process, values in enumerate(runs)
        ]
    )


def suite(slow: float = 1.0, haystack: bool = True) -> pyperf.BenchmarkSuite:
    """Every place of the grid: who stands further down takes longer, and the whole way is the sum of its parts."""
    found = []
    for point in POINTS:
        facts = {"n": point.n, "d": point.d, "k": point.k, "rows": point.length, "lambda_mult": point.lambda_mult}
        times = dict(MMRS)
        if point.lambda_mult == LAMBDA:
            times = {name: 1e-5 * (1 + place) for place, name in enumerate((*contenders.OURS, *contenders.PEERS))}
            times |= dict.fromkeys(LIMITS, 1e-6)
            times[contenders.PYVERSITY] *= slow
            for name, (most, _) in contenders.LEFT_OUT.items():
                if point.n > most or (name == contenders.HAYSTACK and not haystack):
                    del times[name]
        found += [series(f"{point}: {name}", [time, time], contender=name, **facts) for name, time in times.items()]
    found += [
        series(f"end to end: {name}", [milliseconds / 1000], contender=name)
        for name, milliseconds in {
            end_to_end.EMBEDDING: 14,
            end_to_end.SEARCH_K: 1,
            end_to_end.SEARCH: 2,
            "choice: LangChain MMR": 3,
            "choice: MMR": 0.5,
            "choice: VRSD": 1,
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


def test_ratios_are_made_turn_by_turn() -> None:
    theirs, ours = series("theirs", [10.0, 40.0, 90.0]), series("ours", [1.0, 4.0, 9.0])
    assert ratio(theirs, ours) == Spread(10, 10, 10)
    assert ratio(ours, theirs) == Spread(0.1, 0.1, 0.1)


def test_a_spread_has_the_quartiles() -> None:
    assert spread([4.0, 1.0, 5.0, 3.0, 2.0]) == Spread(3, 2, 4)
    assert spread([7.0]) == Spread(7, 7, 7)
    assert str(Spread(10.04, 0.994, 1234.4)) == "10.0 (0.99–1,234)"


def test_what_is_slow_is_compared_with_the_first_turn_of_each_process() -> None:
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
    assert written(value) == text


def test_a_turn_runs_everyone_once_and_the_slow_only_in_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    # A clock that is a second on whenever one looks.
    monkeypatch.setattr(pyperf, "perf_counter", itertools.count().__next__)
    ran: list[str] = []

    def runs(name: str) -> Callable[[], object]:
        return lambda: ran.append(name)

    race = turns.Race("race", {name: runs(name) for name in "abc"}, {"n": 3}, inner=2)
    known = {f"race: {name}": turns.Calls(2 if name == "a" else 1, 0.0) for name in "ab"}
    known["race: c"] = turns.Calls(1, 2 * turns.SLOW)
    found = turns.run([race], process=7, turns=3, least=0, known=known, about={"load": "0"})
    # One call of those that are not slow before the first turn; then each turn begins with another.
    assert "".join(ran) == "ab" + "aabc" + "baa" + "aab"
    by_name = {benchmark.get_name(): benchmark for benchmark in found.get_benchmarks()}
    assert [by_name[f"race: {name}"].get_nvalue() for name in "abc"] == [3, 3, 1]
    assert [by_name[f"race: {name}"].get_loops() for name in "abc"] == [2, 1, 1]
    # A second for two calls, each of which does the same thing twice.
    assert by_name["race: a"].get_values() == (0.25, 0.25, 0.25)
    assert by_name["race: a"].get_inner_loops() == 2
    assert by_name["race: a"].get_metadata()["process"] == 7


def test_what_the_first_process_found_is_kept_in_its_file_and_pyperf_reads_it(tmp_path: Path) -> None:
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
def test_data_is_the_same_again_and_has_the_length_that_it_says(length: str) -> None:
    point = Point(30, 16, 3, length)
    one, other = data(point), data(point)
    assert one.vectors.tobytes() == other.vectors.tobytes()
    assert one.query.tobytes() == other.query.tobytes()
    assert {one.vectors.dtype, one.query.dtype, one.scores.dtype} == {np.dtype(np.float32)}
    lengths = np.linalg.norm(one.vectors, axis=1)
    assert np.allclose(lengths, 1) == (length == UNIT)
    np.testing.assert_allclose(one.vectors @ one.query, one.scores * lengths * np.linalg.norm(one.query), rtol=1e-5)


def rows_of(result: Any) -> list[int]:
    """The picks, whatever form a contender hands them back in."""
    if isinstance(result, tuple):
        result = result[1]
    rows: Any = result if isinstance(result, list) else result.indices
    return [int(getattr(row, "content", row)) for row in rows]


def test_every_contender_picks_what_it_should() -> None:
    picks = {name: rows_of(run()) for name, run in contenders.contenders(SMALL, data(SMALL)).items()}
    expected = {*contenders.OURS, *contenders.PEERS} - (set() if contenders.has_haystack() else {contenders.HAYSTACK})
    if not find_spec("numba"):
        expected -= {contenders.MMR_NUMPY, contenders.VRSD_NUMPY, contenders.REFINED_NUMPY}
    assert set(picks) == expected
    assert all(len(set(rows)) == SMALL.k for rows in picks.values())
    # All but LlamaIndex's, which looks at the last pick only.
    same = expected & {contenders.MMR_NUMPY, contenders.LANGCHAIN, contenders.LANGCHAIN_LISTS, contenders.HAYSTACK}
    assert {name: picks[name] for name in same} == dict.fromkeys(same, picks[contenders.MMR])


def test_with_another_lambda_only_those_take_part_whose_time_may_depend_on_it() -> None:
    point = Point(12, 8, 4, lambda_mult=OTHER_LAMBDA)
    runs = contenders.contenders(point, data(point))
    assert set(runs) - {contenders.MMR_NUMPY} == {contenders.MMR, contenders.PYVERSITY}
    assert rows_of(runs[contenders.MMR]()) == rows_of(runs[contenders.PYVERSITY]())


def test_what_is_left_out_is_left_out() -> None:
    point = Point(201, 4, 2)
    runs = contenders.contenders(point, data(point))
    assert not set(runs) & set(contenders.LEFT_OUT)


@pytest.mark.skipif(not find_spec("numba"), reason="needs numba")
def test_without_numba_means_without_it_and_only_during_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []

    def noting(*given: Any) -> Any:
        loops = real(*given)
        taken.append(loops is not None)
        return loops

    real = compiled.loops_for_scores
    monkeypatch.setattr(compiled, "loops_for_scores", noting)
    monkeypatch.setattr("shared_core.selectors.mmr.loops_for_scores", noting)
    runs = contenders.contenders(SMALL, data(SMALL))
    runs[contenders.MMR]()
    runs[contenders.MMR_NUMPY]()
    runs[contenders.MMR]()
    assert taken == [True, False, True]


def test_a_step_of_the_limit_is_one_of_mmr() -> None:
    given = data(Point(50, 16, 4))
    runs = limits(given)
    assert tuple(runs) == LIMITS
    products = given.vectors @ given.query
    np.testing.assert_allclose(np.asarray(runs[LIMITS[0]]()), products, rtol=1e-5)
    assert runs[LIMITS[2]]() == np.argmax(given.scores - np.maximum(products, 0))


def test_the_parts_of_a_way() -> None:
    found = end_to_end.parts([(10.0, 2.0, 1.0, 4.0, 15.0), (12.0, 3.0, 1.0, 9.0, 17.0), (11.0, 2.5, 1.0, 5.0, 16.0)])
    # 4 − 2 − 1, 9 − 3 − 1, 5 − 2.5 − 1
    assert found == end_to_end.Parts(embedding=11, search=2.5, choice=1, framework=1.5, whole=16)
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
    # The tenth and the eleventh: 100 and 110 µs; the eleventh is pyversity's MMR.
    times, ratios, against, *_ = cells(text, "| setselect MMR |")
    assert times == ["setselect MMR", *["20.0"] * len(SIZES)]
    assert ratios == ["setselect MMR", *["5.50 (5.50–5.50)"] * len(SIZES)]
    assert against == ["setselect MMR", *["6.50 (6.50–6.50)"] * len(SIZES)]
    assert cells(text, f"| {contenders.LANGCHAIN_LISTS} |")[0][1:] == ["140", "140", "–", "–", "–", "–"]
    assert cells(text, f"| {contenders.NDPP_PLAIN} |")[1][1] == "1.50 (1.50–1.50)"
    # 20 µs a call, 4 steps of 1 µs; 20 × 384 × 4 bytes in 1 µs
    assert cells(text, "| 20, 384, 4 | 30.7")[0][2:6] == ["4.00", "4.00", "4.00", "5.00 (5.00–5.00)"]
    assert cells(text, "| 5,000, 384, 50, any length |")[0][1:] == [
        "2.00", "4.00", "8.00", "4.00 (4.00–4.00)", "2.00 (2.00–2.00)",
    ]  # fmt: skip
    assert cells(text, "| the store's MMR |")[0][1:] == [
        "20.00", "14.00 (70.0 %)", "2.00 (10.0 %)", "3.00 (15.0 %)", "1.00 (5.0 %)",
    ]  # fmt: skip
    assert cells(text, "| the store's top 10 |")[0][4] == "0.00 (0.0 %)"
    assert "a machine, 2 cores" in text
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1


def test_the_page_says_when_haystack_was_not_there() -> None:
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


def test_demands_say_what_holds_with_the_worst_place_and_what_does_not_with_every_place() -> None:
    lines = list(asked.checked(Found(suite())))
    mmr = [line for line in lines if f" {contenders.MMR}, n" in line]
    assert mmr[0] == (
        "holds: setselect MMR, n=100 d=768 k=10, unit length, lambda 0.5, the worst of 2: "
        "5.50 (5.50–5.50) times as fast as pyversity MMR, asked for at least 1.6"
    )
    # 6.5 times as fast as LangChain's where 25 are asked for, at two places.
    assert [line.split(":")[0] for line in mmr[1:3]] == ["DOES NOT HOLD"] * 2
    assert mmr[3].startswith("holds: setselect MMR, n=5000 d=384 k=50, unit length, lambda 0.75, the worst of 16: 4.00")
    refined = next(line for line in lines if f" {contenders.REFINED}, n" in line)
    assert refined.endswith("1.50 (1.50–1.50) times the time of setselect VRSD, asked for at most 3")
    # Nothing is as fast as a pyversity that takes next to no time; where λ is another it takes 8 µs, 4 times ours.
    none = [line for line in asked.checked(Found(suite(slow=1e-3))) if line.startswith("DOES NOT HOLD")]
    assert len([line for line in none if f" {contenders.MMR}, n" in line]) == 2 + 2 + 12 + 4
