"""The report of a comparison: one HTML page."""
