"""The five selectors, one algorithm a file, with their result and their registry."""
