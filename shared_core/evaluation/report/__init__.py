"""The report of a comparison: one HTML page."""

from .page import render, write_report

__all__ = ["render", "write_report"]
