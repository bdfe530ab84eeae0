"""Text as the originals treat it: their white space, and cuts by bytes. Rules: four_systems.md §1."""

from __future__ import annotations

import re

#: Unicode's White_Space. Python's ``str.strip`` takes U+001C to U+001F too.
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


def trim(text: str) -> str:
    r"""Without white space at both ends.

    Examples
    --------
    >>> trim("\u3000 a\x1c ")
    'a\x1c'
    """
    return text.strip(WHITE_SPACE)


def trim_start(text: str) -> str:
    """Without white space in front."""
    return text.lstrip(WHITE_SPACE)


def lines(text: str) -> list[str]:
    r"""The lines: only LF parts them, one CR before it goes too, and a final LF starts no further line.

    Examples
    --------
    >>> lines("a\r\nb\x0bc\r\n\r")
    ['a', 'b\x0bc', '\r']
    """
    *ended, last = text.split("\n")
    return [line.removesuffix("\r") for line in ended] + ([last] if last else [])


def words(text: str) -> list[str]:
    r"""What white space parts.

    Examples
    --------
    >>> words("  a\u3000b\x1cc\n")
    ['a', 'b\x1cc']
    """
    return _WORD.findall(text)


def has_white_space(text: str) -> bool:
    """Say whether there is any."""
    return _WHITE.search(text) is not None


_WHITE = re.compile(f"[{WHITE_SPACE}]")
_WORD = re.compile(f"[^{WHITE_SPACE}]+")


def head(text: str, most: int) -> str:
    """The beginning of a text, in at most so many bytes of UTF-8, cut between characters.

    Examples
    --------
    >>> head("abé", 3), head("abé", 4)
    ('ab', 'abé')
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= most:
        return text
    end = max(most, 0)
    while end and data[end] & 0xC0 == 0x80:  # inside a character
        end -= 1
    return data[:end].decode("utf-8", "surrogatepass")


def truncate(text: str, most: int) -> str:
    """At most so many bytes of UTF-8, cut between characters; a cut text ends in an ellipsis that is not counted.

    Examples
    --------
    >>> truncate("abcd", 4), truncate("éé", 3)
    ('abcd', 'é…')
    """
    beginning = head(text, most)
    return beginning if len(beginning) == len(text) else beginning + "…"
