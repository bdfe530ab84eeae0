"""Token counts of spans. Conventions differ in what counts in what; the stated total tells, where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model import Usage
from .usage import tokens


def counted(raw: Mapping[str, Any]) -> tuple[Usage | None, str | None]:
    """Usage out of ``input``, ``read``, ``write``, ``write_1h`` (part of write), ``output``, ``reasoning`` and ``total``.

    OpenTelemetry and OpenInference count the cached part in the input and reasoning in the output; some writers, and
    Langfuse's own integrations, keep them apart. The sum that equals the total decides. Without a total they are
    counted in where they fit.

    Returns
    -------
    usage, fault : Usage or None, str or None

    Examples
    --------
    >>> counted({"input": 100, "read": 80, "output": 5, "total": 105})[0].input_uncached
    20
    >>> counted({"input": 20, "read": 80, "output": 5, "total": 105})[0].input_uncached
    20
    """
    known = {name: tokens(raw.get(name)) for name in ("input", "read", "write", "write_1h", "output", "reasoning", "total")}
    if any(value is not None and known[name] is None for name, value in raw.items()):
        return Usage(output=known["output"]) if known["output"] is not None else None, "inconsistent usage (a number that is no token count)"
    sent, output, total = known["input"], known["output"], known["total"]
    if sent is None and output is None:
        return None, None
    cached, thought = (known["read"] or 0) + (known["write"] or 0), known["reasoning"] or 0
    inside, part_of_output = _convention((sent or 0, output or 0), cached, thought, total)
    fresh = None if sent is None else sent - cached if inside else sent
    whole = None if output is None else output if part_of_output else output + thought
    hour = min(known["write_1h"] or 0, known["write"] or 0)
    usage = Usage(fresh, known["read"], None if known["write"] is None else known["write"] - hour, hour or None, whole, known["reasoning"])
    if total is not None and usage.total != total:
        return usage, f"the stated total is {total:,} tokens, its parts add up to {usage.total or 0:,}"
    return usage, None


def _convention(plain: tuple[int, int], cached: int, thought: int, total: int | None) -> tuple[bool, bool]:
    """Say whether the input counts in the cached part, and the output the reasoning."""
    sent, output = plain
    fits = [(inside, part) for inside in (True, False) for part in (True, False) if (not inside or cached <= sent) and (not part or thought <= output)]
    for inside, part in fits:
        if total is not None and sent + (0 if inside else cached) + output + (0 if part else thought) == total:
            return inside, part
    return fits[0]
