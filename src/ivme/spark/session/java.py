"""Which Java runs Spark, and the archive of loaded classes with which it starts quickly.

A session starts in 5 s; with an archive of the classes that it loads (AppCDS) in 2 to 3 s, which pays where sessions
are started often, as in tests. An archive fits one Java and one Spark only, so its name has both versions.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from ivme.errors import SparkError

OLDEST_JAVA = 17

_INSTALL = f"""Spark needs Java {OLDEST_JAVA} or newer. Install it:
  Debian, Ubuntu:       apt-get install openjdk-17-jre-headless
  Fedora:               dnf install java-21-openjdk-headless
  macOS with Homebrew:  brew install openjdk@17
or set JAVA_HOME to where it is."""


@cache
def find_java() -> tuple[Path, str]:
    """The Java that Spark will start, and its version; an error that says what to install where there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME is {home}, where there is no bin/java" if home else "there is no java on the PATH"
        raise SparkError(f"{where}. {_INSTALL}")
    said = subprocess.run([found, "-version"], capture_output=True, encoding="utf-8", errors="replace").stderr
    version = re.search(r'version "((\d+)[^"]*)"', said)
    if version is None or int(version.group(2)) < OLDEST_JAVA:
        raise SparkError(f"{found} is {version.group(1) if version else 'no Java that runs'}. {_INSTALL}")
    return Path(found), version.group(1)


def class_archive(folder: Path) -> Path:
    """Where the archive of this Java and this Spark is, or would be, in a folder."""
    import pyspark

    java, version = find_java()
    key = hashlib.sha256(f"{java.resolve()} {version} {pyspark.__version__} {pyspark.__path__}".encode()).hexdigest()
    return folder / f"spark-classes-{key[:16]}.jsa"


def make_class_archive(folder: Path) -> Path:
    """Makes the archive unless it is there, by a session of its own; some 20 seconds, once, and 150 MB.

    The JVM writes the archive while it ends, after Python did, so that the warm-up runs in a process whose end is
    waited for together with that of its JVM. The file appears whole or not at all.
    """
    target = class_archive(folder)
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}")
    result = subprocess.run(
        [sys.executable, "-m", "ivme.spark.session.warm_up", str(partial)], capture_output=True, encoding="utf-8"
    )
    if result.returncode != 0 or not partial.exists():
        raise SparkError(f"the archive {target} could not be made: {result.stderr.strip()[-2000:]}")
    partial.replace(target)
    return target
