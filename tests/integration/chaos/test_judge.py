"""The judge of a chaos run on books that are wrong: each fault that is planted is named, good ones give nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any, cast

import pytest

from everest.settings import MysqlUrl
from ingest_consumer.dead_letters import KEY_SHOWN
from tests import builders
from tests.acceptance.live import Live
from tests.chaos import judge, run
from tests.chaos.documents import Draft
from tests.chaos.rig import Rig
from tests.chaos.world import Sent, World
from tests.integration.books.ledger import Count
from tests.integration.opname.walk import Walker

STAMP, GUDANG = "CTEST", "GD-CHAOS-A"
GOOD, REFUSED = f"{STAMP}-1", f"{STAMP}-2"


@dataclass
class _Queue:
    method: Any = None
    message_count: int = 0


class _Channel:
    """An empty broker."""

    def queue_declare(self, queue: str, passive: bool) -> Any:
        return _Queue(method=_Queue())


@dataclass
class Standing(Live):
    """A private schema, and what the broker would say."""

    url: MysqlUrl = field(kw_only=True)
    letters: list[dict[str, Any]] = field(default_factory=list)

    @property
    def mysql(self) -> MysqlUrl:
        return self.url

    @contextmanager
    def channel(self) -> Iterator[Any]:
        yield _Channel()

    def rabbitmqctl(self, *arguments: str) -> str:
        return "everest.jobs.q\t0"

    def dead_letters(self, shadow_id: int | None = None) -> list[dict[str, Any]]:
        return self.letters


@pytest.fixture
def world(database: MysqlUrl) -> World:
    """One document that was posted, one that was refused, and one wrong message; all as it must be."""
    live = Standing({}, url=database)
    world = World(live, cast(Rig, None), STAMP)
    world.prepare()
    good = _sent(world, 1, Count("A", GUDANG, Decimal(10), Decimal(12), Decimal(1500)))
    refused = _sent(world, 2, Count("B", GUDANG, Decimal(5), None, Decimal(100)))
    walker = Walker(database)
    try:
        assert walker.post(good.shadow_id) == "COMPLETED"
        assert walker.post(refused.shadow_id) == "FAILED"
    finally:
        walker.close()
    _do(world, "UPDATE outbox SET published_at = NOW(6)")
    _do(world, "UPDATE rabbit_publish_shadow SET dead_lettered_at = NOW(6) WHERE worker_status = 'FAILED'")
    world.broken.append(b"not json CTEST-0")
    live.letters = [_letter(refused.shadow_id, "failed"), _letter(None, "broken", world.broken[0])]
    return world


def _sent(world: World, number: int, line: Count) -> Sent:
    draft = Draft(number, "good", GUDANG, (line,))
    paper = world.paper(draft)
    with world.live.connection() as conn:
        document = builders.document(
            conn,
            world.staged_lines(paper),
            nomer_nota=paper.nota,
            gudang_kode=GUDANG,
            snapshot_at=paper.snapshot,
            diotorisasi_at=world.began,
        )
    sent = Sent(draft, paper, document.shadow_id, document.transaksi_id, message=document.message)
    world.was_taken(sent)
    return sent


def _letter(shadow_id: int | None, standing: str, body: bytes = b"") -> dict[str, Any]:
    key = sha256(body).hexdigest()[:KEY_SHOWN]
    return {"letter": key, "standing": standing, "shadow_id": shadow_id, "reason": "because"}


def _do(world: World, sql: str, *values: Any) -> int:
    with world.live.connection() as conn, conn.cursor() as cursor:
        changed: int = cursor.execute(sql, values or None)
        conn.commit()
    return changed


def _found(world: World) -> list[str]:
    return judge.problems(world, trouble_is_over=True) + run.open_ones(world)


def test_a_good_world_gives_nothing(world: World) -> None:
    assert _found(world) == []
    assert _found(world) == [], "a second look is as good as the first"


def _journal(world: World, nota: str, row: str) -> None:
    where = "FROM jurnal WHERE nomer_nota = %s LIMIT 1"
    columns = "nomer_nota, sumber, tanggal_wib, kode_akun, debet, kredit"
    if row == "double":
        assert _do(world, f"INSERT INTO jurnal ({columns}) SELECT {columns} {where}", nota)
    else:
        values = f"SELECT '{nota}', sumber, tanggal_wib, kode_akun, debet, kredit"
        assert _do(world, f"INSERT INTO jurnal ({columns}) {values} {where}", GOOD)


def _posting(world: World, nota: str) -> None:
    columns = "dag_run_id, input_hash, total_debet, total_kredit, baris_selisih"
    assert _do(
        world,
        f"INSERT INTO posting_sets (transaksi_id, nomer_nota, {columns})"
        f" SELECT 7777, %s, {columns} FROM posting_sets WHERE nomer_nota = %s",
        nota,
        GOOD,
    )


def _unknown_job(world: World) -> None:
    with world.live.connection() as conn:
        builders.shadow_row(conn, 8888, f"{STAMP}-9", worker_status="COMPLETED")
        conn.commit()


def _waiting_run(world: World) -> None:
    (row,) = world.rows("SELECT workflow_id FROM rabbit_publish_shadow WHERE nomer_nota = %s", GOOD)
    assert _do(world, "UPDATE workflow_runs SET status = 'waiting_for_signal' WHERE id = %s", row["workflow_id"])


def _unpublished(world: World) -> None:
    with world.live.connection() as conn:
        (shadow_id,) = (one.shadow_id for one in world.sent if one.paper.nota == GOOD)
        message = {"exchange": "everest.jobs.x", "routing_key": "job.process", "body": "{}"}
        builders.insert(conn, "outbox", shadow_id=shadow_id, available_at=datetime(2026, 1, 1), **message)
        conn.commit()


def _row(nota: str, change: str) -> Callable[[World], Any]:
    return lambda world: _do(world, f"UPDATE rabbit_publish_shadow SET {change} WHERE nomer_nota = %s", nota)


def _without(standing: str) -> Callable[[World], Any]:
    def plant(world: World) -> None:
        live = cast(Standing, world.live)
        live.letters = [one for one in live.letters if one["standing"] != standing]

    return plant


def _another_broken_letter(world: World) -> None:
    """An older one, of other words, is none of this run's."""
    _without("broken")(world)
    cast(Standing, world.live).letters.append(_letter(None, "broken", b"of yesterday"))


