"""``workbench policies`` and ``workbench formats``: what there is to choose from."""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import policies, readers
from ..errors import PluginError
from ..policies import Policy, limit_of
from .output import complain


def all_policies() -> list[Policy]:
    """Every policy with its defaults. A plug-in that cannot be loaded is named on standard error and left out."""
    found = []
    for name in policies.list():
        try:
            found.append(policies.get(name))
        except PluginError as error:
            complain(error)
    return found


def policies_document() -> dict[str, Any]:
    """The JSON of ``policies``: where each comes from, and all that is known of its parameters."""
    return {"policies": [_policy(policy) for policy in all_policies()]}


def _policy(policy: Policy) -> dict[str, Any]:
    info = policy.info
    return {
        "name": info.name,
        "title": info.title,
        "summary": info.summary,
        "origin": info.origin,
        "version": info.version,
        "as_of": info.as_of,
        "evidence": info.evidence,
        "mechanisms": list(info.mechanisms),
        "persistent": info.persistent,
        "promises": sorted(policy.promises),
        "limit": limit_of(policy) or "budget",
        "params": {
            item.name: {"default": item.default, **{key: list(value) if isinstance(value, tuple) else value for key, value in item.metadata.items()}}
            for item in dataclasses.fields(policy)  # type: ignore[arg-type]
        },
    }


def formats_document() -> dict[str, Any]:
    """The JSON of ``formats``."""
    return {"readers": [{"name": item.name, "summary": item.summary, "example": item.example} for item in readers.list()], "writers": []}
