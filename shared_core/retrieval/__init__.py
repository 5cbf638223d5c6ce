"""The one entrance of the adapters: settings in, a selection of items out."""
