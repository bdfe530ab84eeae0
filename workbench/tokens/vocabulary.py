"""The two vocabularies, from package data: no network, no environment variable, no global registry.

A vocabulary takes a quarter of a second and 30 to 80 MB, so it is loaded when first needed, once per process, and shared.
`preload` does it in the background.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import threading
import zlib
from binascii import a2b_base64
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from ..errors import CounterError

if TYPE_CHECKING:
    import tiktoken


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What makes a tiktoken encoding, apart from the ranks in ``vocab/NAME.tiktoken.gz``.

    Parameters
    ----------
    sha256 : str
        Of the decompressed ranks, as stated in tiktoken's own source.
    pattern : str
        Splits a text before the merges.
    special : dict
        Special tokens. They are never looked for in a transcript's text.
    """

    sha256: str
    pattern: str
    special: dict[str, int]


_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
VOCABULARIES = {
    "o200k_base": Vocabulary(
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "|".join(
            (
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + _CONTRACTION,
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + _CONTRACTION,
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            )
        ),
        {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
    "cl100k_base": Vocabulary(
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        "|".join(
            (
                r"'(?i:[sdmt]|ll|ve|re)",
                r"[^\r\n\p{L}\p{N}]?+\p{L}++",
                r"\p{N}{1,3}+",
                r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
                r"\s++$",
                r"\s*[\r\n]",
                r"\s+(?!\S)",
                r"\s",
            )
        ),
        {"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276},
    ),
}

_loaded: dict[str, tiktoken.Encoding] = {}
_lock = threading.Lock()


def _unlock_in_child() -> None:
    # A process that forks while another thread loads would leave the child with a lock that nobody holds.
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_in_child)


def load(name: str) -> tiktoken.Encoding:
    """Return an encoding, loading it at the first call. Safe between threads.

    Parameters
    ----------
    name : str
        A key of ``VOCABULARIES``.

    Raises
    ------
    CounterError
        The package's data are damaged or tiktoken is missing.
    """
    encoding = _loaded.get(name)
    if encoding is None:
        with _lock:
            encoding = _loaded.get(name)
            if encoding is None:
                encoding = _loaded[name] = _build(name)
    return encoding


def preload(name: str = "o200k_base") -> threading.Thread:
    """Load a vocabulary in a background thread. A failure is left for the first real use to report."""

    def quietly() -> None:
        with suppress(CounterError):
            load(name)

    thread = threading.Thread(target=quietly, name=f"load {name}", daemon=True)
    thread.start()
    return thread


def read_ranks(name: str) -> bytes:
    """The decompressed ranks of a vocabulary, checked.

    Raises
    ------
    CounterError
        The file is missing, damaged, or not the one that tiktoken's source names.
    """
    # gzip, not xz: three quarters of a megabyte more in the wheel, but a third of the time to unpack, present in every Python build
    # (the lzma module is not), and `gunzip | sha256sum` checks it anywhere.
    try:
        data = gzip.decompress(files("workbench.tokens").joinpath(f"vocab/{name}.tiktoken.gz").read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise CounterError(f"vocabulary {name}: its file cannot be read ({error}); install the workbench again") from error
    if hashlib.sha256(data).hexdigest() != VOCABULARIES[name].sha256:
        raise CounterError(f"vocabulary {name}: its file is damaged (wrong sha256); install the workbench again")
    return data


def _build(name: str) -> tiktoken.Encoding:
    try:
        import tiktoken  # 50 ms, and only needed here
    except ImportError as error:
        raise CounterError(f"vocabulary {name}: tiktoken cannot be imported ({error}); install it or choose the counter bytes/4") from error

    words = read_ranks(name).split()
    ranks = dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    vocabulary = VOCABULARIES[name]
    return tiktoken.Encoding(name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens=vocabulary.special)
