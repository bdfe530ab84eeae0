"""Where the test data made by others lies: real transcripts, golden vectors, bug cases. Never a part of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("WORKBENCH_SHARED") or ROOT / ".." / "shared").resolve()
SAMPLES = ROOT / "sample_transcripts"

#: For a test, a class or ``pytestmark``: `tests/conftest.py` skips it with the reason where the data is not there.
needs_shared = pytest.mark.transcripts
