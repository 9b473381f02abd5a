"""The local stack: private MariaDB, RabbitMQ, PostgreSQL and Airflow below .local/, with our own three processes.

The story: `setup` makes the environment, `up` prepares and starts everything in order, a process manager (supervisor)
keeps it running, `down` ends every process. The whole package up to `setup`, and `down`, work with a bare Python and
nothing but its standard library, for they are needed when there is no .venv.
"""
