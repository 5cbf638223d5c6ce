"""The objectives of a fit, and the factors of a kernel that it trains."""
