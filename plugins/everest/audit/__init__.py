"""The audit of the books: what must hold, looked at row by row every night, and by hand whenever somebody asks.

After the posting: steps and constraints keep the books right, the audit proves that they did, also against whatever
came in beside them (another program, a person with a database client, a bug of ours). It never repairs anything.

    finding.py      what an audit finds, and how it walks large tables in windows
    months.py       what was entered in a closed month
    movements.py    movements that came after a count and are dated before it
    jobs.py         jobs: dead DAG runs, late messages, missing dead letters
    invariants.py   the list: each invariant with its sentence, its SQL and its remedy
    settings.py     how patient it is, and where Airflow and the broker are
    run.py          one invariant looked at, and its findings stored
    airflow_dag.py  the DAG `ledger_audit`: one task per invariant
"""
