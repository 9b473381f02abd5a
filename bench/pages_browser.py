"""PAGES-interactive: from a click on the lines of a document of 20,000 lines until its table can be used, in Chromium.

The other rows of PAGES end with the last byte; a person waits until the browser has drawn it and takes what they type.
Each run opens the document, clicks, waits for the rows to be painted, types a digit into the search field and stops
when it stands there. The time is what passes on the clock of this process, with what driving a browser adds.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence

from playwright.sync_api import Page, sync_playwright

from bench.measure import Result, Run, percentile, spread

ROWS = "document.readyState === 'complete' && document.querySelectorAll('tbody tr').length > 0"
PAINTED = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"


def interactive(base_url: str, job: int, lines: int, runs: int, must_s: float, aim_s: float) -> Result:
    """job: of the large document. Raises RuntimeError without Chromium, or when the table does not come."""
    seconds = _clicks(base_url, job, runs)
    p95 = percentile(seconds, 0.95)
    return Result(
        "PAGES-interactive",
        f"a click on the lines of a document of {lines:,} until the table takes input, Chromium, p95 of {len(seconds)}",
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


def _clicks(base_url: str, job: int, runs: int) -> Sequence[float]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        raise RuntimeError("no Chromium: install the Debian package chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            page = browser.new_context(extra_http_headers={"x-person": "finance"}).new_page()
            # The first one fills caches of the browser and of ours.
            found = [_click(page, f"{base_url}/documents/{job}") for _ in range(runs + 1)]
        finally:
            browser.close()
    return found[1:]


def _click(page: Page, address: str) -> float:
    page.goto(address)
    page.wait_for_load_state()
    began = time.perf_counter()
    page.locator(".tabs a[href*='tab=lines']").click()
    page.wait_for_url("**tab=lines**", wait_until="commit")
    page.wait_for_function(ROWS)
    page.locator("[name=search]").press("9")
    page.evaluate(PAINTED)
    seconds = time.perf_counter() - began
    if page.locator("[name=search]").input_value() != "9":
        raise RuntimeError(f"{address}: the search field takes no input")
    return seconds
