"""Windows, prices and cache rules by model, from a dated table; the user's own file goes on top of it."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from .cache import CacheRules
from .errors import WorkbenchError
from .tokens.choose import bare_name

MILLION = 1_000_000
FILE = "models.toml"
VARIABLE = "WORKBENCH_MODELS"
_FILE_LIMIT = 1_000_000  # bytes
#: What is put behind a model's name: a date, a version of a cloud, a window.
_ENDINGS = re.compile(r"(?:-v\d+(?::\d+)?|:\d+[mk]?|\[1m\]|[-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest|:thinking|:free)$")


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens.

    Parameters
    ----------
    read, write_5m, write_1h : float or None
        From the cache; into it for five minutes (or the provider's only time), for an hour. None: as `input`.
    """

    input: float
    output: float
    read: float | None = None
    write_5m: float | None = None
    write_1h: float | None = None

    def of(self, bucket: str) -> float:
        """The price of a bucket, `input` if it has none of its own."""
        value: float | None = getattr(self, bucket)
        return self.input if value is None else value


@dataclass(frozen=True, slots=True)
class Cost:
    """Dollars by what they were paid for."""

    uncached: float = 0.0
    cache_read: float = 0.0
    cache_write_5m: float = 0.0
    cache_write_1h: float = 0.0
    output: float = 0.0
    side: float = 0.0

    @property
    def cache_write(self) -> float:
        """For writing into the cache."""
        return self.cache_write_5m + self.cache_write_1h

    @property
    def total(self) -> float:
        """All of it."""
        return self.uncached + self.cache_read + self.cache_write_5m + self.cache_write_1h + self.output + self.side

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(Cost)))


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model.

    Parameters
    ----------
    window : int or None
        Tokens of prompt and answer together.
    price : Price or None
        None if it is not known: then there is no cost.
    long_above : int or None
        A request whose whole prompt is longer costs `long_price`, all of it.
    as_of, source : str
        The day when this was checked, and where, in words.
    """

    name: str
    window: int | None = None
    price: Price | None = None
    long_above: int | None = None
    long_price: Price | None = None
    cache: CacheRules = CacheRules()
    as_of: str = ""
    source: str = ""

    def price_of(self, prompt: int) -> Price | None:
        """The price of a request with so many prompt tokens."""
        if self.long_above is not None and prompt > self.long_above:
            return self.long_price
        return self.price

    def cost(self, *, uncached: int = 0, read: int = 0, write_5m: int = 0, write_1h: int = 0, output: int = 0) -> Cost | None:
        """Price one request by its buckets. Which tier it is in depends on its whole prompt, cached or not.

        Examples
        --------
        >>> facts = find("claude-sonnet-4-5-20250929")
        >>> round(facts.cost(uncached=10, read=100_000, write_5m=2_000, output=500).total, 6)
        0.04503
        >>> round(facts.cost(read=200_001).total, 6)  # above 200,000 the whole request costs twice as much
        0.120001
        """
        price = self.price_of(uncached + read + write_5m + write_1h)
        if price is None:
            return None
        return Cost(
            uncached=uncached * price.input / MILLION,
            cache_read=read * price.of("read") / MILLION,
            cache_write_5m=write_5m * price.of("write_5m") / MILLION,
            cache_write_1h=write_1h * price.of("write_1h") / MILLION,
            output=output * price.output / MILLION,
        )


def find(model: str | None) -> ModelFacts | None:
    """The facts of a model, by whatever name it goes; None if it is not in the table.

    Examples
    --------
    >>> find("us.anthropic.claude-haiku-4-5-20251001-v1:0").name, find("openai/gpt-5-2025-08-07").window
    ('claude-haiku-4-5', 400000)
    >>> find("my-own-model") is None
    True
    """
    if not model:
        return None
    known = _table(*_own_file())
    name = bare_name(model)
    while name:
        for spelling in (name, name.replace(".", "-") if name.startswith("claude") else name):
            if spelling in known:
                return known[spelling]
        shorter = _ENDINGS.sub("", name)
        if shorter == name:
            return None
        name = shorter
    return None


def table() -> tuple[ModelFacts, ...]:
    """All models of the table, the user's own first where they replace one.

    Raises
    ------
    WorkbenchError
        The user's file is none that can be read.
    """
    return tuple(dict.fromkeys(_table(*_own_file()).values()))


def _own_file() -> tuple[str | None, int]:
    """The user's file and when it was changed, so that it is read again after a change."""
    named = os.environ.get(VARIABLE)
    if named:
        path = Path(named)
        if not path.is_file():
            raise WorkbenchError(f"{VARIABLE} = {named[:200]}: there is no such file; name a models.toml, or unset it")
    else:
        home = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CONFIG_HOME")
        path = (Path(home) if home and os.path.isabs(home) else Path.home() / ".config") / "context-workbench" / FILE
        if not path.is_file():
            return None, 0
    return str(path), path.stat().st_mtime_ns


