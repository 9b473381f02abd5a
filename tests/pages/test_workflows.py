"""Alur kerja on the pages: one workflow with all that it can have, and every form that changes one, to its effect."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.pages import formats
from everest.store import workflow_dag_runs
from everest.workflow import control
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from tests.pages.conftest import Be
from tests.pages.flows import undo
from tests.workflow.world import MysqlWorld, gives

# ---------------------------------------------------------------------------------------------------- actions


# ------------------------------------------------------------------------------------------ everything is drawn


def test_children_budgets_items_branches_and_compensations_are_drawn(browser: Be, world: MysqlWorld) -> None:
    child = workflow("child").then(gives(c=3), name="work").wait_for_signal("go").build()
    built = (
        workflow("rich")
        .then(gives(many=[1, 2, 3]), name="a", compensate_with=undo)
        .for_each("many", gives(done=1), name="each", result_key="results")
        .parallel({"kiri": gives(l=1), "kanan": gives(r=1)}, name="both")
        .start_workflows("many", child, name="starts")
        .wait_for_signal("stop")
        .repeat_until("each", "never", max_iterations=3, name="again")
        .max_transitions(50)
        .build()
    )
    run_id = world.begin(built, key="rich-1")
    client = browser("engineer")
    page = client.get(f"/workflows/{run_id}").text
    for one in world.children(run_id):
        assert f'href="/workflows/{one}"' in page
    assert "Perpindahan" in page and "/ 50" in page and "rich-1" in page
    assert set(re.findall(r'<option value="(\w+)">', page[page.index("/signal") :])) == {"stop"}
    world.signal(run_id, "stop")  # once more round the loop
    page = client.get(f"/workflows/{run_id}").text
    assert "again" in page and world.run(run_id).visit >= 1
    assert client.get(f"/workflows/{world.children(run_id)[0]}").text.count(f'href="/workflows/{run_id}"') >= 1


def test_items_of_a_step_at_work_and_branches_are_told_by_their_status(browser: Be, world: MysqlWorld) -> None:
    def second_fails(state: dict[str, Any], step: Any) -> dict[str, Any]:
        if step.item == 2:
            raise DocumentRefused("butir kedua salah")
        return {"ok": 1}

    def breaks(state: dict[str, Any], step: Any) -> dict[str, Any]:
        raise DocumentRefused("cabang patah")

    built = workflow("parts").then(gives(many=[1, 2]), name="a").for_each("many", second_fails, name="each")
    items = world.begin(built.build())
    page = browser("analyst").get(f"/workflows/{items}").text
    assert "gagal 1" in page and "berhasil 1" in page
    branches = world.begin(workflow("sides").parallel({"kiri": gives(l=1), "kanan": breaks}).build())
    page = browser("analyst").get(f"/workflows/{branches}").text
    assert "kanan: gagal" in page and "kiri: selesai" in page and "cabang patah" in page


def test_a_cancel_by_hand_and_its_undoing_are_drawn(browser: Be, world: MysqlWorld) -> None:
    run_id = world.begin(workflow("u").then(gives(a=1), name="a", compensate_with=undo).wait_for_signal("go").build())
    world.act(run_id, control.cancel, "budi", "salah")
    world.compensate()
    page = browser("analyst").get(f"/workflows/{run_id}").text
    assert "dibatalkan oleh budi: salah" in page and "Pembatalan langkah" in page and "a: selesai" in page


def row_of(page: str, step: str) -> str:
    """A step's row as text."""
    table = page[page.index('id="steps"') :]
    (row,) = re.findall(rf'<tr[^>]*><th scope="row">{step}</th>(.*?)</tr>', table, re.DOTALL)
    return re.sub(r"<[^>]+>", " ", row)


