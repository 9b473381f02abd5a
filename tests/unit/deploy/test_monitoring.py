"""The example alerts and the dashboard use only numbers that exist, and every alert is explained to who gets it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from ingest_consumer import metrics
from tests.queue_rig import ROOT

PROMETHEUS = ROOT / "deploy" / "prometheus"
SAMPLES = {sample: one for one in metrics.ALL for sample in one.samples}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((PROMETHEUS / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana" / "everest.json").read_text(encoding="utf-8"))
    return found


def expressions() -> list[str]:
    targets = [target for panel in dashboard()["panels"] for target in panel["targets"]]
    return [str(one["expr"]) for one in (*rules(), *targets)]


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_names_samples_and_labels_that_exist(expression: str) -> None:
    used = re.findall(r"\beverest_\w+", expression)
    assert used
    assert [name for name in used if name not in SAMPLES] == []
    for name, matchers in re.findall(r"\b(everest_\w+)\{([^}]*)\}", expression):
        labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
        assert labels <= {*SAMPLES[name].labels, "le"}, name


def test_every_alert_is_explained_and_every_explanation_has_its_alert() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 10
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `(Everest\w+)` \|", text, re.MULTILINE)) == sorted(names)


def test_every_alert_says_how_bad_it_is_and_what_happened() -> None:
    assert rules()
    for rule in rules():
        assert rule["labels"]["severity"] in ("page", "ticket"), rule["alert"]
        assert rule["annotations"]["summary"], rule["alert"]


def test_every_metric_of_ours_is_on_the_dashboard() -> None:
    shown = set(re.findall(r"\beverest_\w+", json.dumps(dashboard())))
    assert [one.name for one in metrics.ALL if not shown & set(one.samples)] == []


def test_the_scrape_example_names_each_program_once() -> None:
    (job,) = yaml.safe_load((PROMETHEUS / "scrape.yaml").read_text(encoding="utf-8"))["scrape_configs"]
    programs = [one["labels"]["program"] for one in job["static_configs"]]
    assert sorted(programs) == sorted(metrics.EVERY)
