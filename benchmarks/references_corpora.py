"""Corpora in which names may mislead: NumPy's docstrings, and a handbook of products in versions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.regimes_tasks import Regime, share

# Whether a row is about what the question with this number asks for.
OnTopic = Callable[[int, int], bool]

# Questions of two parts, and the two functions that they ask for.
FUNCTIONS = {
    "How do I transform real values to frequencies and move the zero frequency to the center?": ("rfft", "fftshift"),
    "How do I sort an array and remove repeated values?": ("sort", "unique"),
    "How do I solve a linear system and invert a matrix?": ("solve", "inv"),
    "How do I compute a median that ignores NaN, and replace NaN with zero?": ("nanmedian", "nan_to_num"),
    "How do I stack arrays vertically and split an array into equal parts?": ("vstack", "split"),
    "How do I read numbers from a text file and save an array in a binary file?": ("loadtxt", "save"),
    "How do I draw samples from a normal distribution and shuffle a sequence?": ("normal", "shuffle"),
    "How do I find the index of the largest value and limit values to an interval?": ("argmax", "clip"),
    "How do I fit a polynomial to points and evaluate a polynomial?": ("polyfit", "polyval"),
    "How do I compute a histogram and a cumulative sum?": ("histogram", "cumsum"),
    "How do I turn an array by 90 degrees and reverse the order of its elements?": ("rot90", "flip"),
    "How do I get eigenvalues of a symmetric matrix and the determinant of a matrix?": ("eigvalsh", "det"),
    "How do I make evenly spaced numbers and a grid of coordinates?": ("linspace", "meshgrid"),
    "How do I compute a weighted average and a correlation of two variables?": ("average", "corrcoef"),
    "How do I repeat the elements of an array and put zeros around an array?": ("repeat", "pad"),
    "How do I find elements that two arrays share and test whether values are finite?": ("intersect1d", "isfinite"),
    "How do I round numbers up and compute a remainder?": ("ceil", "remainder"),
    "How do I apply a function along an axis and swap two axes?": ("apply_along_axis", "swapaxes"),
    "How do I compute an angle from two coordinates and convert radians to degrees?": ("arctan2", "rad2deg"),
    "How do I compute a percentile and the standard deviation?": ("percentile", "std"),
}
PRODUCTS, VERSIONS = ("DataBox", "MailGate", "PhotoDesk"), range(2, 7)
# Each topic's title, what a question says about it, and its text.
TOPICS = (
    ("Password", "reset the password", "To reset the password, open Settings, select Users and click Reset."),
    ("Language", "change the language", "The language is changed in Settings under Display. Restart after the change."),
    ("Backup", "make a backup", "A Backup is written every night. Start one by hand under Storage."),
    ("Users", "add another person", "New Users are added by an administrator. Each of them gets a Password by mail."),
    ("Storage", "free disk space", "Storage shows the free space. Old files of a Backup can be deleted there."),
    ("Network", "set up a proxy", "Under Network, enter the address of the proxy and its port."),
    ("Printing", "print in colour", "Printing in colour needs a profile, which is chosen under Devices."),
    ("Devices", "connect a scanner", "Plug in the scanner. It appears under Devices after a minute."),
    ("Display", "use a dark theme", "The dark theme is a setting of Display and needs no restart."),
    ("Search", "find deleted files", "Search looks into deleted files too if the box Archive is ticked."),
    ("Archive", "restore an old file", "Open Archive, mark the file and click Restore. Storage needs free space."),
    ("Licence", "renew the licence", "The Licence is renewed under Account with the key that was sent by mail."),
    ("Account", "change the invoice address", "The invoice address stands under Account. Users cannot change it."),
    ("Update", "install an update", "An Update is installed from Settings. Make a Backup before."),
    ("Import", "import a table", "Import reads tables with commas or tabs. Large tables need free Storage."),
    ("Export", "export to PDF", "Export writes PDF and HTML. The fonts of Printing are used."),
    ("Sharing", "share a folder", "Sharing sends a link to other Users. A Password for the link is optional."),
    ("Calendar", "show holidays", "Holidays are shown in the Calendar after a country is chosen in Settings."),
    ("Privacy", "turn off statistics", "Statistics are turned off under Privacy. The Licence stays valid."),
    ("Settings", "go back to the defaults", "Settings has a button that brings the defaults back. Users are kept."),
)
QUESTIONS = 60


def numpy_docstrings() -> tuple[Regime, OnTopic]:
    """Functions of NumPy; the titles are their names."""
    found: dict[str, str] = {}
    for module in (np, np.linalg, np.fft, np.random):
        for name in sorted(vars(module)):
            text = getattr(vars(module)[name], "__doc__", None) or ""
            if callable(vars(module)[name]) and not name.startswith("_") and len(text) >= 200:
                found.setdefault(name, text)
    names = list(found)
    cases = [
        share(question, [frozenset([name]) for name in names], frozenset(both)) for question, both in FUNCTIONS.items()
    ]
    needed = list(FUNCTIONS.values())
    return (
        Regime(list(found.values()), cases, "functions found", names=names),
        lambda number, row: names[row] in needed[number],
    )


def handbook(title: Callable[[str, str], str]) -> tuple[Regime, OnTopic]:
    """Every topic of every product and version; ``title`` of the product with its version and of the topic."""
    texts, names, parts = [], [], []
    for version in VERSIONS:
        for product in PRODUCTS:
            for topic, _, text in TOPICS:
                texts.append(f"{product} {version}. {text}")
                names.append(title(f"{product} {version}", topic))
                parts.append(frozenset([(f"{product} {version}", topic)]))
    cases, asked = [], []
    for number in range(QUESTIONS):
        of = f"{PRODUCTS[number % len(PRODUCTS)]} {VERSIONS[number % len(VERSIONS)]}"
        first, second = TOPICS[number % len(TOPICS)], TOPICS[(number + 3 + number // len(TOPICS)) % len(TOPICS)]
        wanted = frozenset([(of, first[0]), (of, second[0])])
        cases.append(share(f"How do I {first[1]} and {second[1]} in {of}?", parts, wanted))
        asked.append(of)
    return (
        Regime(texts, cases, "topics found", names=names),
        lambda number, row: texts[row].startswith(f"{asked[number]}."),
    )


MISLEADING: dict[str, Callable[[], tuple[Regime, OnTopic]]] = {
    "NumPy's docstrings": numpy_docstrings,
    "handbook, all texts named after their product": lambda: handbook(lambda product, topic: product),
    "handbook, titles that are common words": lambda: handbook(lambda product, topic: topic),
    "handbook, titles of product and topic": lambda: handbook(lambda product, topic: f"{product}: {topic}"),
}
