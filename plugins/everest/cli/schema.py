"""`everest migrate` and `everest grant`: the database gets its schema, and each program's account its rights."""

from __future__ import annotations

import click

from everest.settings import mysql_url
from everest.store.grants import grant as give_rights
from everest.store.migrations import migrate as bring_up_to_date


@click.command()
def migrate() -> None:
    """Bring the schema of EVEREST_MYSQL_URL up to date. A second time changes nothing; a broken one goes on."""
    bring_up_to_date(mysql_url(), report=click.echo)


@click.command()
def grant() -> None:
    """Give each program's account its rights (sql/grants.sql). As the schema's owner, after every migrate."""
    give_rights(mysql_url(), report=click.echo)
