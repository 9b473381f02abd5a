"""docker/: the house rules of its files, and that they say what the programs need and what the local stack says.

No container is started here. `make check` reads the same files with hadolint and compose-lint.
"""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from everest.pages.settings import PageSettings
from everest.reconciler.settings import ReconcilerSettings
from everest.settings import Settings as Site
from everest.settings import mysql_url
from ingest_consumer.settings import Settings
from stack import containers, manager
from stack.accounts import AIRFLOW_ADMIN, AIRFLOW_LOGINS, IDENTITIES, Identity
from stack.broker_definitions import definitions
from stack.credentials import Credentials
from stack.programs import CONSUMER_WORKERS, PAGE_ROLES, PEOPLE
from stack.roster import programs
from stack.shape import Shape
from tests.queue_rig import ROOT

DOCKER = ROOT / "docker"
COMPOSE = DOCKER / "compose.yaml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
SECRETS: dict[str, dict[str, str]] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["secrets"]
ONCE = {"migrate", "airflow-migrate"}
OF_AIRFLOW = sorted(name for name in SERVICES if name.startswith("airflow"))
OF_CELERY = programs(Shape(executor="celery", workers=1))
DOCKERFILES = sorted(DOCKER.glob("*.Dockerfile"))
EXACT = re.compile(r":[0-9]+\.[0-9]+(\.[0-9]+)?(-[a-z]+)*$")

every_service = pytest.mark.parametrize("name", SERVICES)


def secrets_of(service: Mapping[str, Any]) -> dict[str, str]:
    """Name of a secret to its path in the container."""
    given = [{"source": one} if isinstance(one, str) else one for one in service.get("secrets", [])]
    return {one["source"]: str(Path("/run/secrets", one.get("target", one["source"]))) for one in given}


def file_of(secret: str) -> str:
    return SECRETS[secret]["file"].rpartition("/")[2]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secrets") / "here"
    containers.write(folder)
    return folder


def environment(name: str, made: Path) -> dict[str, str]:
    """What the service gets, its secrets where the test made them, and defaults where a site may choose."""
    service = SERVICES[name]
    paths = {path: str(made / file_of(secret)) for secret, path in secrets_of(service).items()}
    chosen = {key: re.sub(r"\$\{\w+:-(.*)\}", r"\1", str(value)) for key, value in service["environment"].items()}
    return {key: paths.get(value, value) for key, value in chosen.items()}


# ------------------------------------------------------------------------------------------------------ hardening


@every_service
def test_a_service_runs_as_nobody_special_on_a_file_system_it_cannot_change(name: str) -> None:
    service = SERVICES[name]
    uid, _, gid = str(service["user"]).partition(":")
    assert int(uid) > 0
    assert int(gid) > 0
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not set(service) & {"privileged", "network_mode", "pid", "ipc", "devices", "env_file"}
    assert not [one for one in service.get("volumes", []) if "docker.sock" in one]


@every_service
def test_a_service_has_limits_and_says_whether_it_is_well(name: str) -> None:
    service = SERVICES[name]
    assert {"mem_limit", "cpus", "pids_limit", "logging"} <= set(service)
    if name in ONCE:
        assert service["restart"] == "no"
        assert service["healthcheck"] == {"disable": True}
    else:
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")


@every_service
def test_an_image_is_of_an_exact_version(name: str) -> None:
    image = re.sub(r"\$\{\w+:-(.*)\}", r"\1", SERVICES[name]["image"])
    assert EXACT.search(image), image


def test_one_door_is_open_and_it_is_on_the_loopback() -> None:
    doors = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert doors == {"airflow-api-server": ["127.0.0.1:${EVEREST_HTTP_PORT:-8080}:8080"]}
    assert yaml.safe_load(COMPOSE.read_text())["networks"]["inside"] == {"internal": True}
    outside = [name for name, service in SERVICES.items() if service["networks"] != ["inside"]]
    assert outside == ["airflow-api-server"]


@every_service
def test_no_password_is_in_the_file(name: str) -> None:
    for key, value in (SERVICES[name].get("environment") or {}).items():
        if re.search(r"PASSWORD|SECRET|TOKEN|_KEY|MYSQL_URL|AMQP_URL", key):
            assert key.endswith("_FILE"), key
            assert str(value) in secrets_of(SERVICES[name]).values(), f"{key} names a file that it does not get"
        assert not re.search(r"://[^/]*:[^/]*@", str(value)), key


