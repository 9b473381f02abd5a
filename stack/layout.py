"""Where everything of the stack lies: one folder, .local/, next to the code. Nothing is kept anywhere else.

The only exception is the manager's socket: a Unix socket path ends at 107 bytes, so below a long checkout path it
lies in XDG_RUNTIME_DIR or /tmp, in a folder named after the checkout that `down` removes.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

LONGEST_SOCKET_PATH = 90  # of 107 bytes; supervisor first binds a longer, temporary name beside it


class StackError(Exception):
    """Something a person has to change; the message is the sentence to print."""


@dataclass(frozen=True)
class Layout:
    """The folders and files of one checkout's stack."""

    root: Path

    @classmethod
    def here(cls) -> Layout:
        return cls(Path(__file__).resolve().parent.parent)

    @property
    def local(self) -> Path:
        return self.root / ".local"

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def config(self) -> Path:
        return self.local / "config"

    @property
    def data(self) -> Path:
        return self.local / "data"

    @property
    def logs(self) -> Path:
        return self.local / "logs"

    @property
    def run(self) -> Path:
        return self.local / "run"

    @property
    def airflow_home(self) -> Path:
        return self.local / "airflow"

    @property
    def bench_dags(self) -> Path:
        """Airflow's second DAG folder; empty unless a benchmark or a test runs."""
        return self.airflow_home / "bench-dags"

    @property
    def secrets_file(self) -> Path:
        return self.local / "secrets"

    @property
    def ports_file(self) -> Path:
        return self.local / "ports.json"

    @property
    def shape_file(self) -> Path:
        return self.local / "shape.json"

    @property
    def site_file(self) -> Path:
        """The EVEREST_ settings that the shell of the last `up` gave to our processes."""
        return self.local / "site.json"

    @property
    def overrides_file(self) -> Path:
        """Variables that one `up` gave to single programs, over their own; absent but while a test wants it so."""
        return self.local / "overrides.json"

    @property
    def env_file(self) -> Path:
        return self.local / "stack.env"

    @property
    def operator_env_file(self) -> Path:
        return self.local / "operator.env"

    @property
    def manager_config(self) -> Path:
        return self.config / "supervisord.conf"

    @property
    def manager_pid_file(self) -> Path:
        return self.run / "supervisord.pid"

    @property
    def python_path(self) -> str:
        """What our processes import from; config/ holds airflow_local_settings.py."""
        return os.pathsep.join(str(self.root / name) for name in (".", "plugins", "config")).replace("/./", "/")

    @property
    def socket_dir(self) -> Path:
        """The folder of the manager's socket: .local/run unless that path is too long for a socket."""
        if len(os.fsencode(self.run / "supervisor.sock")) <= LONGEST_SOCKET_PATH:
            return self.run
        mark = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        base = Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp")  # made 0700  # nosec B108
        return (base if base.is_dir() else Path("/tmp")) / f"everest-{os.getuid()}-{mark}"  # nosec B108

    @property
    def socket(self) -> Path:
        return self.socket_dir / "supervisor.sock"

    def make_folders(self) -> None:
        """Service users pass through (x) to their own data and configuration; only the owner can list anything."""
        for folder in (self.local, self.config, self.data, self.run):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o711)
        for folder in (self.logs, self.airflow_home):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o700)
        self.socket_dir.mkdir(mode=0o700, exist_ok=True)
        if self.socket_dir.stat().st_uid != os.getuid():
            raise StackError(f"{self.socket_dir} belongs to somebody else; remove it, then run `make up` again")


def write_private(path: Path, text: str, owner: tuple[int, int] | None = None) -> None:
    """Writes a file that only its owner may read, and that is never seen half-written."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    if owner is not None:
        os.chown(draft, *owner)
    draft.replace(path)