def _without_reason(world: World) -> None:
    cast(Standing, world.live).letters[0]["reason"] = ""


CENT = "UPDATE jurnal SET debet = debet + 0.01 WHERE nomer_nota = %s AND debet > 0"
NO_POSTING = "DELETE FROM posting_sets WHERE nomer_nota = %s"


@pytest.mark.parametrize(
    ("plant", "named"),
    [
        pytest.param(lambda w: _journal(w, GOOD, "double"), f"the journal of {GOOD} is", id="journal row doubled"),
        pytest.param(lambda w: _do(w, CENT, GOOD), f"the journal of {GOOD} is", id="a cent"),
        pytest.param(
            lambda w: _do(w, "DELETE FROM kartu_stok WHERE nomer_nota = %s", GOOD),
            f"the stock card of {GOOD} is",
            id="stock-card row missing",
        ),
        pytest.param(
            lambda w: _do(w, "UPDATE kartu_stok SET masuk = masuk + 1"),
            "the stock by item and warehouse",
            id="stock",
        ),
        pytest.param(lambda w: _journal(w, f"{STAMP}-9", "of"), f"the journal of {STAMP}-9", id="nobody's journal row"),
        pytest.param(lambda w: _journal(w, REFUSED, "of"), f"the journal of {REFUSED}", id="a refused one's row"),
        pytest.param(lambda w: _posting(w, REFUSED), f"{REFUSED} was posted, but", id="a refused one posted"),
        pytest.param(lambda w: _posting(w, f"{STAMP}-9"), f"{STAMP}-9 was posted, and sent by nobody", id="nobody's"),
        pytest.param(_unknown_job, "was sent by nobody", id="a job of nobody"),
        pytest.param(lambda w: _do(w, NO_POSTING, GOOD), "posted: False", id="COMPLETED without a posting"),
        pytest.param(_row(REFUSED, "error = ''"), "FAILED with a reason was due", id="FAILED without a reason"),
        pytest.param(_row(REFUSED, "error_code = 409"), "the ledger says 422", id="FAILED for another reason"),
        pytest.param(_row(REFUSED, "error_code = 503"), "it was run again, and fails still", id="trouble that stays"),
        pytest.param(_row(GOOD, "worker_status = 'PENDING'"), "it has not ended", id="PENDING"),
        pytest.param(_row(GOOD, "worker_status = 'PENDING'"), "is PENDING at", id="PENDING keeps the run going"),
        pytest.param(_row(REFUSED, "dead_lettered_at = NULL"), "is FAILED at", id="no letter yet keeps the run going"),
        pytest.param(_waiting_run, "although its job has ended", id="a run that waits"),
        pytest.param(_without("failed"), "without a dead letter", id="no letter"),
        pytest.param(_without_reason, "has no reason", id="letter without a reason"),
        pytest.param(_without("broken"), "left no dead letter", id="broken message without a letter"),
        pytest.param(_another_broken_letter, "left no dead letter", id="the letter of another broken message"),
        pytest.param(_unpublished, "is not published", id="outbox row"),
    ],
)
def test_each_fault_is_named(world: World, plant: Callable[[World], Any], named: str) -> None:
    plant(world)

    found = _found(world)

    assert any(named in one for one in found), found


