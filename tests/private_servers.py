"""Servers that a test starts for itself, where it needs to be the administrator or certificates of its own.

They listen on the loopback, on free ports, keep everything in a folder of their own and are gone with the fixture.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from everest.settings import MysqlUrl
from stack import machine

START_SECONDS = 120
STOP_SECONDS = 30
ADMIN = "everest_test_admin"
PASSWORD = "a password of this test alone"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def folder_for(user: str) -> Iterator[Path]:
    """A folder that this system user can work in; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix=f"everest-{user}-"))
    try:
        if os.getuid() == 0:
            entry = pwd.getpwnam(user)
            os.chown(folder, entry.pw_uid, entry.pw_gid)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def as_user(user: str, argv: Sequence[str | Path]) -> list[str]:
    switch = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--"] if os.getuid() == 0 else []
    return [*switch, *map(str, argv)]


@contextmanager
def running(
    argv: Sequence[str], env: Mapping[str, str], log: Path, answers: Callable[[], bool]
) -> Iterator[subprocess.Popen[bytes]]:
    """The server, once it answers. It is asked to end, then made to."""
    with log.open("wb") as output:
        process = subprocess.Popen(argv, env=dict(env), stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        give_up_at = time.monotonic() + START_SECONDS
        while not answers():
            if process.poll() is not None or time.monotonic() > give_up_at:
                pytest.fail(f"{argv[-1]} did not come up:\n{log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def mariadb(*options: str) -> Iterator[MysqlUrl]:
    """A MariaDB with one administrator and no schema; `options` as on its command line."""
    import pymysql

    with folder_for("mysql") as folder:
        accounts = folder / "accounts.sql"
        accounts.write_text(
            f"CREATE USER '{ADMIN}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO '{ADMIN}'@'127.0.0.1' WITH GRANT OPTION;\n"
        )
        accounts.chmod(0o644)
        install = [machine.require(machine.program("mariadb-install-db"), "MariaDB"), "--no-defaults"]
        install += [
            f"--datadir={folder / 'data'}",
            f"--tmpdir={folder}",
            "--skip-test-db",
            "--auth-root-authentication-method=socket",
        ]
        done = subprocess.run(as_user("mysql", install), cwd="/", capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.fail(f"MariaDB's data folder could not be made: {done.stderr[-800:]}")
        url = MysqlUrl("127.0.0.1", free_port(), ADMIN, PASSWORD, "everest_private")
        server = [
            machine.require(machine.program("mariadbd"), "MariaDB"),
            "--no-defaults",
            f"--datadir={folder / 'data'}",
            f"--tmpdir={folder}",  # others of these servers tidy up the common one
            f"--socket={folder / 'socket'}",
            f"--pid-file={folder / 'pid'}",
            f"--init-file={accounts}",
            "--bind-address=127.0.0.1",
            f"--port={url.port}",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=32M",
            "--innodb-log-file-size=16M",
            "--innodb-flush-log-at-trx-commit=0",
            "--performance-schema=OFF",
            *options,
        ]

        def answers() -> bool:
            try:
                pymysql.connect(
                    host=url.host, port=url.port, user=url.user, password=url.password, connect_timeout=2
                ).close()
            except pymysql.MySQLError:
                return False
            return True

        with running(as_user("mysql", server), {"PATH": machine.SYSTEM_PATH}, folder / "log", answers):
            yield url


@contextmanager
def rabbitmq(ca: Path, cert: Path, key: Path, *settings: str) -> Iterator[int]:
    """A RabbitMQ that speaks AMQP over TLS alone; yields its port. Its first account is the broker's own guest.
    `settings`: further lines of rabbitmq.conf."""
    with folder_for("rabbitmq") as folder:
        port, epmd_port = free_port(), free_port()
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp = none\nlisteners.ssl.local = 127.0.0.1:{port}\n"
            f"ssl_options.cacertfile = {ca}\nssl_options.certfile = {cert}\nssl_options.keyfile = {key}\n"
            "log.console = true\nlog.file = false\n" + "".join(f"{line}\n" for line in settings)
        )
        (folder / "plugins").write_text("[].\n")
        for file in folder.iterdir():
            file.chmod(0o644)
        name = f"everest_test_{os.getpid()}@localhost"
        env = {
            "PATH": machine.SYSTEM_PATH,
            "LANG": "C.UTF-8",
            "HOME": str(folder),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(epmd_port),
            "RABBITMQ_NODENAME": name,
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false",
            "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RUNNING_UNDER_SYSTEMD": "true",
        }

        def answers(where: int) -> Callable[[], bool]:
            def connects() -> bool:
                with socket.socket() as probe:
                    probe.settimeout(1)
                    return probe.connect_ex(("127.0.0.1", where)) == 0

            return connects

        epmd = [machine.require(machine.program("epmd"), "Erlang"), "-address", "127.0.0.1", "-port", str(epmd_port)]
        server = [machine.require(machine.rabbitmq_server(), "RabbitMQ")]
        with (
            running(as_user("rabbitmq", epmd), env, folder / "epmd.out", answers(epmd_port)),
            running(as_user("rabbitmq", server), env, folder / "server.out", answers(port)),
        ):
            yield port


@contextmanager
def postgresql(ca: Path, cert: Path, key: Path) -> Iterator[int]:
    """A PostgreSQL that lets nobody in without TLS, with Airflow's role and database; yields its port. The password is
    `PASSWORD`."""
    import psycopg2

    with folder_for("postgres") as folder:
        port, data = free_port(), folder / "data"
        own = {"ca.pem": ca, "server.pem": cert, "server.key": key, "password": folder / "password.in"}
        own["password"].write_text(PASSWORD + "\n")
        for name, file in own.items():  # it refuses a key that others can read
            shutil.copyfile(file, folder / name)
            (folder / name).chmod(0o600)
            if os.getuid() == 0:
                shutil.chown(folder / name, "postgres")
        tools = machine.require(machine.postgresql_bin(), "PostgreSQL")
        make = [tools / "initdb", f"--pgdata={data}", "--username=airflow", f"--pwfile={folder / 'password'}"]
        make += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"]
        done = subprocess.run(as_user("postgres", make), cwd="/", capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.fail(f"PostgreSQL's data folder could not be made: {done.stderr[-800:]}")
        (data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "ssl": "on",
            "ssl_ca_file": folder / "ca.pem",
            "ssl_cert_file": folder / "server.pem",
            "ssl_key_file": folder / "server.key",
            "fsync": "off",
            "max_connections": 150,
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        server = as_user("postgres", [tools / "postgres", "-D", data, *words])
        login = {"host": "127.0.0.1", "port": port, "user": "airflow", "password": PASSWORD, "connect_timeout": 2}

        def answers() -> bool:
            try:
                psycopg2.connect(dbname="postgres", sslmode="require", **login).close()
            except psycopg2.OperationalError:
                return False
            return True

        env = {"PATH": machine.SYSTEM_PATH, "LANG": "C.UTF-8", "TZ": "UTC"}
        with running(server, env, folder / "log", answers):
            connection = psycopg2.connect(dbname="postgres", sslmode="require", **login)
            connection.autocommit = True  # CREATE DATABASE refuses to be part of a transaction
            with connection.cursor() as cursor:
                cursor.execute("CREATE DATABASE airflow")
            connection.close()
            yield port
