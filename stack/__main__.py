"""`python3 -m stack COMMAND`: says which Python is needed before anything is imported that an older one cannot read.

This file and the package's __init__ are therefore written for any Python there is; a test holds them to it.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the Makefile takes whatever python3 is
    found = sys.executable + " is " + sys.version.split()[0]
    sys.exit("stack: Python 3.11 or 3.12 is needed, " + found + "; name one that is here: `make PYTHON=python3.11 ...`")

if __name__ == "__main__":
    from stack.commands import main

    sys.exit(main())
