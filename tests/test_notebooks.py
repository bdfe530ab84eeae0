"""The lessons run as they stand, and are kept without outputs."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.shared import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_there_are_lessons() -> None:
    assert [path.name for path in NOTEBOOKS][:2] == ["01_first_look.ipynb", "02_four_systems.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lesson_is_kept_without_outputs(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    for cell in book.cells:
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)
    assert book.metadata.kernelspec.name == "python3"
    assert "widgets" not in book.metadata


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lesson_runs(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))))
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()
    for cell in book.cells:  # a lesson shows something in each cell that ends in an expression, and prints no warning
        if cell.cell_type == "code":
            assert not [output for output in cell.outputs if output.output_type == "error" or output.get("name") == "stderr"], cell.source
    assert any(output.get("data", {}).get("application/vnd.jupyter.widget-view+json") for cell in book.cells for output in cell.get("outputs", ()))
