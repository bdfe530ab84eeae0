"""The order of layers, what an import costs, and what must not stand in the project's files."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shared import ROOT

PACKAGE = ROOT / "workbench"
_ORDER = """
errors model turns validity tokens readers ledger systems calibration notes policies writers cache pricing layout replay losses sweep tune
estimates preview frames figures widgets report launch cli checks __main__
"""
#: Each layer imports only from those before it.
LAYERS = _ORDER.split()
#: The one exception: a property that shows a frame imports `frames` inside its function.
FRAME_PROPERTIES = {"ledger", "policies", "replay", "losses"}
#: Nothing before these may import the library.
FIRST_USER = {"pandas": "frames", "plotly": "figures", "ipywidgets": "widgets", "anywidget": "widgets", "traitlets": "widgets", "typer": "cli", "rich": "cli"}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py"))


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, bool, int]]:
    """(absolute name, inside a function, line) of every import that runs; those under TYPE_CHECKING do not."""
    package = ["workbench", *path.relative_to(PACKAGE).parent.parts]

    def walk(node: ast.AST, inside: bool) -> Iterator[tuple[str, bool, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                yield from ((name.name, inside, child.lineno) for name in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = ".".join([*(package[: len(package) - child.level + 1] if child.level else []), *([child.module] if child.module else [])])
                yield from ((f"{base}.{name.name}", inside, child.lineno) for name in child.names)
            yield from walk(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    yield from walk(ast.parse(path.read_text("utf-8")), False)


def test_every_module_has_a_layer() -> None:
    assert {layer_of(path) for path in modules()} - {"__init__"} <= set(LAYERS)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_left_only(path: Path) -> None:
    mine = layer_of(path)
    if mine == "__init__":  # loads lazily: tested below
        assert all(name.split(".")[0] in sys.stdlib_module_names for name, _, _ in imports(path))
        return
    wrong = []
    for name, inside, line in imports(path):
        parts = name.split(".")
        if parts[0] == "workbench" and len(parts) > 1:
            if parts[1] not in LAYERS:
                assert parts[1] == "__version__", f"line {line}: {name} is taken from the package, not from its layer"
                continue
            if parts[1] == "frames" and inside and mine in FRAME_PROPERTIES:
                continue
            if LAYERS.index(parts[1]) > LAYERS.index(mine) and (mine, parts[1]) != ("cli", "__main__"):
                wrong.append(f"line {line}: {mine} imports {name}")
        elif parts[0] in FIRST_USER and LAYERS.index(mine) < LAYERS.index(FIRST_USER[parts[0]]):
            wrong.append(f"line {line}: {mine} imports {parts[0]}, which is for {FIRST_USER[parts[0]]} and later")
    assert wrong == []


def loaded_after(code: str) -> set[str]:
    """Names of all modules that are loaded in a new process after some code."""
    done = subprocess.run([sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_else() -> None:
    new = loaded_after("import workbench") - loaded_after("import importlib, typing")
    assert new == {"workbench"}


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if (PACKAGE / f"{layer}.py").exists() or (PACKAGE / layer / "__init__.py").exists()])
def test_importing_a_layer_loads_none_after_it(layer: str) -> None:
    after = LAYERS[LAYERS.index(layer) + 1 :]
    loaded = loaded_after(f"import workbench.{layer}")
    assert {name for name in loaded if name.startswith("workbench.") and name.split(".")[1] in after} == set()
    forbidden = {library for library, first in FIRST_USER.items() if LAYERS.index(layer) < LAYERS.index(first)}
    assert loaded & forbidden == set()


def test_all_public_names_exist() -> None:
    import workbench

    for name in workbench.__all__:
        assert getattr(workbench, name) is not None
    assert set(workbench.__all__) <= set(dir(workbench))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        workbench.nothing  # noqa: B018


@pytest.mark.parametrize("name", ["__init__.py", "__main__.py"])
def test_the_launcher_can_be_read_by_an_old_python(name: str) -> None:
    source = (PACKAGE / name).read_text("utf-8")
    tree = ast.parse(source, feature_version=(3, 7))
    assert "from __future__" not in source  # the annotations import is a syntax error in 3.6
    modern = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.arg | ast.FunctionDef)
        for note in notes_of(node)
        if not isinstance(note, ast.Constant | ast.Name)
    ]
    assert modern == [], "an annotation that an old Python would evaluate; put it in quotes"


def notes_of(node: ast.arg | ast.FunctionDef) -> list[ast.expr]:
    note = node.annotation if isinstance(node, ast.arg) else node.returns
    return [] if note is None else [note]


def test_the_launcher_needs_the_standard_library_only() -> None:
    outside = {name for name, inside, _ in imports(PACKAGE / "__main__.py") if not inside and name.split(".")[0] not in sys.stdlib_module_names}
    assert outside == set()


def constraint_lines() -> list[str]:
    return [line for line in (PACKAGE / "constraints.txt").read_text("utf-8").splitlines() if line and not line.startswith("#")]


def test_constraints_hold_names_versions_and_markers_only() -> None:
    lines = constraint_lines()
    assert len(lines) > 50
    shape = re.compile(r"[a-z0-9-]+==[0-9a-z.+!]+( ; [a-z_]+ (==|!=|<|<=|>=|in|not in) '[^'/:]+'( (and|or) \(?[a-z_]+ (==|!=|<|<=|>=) '[^'/:]+'\)?)*)?")
    assert [line for line in lines if not shape.fullmatch(line)] == []
    assert "://" not in "\n".join(lines)


def test_every_dependency_is_pinned_for_every_python() -> None:
    import tomllib

    from packaging.markers import default_environment
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pins = [Requirement(line) for line in constraint_lines()]
    for version in ("3.11", "3.12", "3.13"):
        environment = {**default_environment(), "python_version": version, "python_full_version": f"{version}.0"}
        chosen: dict[str, Requirement] = {}
        for pin in pins:
            if pin.marker is None or pin.marker.evaluate(environment):  # type: ignore[arg-type]
                assert pin.name not in chosen, f"{pin.name} is pinned twice for {version}"
                chosen[pin.name] = pin
        for text in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
            wanted = Requirement(text)
            pinned = next(iter(chosen[wanted.name.lower()].specifier)).version
            assert wanted.specifier.contains(pinned, prereleases=True), f"{wanted} does not allow the pin {pinned}"


def declared(*extras: str) -> set[str]:
    """Import names of the required packages and of some extras; a name differs from its package's by hyphens only."""
    import tomllib

    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    texts = [*project["dependencies"], *(text for extra in extras for text in project["optional-dependencies"][extra])]
    return {Requirement(text).name.replace("-", "_").lower() for text in texts} | {"traitlets"}  # ipywidgets is made of it


