"""The small program between the queue and Airflow: it publishes, delivers and dead-letters; it knows no stock.

Installs alone (pika, httpx, PyMySQL, click, aiosql): no Airflow, no pandas, nothing of everest.
"""
