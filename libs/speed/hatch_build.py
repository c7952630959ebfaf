"""Compiles the package's .pyx files during the build: into the wheel, or next to the sources for an editable install.

hatchling builds all of Threadmark's packages; this hook adds the compilation, which it lacks. Sanitizers and other
options of the compiler come from the environment (CFLAGS), as setuptools reads it.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "threadmark_speed"


class Compiled(BuildHookInterface[Any]):
    """The hook of hatchling, which finds it by its type."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and list the files that go into the wheel. An sdist has the sources only."""
        if self.target_name != "wheel":
            return
        source, generated = Path(self.root, "src"), Path(self.root, "build", "generated")
        if version == "editable":
            compile_all(source, source, generated)
            return
        target = Path(self.root, "build", "compiled")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for module in compile_all(source, target, generated):
            build_data["force_include"][str(module)] = str(module.relative_to(target))


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
    command.ensure_finalized()
    command.run()
    return [Path(output) for output in command.get_outputs()]
