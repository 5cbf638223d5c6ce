"""The pages of benchmarks/results: a script replaces the figures of a page and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.common import RESULTS, refresh, table

PAGE = "# Title\n\n- Versions: 1\n- Seed: 0\n\n{0}| x | 1 |\n\n## Part\n\nText.\n\n{0}| y | 2 |\n".format(
    "| a | b |\n| --- | ---: |\n"
)


def test_each_figure_finds_its_place() -> None:
    new = table(["a", "b"], [["z", "3"]])
    page = refresh(PAGE, [("- Versions: ", "- Versions: 2"), "## Part", new])
    assert page == PAGE.replace("1\n- Seed: 0", "2").replace("| y | 2 |", "| z | 3 |")
    with pytest.raises(SystemExit, match="- Versions"):
        refresh(PAGE, ["## Part", ("- Versions: ", "- Versions: 2")])


@pytest.mark.parametrize("file", sorted(RESULTS.rglob("*.md")), ids=lambda file: file.stem)
def test_the_tables_of_every_page_find_themselves(file: Path) -> None:
    page = file.read_text(encoding="utf-8")
    tables = [part for part in page.split("\n\n") if part.startswith(("|", "#"))]
    assert refresh(page, tables) == page.strip("\n") + "\n"
