"""What a machine lacks is skipped with the reason, except what WORKBENCH_REQUIRE names: there a skip is a failure."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.shared import ROOT, SHARED

REQUIRED = frozenset(name.strip() for name in os.environ.get("WORKBENCH_REQUIRE", "").split(",") if name.strip())
_ran: set[str] = set()


def _lacks() -> dict[str, str]:
    """Mark -> why its tests cannot run here; "" if they can."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""
    return {
        "browser": "" if chromium and Path(chromium).exists() else "no Chromium: install it, or name it in CHROMIUM",
        "transcripts": "" if (SHARED / "transcripts").is_dir() else "no test data by others: name its folder in WORKBENCH_SHARED",
    }


def pytest_configure(config: pytest.Config) -> None:
    unknown = REQUIRED - set(_lacks())
    if unknown:
        raise pytest.UsageError(f"WORKBENCH_REQUIRE names {', '.join(sorted(unknown))}; known are {', '.join(_lacks())}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    lacks = _lacks()
    for item in items:
        for mark, why in lacks.items():
            if item.get_closest_marker(mark):
                _ran.add(mark)
                if why:
                    item.add_marker(pytest.mark.skip(reason=why))
    # Last, as they are the slowest; and Playwright leaves an event loop running in this thread until its browser is closed.
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
    missing = REQUIRED - _ran
    if missing and config.args_source is not pytest.Config.ArgsSource.ARGS:  # a part of the suite may lack them, the whole may not
        raise pytest.UsageError(f"WORKBENCH_REQUIRE asks for {', '.join(sorted(missing))}, and no test is marked so in {ROOT.name}/tests")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    required = sorted(mark for mark in REQUIRED if item.get_closest_marker(mark))
    if required and report.skipped:  # an expected failure counts as a skip too
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"skipped, but WORKBENCH_REQUIRE={','.join(required)} forbids it: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if REQUIRED and report.skipped:  # a module that leaves itself out takes unknown tests with it
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} skips itself as a whole: {report.longrepr}"
    return report
