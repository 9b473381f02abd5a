"""`python -m everest ...`: what an operator types. Each module holds a command or two and no rule of the house."""
