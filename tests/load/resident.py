"""What processes keep in memory while they work: sampled after each part of the work, and judged."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path


def resident_kib(pid: int) -> int:
    """VmRSS of a process, its children not counted."""
    found = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"), re.MULTILINE)
    assert found, f"process {pid} has no memory any more"
    return int(found[1])


def growing(samples: Mapping[str, Sequence[int]], room_kib: int) -> list[str]:
    """Of programs with KiB after each part of the work: those that grew by more than `room_kib` since the first sample,
    which is taken when everything has been imported and used once."""
    return [
        f"{program} grew from {sizes[0]} to {sizes[-1]} KiB: {', '.join(map(str, sizes))}"
        for program, sizes in samples.items()
        if sizes[-1] - sizes[0] > room_kib
    ]
