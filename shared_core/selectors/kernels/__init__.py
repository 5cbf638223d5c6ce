"""Kernels of the NDPP: a row for each known item, or computed from the stored vectors."""
