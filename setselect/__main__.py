"""``python -m setselect``."""

from shared_core.cli import main

if __name__ == "__main__":
    main()
