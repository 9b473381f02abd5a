"""The reconciler: finds what a crash left behind by looking at rows every few seconds, and repairs it.

Level-triggered: it remembers nothing that matters, hears of no event, and a second round finds nothing left to do.
What it looks for is the table of the state protocol; here it is split into

    rows.py        what a round finds, as it was when it looked
    verdict.py     what Airflow's answer about a run means (pure)
    repairs.py     jobs: one transaction per repair: lock, look again, change
    workflows.py   workflows: missed wake-ups, deadlines, compensations
    rounds.py      one round over all kinds, and what to do while a server is away
    management.py  whether the jobs queue is empty
    __main__.py    the process

One process is active (a named lock of the database decides), but nothing hangs on that: two at once do the same work
once, because each repair takes the run's row, or the job's row by compare-and-set, as it was seen.
"""
