"""Prints what the programs and the dashboard are made of, in CycloneDX 1.5: from the lock files, without a network.

usage: sbom.py VERSION      the time is $SOURCE_DATE_EPOCH
"""

import base64
import json
import os
import subprocess
import sys
import time
import tomllib
import uuid
from pathlib import Path
from urllib.parse import quote

PROGRAMS = ["proxy", "runner-cli", "sandbox-init", "cogni-tool", "git-sync"]
NPM_LOCK = Path("services/web/package-lock.json")


def crates() -> list[dict]:
    """Returns the crates of other projects that the programs link or are built with."""
    host = next(
        line.removeprefix("host: ")
        for line in run("rustc", "-vV").splitlines()
        if line.startswith("host: ")
    )
    metadata = json.loads(
        run("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host)
    )
    packages = {package["id"]: package for package in metadata["packages"]}
    needs = {
        node["id"]: [
            dep["pkg"] for dep in node["deps"] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])
        ]
        for node in metadata["resolve"]["nodes"]
    }
    ours = set(metadata["workspace_members"])
    waiting = [id for id in ours if packages[id]["name"] in PROGRAMS]
    found = set(waiting)
    while waiting:
        new = set(needs[waiting.pop()]) - found
        found |= new
        waiting += new
    locked = tomllib.loads(Path("Cargo.lock").read_text())["package"]
    sums = {(one["name"], one["version"]): one.get("checksum") for one in locked}
    return [
        component("cargo", package["name"], package["version"], package["license"])
        | hashes("SHA-256", sums[package["name"], package["version"]])
        for package in (packages[id] for id in found - ours)
    ]


def npm_packages() -> list[dict]:
    """Returns the npm packages whose code is in the pages of the dashboard."""
    locked = json.loads(NPM_LOCK.read_text())["packages"]
    components = []
    for path, package in locked.items():
        if path and not package.get("dev"):
            name = path.rpartition("node_modules/")[2]
            algorithm, _, digest = package.get("integrity", "").partition("-")
            sum_ = base64.b64decode(digest).hex() if algorithm == "sha512" else None
            components.append(
                component("npm", name, package["version"], package.get("license")) | hashes("SHA-512", sum_)
            )
    return components


def component(kind: str, name: str, version: str, licence: str | None) -> dict:
    """Returns an entry of the list."""
    purl = f"pkg:{kind}/{quote(name, safe='/')}@{quote(version)}"
    entry = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    # An older form of the expression has a slash.
    return entry | ({"licenses": [{"expression": licence.replace("/", " OR ")}]} if licence else {})


def hashes(algorithm: str, content: str | None) -> dict:
    """Returns the hash of a component, if there is one."""
    return {"hashes": [{"alg": algorithm, "content": content}]} if content else {}


def run(*command: str) -> str:
    """Returns what a command prints."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(version: str) -> None:
    """Prints the list."""
    components = sorted(crates() + npm_packages(), key=lambda entry: entry["bom-ref"])
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    content = json.dumps(components, sort_keys=True)
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, version + made + content)}",
        "version": 1,
        "metadata": {
            "timestamp": made,
            "component": {"type": "application", "name": "sluicegate", "version": version},
        },
        "components": components,
    }
    json.dump(bom, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
