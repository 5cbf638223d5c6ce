"""The symbols of a shell command: its utilities, their flags, and how the utilities are connected."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

Symbol = str | tuple[str, ...]


@dataclass(slots=True)
class _Word:
    text: str
    inner: list[list[_Command]]


@dataclass(slots=True)
class _Command:
    piped: bool
    words: list[_Word] = field(default_factory=list)
    redirects: list[_Word] = field(default_factory=list)

    def tests(self) -> bool:
        """Whether this is an open [[, in which && and < are not shell operators."""
        return any(word.text == "[[" for word in self.words) and self.words[-1].text != "]]"


# Keywords before a command. Those of the second line are symbols, the others are not.
_SILENT = frozenset(["then", "else", "elif", "do", "{", "!", "}", "fi", "done", "esac"])
_LOUD = frozenset(["if", "while", "until"])
# Commands that run the command after them, and the flags of each that take a value.
_RUNNERS = {"xargs": "adEIJLnPRsS", "sudo": "CghpTu", "env": "CSu", "nice": "n", "ionice": "cnp", "time": "fo"}
_RUNNERS |= {"timeout": "ks", "watch": "n", "exec": "a", "parallel": "jIS", "ssh": "bcDEeFIiJLlmOopQRSWw"}
_RUNNERS |= dict.fromkeys(("nohup", "command", "builtin", "eval"), "")
_SHELLS = frozenset(["sh", "bash", "zsh", "ksh", "dash", "su"])
_EXEC = frozenset(["-exec", "-execdir", "-ok", "-okdir"])
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_FLAG = re.compile(r"--?[A-Za-z][\w-]*")
_PLAIN = re.compile(r"[^\s\\'\"`$|&;()<>]+")
_IN_QUOTES = re.compile(r'[^"\\`$]+')
_REDIRECT = re.compile(r"\d*(?:<<<|<<-?|<&|>&|>>|>\||<>|<(?!\()|>(?!\())[ \t]*|&>>?[ \t]*")
_BACKTICKS = re.compile(r"`((?:[^`\\]|\\.)*)`?", re.S)
_ESCAPED = re.compile(r"\\([`\\$])")
_DEEPEST = 40


def shell_symbols(text: str) -> frozenset[Symbol]:
    """The utilities of a bash command, their flags, and how the utilities are connected.

    The symbols are each utility, (utility, flag), (before, "|", after) for a pipe, (outer, inner) for a command that
    another one runs or contains. ``-rf`` stays one flag, because only the utility knows what it means; a value is cut
    off: ``--color=auto`` is ``--color``, ``-n1`` is ``-n``, and ``-20`` is ``-#``. Any text is accepted; without any
    command the first word is the symbol.

    >>> sorted(map(str, shell_symbols("find . -name '*.c' | xargs wc -l")))[:4]
    ["('find', '-name')", "('find', '|', 'xargs')", "('wc', '-l')", "('xargs', 'wc')"]
    """
    found: set[Symbol] = set()
    _commands(_Reader(text, 0).script(""), "", found, 0)
    if not found:
        found.update(text.split()[:1])
    return frozenset(found)


class _Reader:
    """Reads bash as commands of words. Words lose their quotes and keep the commands inside them in ``inner``."""

    def __init__(self, text: str, depth: int) -> None:
        self.text, self.at, self.depth = text, 0, depth

    def script(self, closer: str) -> list[_Command]:
        self.depth += 1
        text, done, now = self.text, [], _Command(False)
        while self.at < len(text):
            char = text[self.at]
            if char == closer:
                break
            if char in " \t\r":
                self.at += 1
            elif char == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif char in "|&()<>" and now.tests():
                self.at += 1
            elif (match := _REDIRECT.match(text, self.at)) is not None:
                self.at = match.end()
                target = self.word(closer)
                target.text = match[0].strip("0123456789&- \t")
                now.redirects.append(target)
            elif char in "|&;\n)":
                done.append(now)
                now = _Command(char == "|" and not text.startswith("||", self.at))
                self.at += 1 + (text[self.at : self.at + 2] in ("||", "|&", "&&"))
            elif char == "(":
                now = self._parenthesis(now, done)
            else:
                now.words.append(self.word(closer))
        self.depth -= 1
        return [*done, now]

    def word(self, closer: str) -> _Word:
        text = self.text
        parts: list[str] = []
        inner: list[list[_Command]] = []
        while self.at < len(text):
            char = text[self.at]
            match = _PLAIN.match(text, self.at)
            if match is not None:
                self.at = match.end()
                parts.append(match[0])
            elif char == closer or char in " \t\r\n|&;)" or (char in "(<>" and not self._opens()):
                break
            elif char == "'" and (end := text.find("'", self.at + 1)) >= 0:
                parts.append(text[self.at + 1 : end])
                self.at = end + 1
            elif char == '"' and text.find('"', self.at + 1) >= 0:
                self.at += 1
                while self.at < len(text) and text[self.at] != '"':
                    match = _IN_QUOTES.match(text, self.at)
                    parts.append(self._special(inner) if match is None else match[0])
                    self.at = self.at if match is None else match.end()
                self.at += 1
            else:
                parts.append(self._special(inner))
        return _Word("".join(parts), inner)

    def _opens(self) -> bool:
        return self.text.startswith(("<(", ">("), self.at)

    def _special(self, inner: list[list[_Command]]) -> str:
        """The text for a backslash, a dollar sign or a backtick."""
        text, char = self.text, self.text[self.at]
        if self.depth < _DEEPEST:
            if char == "`":
                match = _BACKTICKS.match(text, self.at)
                assert match is not None
                self.at = match.end()
                inner.append(_Reader(_ESCAPED.sub(r"\1", match[1]), self.depth).script(""))
                return "$"
            for opening, closing in (("$((", "))"), ("${", "}")):
                if text.startswith(opening, self.at):
                    end = text.find(closing, self.at)
                    self.at = len(text) if end < 0 else end + len(closing)
                    return "$"
            if text.startswith(("$(", "<(", ">("), self.at):
                self.at += 2
                inner.append(self.script(")"))
                self.at += 1
                return "$"
        self.at += 1
        if char == "\\" and self.at < len(text):
            self.at += 1
            return text[self.at - 1].strip("\n")
        return char

    def _parenthesis(self, now: _Command, done: list[_Command]) -> _Command:
        """A subshell is part of the line; after a word it is the () of a function, or an array."""
        if self.text.startswith("((", self.at) and not now.words:
            end = self.text.find("))", self.at)
            self.at = len(self.text) if end < 0 else end + 2
            now.words.append(_Word("((", []))
            return now
        self.at += 1
        if self.depth >= _DEEPEST:
            return now
        inside = self.script(")")
        self.at += 1
        if now.words:
            now.words[-1].inner += [each for command in inside for word in command.words for each in word.inner]
            if inside[0].words:
                return now
            done.append(now)
            return _Command(False)
        inside[0].piped = now.piped
        done += inside[:-1]
        # An operator follows, or a redirection, which then counts as one of the last command.
        return inside[-1]


def _commands(script: list[_Command], outer: str, found: set[Symbol], depth: int) -> None:
    before = ""
    for command in script:
        name = _command(command, outer, found, depth)
        if name and before and command.piped:
            found.add((before, "|", name))
        # After keywords alone (done) and after a subshell, the pipe still comes from the last command.
        before = _last(command) or name or before
        for word in command.redirects:
            for inner in word.inner:
                _commands(inner, before or outer, found, depth + 1)


def _last(command: _Command) -> str:
    """The utility after the keywords, from which a pipe comes: read in ``while read x``."""
    words = [word for word in command.words if word.text not in _SILENT]
    return _utility(words[1].text) if len(words) > 1 and words[0].text in _LOUD else ""


def _command(command: _Command, outer: str, found: set[Symbol], depth: int) -> str:
    """Add the symbols of one command and return the first of them."""
    words, name = command.words, ""
    at = 0
    while at < len(words) and (words[at].text in _SILENT or words[at].text in _LOUD):
        if words[at].text in _LOUD:
            found.add(words[at].text)
            name = name or words[at].text
        at += 1
    start = at
    while at < len(words) and _ASSIGNMENT.match(words[at].text):
        at += 1
    if at < len(words):
        utility = _run(words[at:], outer, found, depth)
    elif at > start or (command.redirects and not words):
        utility = "=" if at > start else command.redirects[0].text
        found.add(utility)
    else:
        return name
    for word in words[start:at]:
        for inner in word.inner:
            _commands(inner, utility, found, depth + 1)
    return name or utility


def _run(words: list[_Word], outer: str, found: set[Symbol], depth: int) -> str:
    """Add the symbols of a utility, its operands and the commands that it runs; return its name."""
    name = _utility(words[0].text)
    found.add(name)
    if outer:
        found.add((outer, name))
    for inner in words[0].inner:
        _commands(inner, name, found, depth + 1)
    takes, at = (_RUNNERS.get(name) if depth < _DEEPEST else None), 1
    scripted, host = False, name == "ssh"
    while at < len(words):
        word = words[at]
        at += 1
        flag = _flag(word.text)
        if flag:
            found.add((name, flag))
            scripted = scripted or (name in _SHELLS and flag.endswith("c"))
            if flag in _EXEC and at < len(words) and depth < _DEEPEST:
                end = next((i for i in range(at, len(words)) if words[i].text in (";", "+")), len(words))
                if end > at:
                    _run(words[at:end], name, found, depth + 1)
                at = end + 1
            elif takes and len(word.text) == 2 and word.text[1] in takes and at < len(words):
                at += 1
        elif word.text in ("-", "--"):
            continue
        elif host:
            host = False
        elif scripted or (takes is not None and " " in word.text):
            if depth < _DEEPEST:
                _commands(_Reader(word.text, 0).script(""), name, found, depth + 1)
            scripted = False
            takes = None
        elif takes is not None and not _ASSIGNMENT.match(word.text) and not word.text[:1].isdigit():
            _run(words[at - 1 :], name, found, depth + 1)
            break
        for inner in word.inner:
            _commands(inner, name, found, depth + 1)
    return name


def _utility(text: str) -> str:
    last = text.rstrip("/").rsplit("/", 1)[-1]
    return "$" if last.startswith("$") or not last else last


def _flag(text: str) -> str:
    if len(text) < 2 or text[0] != "-":
        return ""
    match = _FLAG.match(text)
    if match is None:
        return "-#" if text[1:2].isdigit() else ""
    flag = match[0]
    return re.sub(r"^(-[A-Za-z]{1,2})\d.*", r"\1", flag)
