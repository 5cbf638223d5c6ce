"""How many candidates to fetch and how many to select, where a caller does not say."""

# The number of picks of all adapters, batches and commands that are given none.
DEFAULT_K = 4
# How many documents of each extra retriever join the candidates: of 10, 25 and 50, 25 found the most on the development
# halves of the benchmarks.
DEFAULT_EXTRA_K = 25


def default_fetch_k(k: int | None) -> int:
    """The number of nearest candidates to select ``k`` from, where none is given; k is None if a budget ends the set.

    benchmarks/fetch_k.py measures what other numbers find and cost.
    """
    return max(50, 5 * (k or 0))


def share_fetch_k(fetch_k: int, k: int | None, queries: int) -> int:
    """The number of nearest candidates to search for each of several queries: ``fetch_k`` shared out, at least k.

    >>> share_fetch_k(50, 5, 3), share_fetch_k(50, 20, 3)
    (17, 20)
    """
    return max(k or 1, -(-fetch_k // queries))
