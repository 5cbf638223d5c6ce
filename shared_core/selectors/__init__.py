"""The five selectors, their result, and the functions that call them."""
