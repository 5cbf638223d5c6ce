"""The parts of the learned kernel's data: on made-up items, and on the data sets if they are there."""

from __future__ import annotations

import pytest

from benchmarks.learned import data
from benchmarks.common import DATA

ITEMS = [{"id": f"{number}", "question": f"q {number}", "answer": f"a {number}"} for number in range(30)]

has_data = pytest.mark.skipif(
    not all((DATA / file).is_file() for file in data.FILES),
    reason=f"no {', '.join(data.FILES)} under {DATA}; set SETSELECT_DATA",
)


def ids(items: list[data.Item]) -> list[str]:
    return [item["id"] for item in items]


def test_parts_share_no_item_and_the_spare_part_is_the_same_for_every_seed() -> None:
    splits = [data.split_items(ITEMS, 8, 12, 5, seed) for seed in (0, 1)]
    for split in splits:
        found = ids(split.spare) + ids(split.pool) + ids(split.test)
        assert [len(split.spare), len(split.pool), len(split.test)] == [8, 12, 5]
        assert len(set(found)) == len(found) == 25
    assert ids(splits[0].spare) == ids(splits[1].spare)
    assert set(ids(splits[0].pool)) != set(ids(splits[1].pool))
    assert splits[0] == data.split_items(ITEMS, 8, 12, 5, 0)


def test_repeated_questions_and_long_items_are_dropped() -> None:
    long = {"id": "long", "question": "Q 1", "answer": "a" * (data.LONGEST - 2)}
    just = {"id": "just", "question": "Q x", "answer": "a" * (data.LONGEST - 3)}
    again = {"id": "again", "question": "Q 1", "answer": "b"}
    found = data.usable([long, *ITEMS[:2], just, again])
    assert (ids(found.items), found.too_long, found.repeated) == (["0", "1", "just"], 1, 1)


@has_data
@pytest.mark.parametrize(
    ("name", "sizes"), [("geoquery", (200, 400, 120)), ("mtop", (4000, 2000, 400)), ("nl2bash", (4000, 2000, 400))]
)
def test_the_data_sets(name: str, sizes: tuple[int, int, int]) -> None:
    splits = [data.load(name, seed) for seed in range(3)]
    for split in splits:
        parts = split.spare, split.pool, split.test
        assert tuple(map(len, parts)) == sizes
        questions = [item["question"].casefold() for part in parts for item in part]
        assert len(set(questions)) == len(questions)
        assert all(item.keys() == {"id", "question", "answer"} and all(item.values()) for item in split.pool)
        assert split.spare == splits[0].spare
    assert len({tuple(ids(split.test)) for split in splits}) == 3
