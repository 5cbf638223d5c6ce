"""How many candidates to fetch and how many to select, where a caller does not say."""

# The number of picks of all adapters, batches and commands that are given none.
DEFAULT_K = 4
# The number of candidates that another search than that by vectors, such as one by words, adds for each query.
EXTRA_K = 25


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
