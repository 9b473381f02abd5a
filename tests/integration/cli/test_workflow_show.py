"""`everest workflow dispatch` and what its looking commands tell: list, show, timeline, trace."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from closing_example.workflow import MONTHLY_CLOSING
from everest.workflow.builder import workflow
from tests.integration.cli.conftest import AUGUST, Everest, answer, audited
from tests.workflow.world import MysqlWorld, gives


def test_dispatch_starts_once_per_key_and_says_so(everest: Everest, connection: Any) -> None:
    first = everest("workflow", "dispatch", "monthly_closing", "--payload", AUGUST)
    second = everest("workflow", "dispatch", "monthly_closing", "--payload", AUGUST, "--json")
    other = everest("workflow", "dispatch", "monthly_closing", "--payload", '{"bulan": "x"}', "--key", "2026-08")

    assert "Workflow 1 (monthly_closing) is on its way" in first.stdout
    assert (answer(second)["workflow_id"], answer(second)["existed"]) == (1, True)
    assert (other.exit_code, "has another payload" in other.stderr) == (3, True)
    assert audited(connection) == [("dispatch", None)]


def test_dispatch_takes_a_file_and_keeps_amounts_exact(everest: Everest, tmp_path: Any, world: MysqlWorld) -> None:
    file = tmp_path / "payload.json"
    file.write_text('{"bulan": "2026-08", "batas": 0.1, "sejak": {"$date": "2026-08-01"}}')

    run_id = answer(everest("workflow", "dispatch", "monthly_closing", "--payload", f"@{file}", "--json"))[
        "workflow_id"
    ]

    assert world.run(run_id).payload["batas"] == Decimal("0.1")
    assert f"{world.run(run_id).payload['sejak']:%d.%m.%Y}" == "01.08.2026"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (
            ("dispatch", "yearly"),
            4,
            "this site runs no workflow yearly; it runs closing_report, monthly_closing, opnam",
        ),
        (("dispatch", "monthly_closing"), 1, "the payload does not fill the key '{bulan}'"),
        (("dispatch", "monthly_closing", "--payload", "{"), 2, "not JSON"),
        (("dispatch", "monthly_closing", "--payload", "[1]"), 2, "must be a JSON object"),
        (("dispatch", "monthly_closing", "--payload", '{"a": NaN}'), 2, "NaN is no number"),
        (("dispatch", "monthly_closing", "--payload", "@/no/such"), 2, "No such file"),
        (("show", "99"), 4, "there is no workflow run 99"),
        (("show", "monthly_closing:1999-01"), 4, "there is no workflow run monthly_closing:1999-01"),
        (("timeline", "99"), 4, "there is no workflow run 99"),
        (("trace", "99"), 4, "there is no workflow run 99"),
        (("trace", "99", "--step", "a"), 4, "step a of workflow run 99 has not completed"),
        (("trace", "99", "--visit", "1"), 2, "--visit goes with --step"),
        (("pause", "99"), 4, "there is no workflow run 99"),
        (("cancel", "99"), 4, "there is no workflow run 99"),
        (("list", "--older-than", "1w"), 2, "write 90m, 12h or 7d"),
        (("purge", "--older-than", "1h"), 2, "must be at least 1d"),
    ],
)
def test_what_cannot_be_is_said_with_an_exit_code(
    everest: Everest, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    result = everest("workflow", *arguments)

    assert result.exit_code == code
    assert sentence in " ".join(result.stderr.split())


def test_11_48_show_tells_where_it_stands_what_it_waits_for_and_what_to_do(everest: Everest, closing: int) -> None:
    shown = everest("workflow", "show", "monthly_closing:2026-08").stdout
    found = answer(everest("workflow", "show", str(closing), "--json"))

    assert "warehouse_head_approves (4 of 10)" in shown
    assert "remaining: kepala_gudang" in shown
    assert f"workflow approve {closing}" in shown
    assert f"workflow reject {closing} --reason" in shown
    assert (found["position"], found["total_steps"], found["definition"]) == (4, 10, "deployed")
    assert found["definition_hash"] == MONTHLY_CLOSING.definition_hash
    assert found["waiting"] | {"kind": "approval", "names": ["kepala_gudang"], "sequence": 1} == found["waiting"]
    assert found["state"]["gudang"] == ["GD-A", "GD-B"]
    assert found["waiting"]["until"].startswith("20")
    budgets = {one["name"]: (one["used"], one["limit"]) for one in found["budgets"]}
    assert (budgets["transitions"], budgets["for_each_items"]) == ((3, None), (2, None))
    assert [(one["n"], one["dag_run_id"].startswith("monthly_closing__2026-08__")) for one in found["dag_runs"]] == [
        (2, True),
        (1, True),
    ]
    assert found["compensation"] is None
    assert [one["step"] for one in found["compensations"]] == ["open_closing"]


def test_show_tells_parent_and_children(everest: Everest, closing: int, world: MysqlWorld) -> None:
    for _ in range(3):
        assert everest("workflow", "approve", str(closing)).exit_code == 0
        world.walk()

    parent = answer(everest("workflow", "show", str(closing), "--json"))
    (child,) = parent["children"]
    nested = answer(everest("workflow", "show", str(child["id"]), "--json"))

    assert (parent["status"], parent["children_by_status"]) == ("completed", {"completed": 1})
    assert nested["parent"] | {"id": closing, "step": "file_report", "is_nested": True} == nested["parent"]
    assert "closing_report" in everest("workflow", "show", str(closing)).stdout


def test_11_show_hides_control_values_and_12_list_filters_and_pages(
    everest: Everest, world: MysqlWorld, connection: Any
) -> None:
    hidden = workflow("hides").then(gives(_secret=1, open=2), name="only").build()
    ids = [world.begin(hidden) for _ in range(3)]
    waiting = world.begin(workflow("waits").wait_for_signal("go").build())

    state = answer(everest("workflow", "show", str(ids[0]), "--json"))["state"]
    done = answer(everest("workflow", "list", "--status", "completed", "--size", "2", "--json"))
    rest = answer(everest("workflow", "list", "--status", "completed", "--before", str(done["before"]), "--json"))

    assert state == {"open": 2}
    assert [one["id"] for one in [*done["runs"], *rest["runs"]]] == ids[::-1]
    assert rest["before"] is None
    assert [one["id"] for one in answer(everest("workflow", "list", "--workflow", "waits", "--json"))["runs"]] == [
        waiting
    ]
    assert answer(everest("workflow", "list", "--older-than", "1d", "--json"))["runs"] == []
    assert len(answer(everest("workflow", "list", "--newer-than", "1d", "--json"))["runs"]) == 4
    table = everest("workflow", "list").stdout
    assert all(word in table for word in ("hides", "completed", "waiting_for_signal", "go"))
    assert "No such runs." in everest("workflow", "list", "--status", "paused").stdout


def test_84_the_timeline_is_paged_and_tells_every_try(everest: Everest, closing: int) -> None:
    first = answer(everest("workflow", "timeline", str(closing), "--size", "3", "--json"))
    rest = answer(everest("workflow", "timeline", str(closing), "--after", str(first["after"]), "--json"))

    events = [(one["event"], one["step"], one["attempt"]) for one in [*first["events"], *rest["events"]]]
    assert events[:3] == [
        ("dispatched", None, None),
        ("started", "list_warehouses", 1),
        ("completed", "list_warehouses", 1),
    ]
    assert events[-1][0] == "parked"
    assert rest["after"] is None
    assert "More: --after" in everest("workflow", "timeline", str(closing), "--size", "3").stdout


def test_82_the_trace_tells_what_each_step_was_given_and_left(everest: Everest, closing: int) -> None:
    traced = answer(everest("workflow", "trace", str(closing), "--size", "1", "--json"))

    (first,) = traced["steps"]
    assert (first["step"], first["status"], first["state_before"]) == (
        "list_warehouses",
        "completed",
        {"bulan": "2026-08"},
    )
    assert first["state_after"] == {"bulan": "2026-08", **first["output"]}
    left = answer(everest("workflow", "trace", str(closing), "--step", "list_warehouses", "--json"))
    assert left["state"] == first["state_after"]
    shown = everest("workflow", "trace", str(closing), "--size", "1").stdout
    assert "list_warehouses" in shown and f"More: --after {traced['after']}" in shown
    assert "2026-08" in everest("workflow", "trace", str(closing), "--step", "list_warehouses").stdout


def test_a_definition_that_is_not_deployed_is_said(everest: Everest, world: MysqlWorld) -> None:
    run_id = world.begin(workflow("elsewhere").wait_for_signal("go").build())

    found = answer(everest("workflow", "show", str(run_id), "--json"))
    signal = everest("workflow", "signal", str(run_id), "go")

    assert (found["definition"], found["position"], found["total_steps"]) == ("missing", None, None)
    assert (signal.exit_code, "is not deployed here" in signal.stderr) == (3, True)
    assert everest("workflow", "pause", str(run_id)).exit_code == 0
    assert everest("workflow", "cancel", str(run_id)).exit_code == 0
    assert world.status(run_id) == "cancelled"


def test_rows_of_a_workflow_cannot_speak_to_the_terminal(everest: Everest, world: MysqlWorld) -> None:
    evil = "\x1b[2J[red]evil"
    run_id = world.begin(workflow("speaks").then(gives(word=evil), name="only").build(), {"p": evil}, key=evil)

    shown = everest("workflow", "show", str(run_id)).stdout + everest("workflow", "list").stdout

    assert "\x1b" not in shown
    assert "[red]evil" in shown


def test_the_help_is_in_the_order_of_use(everest: Everest) -> None:
    shown = everest("workflow", "--help").stdout
    commands = (
        "list show timeline trace dispatch pause resume retry cancel signal approve reject input compensate purge"
        " queues"
    )

    assert [line.split()[0] for line in shown.split("Commands:")[1].split("\n") if line.strip()] == commands.split()


def test_every_command_answers_programs_in_json(everest: Everest, closing: int) -> None:
    for command in (["list"], ["show", str(closing)], ["timeline", str(closing)], ["purge", "--dry-run"]):
        assert json.loads(everest("workflow", *command, "--json").stdout)
    refused = everest("workflow", "resume", str(closing), "--json")
    assert (refused.exit_code, answer(refused)["status"]) == (3, "error")
