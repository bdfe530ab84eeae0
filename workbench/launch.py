"""Starts JupyterLab on a notebook that is made for one transcript.

The notebook lies in a private folder, never beside the source, and gets the file's path as data.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import readers
from .errors import WorkbenchError

SAMPLE = "coding_agent.jsonl"
PACKAGE = Path(__file__).resolve().parent

_INTRODUCTION = """\
# What would the model still see?

Run the cell below (Shift + Enter). Move the budget, change the policy, and click a message to see why it is kept,
summarized or dropped.
"""
_AFTERWARDS = """\
# Everything that the view shows can be read and set from here.
w.selection"""


def sample(name: str = SAMPLE) -> Path:
    """A transcript made for this project: in a clone beside the package, in an installed package inside it.

    Raises
    ------
    WorkbenchError
        It is not there.
    """
    for folder in (PACKAGE / "sample_transcripts", PACKAGE.parent / "sample_transcripts"):
        if (folder / name).is_file():
            return folder / name
    raise WorkbenchError(f"the sample {name} is not installed; give the path of a transcript")


def notebook(path: str, format: str | None = None, run: str | None = None) -> dict[str, Any]:
    """A notebook (format 4.5) that opens one transcript. What the caller gives stands in it only as string literals.

    Examples
    --------
    >>> print(notebook('x"); import os #.jsonl')["cells"][1]["source"])
    import workbench as wb
    <BLANKLINE>
    t = wb.read('x"); import os #.jsonl')
    w = wb.Workbench(t)
    w
    """
    given = "".join(f", {name}={value!r}" for name, value in (("format", format), ("run", run)) if value is not None)
    opening = f"import workbench as wb\n\nt = wb.read({path!r}{given})\nw = wb.Workbench(t)\nw"
    cells = [
        {"cell_type": "markdown", "id": "introduction", "metadata": {}, "source": _INTRODUCTION},
        *(
            {"cell_type": "code", "id": id_, "metadata": {}, "source": source, "outputs": [], "execution_count": None}
            for id_, source in (("workbench", opening), ("afterwards", _AFTERWARDS))
        ),
    ]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}


def private_folder() -> Path:
    """The folder for notebooks that are made here: the user's own, closed to others (0700).

    ``XDG_STATE_HOME`` (``LOCALAPPDATA`` on Windows), else ``~/.local/state``; a new temporary one if that cannot be written.
    """
    home = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME")
    try:
        folder = (Path(home) if home and os.path.isabs(home) else Path.home() / ".local" / "state") / "context-workbench"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if folder.is_symlink() or (os.name != "nt" and folder.stat().st_uid != os.geteuid()):
            raise PermissionError
        folder.chmod(0o700)
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, RuntimeError):  # no home, or not ours
        folder = Path(tempfile.mkdtemp(prefix="context-workbench-"))
    return folder


def write_notebook(folder: Path, path: Path, format: str | None = None, run: str | None = None) -> Path:
    """Write the notebook for a transcript, unless there is one already: what a person added to it stays."""
    where = os.path.abspath(path)
    words = re.sub(r"[^A-Za-z0-9_-]+", "-", path.stem).strip("-")[:40] or "transcript"
    key = hashlib.sha256(json.dumps([where, format, run]).encode()).hexdigest()[:8]
    target = folder / "notebooks" / f"{words}-{key}.ipynb"
    target.parent.mkdir(mode=0o700, exist_ok=True)
    if not target.exists():
        _write(target, notebook(where, format, run))
    return target


def _write(path: Path, document: Any) -> None:
    """Write JSON that only the user can read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent)  # 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    os.replace(name, path)


def environment(folder: Path) -> dict[str, str]:
    """Jupyter settings of our Lab, beside the user's own: this interpreter as the kernel, and no fetching of news."""
    kernel = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "metadata": {"debugger": True},
    }
    _write(folder / "jupyter" / "kernels" / "python3" / "kernel.json", kernel)
    quiet = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
    _write(folder / "jupyter" / "labconfig" / "default_setting_overrides.json", quiet)
    ours = str(folder / "jupyter")
    return {name: os.pathsep.join(filter(None, (ours, os.environ.get(name)))) for name in ("JUPYTER_PATH", "JUPYTER_CONFIG_PATH")}


def lab_arguments(target: Path, *, browser: bool, extra: Sequence[str] = ()) -> list[str]:
    """What JupyterLab is started with. What the user gave comes last, so that it wins."""
    arguments = [
        f"--ServerApp.root_dir={target.parent}",
        f"--LabApp.default_url=/lab/tree/{target.name}",
        "--ServerApp.ip=127.0.0.1",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--allow-root")
    if not browser or not has_display():
        arguments.append("--no-browser")
    return [*arguments, *extra]


def has_display() -> bool:
    """True if a browser can be shown here. Only on Linux and its like can there be no display."""
    if os.name == "nt" or sys.platform == "darwin":
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def open_lab(path: Path | None, *, format: str | None = None, run: str | None = None, browser: bool = True, lab_args: Sequence[str] = ()) -> int:
    """Make the notebook for a transcript and run JupyterLab on it until it is stopped.

    Returns
    -------
    int
        JupyterLab's exit code.

    Raises
    ------
    WorkbenchError
        The file cannot be read as a transcript: said before anything is started.
    """
    path = sample() if path is None else path
    transcript = readers.read(path, format=format, run=run)
    folder = private_folder()
    target = write_notebook(folder, path, format, run)
    os.environ.update(environment(folder))
    print(
        f"{transcript!r}\nNotebook: {target}\nStarting JupyterLab; Ctrl-C stops it.".encode("ascii", "backslashreplace").decode(), file=sys.stderr, flush=True
    )
    sys.argv = ["jupyter-lab"]  # what Jupyter shows as the program
    from jupyterlab.labapp import LabApp

    try:
        LabApp.launch_instance(lab_arguments(target, browser=browser, extra=lab_args))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    return 0
