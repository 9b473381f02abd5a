"""Every form that changes a workflow, to its effect, and every question of one that people answer."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.workflow.builder import workflow
from everest.workflow.fields import Field
from tests.pages.conftest import Be
from tests.pages.flows import asks, posted, said, sequence, undo
from tests.workflow.world import MysqlWorld, gives


def test_an_engineer_pauses_and_resumes(browser: Be, world: MysqlWorld) -> None:
    run_id = world.begin(workflow("closing").wait_for_signal("go").then(gives(z=1), name="z").build())
    posted(browser("engineer"), run_id, "pause", "paused", reason="audit")
    assert world.status(run_id) == "paused"
    posted(browser("engineer"), run_id, "resume", "resumed")
    assert world.status(run_id) == "waiting_for_signal"
    assert said(world, run_id) == [("engineer", "pause", "audit"), ("engineer", "resume", None)]


def test_an_engineer_retries_what_failed_where_it_failed(browser: Be, world: MysqlWorld) -> None:
    tries: list[int] = []

    def flaky(state: dict[str, Any], step: Any) -> dict[str, Any]:
        tries.append(1)
        if len(tries) == 1:
            raise DocumentRefused("kurs <i>belum</i> ada")
        return {"kurs": 1}

    run_id = world.begin(workflow("rates").then(gives(a=1), name="a").then(flaky).build())
    client = browser("engineer")
    page = client.get(f"/workflows/{run_id}").text
    assert "kurs &lt;i&gt;belum&lt;/i&gt; ada" in page and f"/workflows/{run_id}/retry" in page
    posted(client, run_id, "retry", "retried", reason="kurs diisi")
    world.pass_time(timedelta(minutes=1))
    assert world.status(run_id) == "completed" and world.effects.count("a") == 1
    assert said(world, run_id) == [("engineer", "rerun", "kurs diisi")]


def test_an_engineer_sends_a_signal_with_its_payload(browser: Be, world: MysqlWorld) -> None:
    run_id = world.begin(workflow("waits").wait_for_signal("truck", result_key="truk").build())
    client = browser("engineer")
    assert client.submit(f"/workflows/{run_id}/signal", name="").status_code == 422
    assert client.submit(f"/workflows/{run_id}/signal", name="truck", payload="[1]").status_code == 422
    assert client.submit(f"/workflows/{run_id}/signal", name="truck", payload='{"a": NaN}').status_code == 422
    assert client.submit(f"/workflows/{run_id}/signal", name="truck", payload='{"$date": 1.5}').status_code == 422
    posted(client, run_id, "signal", "signalled", name="truck", payload='{"nomor": "B 1 X", "berat": 1.10}')
    world.pass_time(timedelta(minutes=1))
    assert world.status(run_id) == "completed"
    assert world.state(run_id)["truk"] == {"nomor": "B 1 X", "berat": Decimal("1.10")}
    assert said(world, run_id)[-1] == ("engineer", "signal", "truck")


def test_what_was_cancelled_is_undone_again_by_hand(browser: Be, world: MysqlWorld) -> None:
    stuck: list[int] = [1]

    def sticks(state: dict[str, Any], step: Any) -> None:
        if stuck:
            raise RuntimeError("printer <u>macet</u>")
        step.tx.write(["undo", "b"])

    built = workflow("prints").then(gives(a=1), name="a", compensate_with=undo)
    run_id = world.begin(built.then(gives(b=1), name="b", compensate_with=sticks).wait_for_signal("go").build())
    client = browser("engineer")
    assert client.submit(f"/workflows/{run_id}/cancel").status_code == 422, "a reason is needed"
    posted(client, run_id, "cancel", "cancelled", reason="salah bulan")
    world.compensate()
    page = client.get(f"/workflows/{run_id}").text
    assert "printer &lt;u&gt;macet&lt;/u&gt;" in page and f"/workflows/{run_id}/compensate" in page
    assert f"/workflows/{run_id}/compensate" not in browser("finance").get(f"/workflows/{run_id}").text
    stuck.clear()
    posted(client, run_id, "compensate", "compensated")
    world.compensate()
    assert world.run(run_id).compensation == "done"
    assert [one for one in world.effects if isinstance(one, list)] == [["undo", "b"], ["undo", "a"]]
    assert said(world, run_id) == [("engineer", "cancel", "salah bulan"), ("engineer", "compensate", None)]


@pytest.mark.parametrize("answer", ["approve", "reject"])
def test_finance_decides_about_another_modules_workflow(browser: Be, world: MysqlWorld, answer: str) -> None:
    """A decision goes on either way, with who, what and why in its state."""
    run_id = world.begin(
        workflow("review").wait_for_decision("tinjauan", result_key="tinjauan").build(), {"bulan": "8"}
    )
    client = browser("finance")
    page = client.get("/approvals").text
    assert "review" in page and "tinjauan" in page and "&#34;bulan&#34;: &#34;8&#34;" in page
    done = {"approve": "approved", "reject": "rejected"}[answer]
    late = client.submit(f"/workflows/{run_id}/{answer}", reason="x", sequence=99)
    assert late.status_code == 409, "another question than the one that is open"
    posted(client, run_id, answer, done, reason="angka <b>cocok</b>", sequence=sequence(page))
    world.pass_time(timedelta(minutes=1))
    assert world.status(run_id) == "completed"
    told = world.state(run_id)["tinjauan"]
    assert (told["outcome"], told["by"], told["reason"]) == (done, "finance", "angka <b>cocok</b>")
    assert said(world, run_id) == [("finance", answer, "angka <b>cocok</b>")]
    assert "review" not in client.get("/approvals").text
    assert browser("analyst").submit(f"/workflows/{run_id}/{answer}", reason="x").status_code == 403


def test_a_rejected_approval_fails_the_run(browser: Be, world: MysqlWorld) -> None:
    run_id = world.begin(workflow("needs_yes").wait_for_approval("keuangan").build())
    client = browser("finance")
    shown = sequence(client.get("/approvals").text)
    assert client.submit(f"/workflows/{run_id}/reject", sequence=shown).status_code == 422, "a no needs a reason"
    posted(client, run_id, "reject", "rejected", reason="belum", sequence=shown)
    world.pass_time(timedelta(minutes=1))
    assert world.run(run_id).error_code == 403
    assert "belum" in client.get(f"/workflows/{run_id}").text


def test_what_a_step_asks_is_shown_with_reasons_and_evidence_and_not_to_be_answered_by_whom_it_bars(
    browser: Be, world: MysqlWorld
) -> None:
    run_id = world.begin(workflow("bills").then(asks).build(), {"tagihan": "INV-77"})
    for place in ("/approvals", f"/workflows/{run_id}"):
        page = browser("finance-2").get(place).text
        assert "tagihan &lt;b&gt;77&lt;/b&gt; melebihi anggaran" in page, place
        assert "menunggu bendahara" in page and "12500000" in page and "INV-77" in page and "Finance" in page
        assert f"/workflows/{run_id}/approve" in page
        barred = browser("finance").get(place).text
        assert f"/workflows/{run_id}/approve" not in barred and "orang lain" in barred
        assert f"/workflows/{run_id}/approve" not in browser("analyst").get(place).text
    shown = sequence(browser("finance-2").get("/approvals").text)
    assert browser("finance").submit(f"/workflows/{run_id}/approve", sequence=shown).status_code == 403
    posted(browser("finance-2"), run_id, "approve", "approved", reason="anggaran ditambah", sequence=shown)
    world.pass_time(timedelta(minutes=1))
    assert world.state(run_id)["keputusan"] == "approved"


def test_input_without_declared_fields_is_a_json_object(browser: Be, world: MysqlWorld) -> None:
    run_id = world.begin(workflow("asks_rate").wait_for_input("kurs", result_key="kurs").build())
    client = browser("finance")
    shown = sequence(client.get(f"/workflows/{run_id}").text)
    assert client.submit(f"/workflows/{run_id}/input", payload="1", sequence=shown).status_code == 422
    posted(client, run_id, "input", "given", payload='{"usd": "16250.50"}', sequence=shown)
    world.pass_time(timedelta(minutes=1))
    assert world.state(run_id)["kurs"] == {"usd": "16250.50"}
    assert said(world, run_id) == [("finance", "input", None)]


def test_what_waits_for_a_program_is_not_among_what_waits_for_a_person(browser: Be, world: MysqlWorld) -> None:
    machine = world.begin(workflow("for_a_truck").wait_for_signal("truck").build())
    person = world.begin(workflow("for_a_person").wait_for_approval("keuangan").build())
    page = browser("finance").get("/approvals").text
    people, programs = page.split('id="programs"')
    assert f'"/workflows/{person}"' in people and f'"/workflows/{machine}"' not in people
    assert f'"/workflows/{machine}"' in programs and "truck" in programs


def test_declared_fields_are_inputs_and_each_flaw_stands_at_its_field(browser: Be, world: MysqlWorld) -> None:
    asked = [Field("usd", "number", "Kurs USD"), Field("pada", "date"), Field("bank", "choice", choices=("BI", "BCA"))]
    run_id = world.begin(workflow("rates").wait_for_input("kurs", fields=asked, result_key="kurs").build())
    client = browser("finance")
    for place in ("/approvals", f"/workflows/{run_id}"):
        page = client.get(place).text
        assert "Kurs USD" in page and 'name="field.usd"' in page and 'type="date"' in page, place
        assert '<option value="BCA">' in page and 'name="payload"' not in page.split("/input")[1]
    shown = sequence(page)
    wrong = {"field.usd": "<b>mahal</b>", "field.pada": "kemarin", "field.bank": "BRI", "payload": '{"usd": 1}'}
    answer = client.submit(f"/workflows/{run_id}/input", sequence=shown, **wrong)
    assert answer.status_code == 422 and "<b>mahal</b>" not in answer.text and "&lt;b&gt;mahal" in answer.text
    for told in ("Bukan angka", "Bukan tanggal", "Pilih salah satu"):
        assert answer.text.count(told) == 1, told
    assert world.status(run_id) == "waiting_for_signal" and said(world, run_id) == []
    right = {"field.usd": "16250,50", "field.pada": "2026-08-31", "field.bank": "BI"}
    posted(client, run_id, "input", "given", sequence=shown, **right)
    world.pass_time(timedelta(minutes=1))
    assert world.state(run_id)["kurs"] == {"usd": Decimal("16250.50"), "pada": date(2026, 8, 31), "bank": "BI"}
