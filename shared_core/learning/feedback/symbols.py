"""The symbols of a program or a logical form: what it calls, and what stands inside what."""

from __future__ import annotations

import re

from ..shell import Symbol, shell_symbols

__all__ = ["Symbol", "shell_symbols", "structural_symbols"]

# A quote inside a word (coeur d'alene) opens nothing.
_CALLS = re.compile(
    r"""\\.|(?<!\w)'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?P<open>(?:(?<![\w.:])[\w.:]+)?\()|(?P<close>\))""", re.S
)
# An apostrophe is no quote in Lisp.
_LISP = re.compile(
    r"""\\.|"(?:[^"\\]|\\.)*"|(?P<open>\(\s*(?:[^\s()\[\]"',;\d][^\s()\[\]"',;]*)?)|(?P<close>\))""", re.S
)
_LABELS = re.compile(r"(?P<open>\[\s*(?:[^\W\d][^\s\[\]]*)?)|(?P<close>\])")
_LABELLED = re.compile(r"\s*\[\s*[^\W\d][\w:.-]*(?=[\s\[\]]|$)")


def structural_symbols(text: str) -> frozenset[Symbol]:
    """Names of the functions of a program or logical form, and which stands directly in which.

    The first character tells the form apart. ``[IN:GET_ALARM [SL:ORDINAL next ] ]``: the labels behind a bracket;
    words are none. ``(argmax (state all))``: the names behind a parenthesis. Anything else, such as
    ``answer(state(all))``: the names in front of a parenthesis, without a blank between. Quoted constants and bare
    arguments are no symbols. A parenthesis without a name, as in Prolog's ``answer(A, (state(A), loc(A, B)))``,
    changes no nesting: ``state`` stands in ``answer``.

    A closing bracket too many is passed over; one that is missing is thought at the end of the text. So no text is
    refused, and one without symbols has the empty set.

    Parameters
    ----------
    text : str

    Returns
    -------
    frozenset of str and (str, str)
        The names, and the pairs (outer, inner).

    Examples
    --------
    >>> sorted(map(str, structural_symbols("answer(state(next_to_2(stateid('ohio'))))")))[:4]
    ["('answer', 'state')", "('next_to_2', 'stateid')", "('state', 'next_to_2')", 'answer']
    >>> sorted(map(str, structural_symbols("[IN:GET_ALARM [SL:ORDINAL next ] ]")))
    ["('IN:GET_ALARM', 'SL:ORDINAL')", 'IN:GET_ALARM', 'SL:ORDINAL']
    """
    if _LABELLED.match(text):
        pattern, bracket = _LABELS, "["
    else:
        pattern, bracket = (_LISP if text.lstrip().startswith("(") else _CALLS), "("
    found: set[Symbol] = set()
    around = [""]
    for match in pattern.finditer(text):
        if match.lastgroup == "open":
            # The dot of a method's call, .mean(, is not its name's; a number's parenthesis calls nothing.
            name = match[0].strip(bracket + ".: \t\r\n")
            name = "" if name[:1].isdigit() else name
            outer = around[-1]
            if name:
                found.add(name)
                if outer:
                    found.add((outer, name))
            around.append(name or outer)
        elif match.lastgroup == "close" and len(around) > 1:
            around.pop()
    return frozenset(found)