def test_each_step_is_listed_with_its_state_and_each_signal_with_who_sent_it(browser: Be, world: MysqlWorld) -> None:
    built = workflow("listed").then(gives(a=1), name="a").wait_for_signal("early").wait_for_signal("late")
    run_id = world.begin(built.then(gives(z=1), name="z").build())
    world.signal(run_id, "early", {"nomor": "<u>7</u>"}, actor="gudang-bot")
    world.signal(run_id, "never", actor="salah-alamat")
    page = browser("analyst").get(f"/workflows/{run_id}").text
    assert "selesai" in row_of(page, "a") and "fungsi" in row_of(page, "a")
    assert "selesai" in row_of(page, "wait_for_early") and "menunggu jawaban atau sinyal" in row_of(
        page, "wait_for_early"
    )
    assert "menunggu" in row_of(page, "wait_for_late") and "belum sampai" in row_of(page, "z")
    lines = page[page.index('id="signals"') :].split("<li>")
    used, unused = (next(one for one in lines if who in one) for who in ("gudang-bot", "salah-alamat"))
    assert "dipakai wait_for_early" in used and "&lt;u&gt;7&lt;/u&gt;" in used and "belum dipakai" in unused


def test_all_children_of_a_run_are_a_list_with_pages(browser: Be, world: MysqlWorld) -> None:
    child = workflow("kid").then(gives(c=3), name="work").wait_for_signal("go").build()
    starts = workflow("crowd").then(gives(many=list(range(52))), name="a").start_workflows("many", child, name="starts")
    run_id = world.begin(starts.wait_for_signal("stop").build())
    other = world.begin(workflow("lonely").wait_for_signal("go").build())
    client = browser("analyst")
    assert f'href="/workflows?parent={run_id}"' in client.get(f"/workflows/{run_id}").text
    first = client.get(f"/workflows?parent={run_id}").text
    (there,) = re.findall(r'rel="next" href="([^"]+)"', first)
    both = first + client.get(there.replace("&amp;", "&")).text
    assert {int(one) for one in re.findall(r'href="/workflows/(\d+)"', both)} == set(world.children(run_id))
    assert other not in world.children(run_id)


def facts(page: str, part: str) -> dict[str, str]:
    """What a list of facts says under each of its titles."""
    lists = re.findall(r'<dl class="facts">(.*?)</dl>', page[page.index(part) :], re.DOTALL)
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", lists[0], re.DOTALL)
    return {title: " ".join(re.sub(r"<[^>]+>", " ", text).split()) for title, text in found}


def test_a_page_has_a_runs_visits_deadline_budgets_loops_children_and_state(browser: Be, world: MysqlWorld) -> None:
    """A loop walked twice; in the third round it waits. Its definition is another one by then, and later is gone."""

    def built(last: str) -> Definition:
        child = workflow("anak").then(gives(c=3), name="kerja").wait_for_signal("go").build()
        return (
            workflow("keliling")
            .then(gives(many=[1, 2]), name="a")
            .for_each("many", gives(done=1), name="each")
            .start_workflows("many", child, name="starts")
            .wait_for_signal("lagi", name="gate", result_key="lagi")
            .repeat_until("gate", "selesai", max_iterations=9, name="ulang")
            .then(gives(z=1), name=last)
            .must_complete_within(timedelta(days=3))
            .max_transitions(50)
            .max_for_each_items(20)
            .max_started_workflows(5)
            .max_state_bytes(9_000)
            .build()
        )

    run_id = world.begin(built("z"), {"bulan": "2026-08"}, key="keliling-1")
    for n in (1, 2):
        world.signal(run_id, "lagi", {"putaran": n, "catatan": "<b>x</b>"})
    client, path = browser("analyst"), f"/workflows/{run_id}"
    page = client.get(path).text
    run = world.run(run_id)
    about = facts(page, 'id="facts"')
    assert (about["Versi"], about["Kunjungan"]) == ("1", str(run.visit)) and run.visit == 3
    (row,) = world.rows("SELECT * FROM workflow_runs WHERE id = %s", run_id)
    assert about["Mulai"] == formats.wib(row["created_at"]) and about["Berakhir"] == "–"
    assert about["Tenggat"] == formats.wib(row["created_at"] + timedelta(days=3))
    gate = row_of(page, "gate").split()
    assert next(int(one) for one in gate if one.isdecimal()) == 3
    used = facts(page, "Batas dan pemakaian")
    assert used["Butir"] == "2 / 20" and used["Alur dimulai"] == "2 / 5"
    assert used["Perpindahan"] == f"{formats.whole(row['transitions'])} / 50"
    assert re.fullmatch(r"[0-9.]+ / 9\.000", used["Besar state (byte)"]) and used["ulang"] == "2"
    children = world.children(run_id)
    part = page[page.index("<h2>Anak</h2>") : page.index("Batas dan pemakaian")]
    assert {int(one) for one in re.findall(r'href="/workflows/(\d+)"', part)} == set(children) and len(children) == 2
    assert part.count(">Menunggu sinyal</span>") == 2 and "Menunggu sinyal 2" in part
    state = page[page.index('id="kept"') : page.index("</pre>", page.index('id="kept"'))]
    assert html.unescape(state).count('"putaran": 2') == 1 and "&lt;b&gt;x&lt;/b&gt;" in state
    signals = page[page.index('id="signals"') :].split("<li>")[1:]
    assert [one for one in signals if "dipakai" in one] == signals[:2] and len(signals) == 2
    assert "definisinya" not in page
    world.know(built("y"))
    assert facts(client.get(path).text, 'id="facts"')["Versi"] == "1 (definisinya sudah lain)"
    world.definitions.pop("keliling")
    page = client.get(path).text
    assert facts(page, 'id="facts"')["Versi"] == "1 (definisinya tidak terpasang)"
    assert facts(page, "Batas dan pemakaian")["Butir"] == "2", "of what is not deployed no limit is known"


