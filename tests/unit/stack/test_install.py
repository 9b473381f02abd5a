"""The set-up on machines of different furniture: what is missing, what may be installed, what is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stack import install, machine
from stack.layout import Layout, StackError


@pytest.mark.parametrize("name", ["it's mine", "no #1", "a:b", 'the "new" one', "back\\slash"])
def test_a_folder_the_servers_cannot_work_in_is_refused_before_anything_is_installed(tmp_path: Path, name: str) -> None:
    with pytest.raises(StackError, match="Move or rename it"):
        install.setup(Layout(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_an_environment_is_made_anew_when_the_checkout_was_moved(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "here")
    layout.venv.mkdir(parents=True)
    settings = layout.venv / "pyvenv.cfg"
    settings.write_text(f"home = /usr/bin\ncommand = /usr/bin/python3 -m venv --clear {layout.venv}\n")
    assert not install._was_moved(layout)
    assert install._was_moved(Layout(layout.root.rename(tmp_path / "there")))


def test_an_environment_that_belongs_to_another_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    layout = Layout(tmp_path / "here")
    layout.root.mkdir()
    layout.venv.symlink_to(tmp_path / "theirs")

    with pytest.raises(StackError, match=r"is a link to .*theirs: .* Remove the link"):
        install._make_environment(layout)
    assert list((tmp_path / "theirs").iterdir()) == []


def test_packages_whose_programs_are_missing_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "program", lambda name: None)
    monkeypatch.setattr(machine, "rabbitmq_server", lambda: None)
    monkeypatch.setattr(machine, "postgresql_bin", lambda: None)
    monkeypatch.setattr(machine, "fake_clock", lambda: None)
    servers = ["mariadb-server", "rabbitmq-server", "postgresql"]
    of_the_tests = ["docker-compose", "chromium", "libfaketime", "prometheus"]
    assert install.missing_packages(build=False) == servers + of_the_tests
    assert {"gcc", "pkg-config", "libmariadb-dev"} <= set(install.missing_packages(build=True))


def test_nothing_is_missing_where_the_servers_are(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path("/usr/bin/true")
    monkeypatch.setattr(machine, "program", lambda name: here)
    monkeypatch.setattr(machine, "rabbitmq_server", lambda: here)
    monkeypatch.setattr(machine, "postgresql_bin", lambda: here.parent)
    monkeypatch.setattr(machine, "fake_clock", lambda: here)
    assert install.missing_packages(build=False) == []


def test_a_person_without_rights_is_told_the_exact_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "_as_root", lambda: None)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(StackError) as raised:
        install.install_packages(["postgresql", "gcc"])
    assert "sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends postgresql gcc'" in str(
        raised.value
    )


def test_uv_is_pointed_to_the_mirror_that_pip_uses_unless_it_has_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(install, "SYSTEM_CERTIFICATES", tmp_path / "none")
    mirror = {"global.index-url": "https://mirror/simple"}
    assert install.index_settings({}, mirror) == {"UV_DEFAULT_INDEX": "https://mirror/simple"}
    assert install.index_settings({"PIP_INDEX_URL": "https://other"}, mirror) == {"UV_DEFAULT_INDEX": "https://other"}
    assert install.index_settings({"UV_DEFAULT_INDEX": "https://own"}, mirror) == {}
    assert install.index_settings({}, {}) == {}


def test_uv_trusts_what_the_system_trusts_unless_certificates_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(install, "SYSTEM_CERTIFICATES", tmp_path)
    assert install.index_settings({}, {}) == {"UV_SYSTEM_CERTS": "true"}
    assert install.index_settings({"SSL_CERT_FILE": "/own.crt"}, {}) == {}


def test_a_closed_folder_on_the_way_makes_the_data_unreachable_for_the_servers_users(tmp_path: Path) -> None:
    folder = tmp_path / "closed" / ".local"
    folder.mkdir(parents=True)
    for each in (folder, folder.parent):
        each.chmod(0o711)
    tmp_path.chmod(0o700)
    assert not machine.is_reachable(folder)
    assert machine.is_reachable(Path("/usr/bin"))


def test_a_server_runs_as_its_own_user_under_root_and_as_ourselves_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 65534)
    user = machine.ServiceUser.of(Layout(tmp_path), "postgres")
    assert (user.uid, user.command(["postgres"])) == (65534, ["postgres"])