def test_a_document_that_was_stored_and_never_confirmed_is_judged_as_all_others(world: World) -> None:
    """The sender gave up, its commit had come through."""
    lost = world.sent.pop(0)
    world.tried[lost.paper.nota] = (lost.draft, lost.paper)
    assert _found(world) == []
    assert {one.shadow_id for one in world.sent} == {
        one["id"] for one in world.rows("SELECT id FROM rabbit_publish_shadow")
    }

    world.sent[:] = [one for one in world.sent if one.shadow_id != lost.shadow_id]
    _do(world, CENT, lost.paper.nota)
    assert any(f"the journal of {lost.paper.nota} is" in one for one in _found(world))


def test_a_nota_that_was_stored_twice_is_posted_once_and_refused_once(world: World) -> None:
    """The answer to a foreign commit was lost, and it was made again."""
    with world.live.connection() as conn:
        twin = builders.shadow_row(
            conn,
            9999,
            GOOD,
            worker_status="FAILED",
            error_code=409,
            error="sudah diposting",
            dead_lettered_at="2026-01-01",
        )
        conn.commit()
    world.tried[GOOD] = (world.sent[0].draft, world.sent[0].paper)
    cast(Standing, world.live).letters.append(_letter(twin, "failed"))
    assert _found(world) == []

    _do(world, "UPDATE rabbit_publish_shadow SET error_code = 500 WHERE id = %s", twin)
    assert any("posted: True" in one for one in _found(world))


def test_only_what_our_own_intake_stamped_by_a_clock_that_was_ahead_may_come_from_the_future(world: World) -> None:
    good = world.sent[0]
    good.submission = world.submission(good.paper)
    for table in ("posting_sets", "jurnal", "kartu_stok"):
        _do(world, f"DELETE FROM {table} WHERE nomer_nota = %s", GOOD)
    change = "worker_status = 'FAILED', error_code = 422, error = 'masa depan', dead_lettered_at = '2026-01-01'"
    _row(GOOD, change)(world)
    cast(Standing, world.live).letters.append(_letter(good.shadow_id, "failed"))
    assert any(f"{GOOD} (job #{good.shadow_id}) is FAILED 422" in one for one in _found(world))

    _do(world, "UPDATE so_headers_staging SET diotorisasi_at = %s WHERE nomer_nota = %s", _in_an_hour(), GOOD)
    assert _found(world) == []

    good.submission = None
    assert any(f"{GOOD} (job #{good.shadow_id}) is FAILED 422" in one for one in _found(world))


def _in_an_hour() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=1)