def test_a_dead_letter_of_another_module_leads_to_its_workflow(browser: Be, world: MysqlWorld) -> None:
    def breaks(state: dict[str, Any], step: Any) -> dict[str, Any]:
        raise DocumentRefused("rusak")

    run_id = world.begin(workflow("rusak").then(breaks).build())
    (job,) = world.rows("SELECT id FROM rabbit_publish_shadow WHERE workflow_id = %s", run_id)
    client = browser("finance")
    told = client.submit("/dead-letters/replay", shadow_id=[str(job["id"]), "424242"], reason="sudah diperbaiki").text
    assert f'<a href="/workflows/{run_id}">rusak #{run_id}</a>' in told and f"/documents/{job['id']}" not in told
    assert client.get(f"/workflows/{run_id}").status_code == 200
    assert "#424242" in told and "/documents/424242" not in told


def test_dag_runs_are_paged_and_none_is_missing(
    browser: Be, world: MysqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow_dag_runs, "MAX_DAG_RUNS", 2)
    run_id = world.begin(workflow("waits").wait_for_signal("a").wait_for_signal("b").wait_for_signal("c").build())
    for name in "abc":
        world.signal(run_id, name)
    pages, address = [], f"/workflows/{run_id}"
    for _ in range(3):
        page = browser("analyst").get(address).text
        pages.append(re.findall(rf"waits__{run_id}__\d+__(\d+)</a>", page))
        older = re.findall(r'href="([^"]*runs=\d+)"', page)
        address = older[0].replace("&amp;", "&") if older else address
    assert pages == [["4", "3"], ["2", "1"], []] and "Terbaru" in page
    assert browser("analyst").get(f"/workflows/{run_id}?runs=0").status_code == 200


def test_what_the_engine_says_is_told_in_the_language_of_the_page(browser: Be, world: MysqlWorld) -> None:
    """A budget that is used up; and what a page refuses."""
    built = workflow("anggaran").then(gives(a=1), name="a").then(gives(b=1), name="b").max_transitions(1).build()
    run_id = world.begin(built)
    client = browser("engineer")
    for path in (f"/workflows/{run_id}", "/workflows", "/dead-letters"):
        assert (
            "alur kerja anggaran: 2 langkah selesai, max_transitions mengizinkan 1"
            in client.get(path + "?lang=id").text
        )
        english = client.get(path + "?lang=en").text
        assert "workflow anggaran: 2 steps completed, max_transitions allows 1" in english
    refused = browser("engineer").submit(f"/workflows/{run_id}/resume")
    assert refused.status_code == 409 and f"alur kerja {run_id} berstatus gagal, tidak dijeda" in refused.text
    letter = client.get("/dead-letters.csv?lang=id").content.decode("utf-8-sig")
    assert "2 langkah selesai" in letter
