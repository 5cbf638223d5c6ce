"""Files and symbols of code: what stands in a text, and what a text defines."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from .words import Text

# A file, outside of addresses of the internet; a symbol that is called ("parse_header(x)", but not "person(s)") or
# stands between backticks; and one that is defined.
_FILE = re.compile(r"\.(?<=\w\.)[A-Za-z]\w{0,9}(?![\w/\\@-]|\.\w)")
_OUTSIDE_OF_PATH, _LONGEST_PATH = re.compile(r"[^\w.@/\\:-]+"), 200
# "4.5.b" is no file, and "E1042" no symbol.
_NUMBER, _CODE = (
    re.compile(r"[A-Za-z]{0,3}\d{1,10}[A-Za-z]?(?!\w)"),
    re.compile(r"[A-Za-z]*\d+[A-Za-z]?|\W*[^\x00-\x7f]\d.*"),
)
_NAME = re.compile(r"[^\W\d]\w{1,79}")
_SYMBOL = re.compile(
    rf"(?<!\w)(?P<called>{_NAME.pattern})\((?!(?:s|es|n|en|r|in|innen)\))|`(?P<quoted>[^\W\d][\w.:]{{1,159}})`"
)
_DEFINING = "def|class|function|fn|func|interface|struct|enum|trait"
_DEFINITION = re.compile(
    r"^[ \t]*(?:(?:export|default|public|private|protected|static|async|abstract|final|pub|inline|virtual)[ \t]+){0,4}"
    rf"(?:{_DEFINING})[ \t]+(?:\([^()\n]{{0,80}}\)[ \t]*)?"
    r"(?P<name>[^\W\d]\w{1,79})(?=[ \t]*(?:[(:{<\[;]|extends\b|implements\b))",
    re.MULTILINE,
)
_DEFINING_WORDS = frozenset(_DEFINING.split("|"))
_NO_SYMBOLS = (
    "def class function fn func interface struct enum trait if for while switch return and or not in print len str int "
    "float list dict set super catch sizeof typeof await assert range isinstance self"
)
_OF_CODE = frozenset(_NO_SYMBOLS.split())


def find_files(text: str, names: Container[str] | None) -> Iterator[tuple[str, ...]]:
    """The paths of files without addresses of the internet; only those that have one of the ``names``, if given."""
    for match in _FILE.finditer(text):
        path = _OUTSIDE_OF_PATH.split(text[max(0, match.start() - _LONGEST_PATH) : match.end()])[-1]
        if "://" not in path and "@" not in path and path[0] != ".":
            parts = [part for part in re.split(r"[\\/]", path.rpartition(":")[2]) if part not in ("", ".", "..")]
            if parts and (names is None or parts[-1] in names):
                yield tuple(parts)


def parse_file(value: str) -> tuple[str, ...]:
    """The parts of a path that a value is; none if it is no file."""
    is_other = " " in value or value.endswith(")") or _NUMBER.match(value)
    files = [] if is_other else [*find_files(value, None)]
    return files[0] if len(files) == 1 else ()


def parse_symbol(value: str) -> str:
    """The symbol that a value is: "load()", "HeaderParser", "parse_header"; empty if it is none."""
    name = re.split("[.:]", value.removesuffix("()"))[-1] if value.endswith("()") else value
    is_symbol = name != value or "_" in name or not (name.istitle() or name.islower() or name.isupper())
    return name if is_symbol and _NAME.fullmatch(name) and (name != value or not _CODE.fullmatch(name)) else ""


def find_called(text: Text) -> Iterator[str]:
    """The names of what is called in a text, or stands between backticks."""
    return (re.split("[.:]", match["called"] or match["quoted"])[-1] for match in _SYMBOL.finditer(text.text))


def find_defined(text: Text) -> list[str]:
    """The names of the functions and classes that a text defines, each once."""
    if _DEFINING_WORDS.isdisjoint(text.words):
        return []
    names = dict.fromkeys(match["name"] for match in _DEFINITION.finditer(text.text))
    return [name for name in names if name not in _OF_CODE]
