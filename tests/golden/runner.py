"""Tries golden cases on the ports: one module of this package per system, found by the file's ``system``."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from workbench.systems import rustjson

from . import agent_runtime_kernel, agentd, scv, vak
from .compare import differences

SYSTEMS: dict[str, ModuleType] = {"agent_runtime_kernel": agent_runtime_kernel, "agentd": agentd, "scv": scv, "vak": vak}


@dataclass(frozen=True)
class Outcome:
    """One case and where it differs; it passed if it differs nowhere."""

    id: str
    differences: tuple[str, ...]


def load(path: Path) -> dict[str, Any]:
    """Read a vector file, gzipped or not, with numbers as the originals read them."""
    data = path.read_bytes()
    document = rustjson.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    if not isinstance(document, dict) or not isinstance(document.get("cases"), list):
        raise ValueError("no golden vectors: an object with a list of cases is expected")
    return document


def run(document: dict[str, Any]) -> Iterator[Outcome]:
    """Try every case. What cannot be tried (no such system, no such operation, an exception) has failed."""
    name = document.get("system")
    port = SYSTEMS.get(str(name))
    for case in document["cases"]:
        if port is None:
            yield Outcome(str(case.get("id")), (f"no port of system {name!r}; there are {', '.join(SYSTEMS)}",))
        else:
            yield Outcome(str(case.get("id")), tuple(_try(port, case)))


def _try(port: ModuleType, case: dict[str, Any]) -> Iterator[str]:
    if case.get("op") not in port.OPS:
        yield f"unknown operation {case.get('op')!r}"
        return
    try:
        actual = {"ok": port.run(case["op"], case["input"])}
    except port.ERRORS as raised:
        actual = port.failed(case["op"], case["input"], raised)
    except Exception as raised:  # a port that breaks has failed the case, and the next case is still tried
        yield f"{type(raised).__name__}: {raised}"
        return
    yield from differences(case["output"], actual)