# ---------------------------------------------------------------------------------------------------- who is who


def test_every_secret_is_made_and_somebody_needs_it(made: Path) -> None:
    used = {secret for service in SERVICES.values() for secret in secrets_of(service)}
    assert used == set(SECRETS)
    assert {file_of(secret) for secret in SECRETS} <= {file.name for file in made.iterdir()}
    assert all(secret["file"].startswith("${EVEREST_SECRETS:?") for secret in SECRETS.values())


def test_a_second_run_changes_no_password_and_the_folder_is_its_owners_alone(made: Path) -> None:
    before = {file.name: file.read_text() for file in made.iterdir()}
    containers.write(made)
    assert {file.name: file.read_text() for file in made.iterdir()} == before
    assert made.stat().st_mode & 0o077 == 0
    assert not [name for name, text in before.items() if text.endswith("\n") and name != "credentials.json"]


@pytest.mark.parametrize(
    ("name", "who"),
    [
        *((name, IDENTITIES[name]) for name in ("consumer", "relay", "reconciler")),
        ("airflow-api-server", IDENTITIES["airflow-api-server"]),
        ("airflow-worker", IDENTITIES["airflow-worker"]),
        ("airflow-dag-processor", IDENTITIES["airflow-dag-processor"]),
        ("airflow-scheduler", IDENTITIES["airflow-dag-processor"]),  # as with Celery on the local stack
        ("migrate", IDENTITIES["up"]),
    ],
)
def test_a_service_has_the_accounts_of_the_local_stack(name: str, who: Identity) -> None:
    files = {file_of(secret) for secret in secrets_of(SERVICES[name])}
    assert {file for file in files if file.endswith(".mysql_url")} == {f"{who.mysql}.mysql_url"}
    assert {file for file in files if file.endswith(".amqp_url")} <= {f"{who.rabbitmq}.amqp_url"}
    logins = {file for file in files if file.endswith(".airflow_password")}
    assert logins == ({f"{who.airflow}.airflow_password"} if who.airflow in AIRFLOW_LOGINS else set())


def test_only_workers_have_the_connection_that_may_post() -> None:
    holders = [name for name, service in SERVICES.items() if "airflow_connections" in secrets_of(service)]
    assert holders == ["airflow-worker"]


def test_the_programs_can_begin_with_what_they_get(made: Path) -> None:
    assert Settings.from_environment(environment("consumer", made), airflow=True).consumer_endpoint.port == 9101
    assert Settings.from_environment(environment("relay", made)).relay_endpoint.port == 9102
    reconciler = ReconcilerSettings.from_environment(environment("reconciler", made))
    assert (reconciler.vhost, reconciler.endpoint.port) == ("everest", 9103)
    assert reconciler.management is not None
    assert PageSettings.from_environment("a key", env=environment("airflow-api-server", made)).roles
    for name in ("airflow-scheduler", "airflow-dag-processor", "airflow-worker", "migrate"):
        url = mysql_url(environment(name, made))
        assert (url.host, url.tls is not None) == ("mysql", True)


def test_there_are_two_of_what_stands_by_and_several_of_what_works_side_by_side() -> None:
    assert SERVICES["relay"]["deploy"]["replicas"] == SERVICES["reconciler"]["deploy"]["replicas"] == 2
    assert SERVICES["airflow-worker"]["deploy"]["replicas"] == "${EVEREST_WORKERS_COUNT:-2}"
    assert SERVICES["consumer"]["deploy"]["replicas"] == "${EVEREST_CONSUMERS:-2}"
    assert not [name for name, service in SERVICES.items() if "container_name" in service and "deploy" in service]


@pytest.mark.parametrize("name", sorted({one.role for one in OF_CELERY} & set(SERVICES)))
def test_who_is_asked_to_end_has_as_long_for_it_as_on_the_local_stack(name: str) -> None:
    (there,) = {one.stop_seconds for one in OF_CELERY if one.role == name}
    grace = str(SERVICES[name].get("stop_grace_period", "10s"))
    seconds = int(grace[:-1]) * {"s": 1, "m": 60}[grace[-1]]
    assert seconds >= there, f"{name} is killed after {grace}"


