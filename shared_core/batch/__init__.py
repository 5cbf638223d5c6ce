"""A set for each of many queries."""
