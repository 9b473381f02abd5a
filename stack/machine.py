"""What this machine has: the servers' programs, the users they may run as, and the way to become one of them."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stack.layout import Layout, StackError

OLDEST_POSTGRESQL = 15
SLOTS_PER_CORE = 4
CAP_DAC_OVERRIDE = 1
CAP_DAC_READ_SEARCH = 2
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def program(name: str) -> Path | None:
    """A server's program; sbin is looked into as well, it is not on everybody's PATH."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + os.pathsep + SYSTEM_PATH)
    return Path(found) if found else None


def rabbitmq_server() -> Path | None:
    """The broker's own script. Debian's wrapper in /usr/sbin is of no use: it insists on the system's instance."""
    script = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    return script if script.exists() else program("rabbitmq-server")


def postgresql_bin() -> Path | None:
    """The folder with initdb and postgres, the newest there is."""
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    usable = [folder for folder in folders if int(folder.parent.name.split(".")[0]) >= OLDEST_POSTGRESQL]
    if usable:
        return max(usable, key=lambda folder: int(folder.parent.name.split(".")[0]))
    on_path = program("postgres")
    return on_path.parent if on_path and (on_path.parent / "initdb").exists() else None


def parallelism(cores: int | None = None) -> int:
    """Slots for task processes: 8 on two cores, never more than 12. More than can run, because a task that has ended
    often keeps its slot for up to a second: its supervisor misses the end of the process and looks again only then."""
    return min(12, max(4, SLOTS_PER_CORE * (cores or os.cpu_count() or 2)))


def fake_clock() -> Path | None:
    """The library that gives a process a wall clock of its own; of the chaos tests."""
    return next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)


def require(found: Path | None, what: str) -> Path:
    if found is None:
        raise StackError(f"{what} is not installed; run `make setup`")
    return found


@dataclass(frozen=True)
class ServiceUser:
    """Who a server runs as: a system user when we are root (PostgreSQL refuses root), otherwise ourselves."""

    name: str
    uid: int
    gid: int
    switch: tuple[str, ...]  # the command in front that becomes that user; empty when we already are

    @classmethod
    def of(cls, layout: Layout, name: str) -> ServiceUser:
        """Raises StackError when that system user does not exist."""
        if os.getuid() != 0:
            me = pwd.getpwuid(os.getuid())
            return cls(me.pw_name, me.pw_uid, me.pw_gid, ())
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            raise StackError(f"the system user {name} is missing; reinstall the server's package") from None
        switch = ["setpriv", f"--reuid={name}", f"--regid={entry.pw_gid}", "--init-groups"]
        if not is_reachable(layout.local):
            # A checkout below /root or a private temporary folder: these users cannot walk there. The one right they
            # lack, to pass through folders, is given to their process instead of opening the folders to everybody.
            capability = "dac_read_search" if _may_grant(CAP_DAC_READ_SEARCH) else "dac_override"
            if not _may_grant(CAP_DAC_READ_SEARCH) and not _may_grant(CAP_DAC_OVERRIDE):
                raise StackError(
                    f"the user {name} cannot reach {layout.root}: a folder on the way is closed to others."
                    " Put the checkout somewhere that is not, for example below /srv or /opt"
                )
            right = f"-all,+{capability}"
            # no_setuid_fixup: access(2), by which Erlang judges its files, would else ask as if it were not given.
            switch += ["--securebits=+no_setuid_fixup", f"--inh-caps={right}", f"--ambient-caps={right}"]
        return cls(name, entry.pw_uid, entry.pw_gid, (*switch, "--"))

    @property
    def owner(self) -> tuple[int, int]:
        return self.uid, self.gid

    def command(self, argv: Sequence[str | Path]) -> list[str]:
        return [*self.switch, *map(str, argv)]

    def make_folder(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        os.chown(folder, self.uid, self.gid)
        folder.chmod(0o700)


def is_reachable(folder: Path) -> bool:
    """Whether any user can pass through every folder down to this one."""
    return all(stat.S_IMODE(each.stat().st_mode) & stat.S_IXOTH for each in (folder, *folder.parents))


def _may_grant(capability: int) -> bool:
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> capability & 1)
    return False
