"""The four selectors, what they return, and how one is called."""
