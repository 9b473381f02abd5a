"""PAGES-interactive: what a person waits for on the lines of a document of 20,000, in Chromium.

The other rows of PAGES end with the last byte; a person waits until the browser has drawn it and takes what they type.
Each run opens the document, clicks on its lines, waits for the rows to be painted, types a digit into the search field
and stops when it stands there; then clicks on a column, and then searches, each until the rows of the answer are
painted. The time is what passes on the clock of this process, with what driving a browser adds.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence

from playwright.sync_api import Page, sync_playwright

from bench.measure import Result, Run, percentile, spread

ROWS = "document.readyState === 'complete' && document.querySelectorAll('tbody tr').length > 0"
PAINTED = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
WHAT = {
    "interactive": "a click on the lines of a document of {lines:,} until the table takes input",
    "interactive-sort": "a click on a column of that table until its rows stand in the other order",
    "interactive-search": "a search in that table until what it found is shown",
}


def interactive(base_url: str, job: int, lines: int, runs: int, must_s: float, aim_s: float) -> list[Result]:
    """job: of the large document. Raises RuntimeError without Chromium, or when the table does not come."""
    results = []
    for (id, what), seconds in zip(WHAT.items(), zip(*_visits(base_url, job, runs), strict=True), strict=True):
        p95 = percentile(seconds, 0.95)
        results.append(
            Result(
                f"PAGES-{id}",
                f"{what.format(lines=lines)}, Chromium, p95 of {len(seconds)}",
                "s",
                "absolute",
                p95,
                None,
                p95,
                must=must_s,
                aim=aim_s,
                runs=tuple(map(Run, seconds)),
                note=f"median {sorted(seconds)[len(seconds) // 2]:.3f} s ({spread(seconds)})",
            )
        )
    return results


def _visits(base_url: str, job: int, runs: int) -> Sequence[tuple[float, float, float]]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        raise RuntimeError("no Chromium: install the Debian package chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            page = browser.new_context(extra_http_headers={"x-person": "finance"}).new_page()
            # The first one fills caches of the browser and of ours.
            found = [_visit(page, f"{base_url}/documents/{job}") for _ in range(runs + 1)]
        finally:
            browser.close()
    return found[1:]


def _visit(page: Page, address: str) -> tuple[float, float, float]:
    """Seconds until the table takes input, until it is sorted, until it is searched."""
    page.goto(address)
    page.wait_for_load_state()
    search = page.locator("[name=search]")

    began = time.perf_counter()
    page.locator(".tabs a[href*='tab=lines']").click()
    _shown(page, "**tab=lines**")
    search.press("9")
    page.evaluate(PAINTED)
    opened = time.perf_counter() - began
    if search.input_value() != "9":
        raise RuntimeError(f"{address}: the search field takes no input")

    began = time.perf_counter()
    page.locator("#lines thead a[href*='sort=surplus']").click()
    _shown(page, "**sort=surplus**")
    sorted_ = time.perf_counter() - began
    if page.locator("#lines th[aria-sort]").count() != 1:
        raise RuntimeError(f"{address}: the table was not sorted")

    search.fill("4")
    began = time.perf_counter()
    search.press("Enter")
    _shown(page, "**search=4**")
    searched = time.perf_counter() - began
    if not all("4" in text for text in page.locator("#lines tbody th").all_inner_texts()):
        raise RuntimeError(f"{address}: the search found something else")
    return opened, sorted_, searched


def _shown(page: Page, address: str) -> None:
    page.wait_for_url(address, wait_until="commit")
    page.wait_for_function(ROWS)
    page.evaluate(PAINTED)
