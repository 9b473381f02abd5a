"""What posting a document would do: its steps run on the books as they stand, and what they write stays in memory.

Between submitting and posting. There is no second computation that could disagree with the posting: the steps are the
posting's own, on another implementation of their port (`everest.store.rehearsal`). Nothing is written and no row is
locked, so whoever may read may look, as often as they like, while postings are at work.
"""

from __future__ import annotations

from everest.preview.rehearse import of_draft as of_draft
from everest.preview.rehearse import preview as preview
from everest.preview.values import Outcome as Outcome
from everest.preview.values import Preview as Preview
