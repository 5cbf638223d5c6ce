"""The four selectors, their result, and the functions that call them."""
