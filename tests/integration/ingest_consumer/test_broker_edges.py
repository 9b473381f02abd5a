"""What a broker does that nobody asked for: rights that go, a queue that somebody else makes anew, messages that expire
or come back ten thousand times. The job is done once when all is well again, and nothing has to be restarted.
"""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta
from urllib.parse import urlsplit

import pika
import pytest

from ingest_consumer import dead_letters
from ingest_consumer.dead_letters import Standing
from ingest_consumer.settings import Settings
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import DLQ, QUEUE, announce, at_work
from tests.queue_rig import Rows, Running, Vhost, until

OFTEN = timedelta(milliseconds=100)
EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}
NOTHING = {"configure": "^$", "write": "^$", "read": "^$"}


def is_done(rows: Rows, shadow_id: int) -> bool:
    return bool(rows.get(shadow_id)["worker_status"] == "COMPLETED")


def refused(caplog: pytest.LogCaptureFixture, program: str) -> bool:
    return any(line.startswith(f"{program}: ") and "ACCESS_REFUSED" in line for line in caplog.messages)


@pytest.mark.parametrize("is_gone", [False, True], ids=["no right to anything", "no right to the vhost"])
@pytest.mark.long
def test_rights_that_are_withdrawn_and_given_back_cost_no_job_and_no_restart(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    posts: FakeAirflow,
    caplog: pytest.LogCaptureFixture,
    is_gone: bool,
) -> None:
    user = urlsplit(vhost.amqp_url).username
    running.consumer(settings, check_every=OFTEN)
    running.relay(settings, check_every=OFTEN)
    first = announce(rows, 6001)
    until(lambda: is_done(rows, first), "the first job")

    if is_gone:
        vhost.api("DELETE", f"permissions/{vhost.name}/{user}")
    else:
        vhost.api("PUT", f"permissions/{vhost.name}/{user}", NOTHING)
    for program in ("worker 1", "relay"):
        until(lambda program=program: refused(caplog, program), "it is refused, and says so")
    second = announce(rows, 6002)
    vhost.api("PUT", f"permissions/{vhost.name}/{user}", EVERYTHING)

    until(lambda: is_done(rows, second), "the second job")
    assert running.are_alive()
    assert len(posts.runs) == 2


@pytest.mark.long
def test_a_queue_that_somebody_else_makes_anew_is_named_until_it_goes_and_then_work_goes_on(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    posts: FakeAirflow,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its rejections would vanish: nothing is taken from it, and the relay puts nothing more into it."""
    running.consumer(settings, check_every=OFTEN)
    running.relay(settings, check_every=OFTEN)
    until(lambda: vhost.has_consumer(QUEUE), "it takes jobs")
    caplog.clear()

    foreign = {"durable": True, "arguments": {"x-max-length": 5}}

    def somebody_was_quicker() -> bool:
        vhost.api("DELETE", f"queues/{vhost.name}/{QUEUE}")
        with closing(vhost.connect()) as connection:
            try:
                connection.channel().queue_declare(QUEUE, durable=True, arguments=foreign["arguments"])
            except pika.exceptions.ChannelClosedByBroker:
                return False
        return True

    until(somebody_was_quicker, "their queue stands there")
    until(lambda: "x-max-length is 5, must be absent" in caplog.text, "it is named")
    shadow_id = announce(rows, 6003)
    assert not vhost.has_consumer(QUEUE)
    vhost.api("DELETE", f"queues/{vhost.name}/{QUEUE}")

    until(lambda: is_done(rows, shadow_id), "the job")
    assert running.are_alive()


def test_a_message_that_expired_is_a_letter_of_a_job_that_is_still_to_be_done(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, posts: FakeAirflow
) -> None:
    """The broker's doing, not the job's: the reconciler sends it again, and the letter goes with the end."""
    vhost.declare()
    shadow_id = rows.ours(6004)
    body = json.dumps(rows.body(shadow_id)).encode()
    with closing(vhost.connect()) as connection:
        connection.channel().basic_publish("", QUEUE, body, pika.BasicProperties(expiration="1", delivery_mode=2))
    until(lambda: vhost.depth(DLQ) == 1, "it expired")

    def standing() -> list[Standing]:
        with closing(vhost.connect()) as connection, dead_letters.opened(connection, rows.database, 5) as box:
            assert box is not None
            return [letter.standing for letter in box.letters]

    assert standing() == [Standing.AT_WORK]
    vhost.publish(body)  # the reconciler's copy
    running.consumer(settings)
    until(lambda: is_done(rows, shadow_id), "done")
    assert standing() == [Standing.SETTLED]


def test_a_row_that_is_deleted_while_its_run_is_at_work_leaves_a_letter(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    vhost.declare()
    shadow_id = rows.ours(6005)
    vhost.publish(rows.body(shadow_id))
    running.consumer(settings)
    at_work(rows, airflow, shadow_id)

    rows.do("DELETE FROM rabbit_publish_shadow WHERE id = %s", shadow_id)

    (letter,) = vhost.finished()
    assert json.loads(letter)["shadow_id"] == shadow_id


@pytest.mark.long
def test_a_message_that_comes_back_ten_thousand_times_is_one_job(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, posts: FakeAirflow
) -> None:
    vhost.declare()
    shadow_id = rows.foreign(6006)
    vhost.publish(rows.body(shadow_id))
    with closing(vhost.connect()) as connection:
        channel = connection.channel()
        for _ in range(10_000):
            method, _, _ = channel.basic_get(QUEUE)
            assert method is not None
            channel.basic_nack(method.delivery_tag, requeue=True)

    running.consumer(settings)

    until(lambda: is_done(rows, shadow_id), "done")
    assert (vhost.finished(), len(posts.runs), rows.get(shadow_id)["attempts"]) == ([], 1, 1)
