"""Through the whole running stack. A package, so that what these tests share ends before the next folder's begin."""
