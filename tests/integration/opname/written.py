"""Headers as another program writes them."""

from __future__ import annotations

from typing import Any

MOMENT = "%Y-%m-%d %H:%M:%S"
"""As a problem names an instant; with its day, which may end between two instants of a test."""


def set_header(connection: Any, header_id: int, column: str, value: str | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE so_headers_staging SET {column} = %s WHERE id = %s", (value, header_id))
    connection.commit()
