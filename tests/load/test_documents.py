"""A thousand documents of 5 to 5,000 lines from several senders at once, through the whole stack: posted once each, the
books equal to a plain ledger, and no process that grows with the work.

Half of the senders submit by our web path, and the relay publishes for them; the others are other programs, which write
their rows and publish their messages themselves.

EVEREST_LOAD_DOCUMENTS=100 makes it smaller.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random

import pytest

from everest import bootstrap
from everest.intake import submit
from everest.intake.submission import Authority, Line, Submission
from everest.settings import Settings
from stack import manager, processes
from stack.layout import Layout
from stack.programs import Stack
from tests import builders
from tests.acceptance.live import Live
from tests.load.resident import growing, proportional_kib, resident_kib, stayed

DOCUMENTS = int(os.environ.get("EVEREST_LOAD_DOCUMENTS", "1000"))
SENDERS = 4
FOREIGN = (2, 3)
"""Which of the senders are other programs."""
APART = SENDERS * DOCUMENTS
"""Between two numbers of a foreign sender. Ours go on from the highest that was posted: all of them together do not
come to the next number of a foreign one."""
LENGTHS = ((5, 20), (20, 200), (200, 1_000), (1_000, 5_000))
WEIGHTS = (60, 25, 10, 5)
WAREHOUSES = tuple(f"GD-LOAD-{number}" for number in range(5))
AIRFLOW = ("airflow-scheduler", "airflow-api-server", "airflow-dag-processor")
SERVERS = ("mariadb", "rabbitmq", "postgresql")
WATCHED = ("consumer", "relay", "reconciler", *AIRFLOW, "airflow-worker", *SERVERS)
"""Celery workers, and further ones of ours, where the stack's shape has them."""
PARTS = 4
STILL_SECONDS = 300
ROOM_KIB = {"consumer": 4_096, "relay": 4_096, "reconciler": 4_096} | {
    "mariadb": 262_144,
    "postgresql": 131_072,
    "rabbitmq": 32_768,
}
"""Ours keep nothing of a document: what they may take more after the first quarter is the allocator's. Airflow's
processes keep caches of their own (parsed DAGs, sessions, log state) and are given a tenth of a GiB; a leak of 100 KiB
a document would still show. The databases fill the buffers they are given, 256 and 128 MiB; what the
broker holds comes and goes with the queue."""
AIRFLOW_ROOM_KIB = 102_400
CENT = Decimal("0.01")


def documents(rng: Random, mark: str) -> list[Submission]:
    """Each counts items of its own, so that none makes another stale."""
    found = []
    for number in range(DOCUMENTS):
        (least, most) = rng.choices(LENGTHS, WEIGHTS)[0]
        lines = tuple(_line(rng, f"{mark}-{number}-{place}") for place in range(rng.randint(least, most)))
        gudang = rng.choice(WAREHOUSES)
        counted = datetime.now(UTC) - timedelta(hours=1)
        day = counted.astimezone(builders.WIB).date()
        found.append(Submission(f"{mark}-{number}", gudang, day, lines, snapshot_at=counted))
    return found


def _line(rng: Random, code: str) -> Line:
    def number(most: int, places: int) -> Decimal:
        return Decimal(rng.randint(1, most)).scaleb(-places)

    return Line(code, qty_sistem=number(9_999, 2), qty_fisik=number(9_999, 2), harga_pokok=number(99_999, 4))


def value(line: Line) -> Decimal:
    assert line.qty_fisik is not None
    assert line.qty_sistem is not None
    assert line.harga_pokok is not None
    return ((line.qty_fisik - line.qty_sistem) * line.harga_pokok).quantize(CENT, ROUND_HALF_UP)


def send(live: Live, some: Sequence[Submission]) -> None:
    with closing(bootstrap.database(live.mysql, Settings())) as database:
        for one in some:
            submit.submit_document(database.transaction, one, Authority("sari", "budi", 2))


def send_foreign(live: Live, some: Sequence[Submission], first_id: int) -> None:
    with live.connection() as conn, live.channel() as channel:
        for place, one in enumerate(some):
            assert one.snapshot_at is not None
            lines = [
                builders.Line(each.kode_barang, f"{each.qty_sistem}", f"{each.qty_fisik}", f"{each.harga_pokok}")
                for each in one.lines
            ]
            document = builders.document(
                conn,
                lines,
                nomer_nota=one.nomer_nota,
                transaksi_id=first_id + place * APART,
                gudang_kode=one.gudang_kode,
                snapshot_at=one.snapshot_at,
                with_warehouses=False,
            )
            conn.commit()
            body = json.dumps(document.message).encode()
            channel.basic_publish("everest.jobs.x", "job.process", body, mandatory=True)


def statuses(live: Live, mark: str) -> Counter[str]:
    sql = "SELECT worker_status, COUNT(*) AS n FROM rabbit_publish_shadow WHERE nomer_nota LIKE %s GROUP BY 1"
    return Counter({row["worker_status"]: row["n"] for row in live.rows(sql, f"{mark}-%")})


