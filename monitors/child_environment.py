"""Select the environment variables that other programs receive. Lookout's own secrets are not passed on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_ALLOWED: Final = re.compile(
    r"PREFECT_\w+|PLAYWRIGHT_\w+|PW_\w+|NODE_\w+|CHROM(?:E|IUM)_\w+"  # Prefect's server, and the browser's driver
    r"|(?:HTTPS?|ALL|NO|FTP)_PROXY|SSL_CERT_(?:FILE|DIR)|(?:REQUESTS|CURL)_CA_BUNDLE"
    r"|LANG|LANGUAGE|LC_\w+|TZ|TERM"
    r"|PATH|HOME|USER|LOGNAME|SHELL|PWD|TMPDIR|TMP|TEMP|XDG_\w+|LD_LIBRARY_PATH|PYTHON\w+|VIRTUAL_ENV"
    r"|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|DBUS_\w+|FONTCONFIG_\w+",
    re.IGNORECASE,
)
"""Names of variables that may be passed to another program.

PREFECT_API_AUTH_STRING and the password of a proxy are included, because Prefect's server, browsers and installers
need them.
"""


def build_child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that may be passed to Prefect's server, a browser or an installer."""
    return {name: value for name, value in environment.items() if _ALLOWED.fullmatch(name)}
