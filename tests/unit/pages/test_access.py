"""Who is who, and what each may do."""

from __future__ import annotations

from types import SimpleNamespace

import jwt
import pytest

from everest.pages.access import Permission, Person, Role, RoleMapping
from everest.pages.guard import needs
from everest.pages.login import roles_of
from everest.pages.settings import DEFAULT_ROLES
from everest.pages.tokens import is_signed, sign

MAPPING = RoleMapping.parse(
    "analyst=role:viewer; finance=user:rina,role:Finance; engineer=role:Op; warehouse=user:joko"
)


def test_a_role_of_airflow_gives_a_role_of_ours_whatever_its_case() -> None:
    assert MAPPING.roles_of(["x"], ["VIEWER"]) == {Role.ANALYST}
    assert MAPPING.roles_of(["x"], ["finance", "Viewer"]) == {Role.FINANCE, Role.ANALYST}


def test_somebody_who_is_named_has_the_roles_that_name_them_and_no_others() -> None:
    assert MAPPING.roles_of(["joko"], ["viewer"]) == {Role.WAREHOUSE}
    assert not Person("joko", MAPPING.roles_of(["joko"], ["viewer"])).may(Permission.READ)


def test_names_of_people_are_compared_exactly() -> None:
    assert MAPPING.roles_of(["Rina"], []) == frozenset()


def test_somebody_nobody_mentions_may_nothing() -> None:
    nobody = Person("x", MAPPING.roles_of(["x"], ["Public"]))
    assert not any(nobody.may(permission) for permission in Permission)


def test_nobody_is_finance_until_the_site_says_who() -> None:
    default = RoleMapping.parse(DEFAULT_ROLES)
    for role in ("viewer", "user", "op", "admin", "finance"):
        assert Role.FINANCE not in default.roles_of(["finance"], [role])


@pytest.mark.parametrize("text", ["boss=role:x", "finance", "finance=rina", "finance=user:", "finance=group:x"])
def test_a_mapping_that_makes_no_sense_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r".{10,}"):
        RoleMapping.parse(text)


@pytest.mark.parametrize(
    ("role", "may"),
    [
        (Role.ANALYST, {"ENTER", "READ_OWN", "READ"}),
        (Role.FINANCE, {"ENTER", "READ_OWN", "READ", "SUBMIT", "ACT"}),
        (Role.ENGINEER, {"ENTER", "READ_OWN", "READ", "SUBMIT", "ACT", "CONTROL"}),
        (Role.WAREHOUSE, {"ENTER", "READ_OWN", "SUBMIT"}),
    ],
)
def test_what_each_role_may(role: Role, may: set[str]) -> None:
    assert {permission.name for permission in role.permissions} == may


def test_each_auth_manager_tells_roles_in_its_own_way() -> None:
    token = jwt.encode({"realm_access": {"roles": ["fin"]}, "groups": ["/ops"]}, "k" * 32, algorithm="HS256")
    assert roles_of(SimpleNamespace(role="viewer")) == ["viewer"]
    assert roles_of(SimpleNamespace(roles=[SimpleNamespace(name="Op"), SimpleNamespace(name="Finance")])) == [
        "Op",
        "Finance",
    ]
    assert roles_of(SimpleNamespace(access_token=token)) == ["fin", "ops"]
    assert roles_of(SimpleNamespace(access_token="a.b.c")) == []
    assert roles_of(SimpleNamespace(role=None)) == []


def test_a_token_is_for_one_person_and_one_day() -> None:
    rina, joko = Person("rina", frozenset()), Person("joko", frozenset())
    token = sign(b"secret", rina, now=1_000_000)
    assert is_signed(b"secret", rina, token, now=1_000_100)
    assert not is_signed(b"secret", joko, token, now=1_000_100)
    assert not is_signed(b"other", rina, token, now=1_000_100)
    assert not is_signed(b"secret", rina, token, now=1_000_000 + 13 * 3600)
    assert not is_signed(b"secret", rina, token, now=900_000)
    for broken in ("", ".", "1000000", token + "0", "x" + token, token.replace(".", "", 1), "١." + token):
        assert not is_signed(b"secret", rina, broken, now=1_000_100)


def test_a_route_that_declares_nothing_cannot_be_built() -> None:
    from fastapi import APIRouter

    from everest.pages.guard import GuardedRoute

    router = APIRouter(route_class=GuardedRoute)

    def open_to_all() -> None: ...

    with pytest.raises(TypeError, match="declares no permission"):
        router.get("/x")(open_to_all)
    router.get("/y")(needs(Permission.READ)(open_to_all))
