"""Who is logged in, as Airflow's auth manager says it: the only module of the pages that knows Airflow.

A bearer token or Airflow's own cookie, judged by the function that judges them for Airflow's own API. The auth
managers describe their users differently; what each says of a user's roles is gathered here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jwt
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from everest.pages.access import Person
from everest.pages.guard import Login
from everest.pages.settings import PageSettings

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_SECONDS, PATIENCE_SECONDS = 30, 5
"""Between the clocks of Keycloak and of this machine, and for its keys."""


def airflow_login(settings: PageSettings) -> Login:
    """Imported late: the tests of the pages need no Airflow."""
    from airflow.api_fastapi.core_api.security import bearer_scheme, get_user

    async def who(request: Request) -> Person | None:
        try:
            user = await get_user(request, None, await bearer_scheme(request))
        except HTTPException as refusal:
            if refusal.status_code in (401, 403):  # 403: a token that is not one
                return None
            raise
        # Keycloak's manager has nobody for a session whose access token is gone or is another's.
        return None if user is None else await run_in_threadpool(person_of, user, settings)

    return who


def person_of(user: Any, settings: PageSettings) -> Person | None:
    """None for FAB's anonymous user, who is there without a login (AUTH_ROLE_PUBLIC): whoever acts has a name."""
    if getattr(user, "is_anonymous", False):
        return None
    # Keycloak's user has an id that is known outside. FAB's is the number of a row, which may be another's username.
    names = [str(name) for name in (user.get_name(), getattr(user, "user_id", None)) if name]
    return Person(names[0] if names else "?", settings.roles.roles_of(names, roles_of(user)))


def roles_of(user: Any, keys: Callable[[], jwt.PyJWKClient] | None = None) -> list[str]:
    """Simple: one role. FAB: objects with a name. Keycloak: realm roles and groups of its access token. keys: of the
    realm. Raises PyJWKClientConnectionError when Keycloak does not say its keys."""
    found: list[str] = []
    for given in (getattr(user, "role", None), *(getattr(user, "roles", None) or ())):
        name = getattr(given, "name", given)
        if isinstance(name, str) and name:
            found.append(name)
    access_token = getattr(user, "access_token", None)
    return found + (_keycloak_roles(access_token, keys or realm_keys) if access_token else [])


@cache
def realm_keys() -> jwt.PyJWKClient:
    """Asks Keycloak once in five minutes, and about a key it has not heard of."""
    from airflow.configuration import conf

    server, realm = (conf.get("keycloak_auth_manager", name) for name in ("server_url", "realm"))
    address = f"{server.rstrip('/')}/realms/{realm}/protocol/openid-connect/certs"
    return jwt.PyJWKClient(address, timeout=PATIENCE_SECONDS)


def _keycloak_roles(access_token: str, keys: Callable[[], jwt.PyJWKClient]) -> list[str]:
    """A browser sends the token as a cookie of its own, of which Airflow compares only whose it is: what it says beyond
    that is anybody's word until the realm's signature has been checked."""
    try:
        key = keys().get_signing_key_from_jwt(access_token)
        claims = jwt.decode(
            access_token, key, algorithms=ALGORITHMS, leeway=LEEWAY_SECONDS, options={"verify_aud": False}
        )
    except jwt.PyJWKClientConnectionError:
        raise
    except jwt.PyJWTError:
        return []
    realm = claims.get("realm_access")
    given = (realm.get("roles") if isinstance(realm, dict) else None, claims.get("groups"))
    return [one.strip("/") for names in given for one in _names(names)]


def _names(given: Any) -> list[str]:
    """A realm's mapper fills a claim with a list, or (not *multivalued*) with one text, which is one name."""
    return [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str)]
