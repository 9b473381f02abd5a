"""Who is who, and what each may do."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from jwt.algorithms import RSAAlgorithm
from starlette.exceptions import HTTPException

from everest.pages.access import Permission, Person, Role, RoleMapping
from everest.pages.guard import needs
from everest.pages.login import airflow_login, person_of, roles_of
from everest.pages.settings import DEFAULT_ROLES, PageSettings
from everest.pages.tokens import is_signed, sign
from everest.settings import MysqlUrl, Settings

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


@dataclass(frozen=True)
class OfKeycloak:
    """KeycloakAuthManagerUser of apache-airflow-providers-keycloak 0.11.2, which would bring 20 packages here."""

    user_id: str
    name: str
    access_token: str
    refresh_token: str | None = None

    def get_id(self) -> str:
        return self.user_id

    def get_name(self) -> str:
        return self.name


class OfFab:
    """User of apache-airflow-providers-fab 3.10.2, an object of its database: the id is the number of its row."""

    def __init__(self, id: int, username: str, *roles: str) -> None:
        self.id, self.username = id, username
        self.roles = [SimpleNamespace(id=number, name=name) for number, name in enumerate(roles, start=1)]

    is_anonymous = False

    def get_id(self) -> str:
        return str(self.id)

    def get_name(self) -> str:
        return self.username


SETTINGS = PageSettings(mysql=MysqlUrl("", 0, "", "", ""), site=Settings(), roles=MAPPING, secret=b"")


@pytest.fixture(scope="module")
def signing() -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def keys(signing: RSAPrivateKey, monkeypatch: pytest.MonkeyPatch) -> Callable[[], jwt.PyJWKClient]:
    """What a realm publishes: the key that it signed with before, the one of now, and one that it encrypts with."""
    public = RSAAlgorithm.to_jwk(signing.public_key(), as_dict=True)
    before = RSAAlgorithm.to_jwk(generate_private_key(65537, 2048).public_key(), as_dict=True)
    sign = {"use": "sig", "alg": "RS256"}
    published = {
        "keys": [before | {"kid": "old"} | sign, public | {"kid": "rsa"} | sign, public | {"kid": "enc", "use": "enc"}]
    }
    monkeypatch.setattr(jwt.PyJWKClient, "fetch_data", lambda self: published)
    return lambda: jwt.PyJWKClient("http://keycloak.example/certs")


def _access(key: RSAPrivateKey | str, algorithm: str = "RS256", kid: str = "rsa", **claims: Any) -> OfKeycloak:
    said = {"sub": "7f3a", "aud": "account", "realm_access": {"roles": ["stok-finance"]}, "groups": ["/ops"]}
    said["exp"] = time.time() + 300
    return OfKeycloak("7f3a", "rina", jwt.encode(said | claims, key, algorithm=algorithm, headers={"kid": kid}))


def test_each_auth_manager_tells_roles_in_its_own_way(
    signing: RSAPrivateKey, keys: Callable[[], jwt.PyJWKClient]
) -> None:
    assert roles_of(SimpleNamespace(role="viewer")) == ["viewer"]
    assert roles_of(SimpleNamespace(role=None)) == []
    assert roles_of(OfFab(1, "rina", "Op", "Finance")) == ["Op", "Finance"]
    assert roles_of(OfFab(1, "rina")) == []
    assert roles_of(_access(signing), keys) == ["stok-finance", "ops"]
    assert roles_of(_access(signing, realm_access=None, groups=None), keys) == []
    assert roles_of(OfKeycloak("7f3a", "rina", ""), keys) == []


@pytest.mark.parametrize("odd", ["ops", ["/ops", {"name": "x"}, None, 7, ["x"]], {"x": ["y"]}, 7, True])
def test_a_claim_of_another_shape_gives_the_names_in_it_and_no_letters(
    signing: RSAPrivateKey, keys: Callable[[], jwt.PyJWKClient], odd: Any
) -> None:
    told = [] if isinstance(odd, dict | int) else ["ops"]
    assert roles_of(_access(signing, realm_access=odd, groups=None), keys) == []
    assert roles_of(_access(signing, realm_access={"roles": odd}, groups=odd), keys) == told * 2


def test_keycloaks_roles_are_those_that_the_realm_signed(
    signing: RSAPrivateKey, keys: Callable[[], jwt.PyJWKClient]
) -> None:
    """The token comes as a cookie, of which Airflow only compares the subject."""
    other = generate_private_key(public_exponent=65537, key_size=2048)
    header, _, signature = _access(signing).access_token.split(".")
    claims = _access(other).access_token.split(".")[1]
    forged = [
        _access(other),
        _access(other, kid="unknown"),
        _access(signing, kid="old"),
        _access(signing, kid="enc"),
        _access("k" * 32, algorithm="HS256"),
        _access("", algorithm="none"),
        _access(signing, exp=time.time() - 3600),
        *(OfKeycloak("7f3a", "rina", text) for text in (f"{header}.{claims}.{signature}", "a.b.c", "a", "a.b.c.d")),
    ]
    for user in forged:
        assert roles_of(user, keys) == [], user


def test_a_keycloak_that_says_no_keys_is_no_lack_of_roles(
    signing: RSAPrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(self: jwt.PyJWKClient) -> None:
        raise jwt.PyJWKClientConnectionError("refused")

    monkeypatch.setattr(jwt.PyJWKClient, "fetch_data", silent)
    with pytest.raises(jwt.PyJWKClientConnectionError):
        roles_of(_access(signing), lambda: jwt.PyJWKClient("http://keycloak.example/certs"))


def test_the_number_of_a_row_in_fab_is_nobodys_name() -> None:
    """Where people are called by their number, row 1024 is somebody else than user 1024."""
    settings = replace(SETTINGS, roles=RoleMapping.parse("finance=user:1024,user:7f3a; analyst=role:Viewer"))
    assert person_of(OfFab(1024, "joko", "Viewer"), settings) == Person("joko", frozenset({Role.ANALYST}))
    assert person_of(OfFab(3, "1024", "Viewer"), settings) == Person("1024", frozenset({Role.FINANCE}))
    assert person_of(OfKeycloak("7f3a", "rina", ""), settings) == Person("rina", frozenset({Role.FINANCE}))


@pytest.mark.parametrize("refused", [None, 401, 403, 500])
def test_whom_airflow_does_not_know_is_nobody(monkeypatch: pytest.MonkeyPatch, refused: int | None) -> None:
    """Keycloak's manager has None for a session whose access token is gone; what fails in Airflow stays a failure."""

    async def get_user(*asked: Any) -> None:
        if refused:
            raise HTTPException(refused)

    async def bearer_scheme(request: Any) -> None: ...

    known = SimpleNamespace(get_user=get_user, bearer_scheme=bearer_scheme)
    monkeypatch.setitem(sys.modules, "airflow.api_fastapi.core_api.security", known)  # type: ignore[arg-type]
    who = airflow_login(SETTINGS)(SimpleNamespace())  # type: ignore[arg-type]
    if refused == 500:
        with pytest.raises(HTTPException):
            asyncio.run(who)
    else:
        assert asyncio.run(who) is None


def test_who_is_there_without_a_login_is_nobody_whatever_role_the_site_gave_them() -> None:
    anonymous = SimpleNamespace(is_anonymous=True, roles=[SimpleNamespace(name="Viewer")], get_name=lambda: "Anonymous")
    assert person_of(anonymous, SETTINGS) is None


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
