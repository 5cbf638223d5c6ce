import time

import pytest

from shared_core.texts.words import MOST_CLAUSES, split_clauses


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("", []),
        ("What is the weather in Oslo?", []),
        ("Compare two strings, parse a date, and pick a random element", [
            "Compare two strings", "parse a date", "pick a random element",
        ]),
        ("Book a flight to Rome and then, and also send it to Ann", ["Book a flight to Rome", "send it to Ann"]),
        ("I am in Rome. Where do I eat well? Thanks!", ["I am in Rome", "Where do I eat well"]),
        ("1. Find a hotel\n2.\tBook   a train\r\n", ["Find a hotel", "Book a train"]),
        ("Finde ein Hotel in Rom und buche einen Zug", ["Finde ein Hotel in Rom", "buche einen Zug"]),
        ("帮我查一下北京的天气，然后订一张机票。", ["帮我查一下北京的天气", "然后订一张机票"]),
        ("Salt and pepper and oil", []),
        ("Open the band of the land, please do it", ["Open the band of the land", "please do it"]),
    ],
)  # fmt: skip
def test_split_clauses(text: str, clauses: list[str]) -> None:
    assert split_clauses(text) == clauses


def test_the_beginning_and_the_end_of_a_long_text() -> None:
    numbers = [f"line number {i}" for i in range(20)]
    assert split_clauses("\n".join(numbers)) == numbers[:4] + numbers[-4:]


@pytest.mark.parametrize("piece", ["a b c, ", " and", " ", "\n", ". ", "。", "a" * 10, "a b c and "])
def test_the_time_is_linear_and_the_number_limited(piece: str) -> None:
    started = time.perf_counter()
    assert len(split_clauses(piece * 100_000)) in (0, MOST_CLAUSES)
    assert time.perf_counter() - started < 5