@lru_cache(maxsize=4)
def _table(own: str | None, changed: int) -> Mapping[str, ModelFacts]:
    document = tomllib.loads(files(__package__).joinpath(FILE).read_text("utf-8"))
    groups, models = document["groups"], document["models"]
    if own is not None:
        added = _read(Path(own))
        groups = _merged(groups, added.get("groups", {}), own)
        models = _merged(models, added.get("models", {}), own)
        for name, entry in added.get("models", {}).items():  # it is the user who says so
            models[name] = {**models[name], "as_of": entry.get("as_of", ""), "source": entry.get("source", f"your own file {Path(own).name}")}
    found: dict[str, ModelFacts] = {}
    for name, entry in models.items():
        facts = _facts(name, entry, groups, own or FILE)
        for spelling in (name, *entry.get("names", ())):
            found[str(spelling).lower()] = facts
    return found


def _read(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _FILE_LIMIT:
        raise WorkbenchError(f"{path}: larger than a table of models can be ({_FILE_LIMIT:,} bytes)")
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise WorkbenchError(f"{path}: no TOML that can be read ({str(error)[:100]}); see workbench/models.toml for its form") from None
    for part in ("groups", "models"):
        if not isinstance(document.get(part, {}), dict) or not all(isinstance(entry, dict) for entry in document.get(part, {}).values()):
            raise WorkbenchError(f"{path}: [{part}] is no table of tables; write [{part}.NAME]")
    return document


def _merged(known: dict[str, Any], added: dict[str, Any], own: str) -> dict[str, Any]:
    """Entry by entry and key by key; a table inside an entry (price, cache) likewise."""
    result = dict(known)
    for name, entry in added.items():
        before = result.get(name, {})
        merged = {key: {**before[key], **value} if isinstance(value, dict) and isinstance(before.get(key), dict) else value for key, value in entry.items()}
        result[name] = {**before, **merged}
    return result


_KEYS = frozenset({"group", "names", "window", "price", "long", "cache", "as_of", "source"})


def _facts(name: str, entry: Mapping[str, Any], groups: Mapping[str, Any], where: str) -> ModelFacts:
    group = groups.get(entry.get("group"), {}) if "group" in entry else {}
    try:
        _known(entry, _KEYS)
        if "group" in entry and entry["group"] not in groups:
            raise ValueError(f"no group is called {entry['group']!r}")
        whole = {**group, **entry}
        price = None if "price" not in whole else _price(whole["price"])
        long = dict(whole.get("long", {}))
        above = _count(long.pop("above")) if long else None
        window = _count(whole["window"]) if "window" in whole else None
        return ModelFacts(
            name,
            window,
            price,
            above,
            _price({**whole["price"], **long}) if above is not None else None,
            _rules({**group.get("cache", {}), **entry.get("cache", {})}),
            str(whole.get("as_of", "")),
            str(whole.get("source", "")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise WorkbenchError(f"{where}: model {name!r}: {said[:120]}; see workbench/models.toml for the form") from None


def _price(given: Mapping[str, Any]) -> Price:
    return Price(**{key: _number(given[key]) for key in _known(given, {item.name for item in fields(Price)})})


def _rules(given: Mapping[str, Any]) -> CacheRules:
    rules = CacheRules()
    for key in _known(given, {item.name for item in fields(CacheRules)}):
        value = given[key]
        if key == "kind":
            if value not in ("breakpoints", "automatic", "none"):
                raise ValueError(f"cache kind {value!r}: choose breakpoints, automatic or none")
        elif key == "writes":
            value = bool(value)
        else:
            value = _count(value)
        rules = replace(rules, **{key: value})
    return rules


def _known(given: Mapping[str, Any], names: set[str] | frozenset[str]) -> Iterator[str]:
    unknown = sorted(set(given) - names)
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not known here")
    return iter(given)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MILLION:
        raise ValueError(f"{value!r} is no price in dollars for a million tokens")
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no whole number")
    return value
