# `make` alone prints this list. The work is done by the Python package stack/; see its docstrings.
PYTHON ?= python3
VENV := .venv/bin
# Bytecode is wanted: without it every process compiles what it imports.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPATH := $(CURDIR):$(CURDIR)/plugins
# `make up EXECUTOR=celery WORKERS=2 CONSUMERS=2 STANDBY=1`; only what is said on the command line counts.
define shape
ifeq ($$(origin $(1)),command line)
export EVEREST_STACK_$(1) := $$($(1))
endif
endef
$(foreach name,EXECUTOR WORKERS CONSUMERS STANDBY,$(eval $(call shape,$(name))))
STACK = $(VENV)/python -m stack
# down, clean and status must work, or say why not, when there is no environment.
ANYWAY = $(shell test -x $(VENV)/python && echo $(VENV)/python || echo $(PYTHON)) -m stack

.DEFAULT_GOAL := help
.PHONY: help setup up down status logs clean demo test test-all chaos check format pictures bench bench-smoke migrate-large requirements

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(firstword $(MAKEFILE_LIST)) | while IFS='	' read -r name text; do printf 'make %-14s %s\n' "$$name" "$$text"; done

setup: ## system packages (apt, where missing), .venv and the pinned dependencies
	@$(PYTHON) -m stack setup

up: setup ## start the local stack: MariaDB, RabbitMQ, PostgreSQL, Airflow, consumer, relay, reconciler
	@$(STACK) up

down: ## stop the local stack, every process of it
	@$(ANYWAY) down

status: ## what runs, and where; exit code 0 when everything does, 2 when not
	@$(ANYWAY) status

logs: ## follow the logs; P=consumer for one process
	@$(ANYWAY) logs $(P)

clean: ## stop the local stack and remove its data, logs and passwords
	@$(ANYWAY) clean

# Before `up`: nobody waits for a stack to be told that a word is unknown.
$(if $(filter demo,$(MAKECMDGOALS)),$(if $(strip $(ARGS)),$(error make demo has nothing to choose: leave out ARGS)))
demo: up ## documents from submission to balanced books, live
	@bash -c 'source .local/stack.env; exec python -m demo'

# Two passes: what has a schema and a vhost of its own runs on all cores; what kills and restarts parts of the one stack
# runs after it, alone. Both always run. Exit code 5 of pytest is "none chosen", which ARGS may mean for one of them.
PYTEST = $(VENV)/python -m pytest
define passes
	@$(PYTEST) -n auto --maxprocesses 4 -m 'not acceptance $(1)' $(ARGS); alone=$$?; \
	$(PYTEST) -m 'acceptance $(1)' $(ARGS); stack=$$?; \
	case $$alone-$$stack in 0-0|0-5|5-0) ;; *) exit 1 ;; esac
endef

test: up ## the tests, on the local stack; ARGS='-k words' chooses
	$(call passes,and not long)

test-all: up ## the tests with those marked long
	$(call passes,)

chaos: up ## break everything by a seed and look whether the books hold; ARGS='--seed 7 --seconds 120'
	@$(VENV)/python -m tests.chaos $(ARGS)

check: setup ## format, lint, types, who may import whom, pins, secrets, known holes
	@$(VENV)/ruff format --check .
	@$(VENV)/ruff check .
	@$(VENV)/mypy
	@$(VENV)/lint-imports
	@$(STACK) requirements --check
	@$(STACK) check

format: setup ## format the code and sort the imports
	@$(VENV)/ruff check --fix --exit-zero --quiet .
	@$(VENV)/ruff format .

migrate-large: up ## adopt 3 x 5 million rows beside writers, minutes and gigabytes; EVEREST_MIGRATION_ROWS=100000
	@bash -c 'source .local/stack.env; exec $(VENV)/python -m pytest -q -s -m long tests/migrations/test_large.py'

pictures: up ## a picture of every page, in both languages, at a desk and on a phone: .local/pictures
	@EVEREST_PICTURES=$(CURDIR)/.local/pictures $(PYTEST) -q tests/pages/test_seen.py tests/pages/test_seen_by_role.py -k "phone or role_sees or refuses"

bench: up ## the benchmarks; writes bench/results/
	@bash -c 'source .local/stack.env; exec python -m bench $(ARGS)'

bench-smoke: up ## the benchmarks, small: that they work, not how fast
	@bash -c 'source .local/stack.env; exec python -m bench --smoke $(ARGS)'

requirements: setup ## compile requirements*.in to the pinned requirements*.txt
	@$(STACK) requirements
