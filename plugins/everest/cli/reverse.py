"""`everest reverse`: takes a posted document back, by a new one that mirrors it."""

from __future__ import annotations

import click

from everest import bootstrap, reversal
from everest.cli import output


@click.command()
@click.argument("nota")
@click.option("--reason", required=True, help="Why; it stands in the journal and in the audit trail.")
@output.json_option
def reverse(nota: str, reason: str, as_json: bool) -> None:
    """Reverse the posted document NOTA (or #JOB): original amounts and accounts, mirrored, dated now.

    The reversal is a document of its own and goes the usual way; `status` follows it, `rerun` runs it again if it
    failed. The original stays as it is and its nota stays used: what is right is submitted under a new nota. Whoever
    submitted a document does not reverse it, unless EVEREST_ALLOW_SELF_APPROVAL is 1.
    """
    with bootstrap.unit_of_work() as tx:
        requested = reversal.request(tx, nota, output.operator(), reason)
    facts = {name: value for name, value in vars(requested).items() if name != "is_new"}
    done = "is on its way" if requested.is_new else "was on its way already; nothing was stored"
    message = f"Reversal {requested.nomer_nota} of {requested.membalik_nota} {done}, as job #{requested.shadow_id}"
    if as_json:
        answer = {"status": "success", "code": 200, "message": message, "already_requested": not requested.is_new}
        output.print_json({**answer, **facts})
    else:
        follow = f"python -m everest status '#{requested.shadow_id}' --watch"
        click.echo(output.plain(f"{message}. Follow it: {follow}"))
