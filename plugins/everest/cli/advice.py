"""What a person can do about a document that stands still, as commands: only what helps.

A rerun meets the same posted books again, and a document that a person refused has no letter to drop. The rule goes by
the code and the facts of the job, never by the words of the reason; docs/operations.md has the same table for reading.
"""

from __future__ import annotations

import shlex

from everest.cli import output
from everest.intake.lookup import Job

EVEREST = "python -m everest"
NO_LETTER_YEAR = 1970
"""`dead_lettered_at` of what had failed before Everest came."""


def has_letter(job: Job) -> bool:
    """Whether a FAILED job has a dead letter, or gets one."""
    if job.error_code == 403:
        return False
    return job.dead_lettered_at is None or job.dead_lettered_at.year != NO_LETTER_YEAR


def next_steps(job: Job, watched: bool) -> list[str]:
    """Lines; none when there is nothing to do or to wait for."""
    if job.question is not None:
        answer = f"'#{job.shadow_id}' --question {job.question} --reason ..."
        decide = [f"Decide it: {EVEREST} approve {answer}", f"or refuse it: {EVEREST} reject {answer}"]
        return [*decide, *_watching(watched)]
    if job.worker_status == "WAITING":
        show = [] if job.workflow_id is None else [f"What it waits for: {EVEREST} workflow show {job.workflow_id}"]
        return [*show, *_watching(watched)]
    if job.worker_status == "FAILED":
        return [*_put_right(job), *_give_up(job)]
    return [] if watched or job.has_ended else ["It goes on by itself; --watch follows it."]


def _watching(watched: bool) -> list[str]:
    return ["It is watched until then; Ctrl-C ends the watching, not the document."] if watched else []


def _put_right(job: Job) -> list[str]:
    again = f"{EVEREST} rerun '#{job.shadow_id}'"
    is_count = bool(job.nomer_nota) and job.transaksi_id is not None and not job.membalik_nota
    match job.error_code:
        case 403:
            asks = [f"Ask again: {again}"]
            return [*asks, f"Or correct it first: {_correct(job)} --rerun"] if is_count else asks
        case 404 if is_count:
            return [f"When its sender has stored the document: {again}"]
        case 409 if is_count and job.nota_posting_id is not None:
            return [
                "A rerun would be refused again: this nota is posted, and posted books do not change.",
                "What is right goes under a new nota: python -m everest submit FILE --nota NEW ...",
                f"If the posting is wrong, take it back: {EVEREST} reverse {_nota(job)} --reason ...",
            ]
        case 409 if is_count and job.problems:
            return [
                "A rerun would be refused again: the items were posted by another count after this one's snapshot.",
                f"Count again and say when: {_correct(job)} --rerun --snapshot-at 'YYYY-MM-DD HH:MM WIB'",
            ]
        case 409 if job.dibalik_nota or job.membalik_nota:
            return ["A rerun helps only if what the reason names has changed."]
        case 422 if is_count:
            return [f"Correct it: {_correct(job)}", f"Then run it again: {again}"]
        case 423 if is_count:
            return [
                f"Post it in another month: {_correct(job)} --rerun --tanggal-posting YYYY-MM-DD",
                f"Or open the month ({EVEREST} period open YYYY-MM --reason ...) and run it again: {again}",
            ]
    return [f"Run it again when the reason is gone: {again}"]


def _give_up(job: Job) -> list[str]:
    if has_letter(job) and job.transaksi_id is not None:
        return [f"Or give it up: python -m ingest_consumer dead-letters drop --job {job.shadow_id} --reason ..."]
    if job.workflow_id is not None:  # no letter, or no document: `drop` would refuse
        return [f"Or give it up: {EVEREST} workflow cancel {job.workflow_id} --reason ..."]
    return []


def _correct(job: Job) -> str:
    return f"{EVEREST} submit FILE --replace --nota {_nota(job)} --transaksi-id {job.transaksi_id}"


def _nota(job: Job) -> str:
    return shlex.quote(output.plain(job.nomer_nota or ""))
