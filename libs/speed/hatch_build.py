"""Compiles the package's .pyx files during the build: into the wheel, or next to the sources for an editable install.

hatchling builds all of Threadmark's packages; this hook adds the compilation, which it lacks. THREADMARK_SPEED in the
environment chooses: "compiled" compiles or fails, "pure" makes a package without compiled code (`py3-none-any`), which
works everywhere and leaves everything to Python. By default it compiles if it can, so that a build from the sources
fails on no machine. Sanitizers and other options of the compiler come from the environment (CFLAGS), as setuptools
reads it.
"""

import os
import platform
import shutil
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "threadmark_speed"
SWITCH = "THREADMARK_SPEED"


class Compiled(BuildHookInterface[Any]):
    """The hook of hatchling, which finds it by its type."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and list the files that go into the wheel. An sdist has the sources only."""
        if self.target_name != "wheel":
            return
        target = Path(self.root, "build", "compiled")
        modules = self._compiled(target)
        if version == "editable":
            for module in modules:
                shutil.copy(module, Path(self.root, "src", module.relative_to(target)))
        elif modules:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            for module in modules:
                build_data["force_include"][str(module)] = str(module.relative_to(target))

    def _compiled(self, target: Path) -> list[Path]:
        """Compile, if that is wanted and possible. Returns the extension modules, or none."""
        wanted = os.environ.get(SWITCH, "")
        if wanted not in ("", "compiled", "pure"):
            raise ValueError(f"{SWITCH} in the environment must be compiled, pure or empty, not {wanted!r}")
        if wanted == "pure" or (not wanted and _has_no_gain()):
            return []
        try:
            return compile_all(Path(self.root, "src"), target, Path(self.root, "build", "generated"))
        except Exception as error:
            if wanted:
                raise
            self.app.display_warning(f"{PACKAGE} is built without compiled code, because that failed: {error}")
            return []


def _has_no_gain() -> bool:
    """Whether this Python would lose by it: PyPy compiles by itself, and free-threaded builds would lock again."""
    return platform.python_implementation() != "CPython" or bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def compile_all(source: Path, target: Path, generated: Path) -> list[Path]:
    """Compile each .pyx below `source`. Returns the extension modules, which are written below `target`."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    extensions = [Extension(f"{PACKAGE}.{path.stem}", [str(path)]) for path in sorted((source / PACKAGE).glob("*.pyx"))]
    modules = cythonize(extensions, build_dir=str(generated), quiet=True)  # type: ignore[no-untyped-call]  # no types
    command = build_ext(Distribution({"ext_modules": modules}))
    command.build_lib = str(target)
    command.build_temp = str(generated)
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    command.run()
    return [Path(output) for output in command.get_outputs()]
