"""`python -m everest`: see `everest.cli`."""

from __future__ import annotations

from everest.cli.main import main
from ingest_consumer import exits

if __name__ == "__main__":
    exits.run(main, "python -m everest")
