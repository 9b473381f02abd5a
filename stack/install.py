"""`setup`: the distribution's packages that are missing, the virtual environment and the pinned dependencies.

Runs with the system's Python and its standard library. A second run only compares a stamp.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path

from stack import machine
from stack.layout import Layout, StackError

PYTHON_NEXT = (3, 13)  # the first version Airflow 3.3.2 and our pins were not tried with
SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
POLICY = Path("/usr/sbin/policy-rc.d")
# MariaDB's option files begin a comment at #, RabbitMQ asks for its free disk space through a shell and waits for ever
# at a quote, PATH and PYTHONPATH end a folder at a colon.
UNUSABLE_IN_PATH = "#'\":\\\n"


def setup(layout: Layout) -> None:
    """Raises StackError with the command to run when something is missing that we may not install."""
    if sys.version_info[:2] >= PYTHON_NEXT:  # one that is too old did not come as far as this
        raise StackError(
            f"Python 3.11 or 3.12 is needed, {sys.executable} is {sys.version.split()[0]};"
            " name one that is here: `make PYTHON=python3.11 ...`"
        )
    unusable = [character for character in str(layout.root) if character in UNUSABLE_IN_PATH]
    if unusable:
        raise StackError(
            f"the servers cannot work below a folder with {' or '.join(map(repr, unusable))} in its name:"
            f" {layout.root}. Move or rename it; spaces and other letters do no harm"
        )
    stamp, wanted = layout.venv / "everest-setup.stamp", _fingerprint(layout)
    environment_is_made = stamp.exists() and stamp.read_text(encoding="ascii") == wanted
    packages = missing_packages(build=not environment_is_made)
    if packages:
        install_packages(packages)
    if not environment_is_made:
        _make_environment(layout)
        stamp.write_text(wanted, encoding="ascii")


def missing_packages(build: bool) -> list[str]:
    """Debian packages whose programs are absent; with `build` also what mysqlclient is compiled with."""
    needs = {
        "mariadb-server": bool(machine.program("mariadbd") and machine.program("mariadb-install-db")),
        "rabbitmq-server": machine.rabbitmq_server() is not None,
        "postgresql": machine.postgresql_bin() is not None,
        # Of the tests: docker/compose.yaml is read (no container is started), the pages are seen in a real browser,
        # clocks jump, and the alerts are played through (no Prometheus is started).
        "docker-compose": _has_compose(),
        "chromium": bool(machine.program("chromium") or machine.program("chromium-browser")),
        "libfaketime": machine.fake_clock() is not None,
        "prometheus": machine.program("promtool") is not None,
    }
    if build:
        needs |= {
            "gcc": machine.program("gcc") is not None,
            "libc6-dev": Path("/usr/include/stdlib.h").exists(),
            "pkg-config": machine.program("pkg-config") is not None,
            "libmariadb-dev": _has_library("libmariadb") or _has_library("mysqlclient"),
            "python3-dev": Path(sysconfig.get_path("include"), "Python.h").exists(),
            "python3-venv": _can_make_environments(),
        }
    return [package for package, found in needs.items() if not found]


def install_packages(packages: list[str]) -> None:
    """With apt, as root or by a sudo that asks nothing. Raises StackError with the exact command otherwise."""
    install = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    by_hand = f"apt-get update && {shlex.join(install)}"
    if shutil.which("apt-get") is None:
        raise StackError(f"these Debian packages, or what your system calls them, have to be installed: {packages}")
    as_root = _as_root()
    if as_root is None:
        raise StackError(f"system packages are missing and this user may not install them. Run: sudo sh -c '{by_hand}'")
    print(f"installing {' '.join(packages)} with apt (a minute or two)", flush=True)
    # Installing a server must not start it: policy-rc.d is how Debian asks. One that is there already stays.
    guard = not POLICY.exists()
    if guard:
        _run([*as_root, "sh", "-c", f"printf '#!/bin/sh\\nexit 101\\n' > {POLICY} && chmod 755 {POLICY}"])
    quiet = ["-qq", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Use-Pty=0"]
    try:
        prefix = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive"]
        try:
            _run([*prefix, "apt-get", "update", *quiet], show=False)
            _run([*prefix, *install, *quiet], show=False)
        except StackError as error:
            raise StackError(f"{error}\nInstall the packages by hand: {by_hand}") from None
    finally:
        if guard:
            _run([*as_root, "rm", "-f", str(POLICY)])


def index_settings(env: Mapping[str, str], pip_config: Mapping[str, str]) -> dict[str, str]:
    """Sends uv where pip goes: by itself it reads neither pip's configuration nor the system's certificates."""
    settings = {} if "SSL_CERT_FILE" in env or not SYSTEM_CERTIFICATES.exists() else {"UV_SYSTEM_CERTS": "true"}
    index = env.get("PIP_INDEX_URL") or pip_config.get("global.index-url") or pip_config.get("install.index-url")
    if index and not any(name in env for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL")):
        settings["UV_DEFAULT_INDEX"] = index
    return settings


def _make_environment(layout: Layout) -> None:
    if layout.venv.is_symlink():
        raise StackError(
            f"{layout.venv} is a link to {layout.venv.resolve()}: what is made here would replace what another folder"
            f" uses. Remove the link (rm {shlex.quote(str(layout.venv))}) and run it again: one is made here"
        )
    began = time.monotonic()
    env = dict(os.environ)
    # Without bytecode every task process compiles what it imports, at three times the cost.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env.pop("PYTHONHOME", None)
    if not layout.python.exists() or _was_moved(layout):
        print("creating .venv", flush=True)
        _run([sys.executable, "-m", "venv", "--clear", str(layout.venv)], env)
    elif subprocess.run([layout.python, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        _run([str(layout.python), "-m", "ensurepip"], env)  # an environment that was made without pip
    pip = [str(layout.python), "-m", "pip", "--disable-pip-version-check"]
    pins = layout.root / "requirements-dev.txt"
    uv_pin = next((line.split()[0] for line in pins.read_text().splitlines() if line.startswith("uv==")), "uv")
    print("installing the pinned dependencies (a minute or two the first time)", flush=True)
    uv_env = env | index_settings(env, _pip_config(pip, env)) | {"VIRTUAL_ENV": str(layout.venv)}
    try:
        _run([*pip, "install", "--quiet", uv_pin], env)
        uv = [str(layout.venv / "bin" / "uv"), "pip", "install", "--quiet", "--compile-bytecode"]
        _run([*uv, "--python", str(layout.python), "-r", str(pins)], uv_env)
    except StackError:
        print("uv could not do it; trying with pip, which is slower", flush=True)
        _run([*pip, "install", "--quiet", "--compile", "-r", str(pins)], env)
    print(f"the environment is ready ({time.monotonic() - began:.0f} s)", flush=True)


def _was_moved(layout: Layout) -> bool:
    """Whether the environment was made for another folder: its scripts name the Python there."""
    try:
        lines = (layout.venv / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    made_by = next((line for line in lines if line.startswith("command = ")), None)
    return made_by is not None and not made_by.endswith(f" {layout.venv}")


def _pip_config(pip: list[str], env: Mapping[str, str]) -> dict[str, str]:
    listing = subprocess.run([*pip, "config", "list"], env=dict(env), capture_output=True, text=True, check=False)
    pairs = (line.partition("=") for line in listing.stdout.splitlines())
    return {name: value.strip("'\"") for name, _, value in pairs}


def _fingerprint(layout: Layout) -> str:
    parts = [(layout.root / "requirements-dev.txt").read_text(encoding="utf-8"), sys.version, str(layout.root)]
    return hashlib.sha256(json.dumps(parts).encode("utf-8")).hexdigest()


def _has_compose() -> bool:
    """The program of that name, or the plugin of docker that took its place."""
    if machine.program("docker-compose"):
        return True
    docker = machine.program("docker")
    return (
        docker is not None
        and subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode == 0
    )


def _has_library(name: str) -> bool:
    tool = machine.program("pkg-config")
    return tool is not None and subprocess.run([tool, "--exists", name], check=False).returncode == 0


def _can_make_environments() -> bool:
    return (
        subprocess.run([sys.executable, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode
        == 0
    )


def _as_root() -> list[str] | None:
    if os.getuid() == 0:
        return []
    if (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    ):
        return ["sudo", "-n"]
    return None


def _run(argv: list[str], env: Mapping[str, str] | None = None, show: bool = True) -> None:
    """Shows its output as it comes, or only the end of it when it fails; stdin is closed, nothing here may ask."""
    output = None if show else subprocess.PIPE
    done = subprocess.run(
        argv,
        env=None if env is None else dict(env),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=None if show else subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        last_lines = (done.stdout or "").strip().splitlines()[-15:]
        raise StackError(
            "\n  ".join([f"this failed with exit code {done.returncode}: {shlex.join(argv)}", *last_lines])
        )
