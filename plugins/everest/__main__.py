"""`python -m everest`: see `everest.cli`."""

from __future__ import annotations

from everest.cli.main import main

if __name__ == "__main__":
    main()
