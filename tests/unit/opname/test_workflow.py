"""The two shapes of the posting: a task for each step, or one for all."""

from __future__ import annotations

from everest.opname.workflow import POST_OPNAME, post_opname
from everest.settings import Settings

STEPS = ["compute_variance", "clean_duplicate_notas", "post_jurnal"]


def test_without_anything_set_each_step_is_a_task_of_its_own() -> None:
    assert [[step.name for step in steps] for steps in POST_OPNAME.grouped()] == [[name] for name in STEPS]
    assert [POST_OPNAME.task_of(name) for name in STEPS] == STEPS


def test_a_site_may_have_one_task_for_all_and_change_its_mind_while_documents_are_on_their_way() -> None:
    fused = post_opname(Settings.from_environment({"EVEREST_POSTING_TASKS": "fused"}))

    assert [[step.name for step in steps] for steps in fused.grouped()] == [STEPS]
    assert {fused.task_of(name) for name in STEPS} == {"compute_variance_to_post_jurnal"}
    assert fused.definition_hash == POST_OPNAME.definition_hash, "the same workflow: runs under way go on in it"
