"""What `up` writes: passwords stay private and stable, programs get what they need and nothing of the shell."""

from __future__ import annotations

import base64
import configparser
import hashlib
import json
import re
import shlex
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from everest.reconciler.settings import ReconcilerSettings
from ingest_consumer.settings import Settings
from stack import manager, servers
from stack.accounts import CELERY, CELERY_VHOST, IDENTITIES, MYSQL_ACCOUNTS, RABBITMQ_ROLES, VHOST
from stack.broker_definitions import definitions
from stack.credentials import Credentials, rabbitmq_password_hash
from stack.layout import LONGEST_SOCKET_PATH, Layout, write_private
from stack.ports import Ports
from stack.programs import Stack
from stack.roster import GROUPS, Program, programs
from stack.shape import Shape
from stack.shell import render_env_file

MANY = Shape("celery", workers=2, consumers=2, standby=True)


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(Layout(tmp_path), Ports.choose({}), Credentials(), {"EVEREST_FOREIGN_ZONE": "Asia/Jakarta"})


@pytest.fixture
def many(stack: Stack) -> Stack:
    return replace(stack, shape=MANY)


def test_passwords_are_made_once_and_only_their_owner_may_read_them(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    first = Credentials.load_or_make(file)
    assert Credentials.load_or_make(file) == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_password_that_is_new_to_an_old_secrets_file_is_added_and_the_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text(json.dumps({"mariadb_owner": "kept", "of_another_time": "x"}))
    made = Credentials.load_or_make(file)
    assert made.mariadb_owner == "kept"
    assert json.loads(file.read_text())["airflow_admin"] == made.airflow_admin


def test_no_password_shows_in_a_repr() -> None:
    credentials = Credentials()
    assert credentials.mariadb_owner not in repr(credentials)


def test_a_private_file_replaces_a_readable_one(tmp_path: Path) -> None:
    file = tmp_path / "stack.env"
    file.write_text("old")
    file.chmod(0o644)
    write_private(file, "new")
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new", 0o600)


def test_rabbitmq_hash_is_salt_and_digest() -> None:
    raw = base64.b64decode(rabbitmq_password_hash("secret", b"salt"))
    assert raw == b"salt" + hashlib.sha256(b"saltsecret").digest()


def test_every_broker_account_but_the_owners_may_touch_our_own_names_only_and_guest_does_not_exist(
    stack: Stack,
) -> None:
    told = json.loads(json.dumps(definitions(stack.credentials.rabbitmq)))
    rights = {row["user"]: row for row in told["permissions"] if row["vhost"] == VHOST}
    assert set(rights) == {user["name"] for user in told["users"]} - {CELERY} == set(RABBITMQ_ROLES) - {CELERY}
    assert "guest" not in rights
    assert [user["name"] for user in told["users"] if user["tags"] == "administrator"] == ["everest_owner"]
    for name in set(rights) - {"everest_owner"}:
        for kind in ("configure", "write", "read"):
            assert rights[name][kind] == "^$" or rights[name][kind].startswith(r"^everest\.jobs\."), (name, kind)
            assert not re.match(rights[name][kind], "amq.default"), "nobody publishes past the exchanges"


def test_only_celery_and_the_owner_have_any_right_where_tasks_wait_and_celery_has_none_elsewhere(stack: Stack) -> None:
    told = json.loads(json.dumps(definitions(stack.credentials.rabbitmq)))
    places = {(row["user"], row["vhost"]) for row in told["permissions"]}
    assert {user for user, vhost in places if vhost == CELERY_VHOST} == {CELERY, "everest_owner"}
    assert {vhost for user, vhost in places if user == CELERY} == {CELERY_VHOST}
    right = re.compile(RABBITMQ_ROLES[CELERY].configure)
    for name in ("default", "heavy_1", "celeryev", "celeryev.1a-2b", "reply.celery.pidbox", "celery.pidbox"):
        assert right.match(name), name
    for name in ("0a1b-2c.reply.celery.pidbox", "celery@airflow-worker-1.celery.pidbox"):
        assert right.match(name), name
    assert not right.match("everest.jobs.x")
    assert re.match(RABBITMQ_ROLES[CELERY].write, "amq.default"), "there Celery sends its tasks"


def test_every_database_account_of_a_program_is_made_with_a_password_of_its_own_and_no_right(stack: Stack) -> None:
    text = servers.mariadb_accounts(stack)
    for name in MYSQL_ACCOUNTS:
        assert f"ALTER USER '{name}'@'%' IDENTIFIED BY '{stack.credentials.mariadb[name]}';" in text
    assert len({stack.credentials.mariadb[name] for name in MYSQL_ACCOUNTS}) == len(MYSQL_ACCOUNTS)
    granted = [line for line in text.splitlines() if line.startswith("GRANT")]
    assert granted and all("'everest_owner'@" in line for line in granted)


def test_only_the_tasks_get_the_connection_that_may_post(stack: Stack) -> None:
    assert holders_of_the_books(stack) == ["airflow-scheduler"]
    assert "everest_pages:" in stack.environment("airflow-api-server", {})["EVEREST_MYSQL_URL"]


def holders_of_the_books(stack: Stack) -> list[str]:
    names = [program.name for program in stack.programs]
    return [name for name in names if "AIRFLOW_CONN_EVEREST_MYSQL" in stack.environment(name, {})]


def test_with_celery_the_workers_may_post_and_the_scheduler_may_not(many: Stack) -> None:
    assert holders_of_the_books(many) == ["airflow-worker-1", "airflow-worker-2"]
    scheduler = many.environment("airflow-scheduler", {})
    assert scheduler["AIRFLOW__CORE__EXECUTOR"] == "CeleryExecutor"
    assert "everest_reader:" in scheduler["EVEREST_MYSQL_URL"]
    assert "everest_tasks:" in many.environment("airflow-worker-2", {})["EVEREST_MYSQL_URL"]


def test_what_there_are_several_of_has_the_account_of_the_first_and_a_port_of_its_own(many: Stack) -> None:
    site = replace(many, site={"EVEREST_METRICS_PORT_RELAY": "9102"})
    first, second = (site.environment(name, {}) for name in ("relay", "relay-2"))
    assert first["EVEREST_MYSQL_URL"] == second["EVEREST_MYSQL_URL"]
    assert (first["EVEREST_METRICS_PORT_RELAY"], second["EVEREST_METRICS_PORT_RELAY"]) == ("9102", "9112")
    assert many.command("consumer-2") == many.command("consumer")
    assert many.command("consumer")[-1] == "6", "all consumers together hold as many deliveries as one would"


def test_no_secret_is_on_a_command_line(many: Stack) -> None:
    stack = many
    secrets = [secret for secret in vars(stack.credentials).values() if isinstance(secret, str)]
    secrets += [*stack.credentials.mariadb.values(), *stack.credentials.rabbitmq.values()]
    stack.layout.local.mkdir()
    for program in stack.programs:
        assert not [word for word in stack.command(program.name) for secret in secrets if secret in word]


def test_a_program_gets_its_own_account_the_site_settings_and_nothing_else_of_the_shell(stack: Stack) -> None:
    shell = {"PYTHONDONTWRITEBYTECODE": "1", "HTTPS_PROXY": "http://proxy", "AWS_KEY": "x", "TZ": "Asia/Jakarta"}
    env = stack.environment("consumer", shell)
    assert env["EVEREST_MYSQL_URL"].startswith("mysql://everest_consumer:")
    assert env["EVEREST_FOREIGN_ZONE"] == "Asia/Jakarta"
    assert env["TZ"] == "Asia/Jakarta"
    assert not {"PYTHONDONTWRITEBYTECODE", "HTTPS_PROXY", "AWS_KEY"} & set(env)


def test_a_server_gets_no_credentials(stack: Stack) -> None:
    assert not [name for name in stack.environment("mariadb", {}) if name.endswith(("_URL", "_PASSWORD"))]


def test_settings_of_the_site_are_taken_from_the_shell_but_the_connections_are_ours(tmp_path: Path) -> None:
    shell = {"EVEREST_FOREIGN_ZONE": "UTC", "EVEREST_MYSQL_URL": "mysql://else/x", "EVEREST_PORT_BASE": "31000"}
    layout = Layout(tmp_path)
    layout.local.mkdir()
    stack = Stack.choose(layout, shell)
    assert dict(stack.site) == {"EVEREST_FOREIGN_ZONE": "UTC"}
    assert stack.ports.airflow == 31080


def test_a_shell_that_has_sourced_what_the_stack_wrote_wants_nothing_else_than_one_that_has_not(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.local.mkdir()
    before = Stack.choose(layout, {"PATH": "/usr/bin"})
    write_private(layout.env_file, render_env_file(before))
    script = f"source {shlex.quote(str(layout.env_file))}; env -0"
    done = subprocess.run(["bash", "-c", script], env={"PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE, check=True)
    shell = dict(pair.split("=", 1) for pair in done.stdout.decode().split("\0") if pair)
    assert {"EVEREST_MYSQL_URL", "EVEREST_LOGIN_FINANCE"} <= set(shell)
    after = Stack.choose(layout, shell)
    assert dict(after.site) == {}
    changed = [
        one.name for one in after.programs if after.environment(one.name, {}) != before.environment(one.name, {})
    ]
    assert changed == []


def test_one_up_may_override_variables_of_single_programs_and_the_next_forgets_them(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for folder in (layout.local, layout.run):
        folder.mkdir()
    overrides = {"consumer": {"EVEREST_AMQP_URL": "amqp://elsewhere"}, "mariadb": {"LD_PRELOAD": "a clock"}}
    Stack.choose(layout, {}, overrides).save()

    changed = Stack.open(layout)
    assert changed.environment("consumer", {})["EVEREST_AMQP_URL"] == "amqp://elsewhere"
    assert changed.environment("relay", {})["EVEREST_AMQP_URL"] == changed.amqp_url("everest_relay")
    # a server's are set behind the change of user
    assert "LD_PRELOAD" not in changed.environment("mariadb", {})
    assert changed._set_behind("mariadb") == ["env", "LD_PRELOAD=a clock"]

    Stack.choose(layout, {}).save()
    assert Stack.open(layout).overrides == {}


def test_the_environment_file_gives_the_owners_accounts_line_by_line(stack: Stack) -> None:
    values = {}
    for line in render_env_file(stack).splitlines():
        words = shlex.split(line)
        if len(words) == 2 and words[0] == "export":
            name, _, values_text = words[1].partition("=")
            values[name] = values_text
    assert values["EVEREST_MYSQL_URL"] == stack.mysql_url("everest_owner")
    assert values["EVEREST_AMQP_URL"] == stack.amqp_url("everest_owner")
    assert values["EVEREST_AIRFLOW_PASSWORD"] == stack.credentials.airflow_admin
    assert values["PYTHONPATH"].split(":")[:2] == [str(stack.layout.root), str(stack.layout.root / "plugins")]


def test_the_manager_starts_nothing_by_itself_restarts_everything_and_stops_in_reverse(tmp_path: Path) -> None:
    parser = configparser.RawConfigParser()
    parser.read_string(manager.configuration(Layout(tmp_path), MANY))
    for program in programs(MANY):
        section = parser[f"program:{program.name}"]
        assert (section["autostart"], section["autorestart"], section["killasgroup"]) == ("false", "true", "true")
        # A worker that is asked to end finishes its tasks, which are its children.
        assert section["stopasgroup"] == ("false" if program.role == "airflow-worker" else "true")
    priorities = [int(parser[f"group:{group}"]["priority"]) for group in GROUPS]
    assert priorities == sorted(priorities)
    assert "inet_http_server" not in parser


@pytest.mark.parametrize("name", ["100%s mine", "it's ; here", "%(here)s"])
def test_the_manager_never_reads_what_the_checkout_is_called(tmp_path: Path, name: str) -> None:
    assert name not in manager.configuration(Layout(tmp_path / name), MANY)
    assert "%" not in manager.configuration(Layout(tmp_path / name), MANY)


def test_the_managers_socket_fits_below_any_checkout_path(tmp_path: Path) -> None:
    short, long = Layout(Path("/srv/everest")), Layout(tmp_path / ("long" * 30))
    assert short.socket == Path("/srv/everest/.local/run/supervisor.sock")
    assert len(str(long.socket)) <= LONGEST_SOCKET_PATH
    assert long.socket != Layout(tmp_path / ("lang" * 30)).socket


@pytest.mark.parametrize("program", programs(Shape("celery")), ids=lambda program: program.name)
def test_no_program_has_another_ones_password_of_airflow(stack: Stack, program: Program) -> None:
    values = set(replace(stack, shape=Shape("celery")).environment(program.name, {}).values())
    who = IDENTITIES.get(program.role)
    own = None if who is None or who.airflow is None else stack.passwords()[who.airflow]
    assert values & set(stack.passwords().values()) <= {own}


@pytest.mark.parametrize("name", ["consumer", "relay"])
def test_consumer_and_relay_can_begin_with_what_they_get(stack: Stack, name: str) -> None:
    settings = Settings.from_environment(airflow=name == "consumer", env=stack.environment(name, {}))
    assert (settings.airflow is not None) == (name == "consumer")


def test_the_reconciler_can_begin_with_what_it_gets(stack: Stack) -> None:
    assert ReconcilerSettings.from_environment(stack.environment("reconciler", {})).management is not None
