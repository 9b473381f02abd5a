# Airflow with our DAGs, tasks and pages; the reconciler and the commands, too. Built from the top of the checkout:
#   docker build -f docker/airflow.Dockerfile -t everest-airflow .
FROM python:3.11.14-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# The driver of the MySQL provider is compiled. Versions are Debian's for this release; what stays is the library alone.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev libmariadb-dev pkg-config \
    && rm -rf /var/lib/apt/lists/*
RUN python -m venv /opt/everest
COPY requirements.txt /src/
# Bytecode is made here: without it every task process would compile what it imports, at three times the cost.
RUN /opt/everest/bin/pip install --compile --requirement /src/requirements.txt

FROM python:3.11.14-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libmariadb3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin everest \
    && install -d -o 10001 -g 10001 /opt/airflow /opt/airflow/logs
COPY --from=build /opt/everest /opt/everest
WORKDIR /opt/product
COPY config config
COPY sql sql
COPY ingest_consumer ingest_consumer
COPY plugins plugins
COPY dags dags
COPY docker/airflow.cfg /opt/airflow/airflow.cfg
RUN /opt/everest/bin/python -m compileall -q config ingest_consumer plugins dags
# config/ holds airflow_local_settings.py, which workers import before they fork.
ENV PATH=/opt/everest/bin:$PATH PYTHONPATH=/opt/product:/opt/product/plugins:/opt/product/config \
    AIRFLOW_HOME=/opt/airflow PYTHONUNBUFFERED=1
USER 10001:10001
CMD ["python", "-m", "everest", "--help"]
