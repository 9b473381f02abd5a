"""The example alerts and the dashboard use only numbers that exist, every alert fires when it should and not before
(Prometheus itself plays that through), and every alert is explained to who gets it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
import yaml

from everest.reconciler import gauges
from ingest_consumer import metrics, verdict, vitals
from ingest_consumer.dead_letters import Standing
from stack import machine
from tests.queue_rig import ROOT

PROMETHEUS = ROOT / "deploy" / "prometheus"
SAMPLES = {sample: one for one in metrics.ALL for sample in one.samples}


OF_PROMETHEUS = ("instance", "job", "program")
"""Labels that the scrape adds to each sample."""


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((PROMETHEUS / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def played() -> list[dict[str, Any]]:
    tests: list[dict[str, Any]] = yaml.safe_load((PROMETHEUS / "alerts_test.yaml").read_text(encoding="utf-8"))["tests"]
    return tests


def series() -> list[str]:
    return sorted({one["series"] for test in played() for one in test["input_series"]})


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana" / "everest.json").read_text(encoding="utf-8"))
    return found


def expressions() -> list[str]:
    targets = [target for panel in dashboard()["panels"] for target in panel["targets"]]
    return [str(one["expr"]) for one in (*rules(), *targets)]


def selectors(expression: str) -> Iterator[tuple[str, str, str, str]]:
    """(sample, label, operator, value) of each matcher."""
    for name, matchers in re.findall(r"\b(everest_\w+)\{([^}]*)\}", expression):
        for label, operator, value in re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"', matchers):
            yield name, label, operator, value


@pytest.mark.parametrize("expression", [*expressions(), *series()])
def test_an_expression_names_samples_labels_and_values_that_exist(expression: str) -> None:
    used = re.findall(r"\beverest_\w+", expression)
    assert used
    assert [name for name in used if name not in SAMPLES] == []
    for name, label, _, value in selectors(expression):
        assert label in {*SAMPLES[name].labels, *OF_PROMETHEUS, "le"}, name
        known = metrics.LABEL_VALUES.get(label)
        assert known is None or set(value.split("|")) <= set(known), f"{label}={value}"
    for labels in re.findall(r"\bby \(([^)]*)\)", expression):
        for name in used:
            histogram = {"le"} if name.endswith("_bucket") else set()
            assert set(re.findall(r"\w+", labels)) <= {*SAMPLES[name].labels, *histogram}, name


@pytest.mark.parametrize("one", series())
def test_a_series_that_an_alert_is_played_with_has_each_label_of_its_metric(one: str) -> None:
    """One with a label too few would fire an alert that never fires in life."""
    name = one.partition("{")[0]
    named = {label for _, label, _, _ in selectors(one)} - set(OF_PROMETHEUS)
    assert named == {*SAMPLES[name].labels, *({"le"} if name.endswith("_bucket") else ())}


def source(pattern: str, *words: str) -> set[str]:
    """What the pattern finds in the files that fit."""
    return {found for file in ROOT.glob(pattern) for word in words for found in re.findall(word, file.read_text())}


def test_the_values_of_labels_are_those_that_the_programs_count_with() -> None:
    known = {label: set(values) for label, values in metrics.LABEL_VALUES.items()}
    assert known["cause"] == {kind.lower() for kind in vitals.HOLDS_UP} | source(
        "ingest_consumer/*.py", r'cause="(\w+)"'
    )
    assert known["worker_status"] == {*gauges.OPEN, *gauges.ENDED}
    stay = set(Standing) - {Standing.SETTLED}
    assert known["standing"] == {one.value.replace(" ", "_") for one in stay}
    assert known["action"] == source("plugins/everest/reconciler/*.py", r'\._say\(\s*"([\w-]+)"')
    assert known["outcome"] == {*verdict._ENDS.values(), *source("ingest_consumer/*.py", r'ended="(\w+)"')}
    words = (r'stage="(\w+)"', r'spent(?: = \{|\[)"(\w+)"')
    assert known["stage"] == source("ingest_consumer/*.py", *words)


def promtool(*arguments: str) -> str:
    found = machine.program("promtool")
    if found is None:
        pytest.fail("no promtool to play the alerts through; `make setup` installs it (Debian's package prometheus)")
    done = subprocess.run([found, *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_understands_alerts_and_scrape_example_and_each_alert_fires_when_it_should() -> None:
    assert f"{len(rules())} rules found" in promtool("check", "rules", "alerts.yaml")
    promtool("check", "config", "scrape.yaml")
    promtool("test", "rules", "alerts_test.yaml")


def test_each_alert_is_played_through_once_not_firing_and_once_firing() -> None:
    cases = [(case["alertname"], bool(case["exp_alerts"])) for test in played() for case in test["alert_rule_test"]]
    assert set(cases) == {(rule["alert"], fires) for rule in rules() for fires in (False, True)}


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


def test_the_dashboard_is_one_that_grafana_shows_as_it_stands() -> None:
    board = dashboard()
    assert board["schemaVersion"] >= 36, "data sources by uid"
    (variable,) = board["templating"]["list"]
    assert (variable["name"], variable["type"], variable["query"]) == ("datasource", "datasource", "prometheus")
    panels = board["panels"]
    numbers = [panel["id"] for panel in panels]
    assert len(numbers) == len(set(numbers)) > 10
    assert len({panel["title"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]
        letters = [target["refId"] for target in panel["targets"]]
        assert len(letters) == len(set(letters)) > 0, panel["title"]
        place = panel["gridPos"]
        assert place["x"] >= 0 and place["y"] >= 0 and min(place["w"], place["h"]) > 0, panel["title"]
        assert place["x"] + place["w"] <= 24, panel["title"]
    for one, other in combinations(panels, 2):
        a, b = one["gridPos"], other["gridPos"]
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        below = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert beside or below, (one["title"], other["title"])


def test_the_scrape_example_names_each_program_once() -> None:
    (job,) = yaml.safe_load((PROMETHEUS / "scrape.yaml").read_text(encoding="utf-8"))["scrape_configs"]
    programs = [one["labels"]["program"] for one in job["static_configs"]]
    assert sorted(programs) == sorted(metrics.EVERY)
