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


def proportional_kib(pid: int) -> int:
    """Pss: what several processes share, such as a database's buffers, is divided among them, so that they can be
    added up."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    assert found, f"process {pid} has no memory any more"
    return int(found[1])


def stayed(samples: Sequence[Mapping[str, int]]) -> dict[str, list[int]]:
    """KiB after each part of the work, of what was there in every sample."""
    return {name: [sample[name] for sample in samples] for name in samples[0] if all(name in one for one in samples)}


def growing(samples: Mapping[str, Sequence[int]], room_kib: int) -> list[str]:
    """Of programs with KiB after each part of the work: those that grew by more than `room_kib` since the first sample,
    which is taken when everything has been imported and used once."""
    return [
        f"{program} grew from {sizes[0]} to {sizes[-1]} KiB: {', '.join(map(str, sizes))}"
        for program, sizes in samples.items()
        if sizes[-1] - sizes[0] > room_kib
    ]
