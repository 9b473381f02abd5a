"""Becomes one program of the stack: `python -m stack.launch NAME`, the command the manager runs.

Before that it ends what an earlier, killed instance left behind (LocalExecutor's workers and their tasks outlive the
scheduler, and would run a task beside its second try). The manager only ever stops a process group, and Airflow's
tasks are not in the scheduler's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from stack import processes
from stack.layout import Layout
from stack.programs import Stack


def main(name: str) -> None:
    layout = Layout.here()
    ended = processes.end(lambda: processes.find(layout, [name]), patience_seconds=0)
    if ended:
        print(f"ended {ended} process(es) of an earlier {name}", flush=True)
    if name == "postgresql":
        # Nobody works in this data folder any more; a pid that somebody else has by now would keep the server down.
        Path(layout.data / "postgresql" / "postmaster.pid").unlink(missing_ok=True)
    stack = Stack.open(layout)
    argv = stack.command(name)
    if stack.program(name).role == "airflow-worker":
        argv += ["--queues", _task_queues(stack, name)]
    if name in processes.SERVERS:
        # What they drop where they stand (Erlang's crash dumps) stays out of the checkout. Root may enter any folder.
        os.chdir(layout.data / ("rabbitmq" if name == "epmd" else name))
    os.execvpe(argv[0], argv, stack.environment(name))


def _task_queues(stack: Stack, name: str) -> str:
    """Every queue that a workflow's steps may wait in, with commas."""
    command = [str(stack.layout.python), "-m", "everest", "workflow", "queues"]
    return subprocess.run(
        command, env=stack.environment(name), capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    main(sys.argv[1])
