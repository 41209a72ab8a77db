"""Says in plain words when the Python at hand is too old to set Lookout up. Runs on any Python 3."""

import sys

NEEDED = (3, 11)

if sys.version_info[:2] < NEEDED:
    found = ".".join(str(part) for part in sys.version_info[:3])
    sys.exit(
        "Lookout needs Python {}.{} or newer, and {} is {}.\nName another one: make PYTHON=python3.12 demo".format(
            NEEDED[0], NEEDED[1], sys.executable, found
        )
    )
