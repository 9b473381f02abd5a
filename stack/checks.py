"""`make check`, the part about security: dangerous calls, undeclared imports, secrets, known holes in what we install,
containers that may more than they need.

Six tools from libraries, side by side. What is slow is remembered: a file that was scanned for secrets and not changed
since is not scanned again, and the pins are looked up once a day. Where the data about known holes cannot be reached,
that is said and nothing fails; a machine without the index still has to be able to check its work.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stack.layout import Layout, StackError

PYTHON_OF_OURS = ("plugins", "ingest_consumer", "stack", "config", "dags", "demo")
# Pins with their hashes, measurements and pictures: long random-looking words, and not written by hand.
NOT_SCANNED = ("requirements.txt", "requirements-dev.txt", "bench/results/")
NOT_SCANNED_ENDS = (".svg", ".png", ".xlsx")
PASSWORDS_INVENTED = ("tests/", "bench/")
# The word itself where a URL is explained, the name of a method, the file where a secret is, the class that reads it.
NO_SECRETS = r"^(password|scram-sha-256|cat /run/secrets/\w+|airflow\.secrets\.[\w.]+)$"
AUDIT_EVERY_S = 86_400
AUDIT_TIMEOUT_S = 120


def check(layout: Layout) -> None:
    """Raises StackError with what the tools found."""
    with ThreadPoolExecutor() as pool:
        tools = (_bandit, _deptry, _secrets, _holes, _images, _compose)
        found = [done for done in pool.map(lambda one: one(layout), tools) if done]
    if found:
        raise StackError("\n".join(found))


def _bandit(layout: Layout) -> str | None:
    """Medium and worse; what is meant stands with its reason behind `# nosec`."""
    folders = [name for name in PYTHON_OF_OURS if (layout.root / name).exists()]
    return _complaint(layout, "bandit", "-q", "-q", "-ll", "-r", *folders)


def _deptry(layout: Layout) -> str | None:
    return _complaint(layout, "deptry", ".", "--config", "deptry.toml", "--no-ansi")


def _images(layout: Layout) -> str | None:
    files = sorted(str(file) for file in (layout.root / "docker").glob("*.Dockerfile"))
    return _complaint(layout, "hadolint", *files)


def _compose(layout: Layout) -> str | None:
    options = ["--quiet", "--fail-on", "medium", "--config", "docker/.compose-lint.yml"]
    return _complaint(layout, "compose-lint", "check", *options, "docker/compose.yaml")


def _secrets(layout: Layout) -> str | None:
    """In tests and benchmarks passwords and tokens are inventions: there only what is shaped like a real key counts."""
    listed = _run(layout, ["git", "ls-files", "-co", "--exclude-standard"]).stdout.splitlines()
    files = [name for name in listed if not name.startswith(NOT_SCANNED) and not name.endswith(NOT_SCANNED_ENDS)]
    marks = {
        name: hashlib.sha256((layout.root / name).read_bytes()).hexdigest()
        for name in files
        if (layout.root / name).is_file()
    }
    memory = _Memory(layout, "secret-scan.json")
    fresh = [name for name, mark in marks.items() if memory.content.get(name) != mark]
    invented = [name for name in fresh if name.startswith(PASSWORDS_INVENTED)]
    real = [name for name in fresh if name not in invented]
    detectors = ("KeywordDetector", "BasicAuthDetector", "JwtTokenDetector")
    shaped = [word for name in detectors for word in ("--disable-plugin", name)]
    for options, names in ((["--exclude-secrets", NO_SECRETS], real), (shaped, invented)):
        if names and (problem := _complaint(layout, "detect-secrets-hook", *options, *names)):
            return problem
    memory.keep(marks)
    return None


def _holes(layout: Layout) -> str | None:
    pins = hashlib.sha256((layout.root / "requirements.txt").read_bytes()).hexdigest()
    memory = _Memory(layout, "audited.json")
    if memory.content.get("pins") == pins and time.time() - float(memory.content.get("at", "0")) < AUDIT_EVERY_S:
        return None
    options = [
        "-r",
        "requirements.txt",
        "--no-deps",
        "--disable-pip",
        "--progress-spinner=off",
        "--timeout=5",
        "-fjson",
    ]
    try:
        done = _run(layout, [str(layout.venv / "bin" / "pip-audit"), *options], AUDIT_TIMEOUT_S)
        looked_up = [one for one in json.loads(done.stdout)["dependencies"] if "skip_reason" not in one]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        looked_up = []
    if not looked_up:
        print("pip-audit: its data cannot be reached from here; known holes in the pinned versions were NOT looked for")
        return None
    holes = [
        f"{one['name']} {one['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'no version yet'}"
        for one in looked_up
        for hole in one["vulns"]
    ]
    if holes:
        return "pip-audit: known holes in the pinned versions\n  " + "\n  ".join(holes)
    memory.keep({"pins": pins, "at": str(time.time())})
    return None


def _complaint(layout: Layout, tool: str, *arguments: str) -> str | None:
    done = _run(layout, [str(layout.venv / "bin" / tool), *arguments])
    return None if done.returncode == 0 else f"{tool}:\n{(done.stdout or done.stderr).strip()}"


def _run(layout: Layout, argv: list[str], timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=layout.root, capture_output=True, text=True, check=False, timeout=timeout_s)


class _Memory:
    """What an earlier check found to be in order, in .local/."""

    def __init__(self, layout: Layout, name: str) -> None:
        self._file: Path = layout.local / name
        try:
            self.content: dict[str, str] = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self.content = {}

    def keep(self, content: dict[str, str]) -> None:
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text(json.dumps(content), encoding="utf-8")
