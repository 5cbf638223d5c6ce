"""The parts of the learned kernel's data."""

from __future__ import annotations

from benchmarks.learned import data

ITEMS = [{"id": f"{number}", "question": f"q {number}", "answer": f"a {number}"} for number in range(30)]


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
    assert ids(found) == ["0", "1", "just"]
