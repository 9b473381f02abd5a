"""Everything that goes wrong at once, by a seed: schedule.py draws what happens, judge.py what must hold after it."""
