"""The one file Airflow loads from plugins/: mounts the pages in the API server and puts them into the navigation."""

from __future__ import annotations

from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from everest.pages.mount import Pages
from everest.pages.navigation import PREFIX, views

BASE_URL = conf.get("api", "base_url", fallback="")


class EverestPlugin(AirflowPlugin):
    """Pages for finance, analysts, engineers and warehouses."""

    name = "everest"
    fastapi_apps = [  # noqa: RUF012 - Airflow's own form
        {"app": Pages(conf.get("api", "secret_key"), BASE_URL), "url_prefix": PREFIX, "name": "everest"}
    ]
    external_views = views(urlsplit(BASE_URL).path.rstrip("/") + PREFIX)
