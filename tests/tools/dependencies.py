"""Write the list of packages that a user installs, with their licences: ``python -m tests.tools.dependencies``.

It reads ``requirements/runtime.lock``, and writes ``requirements/sbom.cdx.json`` (CycloneDX 1.6) and
``docs/dependencies.md``. `make lock` calls it. Licences come from the metadata of the installed packages. For a
package that is not installed here, such as one for Windows, the page says that the licence is unknown.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import tomllib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements" / "runtime.lock"
SBOM = ROOT / "requirements" / "sbom.cdx.json"
PAGE = ROOT / "docs" / "dependencies.md"

NOT_HERE = "unknown: not installed on the machine that made this list"
FOR_PREFECT = frozenset({"fastapi", "sqlalchemy"})
"""Direct dependencies that only limit packages of Prefect to versions with which Prefect's server works."""

SPDX = {
    "MIT License": "MIT",
    "BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.1-or-later",
}
_PACKAGE = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)")
_PARENT = re.compile(r"^    #\s+(?:via )?([a-z0-9][a-z0-9._-]*)(?:\s|$)")


@dataclass
class Package:
    """A package in the lock file.

    ``parents`` are the packages that depend on it. ``direct`` is true if Lookout depends on it directly.
    """

    name: str
    version: str
    parents: set[str] = field(default_factory=set)
    direct: bool = False

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"

    @property
    def licence(self) -> str:
        try:
            metadata = importlib.metadata.metadata(self.name)
        except importlib.metadata.PackageNotFoundError:
            return NOT_HERE
        expression = metadata.get("License-Expression")
        named = [
            line.rpartition(":: ")[2]
            for line in metadata.get_all("Classifier", [])
            if line.startswith("License ::")
        ]
        short = (metadata.get("License") or "").strip()
        plain = [SPDX.get(name, name) for name in named if name != "OSI Approved"]
        if expression:
            return expression
        return " OR ".join(plain) or (SPDX.get(short, short) if 0 < len(short) < 40 else "see its package")


def locked(text: str) -> dict[str, Package]:
    """Parse the text of a lock file, and return its packages by name."""
    packages: dict[str, Package] = {}
    current: Package | None = None
    for line in text.splitlines():
        if match := _PACKAGE.match(line):
            current = packages[match[1]] = Package(match[1], match[2])
        elif current is not None and (parent := _PARENT.match(line)):
            current.parents.add(parent[1])
    for package in packages.values():
        package.direct = "lookout-monitor" in package.parents
        package.parents &= packages.keys()
    return packages


def reached(packages: dict[str, Package], roots: Iterable[str]) -> set[str]:
    """Return the names of the packages ``roots`` and of all their direct and indirect dependencies."""
    names: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting += [package.name for package in packages.values() if name in package.parents]
    return names


def shares(packages: dict[str, Package]) -> tuple[set[str], set[str]]:
    """Return two sets of package names, which may overlap: needed by Lookout itself, and needed by Prefect."""
    roots = {package.name for package in packages.values() if package.direct}
    prefects = {"prefect", *FOR_PREFECT} & packages.keys()
    return reached(packages, roots - prefects), reached(packages, prefects)


def sbom(packages: dict[str, Package], lock: bytes) -> dict[str, Any]:
    """Return the bill of materials in CycloneDX 1.6.

    The same inputs give the same document: the serial number is a hash of the lock file, and there is no timestamp.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    root = f"pkg:pypi/{project['name']}@{project['version']}"
    needs = {
        package.purl: sorted(each.purl for each in packages.values() if package.name in each.parents)
        for package in packages.values()
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, hashlib.sha256(lock).hexdigest())}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": project["name"],
                "version": project["version"],
                "purl": root,
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": [_component(package) for package in packages.values()],
        "dependencies": [
            {"ref": root, "dependsOn": sorted(package.purl for package in packages.values() if package.direct)},
            *({"ref": ref, "dependsOn": targets} for ref, targets in needs.items()),
        ],
    }


def _component(package: Package) -> dict[str, Any]:
    licence = package.licence
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
    }
    if licence != NOT_HERE:
        component["licenses"] = [{"license": {"name": licence}}]
    return component


def page(packages: dict[str, Package]) -> str:
    """Return the text of `docs/dependencies.md`: each package with its version, its licence, and what needs it."""
    ours, prefects = shares(packages)
    direct = ", ".join(
        f"`{package.name}`" for package in packages.values() if package.direct and package.name not in FOR_PREFECT
    )
    lines = [
        "# Dependencies",
        "",
        "<!-- made by `make lock`: python -m tests.tools.dependencies -->",
        "",
        (
            f"An installation of Lookout has {len(packages)} packages. `requirements/runtime.lock` lists them with the hash of each file, "
            "and `requirements/sbom.cdx.json` is the same list as a CycloneDX bill of materials. "
            f"Lookout itself needs {len(ours)} of these packages. Prefect also needs {len(ours & prefects)} of these {len(ours)} packages. "
            f"Only Prefect needs the other {len(prefects - ours)} packages."
        ),
        "",
        (
            f"Lookout depends directly on {direct}. It also limits `fastapi` and `sqlalchemy` to versions that Prefect's "
            "server works with."
        ),
        "",
        (
            "The [GitHub workflow that you copy](../deployments/github-workflow.yml) checks all packages for known vulnerabilities "
            "every week."
        ),
        "",
        "| package | version | licence | for |",
        "| --- | --- | --- | --- |",
    ]
    for package in packages.values():
        users = (
            "Prefect"
            if package.name not in ours
            else "Lookout and Prefect"
            if package.name in prefects
            else "Lookout"
        )
        lines.append(f"| {package.name} | {package.version} | {package.licence} | {users} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write both files."""
    lock = LOCK.read_bytes()
    packages = locked(lock.decode("utf-8"))
    SBOM.write_text(json.dumps(sbom(packages, lock), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(packages), encoding="utf-8")


if __name__ == "__main__":
    main()