def test_what_a_site_decides_is_what_a_program_does_without_being_told_and_stands_in_the_guide(made: Path) -> None:
    for name in ("airflow-worker", "airflow-dag-processor", "airflow-api-server", "reconciler"):
        assert Site.from_environment(environment(name, made)) == Site.from_environment({}), name
    chosen = set(re.findall(r"\$\{(EVEREST_\w+)", COMPOSE.read_text(encoding="utf-8")))
    rows = re.findall(r"^\| `EVEREST_.*", (DOCKER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(EVEREST_\w+)`", row.split("|")[1])} == chosen


def test_more_deliveries_are_in_hand_than_tasks_run_as_on_the_local_stack(made: Path) -> None:
    def default(name: str) -> int:
        (value,) = set(re.findall(rf"\$\{{{name}:-([0-9]+)\}}", COMPOSE.read_text(encoding="utf-8")))
        return int(value)

    assert default("EVEREST_CONSUMERS") * default("EVEREST_DELIVERIES_PER_CONSUMER") == CONSUMER_WORKERS
    assert default("EVEREST_WORKERS_COUNT") * default("EVEREST_TASKS_PER_WORKER") == default("EVEREST_PARALLELISM")


def test_the_database_may_have_its_buffer_pool_and_more() -> None:
    size = {"m": 2**20, "g": 2**30}
    pool = options((DOCKER / "mysql.cnf").read_text().replace("skip-name-resolve\n", ""))[
        ("mysqld", "innodb-buffer-pool-size")
    ].lower()
    limit = SERVICES["mysql"]["mem_limit"]
    assert int(limit[:-1]) * size[limit[-1]] >= 1.5 * int(pool[:-1]) * size[pool[-1]]


def test_the_logins_and_who_they_are_on_the_pages_are_those_of_the_local_stack() -> None:
    users = options((DOCKER / "airflow.cfg").read_text())[("core", "simple_auth_manager_users")]
    there = {AIRFLOW_ADMIN: "admin", **PEOPLE, **AIRFLOW_LOGINS}
    assert dict(one.split(":") for one in users.split(",")) == there
    assert f":-{PAGE_ROLES}}}" in SERVICES["airflow-api-server"]["environment"]["EVEREST_PAGE_ROLES"]


def test_a_worker_that_is_asked_to_stop_has_time_for_the_longest_step() -> None:
    assert SERVICES["airflow-worker"]["stop_grace_period"] == "11m"  # EVEREST_STEP_TIMEOUT_S is 600


# ------------------------------------------------------------------------------- the same as on the local stack


def options(text: str, *, head: str = "") -> dict[tuple[str, str], str]:
    parser = configparser.RawConfigParser(comment_prefixes=("#",), inline_comment_prefixes=None)
    parser.read_string(head + text)
    return {(section, key): parser[section][key] for section in parser.sections() for key in parser[section]}


def template(name: str) -> str:
    return (manager.TEMPLATES / name).read_text(encoding="utf-8")


def test_airflow_is_set_up_as_on_the_local_stack_but_for_what_is_named_here() -> None:
    here, there = options((DOCKER / "airflow.cfg").read_text()), options(template("airflow.cfg"))
    places = {key for key, value in there.items() if "${" in value}
    differ = {"executor", "host", "dag_bundle_config_list"}
    for key, value in there.items():
        if key not in places and key[1] not in differ:
            assert here.get(key) == value, key
    only_here = {f"{section}.{key}" for section, key in here if (section, key.removesuffix("_cmd")) not in there}
    assert only_here == {
        "scheduler.enable_health_check", "scheduler.scheduler_health_check_server_host",
        "workers.secrets_backend", "workers.secrets_backend_kwargs",
    }  # fmt: skip


def test_mysql_is_set_up_as_mariadb_is_but_for_what_is_named_here() -> None:
    here = options((DOCKER / "mysql.cnf").read_text().replace("skip-name-resolve\n", ""))
    there = options(template("mariadb.cnf").replace("skip-name-resolve\n", ""))
    differ = {"innodb-log-file-size", "local-infile", "max-connections"}
    for (_, key), value in there.items():
        if "${" not in value and key not in differ | {"bind-address", "socket"}:
            assert here.get(("mysqld", key)) == value, key
    assert here[("mysqld", "log-bin-trust-function-creators")] == "ON", "else the owner can't make the triggers"
    assert here[("mysqld", "require-secure-transport")] == "ON"


def test_the_broker_takes_a_delivery_back_at_the_same_time_and_declares_no_queue_for_the_programs() -> None:
    here = options((DOCKER / "rabbitmq.conf").read_text(), head="[broker]\n")
    assert (
        here[("broker", "consumer_timeout")]
        == options(template("rabbitmq.conf"), head="[broker]\n")[("broker", "consumer_timeout")]
    )
    # A queue made by somebody else, with other arguments, would be refused by consumer and relay.
    assert set(definitions(Credentials().rabbitmq)) == {"users", "vhosts", "permissions"}


def test_airflow_finds_its_secrets_in_the_files_that_all_its_services_get(made: Path, tmp_path: Path) -> None:
    text = (DOCKER / "airflow.cfg").read_text()
    needed = set(re.findall(r"_cmd = cat /run/secrets/(\w+)", text))
    assert len(needed) == 6
    for name in OF_AIRFLOW:
        assert needed <= set(secrets_of(SERVICES[name])), name
    for secret in needed:
        text = text.replace(f"/run/secrets/{secret}\n", f"{made / file_of(secret)}\n")
    (tmp_path / "airflow.cfg").write_text(text)
    look = (
        "from airflow.configuration import conf\n"
        "for place in (('database', 'sql_alchemy_conn'), ('celery', 'broker_url'), ('celery', 'result_backend'),\n"
        "              ('core', 'fernet_key'), ('api', 'secret_key'), ('api_auth', 'jwt_secret')):\n"
        "    print(conf.get(*place))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", look],
        env={"PATH": os.environ["PATH"], "AIRFLOW_HOME": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    names = ("database_url", "broker_url", "result_backend", "fernet_key", "session_key", "jwt_secret")
    assert done.stdout.splitlines()[-6:] == [(made / f"airflow_{name}").read_text() for name in names]


# ------------------------------------------------------------------------------------------------------- the tools


def compose() -> list[str]:
    """docker-compose, or the plugin of docker that took its place."""
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    plugin = ["docker", "compose"]
    if (
        shutil.which("docker")
        and subprocess.run([*plugin, "version"], capture_output=True, check=False).returncode == 0
    ):
        return plugin
    pytest.fail("no docker-compose to read docker/compose.yaml; `make setup` installs it")


def test_docker_compose_understands_the_file_and_refuses_it_without_the_secrets(made: Path) -> None:
    def config(**env: str) -> subprocess.CompletedProcess[str]:
        command = [*compose(), "-f", str(COMPOSE), "config"]
        env = {"PATH": os.environ["PATH"], "HOME": str(made), **env}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    well = config(EVEREST_SECRETS=str(made), EVEREST_WORKERS_COUNT="3")
    assert well.returncode == 0, well.stderr
    understood = yaml.safe_load(well.stdout)
    assert set(understood["services"]) == set(SERVICES)
    assert understood["services"]["airflow-worker"]["deploy"]["replicas"] == 3

    refused = config()
    assert refused.returncode != 0
    assert "container-secrets" in refused.stderr, "it says what to do"


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_an_image_is_made_in_two_stages_from_an_exact_version_and_ends_as_a_user_without_rights(file: Path) -> None:
    lines = [line for line in file.read_text().replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    stages = [line for line in lines if line.startswith("FROM ")]
    assert len(stages) == 2
    assert all(re.fullmatch(r"FROM python:3\.11\.\d+-slim-bookworm( AS build)?", line) for line in stages)
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users == ["10001:10001"]
    assert not [line for line in lines if line.startswith(("ADD ", "ARG "))]
    assert not [line for line in lines if re.search(r"PASSWORD|SECRET|TOKEN", line)]


def test_only_what_the_images_copy_goes_to_the_builder() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in ignored if line and not line.startswith("#")]
    assert rules[0] == "*", "nothing, but:"
    allowed = {line.removeprefix("!") for line in rules if line.startswith("!")}
    copied = {
        word
        for file in DOCKERFILES
        for line in file.read_text().splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
    }
    assert copied == allowed
    assert all((ROOT / name).exists() for name in allowed)


def test_the_consumers_image_has_nothing_of_airflow() -> None:
    text = (DOCKER / "consumer.Dockerfile").read_text()
    assert "--requirement" not in text, "constraints pin what it asks for; requirements would bring everything"
    assert not re.search(r"^COPY .*\b(plugins|dags)\b", text, re.MULTILINE)
