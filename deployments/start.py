"""The script ``lookout``: run the command line, or explain that Python is too old or a library is missing.

The script must start on any Python version. Therefore it uses only old syntax, and imports only the standard
library before its checks. If ``make`` runs this file as a program, only the Python version is checked.
"""

import os
import sys

MIN_PYTHON = (3, 11)
USAGE, INCONCLUSIVE, MONITOR = 2, 3, 4
"""Exit codes, as in `deployments.cli.exit_codes`, which an old Python cannot import."""
DISTRIBUTION = "lookout-monitor"
OWN_PACKAGES = ("flows", "monitors", "warehouse", "deployments")
"""Names of Lookout's packages. Another installed package with one of these names would hide Lookout's package."""
OWN_ENVIRONMENT = "Install Lookout in a separate environment: uv tool install, pipx install, or a new venv"


def main():
    """Run ``lookout``. If an import fails, print one line and exit with code 2 or, for a fault of Lookout, 4.

    Ctrl-C during the imports, which take up to a second, ends the command with code 3 and without a traceback.
    """
    refuse_old_python("Install Lookout with a newer Python, for example with uv tool install --python 3.11.")
    try:
        from deployments.cli.app import main as run
    except KeyboardInterrupt:
        sys.exit(INCONCLUSIVE)
    except ImportError as error:
        advice = explain_import_error(error)
        sys.stderr.write("lookout: " + (advice or "this is a fault of Lookout itself: {}".format(error)) + "\n")
        sys.exit(USAGE if advice else MONITOR)
    return run()


def refuse_old_python(advice):
    """If Python is older than Lookout needs, print ``advice`` and exit with code 2."""
    if sys.version_info[:2] < MIN_PYTHON:
        version = ".".join(str(part) for part in sys.version_info[:3])
        message = "Lookout needs Python {}.{} or newer, but {} is Python {}. {}\n"
        sys.stderr.write(message.format(MIN_PYTHON[0], MIN_PYTHON[1], sys.executable, version, advice))
        sys.exit(USAGE)


def explain_import_error(error):
    """Return what to do about an `ImportError`, or ``None`` if Lookout itself is faulty."""
    module = (error.name or "").split(".")[0]
    return _explain_foreign_package() or (
        _explain_unfit_library(module, error) if module and module not in OWN_PACKAGES else None
    )


def _explain_foreign_package():
    """Return a message if one of Lookout's packages is missing or hidden by another package of the same name.

    Return ``None`` if all of Lookout's packages are found.
    """
    from importlib.util import find_spec

    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in OWN_PACKAGES:
        spec = find_spec(name)
        locations = [os.path.abspath(location) for location in (spec and spec.submodule_search_locations) or ()]
        if not locations:
            return "Lookout's package {} is missing from {}. {}.".format(name, here, OWN_ENVIRONMENT)
        if locations[0] != os.path.join(here, name):
            return "{} is another package with the same name as a package of Lookout. {}.".format(
                locations[0], OWN_ENVIRONMENT
            )
    return None


def _explain_unfit_library(module, error):
    """Return a message about a missing or unsuitable library, with the command that installs it."""
    from importlib.util import find_spec
    from shlex import quote

    problem = "cannot be imported ({}) from".format(error) if find_spec(module) else "is missing from"
    requirements = [quote(requirement) for requirement in _select_requirements(module)]
    if not requirements:
        return "the library {} {} {}. {}.".format(module, problem, sys.prefix, OWN_ENVIRONMENT)
    pip = [quote(sys.executable), "-m", "pip", "install"]
    uv = ["uv", "pip", "install", "--python", quote(sys.executable)]
    command = " ".join((pip if find_spec("pip") else uv) + requirements)
    return "the library {} {} {}. To install the right version:\n  {}".format(module, problem, sys.prefix, command)


def _select_requirements(module):
    """Return the requirements to install if the library ``module`` is missing or has the wrong version.

    If only an optional extra requires ``module``, return the requirement of ``module``. Otherwise, return all
    missing requirements. If none is missing, return the requirement of ``module`` or, if it has none, all
    requirements.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        requirements = [requirement.partition(";") for requirement in distribution(DISTRIBUTION).requires or ()]
    except PackageNotFoundError:
        return []
    always = [requirement.strip() for requirement, _, when in requirements if "extra" not in when]
    own = [
        requirement.strip()
        for requirement, _, _ in requirements
        if _parse_distribution_name(requirement) == module.lower().replace("_", "-")
    ]
    missing = [requirement for requirement in always if not _is_installed(_parse_distribution_name(requirement))]
    return (missing if set(own) <= set(always) else own) or own or always


def _parse_distribution_name(requirement):
    """Return the distribution's name in a requirement such as ``moto[s3]>=5``."""
    import re

    return re.split(r"[^A-Za-z0-9_.-]", requirement.strip(), maxsplit=1)[0].lower().replace("_", "-")


def _is_installed(name):
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    refuse_old_python("\nUse a newer Python: make PYTHON=python3.12 demo")
