"""What each step of the closing does: `handler(state, step)` gets the public state and returns the keys to add to it.

A handler knows no Airflow, no queue and no retry. It writes through `step.tx`; an error it raises rolls that back. One
that trying again cannot mend is a DocumentRefused, with the sentence that a person will read.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from closing_example import rows
from everest.errors import DocumentRefused

State = dict[str, Any]
_MONTH = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])")


def list_warehouses(state: State, step: Any) -> State:
    """Lists the warehouses in use, for the step that looks at each of them."""
    _days(state)
    found = rows.active_warehouses(step.tx)
    if not found:
        raise DocumentRefused("tidak ada gudang aktif untuk ditutup")
    return {"gudang": found}


def open_closing(state: State, step: Any) -> None:
    """Notes that the closing of this month has begun."""
    rows.note(step.tx, "closing_opened", step.workflow_id, state["bulan"], {"gudang": state["gudang"]})


def withdraw_closing(state: State, step: Any) -> None:
    """Undoes open_closing when the closing is cancelled: the log only grows, so it gets a line that takes it back."""
    rows.note(step.tx, "closing_withdrawn", step.workflow_id, state["bulan"], {})


def check_warehouse(state: State, step: Any) -> State:
    """Looks at one warehouse: how many movements it had, and which counts are not posted yet."""
    first_day, next_month = _days(state)
    warehouse = step.item
    result = {
        "gudang": warehouse,
        "mutasi": rows.movements(step.tx, warehouse, first_day, next_month),
        "belum_diposting": rows.open_documents(step.tx, warehouse, first_day, next_month),
    }
    rows.note(step.tx, "warehouse_checked", step.workflow_id, f"{state['bulan']} {warehouse}", result)
    return result


def summarise(state: State, step: Any) -> State:
    """Sums up the warehouses, in the commit of the last of them."""
    checks = state["pemeriksaan"]["results"].values()
    return {
        "mutasi": sum(one["mutasi"] for one in checks),
        "belum_diposting": sorted(one["gudang"] for one in checks if one["belum_diposting"]),
    }


def draft_report(state: State, step: Any) -> State:
    """Drafts the report; after a rejection, again, with the reviewer's reason in it."""
    review = state.get("tinjauan") or {}
    draft = {
        "versi": step.visit,
        "isi": f"Penutupan {state['bulan']}: {len(state['gudang'])} gudang, {state['mutasi']} mutasi",
        "catatan": review.get("reason"),
    }
    rows.note(step.tx, "report_drafted", step.workflow_id, state["bulan"], draft)
    return {"laporan": draft}


def is_accepted(state: State) -> bool:
    """Ends the loop."""
    return bool(state["tinjauan"]["outcome"] == "approved")


def finish_closing(state: State, step: Any) -> State:
    """Notes that the month is closed, and answers whoever asked for it."""
    rows.note(step.tx, "closing_finished", step.workflow_id, state["bulan"], {"nomor": state["nomor"]})
    return {"_response": {"message": f"penutupan {state['bulan']} selesai, laporan {state['nomor']}"}}


def tell_cancelled(state: State, step: Any) -> None:
    """Runs last when the closing is cancelled."""
    rows.note(step.tx, "closing_cancelled", step.workflow_id, state["bulan"], {})


# ------------------------------------------------------------------------------------------------- the nested workflow


def number_report(state: State, step: Any) -> State:
    """Gives the accepted report its number."""
    return {"nomor": f"TUTUP/{state['bulan']}/{step.workflow_id}"}


def file_report(state: State, step: Any) -> None:
    """Files the report under its number."""
    rows.note(step.tx, "report_filed", step.workflow_id, state["nomor"], state["laporan"])


def void_report(state: State, step: Any) -> None:
    """Undoes a filed report: its number is void from here on."""
    rows.note(step.tx, "report_voided", step.workflow_id, state["nomor"], {})


def _days(state: State) -> tuple[date, date]:
    """The first day of the month and of the next one. Raises DocumentRefused."""
    found = _MONTH.fullmatch(str(state.get("bulan")))
    if found is None:
        raise DocumentRefused(f"bulan {state.get('bulan')!r} harus seperti 2026-08")
    year, month = int(found[1]), int(found[2])
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)
