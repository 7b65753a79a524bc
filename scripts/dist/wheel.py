"""Makes a Python wheel of an installation's files. `pip` puts the programs on the PATH of an environment.

usage: wheel.py TREE OUT_DIR VERSION      $SOURCE_DATE_EPOCH is the time of its files, $LEVEL as of gzip
"""

import base64
import hashlib
import os
import platform
import sys
import time
import zipfile
from pathlib import Path

# Static programs run with every C library. The first tag is the oldest that each pip of today takes.
TAGS = ["manylinux_2_17", "musllinux_1_1"]
# A service belongs to a machine, not to an environment of Python.
LEFT_OUT = ("lib/systemd/", "lib/sysusers.d/")


def contents(tree: Path, version: str, tag: str) -> dict[str, tuple[bytes, int]]:
    """Returns bytes and mode of each file of the wheel, by its name."""
    data, info = f"sluicegate-{version}.data", f"sluicegate-{version}.dist-info"
    files = {}
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        name = path.relative_to(tree).as_posix()
        if not name.startswith(LEFT_OUT):
            place = name.replace("bin/", "scripts/", 1) if name.startswith("bin/") else f"data/{name}"
            files[f"{data}/{place}"] = (path.read_bytes(), path.stat().st_mode & 0o777)
    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: sluicegate\nVersion: {version}\n"
        "Summary: Language models for untrusted coding agents\nLicense: Apache-2.0\nRequires-Python: >=3.8\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: sluicegate\nRoot-Is-Purelib: false\n"
        + "".join(f"Tag: py3-none-{one}\n" for one in tag.split(".")),
    }
    files |= {f"{info}/{name}": (text.encode(), 0o644) for name, text in texts.items()}
    lines = [f"{name},sha256={digest(content)},{len(content)}" for name, (content, _) in files.items()]
    files[f"{info}/RECORD"] = ("\n".join([*lines, f"{info}/RECORD,,", ""]).encode(), 0o644)
    return files


def digest(content: bytes) -> str:
    """Returns the hash of a file in the form of RECORD."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main(tree: str, out: str, version: str) -> None:
    """Writes the wheel."""
    made = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    tag = ".".join(f"{one}_{platform.machine()}" for one in TAGS)
    with zipfile.ZipFile(Path(out) / f"sluicegate-{version}-py3-none-{tag}.whl", "w") as wheel:
        for name, (content, mode) in contents(Path(tree), version, tag).items():
            entry = zipfile.ZipInfo(name, made)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content, compresslevel=int(os.environ["LEVEL"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
