"""The part of the core that the adapters call: settings become a request, which selects a framework's items."""
