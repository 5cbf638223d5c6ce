from __future__ import annotations

from typing import Any

import pytest

from benchmarks.learned.shell import shell_symbols


def named(text: str) -> set[Any]:
    """Written as "find", "find -name", "find|wc" and "xargs>rm"."""
    found: set[Any] = set()
    for word in text.split():
        if "|" in word:
            before, after = word.split("|")
            found.add((before, "|", after))
        elif ">" in word and len(word) > 1:
            found.add(tuple(word.split(">")))
        elif ":" in word:
            found.add(tuple(word.split(":")))
        else:
            found.add(word)
    return found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("find . -name '*.c'", "find find:-name"),
        ("/usr/bin/find . | \\ls -1 | wc -l", "find ls wc ls:-# wc:-l find|ls ls|wc"),
        ("rm -rf x; rm -r -f y", "rm rm:-rf rm:-r rm:-f"),
        ("ls --color=auto -I'*~' --", "ls ls:--color ls:-I"),
        ("a && b || c; d & e", "a b c d e"),
        ("a |& b", "a b a|b"),
        ("find . -exec rm -f {} \\; -print", "find rm find:-exec rm:-f find:-print find>rm"),
        ("find . -exec sh -c 'grep -q x \"$1\" && rm \"$1\"' _ {} \\;", "find sh grep rm find:-exec sh:-c grep:-q "
         "find>sh sh>grep sh>rm"),
        ("xargs -I {} -n 1 cp {} /x", "xargs cp xargs:-I xargs:-n xargs>cp"),
        ("echo $(ls | wc) `date +%s`", "echo ls wc date echo>ls echo>wc echo>date ls|wc"),
        ("echo `basename \\`pwd\\``", "echo basename pwd echo>basename basename>pwd"),
        ("x=$(ls) y=2", "= ls =>ls"),
        ("comm <(sort a) <(sort -u b) > >(tee c)", "comm sort tee sort:-u comm>sort comm>tee"),
        ("ls 2>&1 >/dev/null | wc", "ls wc ls|wc"),
        ("find | while read -r f; do echo $f; done | sort", "find while read echo sort read:-r find|while echo|sort"),
        ("for f in $(ls); do wc $f; done < x", "for ls wc for>ls"),
        ("echo $(ls -l", "echo ls ls:-l echo>ls"),
        (" \n", ""),
    ],
)  # fmt: skip
def test_commands(text: str, wanted: str) -> None:
    expected = named(wanted)
    # ">" alone and "=>" are written like the signs above.
    expected = {("=", symbol[1]) if symbol[0] == "=" and len(symbol) == 2 else symbol for symbol in expected}
    assert shell_symbols(text) == expected