def test_what_is_imported_is_declared() -> None:
    used = {name.split(".")[0] for path in modules() for name, _, _ in imports(path)}
    assert used - set(sys.stdlib_module_names) - {"workbench"} - declared() == set()


def test_what_the_tests_import_is_declared() -> None:
    used = set()
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                used |= {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                used.add((node.module or "").split(".")[0])
    shipped_with = {"_pytest", "pip", "tiktoken_ext", "traitlets"}  # parts of pytest, Python, tiktoken and ipywidgets
    assert used - set(sys.stdlib_module_names) - {"workbench", "tests"} - shipped_with - declared("test") == set()


TEXTS = {".py", ".md", ".toml", ".txt", ".js", ".css", ".ipynb", ""}


def own_files() -> Iterator[Path]:
    done = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    for name in done.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and path.suffix in TEXTS and "sample_transcripts" not in path.parts:
            yield path


def test_no_file_names_a_machine() -> None:
    """No path of one machine, and no registry: what works only where it was written does not work."""
    machine = re.compile(
        r"/work/(main|shared)|/root/\w|/home/(?!dev\b|ada\b|me\b|user\b|you\b)[a-z]+/|pypi\.org|files\.pythonhosted|index-url|registry\.npmjs|extra-index"
    )
    found = [
        f"{path.relative_to(ROOT)}: {hit[0]}" for path in own_files() if path != Path(__file__) and (hit := machine.search(path.read_text("utf-8", "replace")))
    ]
    assert found == []
