# The consumer and the relay: a small program without Airflow and pandas. Built from the top of the checkout:
#   docker build -f docker/consumer.Dockerfile -t everest-consumer .
FROM python:3.11.14-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/everest
WORKDIR /src
COPY requirements.txt pyproject.toml ./
COPY ingest_consumer ingest_consumer
# Its own dependencies alone, at the versions that the tests ran with; bytecode is made here, the file system is read-only later.
RUN /opt/everest/bin/pip install --compile --constraint requirements.txt .

FROM python:3.11.14-slim-bookworm
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin everest
COPY --from=build /opt/everest /opt/everest
ENV PATH=/opt/everest/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /opt/everest
# The exec form: the program gets the SIGTERM itself, and gives back what it holds.
ENTRYPOINT ["python", "-m", "ingest_consumer"]
CMD ["consume"]
