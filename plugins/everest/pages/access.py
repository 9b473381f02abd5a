"""Who may do what. Airflow says who somebody is; the site's mapping says which of our four roles that makes them.

Airflow's simple manager knows four roles of its own, and none of them is finance. So finance are viewers in Airflow,
and act through these pages only, where every action leaves its line in the audit log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from everest import people


class Permission(Enum):
    """What a route asks for. Every route names exactly one."""

    ENTER = "enter"
    """Logged in, with any of our roles."""
    READ_OWN = "read_own"
    """Documents that this person submitted."""
    READ = "read"
    """All documents, reports, dead letters, workflows, health."""
    SUBMIT = "submit"
    """Hand in a count."""
    ACT = "act"
    """Rerun, replay, drop, approve, authorise, reverse."""
    CONTROL = "control"
    """Pause, resume, cancel and signal workflows."""


_READ = frozenset({Permission.ENTER, Permission.READ_OWN, Permission.READ})
_ACT = _READ | {Permission.SUBMIT, Permission.ACT}


class Role(Enum):
    """The four kinds of people, with what each may do."""

    ANALYST = "analyst"
    FINANCE = "finance"
    ENGINEER = "engineer"
    WAREHOUSE = "warehouse"

    @property
    def permissions(self) -> frozenset[Permission]:
        return _PERMISSIONS[self]


_PERMISSIONS = {
    Role.ANALYST: _READ,
    Role.FINANCE: _ACT,
    Role.ENGINEER: _ACT | {Permission.CONTROL},
    Role.WAREHOUSE: frozenset({Permission.ENTER, Permission.READ_OWN, Permission.SUBMIT}),
}


@dataclass(frozen=True)
class Person:
    """Whoever is logged in. name: what the audit log gets."""

    name: str
    roles: frozenset[Role]

    def is_called(self, name: str | None) -> bool:
        """Whether a row that names somebody means this person: as everywhere, without case and spaces around it."""
        return people.is_same(name, self.name)

    def may(self, permission: Permission) -> bool:
        return any(permission in role.permissions for role in self.roles)


@dataclass(frozen=True)
class RoleMapping:
    """Which Airflow users and Airflow roles have which of ours; names of roles are compared without case.

    A user who is named has the roles that name them and no others: so a warehouse clerk who is a viewer in Airflow
    does not become an analyst by that.
    """

    by_user: Mapping[str, frozenset[Role]]
    by_role: Mapping[str, frozenset[Role]]

    @classmethod
    def parse(cls, text: str) -> RoleMapping:
        """`finance=user:rina,role:Finance; engineer=role:Op,role:Admin`. Raises ValueError with a sentence."""
        users: dict[str, set[Role]] = {}
        roles: dict[str, set[Role]] = {}
        for part in filter(None, (one.strip() for one in text.split(";"))):
            name, equals, entries = part.partition("=")
            try:
                role = Role(name.strip())
            except ValueError:
                raise ValueError(f"{name.strip()!r} is none of {', '.join(one.value for one in Role)}") from None
            if not equals:
                raise ValueError(f"{part!r} names nobody; write {role.value}=role:NAME or {role.value}=user:NAME")
            for entry in filter(None, (one.strip() for one in entries.split(","))):
                kind, _, value = entry.partition(":")
                if kind not in ("user", "role") or not value.strip():
                    raise ValueError(f"{entry!r} must look like user:NAME or role:NAME")
                if kind == "user":
                    users.setdefault(value.strip(), set()).add(role)
                else:
                    roles.setdefault(value.strip().casefold(), set()).add(role)
        return cls(_frozen(users), _frozen(roles))

    def roles_of(self, user_names: Iterable[str], airflow_roles: Iterable[str]) -> frozenset[Role]:
        """Roles of somebody known by any of these names and holding these Airflow roles."""
        named = [self.by_user[name] for name in user_names if name in self.by_user]
        if named:
            return frozenset().union(*named)
        held = [self.by_role.get(role.casefold(), frozenset()) for role in airflow_roles]
        return frozenset().union(*held)


def _frozen(found: dict[str, set[Role]]) -> Mapping[str, frozenset[Role]]:
    return {name: frozenset(roles) for name, roles in found.items()}