@pytest.mark.long
def test_a_thousand_documents_from_several_senders_are_posted_and_no_process_grows(live: Live) -> None:
    mark = f"LOAD{time.time_ns() // 10**6:x}"
    with live.connection() as conn:
        for kode in WAREHOUSES:
            builders.warehouse(conn, kode)
    layout, sent = Layout.here(), documents(Random(20260102), mark)
    mains = {program: state.pid for program, state in manager.states(layout).items()}
    samples = [memory(layout)]  # before the work: told, not judged
    (highest,) = live.rows(
        "SELECT GREATEST(COALESCE((SELECT MAX(transaksi_id) FROM so_headers_staging), 0),"
        " COALESCE((SELECT MAX(id) FROM transaksi), 0)) AS id"
    )
    began = time.monotonic()
    with ThreadPoolExecutor(SENDERS) as pool:
        senders = [
            pool.submit(
                send_foreign, live, sent[number::SENDERS], highest["id"] + 1_000_000 + number * APART // SENDERS
            )
            if number in FOREIGN
            else pool.submit(send, live, sent[number::SENDERS])
            for number in range(SENDERS)
        ]
        for part in range(1, PARTS + 1):
            _wait_for(live, mark, part * DOCUMENTS // PARTS, senders)
            samples.append(memory(layout))
            done, seconds = part * DOCUMENTS // PARTS, time.monotonic() - began
            print(f"{done} documents after {seconds:.0f} s: {samples[-1]}", flush=True)
        for one in senders:
            one.result()
    lines = sum(len(one.lines) for one in sent)
    print(f"{DOCUMENTS} documents, {lines} lines in {seconds:.0f} s; KiB before and after each quarter:")
    for name, sizes in sorted(stayed(samples).items()):
        print(f"    {name}: {', '.join(map(str, sizes))}")

    assert statuses(live, mark) == {"COMPLETED": DOCUMENTS}
    posted = live.rows(
        "SELECT nomer_nota, total_debet, baris_selisih FROM posting_sets WHERE nomer_nota LIKE %s", f"{mark}-%"
    )
    assert len(posted) == DOCUMENTS
    due = {one.nomer_nota: _totals(one) for one in sent}
    assert {row["nomer_nota"]: (row["total_debet"], row["baris_selisih"]) for row in posted} == due
    assert live.books_agree(list(due))
    tries = live.rows("SELECT MAX(n) AS n FROM rabbit_publish_shadow WHERE nomer_nota LIKE %s", f"{mark}-%")
    assert tries == [{"n": 1}], "nobody had to be run again"
    assert not live.tried_again(list(due)), "and no step needed a second try"
    assert {program: state.pid for program, state in manager.states(layout).items()} == mains, "nobody died of it"
    sizes = stayed(samples[1:])
    for program, role in watched(layout).items():
        mine = {name: kib for name, kib in sizes.items() if name.split()[0] == program}
        assert mine, program
        assert not growing(mine, ROOM_KIB.get(role, AIRFLOW_ROOM_KIB))


def watched(layout: Layout) -> dict[str, str]:
    """What is watched in a stack of this shape, each with what it is: `airflow-worker-2` is an `airflow-worker`."""
    return {one.name: one.role for one in Stack.open(layout).programs if one.role in WATCHED}


def memory(layout: Layout) -> dict[str, int]:
    """KiB by process, of ours and of Airflow's; of a server the sum over everything it consists of. A process that ends
    meanwhile, as each task's does, is nobody's."""
    found: Counter[str] = Counter()
    for process in processes.find(layout, watched(layout)):
        is_server = process.program in SERVERS
        try:
            kib = proportional_kib(process.pid) if is_server else resident_kib(process.pid)
        except (OSError, AssertionError):
            continue
        found[process.program if is_server else f"{process.program} {process.pid}"] += kib
    return dict(found)


def _totals(one: Submission) -> tuple[Decimal, int]:
    """The sum of one side of the journal, and the lines with a variance."""
    values = [value(line) for line in one.lines]
    return sum(map(abs, values), Decimal(0)), sum(line.qty_fisik != line.qty_sistem for line in one.lines)


def _wait_for(live: Live, mark: str, completed: int, senders: Sequence[Future[None]]) -> None:
    """As long as documents go on completing: what bounds it is progress."""
    seen, moved_at = -1, time.monotonic()
    while (now := statuses(live, mark))["COMPLETED"] < completed:
        assert not now["FAILED"], now
        for one in senders:
            if one.done():
                one.result()  # raises what stopped it
        if now["COMPLETED"] != seen:
            seen, moved_at = now["COMPLETED"], time.monotonic()
        assert time.monotonic() - moved_at < STILL_SECONDS, f"nothing completes any more: {now}"
        time.sleep(1)
