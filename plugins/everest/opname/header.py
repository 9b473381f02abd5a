"""What a document's first row says, and what the master data say of it: the two things every rule looks at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from everest.errors import Problem
from everest.opname.journal import Accounts


@dataclass(frozen=True)
class Header:
    """One row of so_headers_staging. Instants (`*_at`) are aware; snapshot_at is never empty (created_at stands in).

    otorisasi_level and diotorisasi_* come from whoever was logged in, never from an uploaded file. `flaws`: what could
    not be read as it stands in the row, so that it is refused with all other problems. `lines_purged_at`: when the
    lines of a posted document were taken away (aware); what was posted from them stays.
    """

    header_id: int
    transaksi_id: int
    nomer_nota: str
    gudang_kode: str
    tanggal_opname: date
    tanggal_posting: date | None
    snapshot_at: datetime
    otorisasi_level: int
    diotorisasi_oleh: str | None
    diotorisasi_at: datetime | None
    dibuat_oleh: str | None
    flaws: tuple[Problem, ...] = ()
    lines_purged_at: datetime | None = None


@dataclass(frozen=True)
class References:
    """What the master data say: warehouse and account codes with whether they are active, the accounts of the header's
    warehouse, and whether the site accepts a cost of 0."""

    warehouses: Mapping[str, bool]
    accounts: Mapping[str, bool]
    document_accounts: Accounts
    allow_zero_cost: bool
