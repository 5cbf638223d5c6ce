"""The one route from candidates and their texts to a selection, and ``select`` for arrays."""
