"""What a fit maximises, and the factors that it changes."""
