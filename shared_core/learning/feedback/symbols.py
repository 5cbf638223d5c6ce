"""The symbols of a program or a logical form: the functions that it calls, and which of them are nested in which."""

from __future__ import annotations

import re

Symbol = str | tuple[str, ...]

# A quote inside a word (coeur d'alene) does not open a string.
_CALLS = re.compile(
    r"""\\.|(?<!\w)'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?P<open>(?:(?<![\w.:])[\w.:]+)?\()|(?P<close>\))""", re.S
)
# In Lisp an apostrophe does not open a string.
_LISP = re.compile(
    r"""\\.|"(?:[^"\\]|\\.)*"|(?P<open>\(\s*(?:[^\s()\[\]"',;\d][^\s()\[\]"',;]*)?)|(?P<close>\))""", re.S
)
_LABELS = re.compile(r"(?P<open>\[\s*(?:[^\W\d][^\s\[\]]*)?)|(?P<close>\])")
_LABELLED = re.compile(r"\s*\[\s*[^\W\d][\w:.-]*(?=[\s\[\]]|$)")


def structural_symbols(text: str) -> frozenset[Symbol]:
    """The function names in a program or logical form, and the pairs of names that are nested directly.

    The first character decides how the text is read:

    - ``[IN:GET_ALARM [SL:ORDINAL next ] ]``: names are the labels after a bracket; plain words are not names.
    - ``(argmax (state all))``: names come after a parenthesis.
    - Anything else, such as ``answer(state(all))``: names come directly before a parenthesis.

    Quoted constants and bare arguments are not symbols. A parenthesis without a name does not change the nesting: in
    Prolog's ``answer(A, (state(A), loc(A, B)))``, ``state`` is inside ``answer``.

    Every text is accepted. A closing bracket without an opening one is ignored. A missing closing bracket is assumed
    at the end of the text. A text without symbols gives the empty set.

    Parameters
    ----------
    text : str
        An answer: a program, a query or a formula.

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
    symbols: set[Symbol] = set()
    around = [""]
    for match in pattern.finditer(text):
        if match.lastgroup == "open":
            # In a method call, .mean(, the dot is not part of the name. A number before a parenthesis is not a call.
            name = match[0].strip(bracket + ".: \t\r\n")
            name = "" if name[:1].isdigit() else name
            outer = around[-1]
            if name:
                symbols.update({name, (outer, name)} if outer else {name})
            around.append(name or outer)
        elif match.lastgroup == "close" and len(around) > 1:
            around.pop()
    return frozenset(symbols)
