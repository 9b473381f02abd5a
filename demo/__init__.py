"""`make demo`: eight stock counts on their way from submission to the books, live, and what to look at afterwards."""
