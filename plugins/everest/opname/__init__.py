"""The domain of stock opname: a counted document in, balanced journal and stock-card rows out.

Pure: no database, no clock, no environment, no Airflow. Read `document.py` (what may be posted), `variance.py` (what it
is worth), `journal.py` and `stock_card.py` (what is written), `approval.py` (what a person decides), then `count.py`
and `steps.py`, which string them together.
"""
