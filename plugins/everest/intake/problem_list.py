"""What is wrong with a file, up to a bound: 32 MB can be wrong in millions of places, and nobody reads them."""

from __future__ import annotations

from everest.intake.cells import FileProblem

MAX_PROBLEMS = 200_000
"""Kept; about 130 MB of them, of a workbook 220 MB. Two in each line of the largest document."""


class ProblemList(list[FileProblem]):
    """A list whose `append` keeps no more than MAX_PROBLEMS and counts the others."""

    left_out = 0

    def append(self, problem: FileProblem, /) -> None:
        if len(self) < MAX_PROBLEMS:
            super().append(problem)
        else:
            self.left_out += 1
