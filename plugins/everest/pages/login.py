"""Who is logged in, as Airflow's auth manager says it: the only module of the pages that knows Airflow.

A bearer token or Airflow's own cookie, judged by the function that judges them for Airflow's own API. The auth
managers describe their users differently; what each says of a user's roles is gathered here.
"""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException

from everest.pages.access import Person
from everest.pages.guard import Login
from everest.pages.settings import PageSettings


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
        names = [str(name) for name in (user.get_name(), user.get_id()) if name]
        return Person(names[0] if names else "?", settings.roles.roles_of(names, roles_of(user)))

    return who


def roles_of(user: Any) -> list[str]:
    """Simple: one role. FAB: objects with a name. Keycloak: realm roles and groups of its access token."""
    found: list[str] = []
    for given in (getattr(user, "role", None), *(getattr(user, "roles", None) or ())):
        name = getattr(given, "name", given)
        if isinstance(name, str) and name:
            found.append(name)
    return found + _keycloak_roles(getattr(user, "access_token", None))


def _keycloak_roles(access_token: Any) -> list[str]:
    """Airflow validated its own token, in which Keycloak's travels; here it is only read."""
    if not isinstance(access_token, str) or access_token.count(".") != 2:
        return []
    import jwt

    try:
        claims = jwt.decode(access_token, options={"verify_signature": False})
    except jwt.InvalidTokenError:
        return []
    realm = (claims.get("realm_access") or {}).get("roles") or []
    groups = claims.get("groups") or []
    return [str(one).strip("/") for one in (*realm, *groups)]
