"""`python -m tests.migrations.older_release COMMIT [arguments of pytest]`: an older release on today's schema.

Its programs and its own tests, out of the history, with today's migrations in place of its own, on the servers of the
stack: what "programs of version n work on the schema of n + 1" says, shown. A program and no test, since a copy of the
code need not have its history. What it found stands in tests/README.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MIGRATIONS = Path("sql", "migrations")
WHAT_RUNS_ON_A_SCHEMA = [f"tests/integration/{name}" for name in ("opname", "ingest_consumer", "reconciler", "intake")]
"""Steps, consumer, relay, reconciler and submit. Its tests of the schema itself compare it with its own schema.sql."""


def main(commit: str, *arguments: str) -> int:
    with tempfile.TemporaryDirectory(prefix="everest-older-") as folder:
        release = Path(folder, "release")
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", release, commit], cwd=ROOT, check=True)
        try:
            ours = {file.name for file in (ROOT / MIGRATIONS).glob("*.sql")}
            known = {file.name for file in (release / MIGRATIONS).glob("*.sql")}
            for name in ours - known:
                shutil.copy(ROOT / MIGRATIONS / name, release / MIGRATIONS)
            print(f"{commit} with {', '.join(sorted(ours - known)) or 'no other migrations'}", flush=True)
            shutil.copytree(ROOT / ".local", release / ".local", ignore=lambda _, names: {*names} - {"stack.env"})
            env = {**os.environ, "PYTHONPATH": f"{release}:{release / 'plugins'}"}
            pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
            return subprocess.run([*pytest, *(arguments or WHAT_RUNS_ON_A_SCHEMA)], cwd=release, env=env).returncode
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", release], cwd=ROOT, check=False)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if sys.argv[1:] else __doc__)
