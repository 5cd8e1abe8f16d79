"""Compiles the codec with the compiler that CXX names, or `c++`.

It is a plain shared library: Python's headers and flags are not needed, and one wheel serves all versions of
Python. Where it cannot be compiled the package installs all the same, and works more slowly.
RECORDSPEC_NATIVE=required makes that an error.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

SOURCE = "pipelines/recordspec/wire/codec.cpp"
FLAGS = "-std=c++17 -O3 -fPIC -shared -fvisibility=hidden"


class CompileLibrary(build_ext):
    """Compiles the library."""

    def get_ext_filename(self, name: str) -> str:
        return f"{name.replace('.', os.sep)}.so"

    def build_extension(self, ext: Extension) -> None:
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        made = target.with_name(f"{os.getpid()}{target.name}")  # environments are made at the same time
        source_hash = hashlib.sha256(Path(SOURCE).read_bytes()).hexdigest()[:16]
        compiler = shlex.split(os.environ.get("CXX") or "c++")
        define = f'-DSOURCE_HASH="{source_hash}"'
        try:
            subprocess.run([*compiler, *FLAGS.split(), define, SOURCE, "-o", str(made)], check=True)
            os.replace(made, target)
        except (OSError, subprocess.CalledProcessError) as error:
            if os.environ.get("RECORDSPEC_NATIVE") == "required":
                raise
            target.unlink(missing_ok=True)  # that of an earlier source
            print(f"the codec is not compiled, and recordspec will be slower: {error}", file=sys.stderr)


class CopyPages(build_py):
    """Copies the pages of the documentation, which `recordspec docs` shows."""

    def run(self) -> None:
        super().run()
        for page in Path("docs").rglob("*.md"):
            target = Path(self.build_lib, "recordspec/pages", page.relative_to("docs"))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(page.read_bytes())


class PlatformWheel(bdist_wheel):
    """A wheel for all versions of Python on a platform."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[Extension("recordspec.wire._native", [SOURCE], optional=True)],
    cmdclass={"build_ext": CompileLibrary, "build_py": CopyPages, "bdist_wheel": PlatformWheel},
)
