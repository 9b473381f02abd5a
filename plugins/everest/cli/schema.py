"""`everest migrate`: the database gets its schema."""

from __future__ import annotations

import click

from everest.settings import mysql_url
from everest.store.migrations import migrate as bring_up_to_date


@click.command()
def migrate() -> None:
    """Bring the schema of EVEREST_MYSQL_URL up to date. A second time changes nothing; a broken one goes on."""
    bring_up_to_date(mysql_url(), report=click.echo)
