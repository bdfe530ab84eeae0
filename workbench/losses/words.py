"""Identifiers in a text: what a model must know exactly, and cannot make up.

A text is cut into words once, each word is looked at once however often it stands there, and no pattern can backtrack
over more than one word: the time is linear in the text, whoever wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: What an identifier can be, in the order of tables.
IDENTIFIERS = ("path", "url", "symbol", "hash", "number", "error")

Found = tuple[str, str]  # (kind, identifier)

LONGEST = 300  # characters of a word that is looked at: what is longer is data
_WORD = re.compile(r"[^\s\"'`´“”‘’«»<>()\[\]{}|;*=]++")
_ESCAPES = re.compile(r"\\[nrt\"'/]")
_EDGES = ".,:!?…"
_PIECE = re.compile(r"(?:19|20)\d\d-[01]\d(?:-[0-3]\d)?(?!\d)|\d{1,3}(?:,\d{3})++(?!\d)|\w++")
_HEX = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_CAMEL = re.compile(r"[a-z0-9][A-Z]")
_LETTER = re.compile(r"[^\W\d_]")
_LINE_NUMBERS = re.compile(r"(?:[:#]L?\d{1,7}(?:[-:]L?\d{1,7})?)$")
_NAME = re.compile(r"[\w@.-]{1,120}\.[A-Za-z]\w{0,9}")
_FOLDER = re.compile(r"[\w@. +~-]*[A-Za-z][\w@. +~-]*")
_NO_PATH = re.compile(r"[*?$^!%,:\\]")
#: A bare ``name.word`` is a file only with a known ending: else it is an attribute.
_KNOWN_ENDINGS = """
bat c cc cfg cjs conf cpp cs css csv cts dart db dockerfile env ex exs gif go gradle h hpp html ini ipynb java jpeg jpg js json json5 jsonl jsx kt less
lock log lua md mdx mjs mts parquet pdf php pl png proto ps1 py pyi r rb rs rst scala scss sh sql sqlite svelte svg swift tex toml ts tsv tsx txt vue xlsx
xml yaml yml zig zip zsh
"""
_ENDINGS = frozenset(_KNOWN_ENDINGS.split())
#: The end of an error's name, with the colon and the blank that its message follows.
_ERROR_NAME = re.compile(r"(?:rror|xception|atal|anic|rror\[\w{1,12}\]): ")
_ERROR_MARKS = ("rror: ", "xception: ", "atal: ", "anic: ", "]: ")
_NAME_CHARS = "_.[]0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LONGEST_NAME = 80
_PLAIN = ("error", "fatal", "panic")
_MESSAGE = re.compile(r"[^\n\r`]{1,120}")
_ERROR_WORDS = 6  # of its message: what is quoted is often cut
_PARTS = re.compile(r"\w+")


class Reader:
    """Finds identifiers in texts of one session. It remembers each word that it has seen.

    Parameters
    ----------
    home : str
        The session's working folder: a path in it is known by what follows.
    files : iterable of str
        Paths that are known from tool calls, so that a name without an ending is one too.
    """

    def __init__(self, home: str = "", files: Iterable[str] = ()) -> None:
        home = home.replace("\\", "/").rstrip("/")
        self._home = home + "/" if len(home) > 1 else ""
        self._files = frozenset(files)
        self._known: dict[str, tuple[Found, ...]] = {}

    def path(self, word: str) -> str:
        """A path as it is known in the session: with ``/``, without the working folder before it and ``./``.

        Examples
        --------
        >>> Reader("/home/dev/app").path("/home/dev/app/src/load.py")
        'src/load.py'
        """
        word = word.replace("\\", "/")
        if self._home and word.startswith(self._home):
            word = word[len(self._home) :]
        while word.startswith("./"):
            word = word[2:]
        return word.rstrip("/") or word

    def find(self, text: str) -> set[Found]:
        """All identifiers of a text, each once.

        Examples
        --------
        >>> sorted(Reader().find("see src/load.py:12 and `read_rows` at 4f9c2d1: 12,480 rows"))
        [('hash', '4f9c2d1'), ('number', '12480'), ('path', 'src/load.py'), ('symbol', 'read_rows')]
        >>> max(Reader().find("it said TypeError: cannot unpack `x`"), key=lambda found: len(found[1]))
        ('error', 'TypeError: cannot unpack')
        """
        if "\\" in text:
            text = _ESCAPES.sub(" ", text)
        found: set[Found] = set()
        known = self._known
        for word in set(_WORD.findall(text)):
            if len(word) < 4 or len(word) > LONGEST:
                continue
            if word not in known:
                known[word] = self._word(word)
            found.update(known[word])
        if any(mark in text for mark in _ERROR_MARKS):
            found.update(_errors(text))
        return found

    def forget(self) -> None:
        """Free the words that were remembered."""
        self._known = {}

    def _word(self, word: str) -> tuple[Found, ...]:
        at = word.find("://")
        if at > 0:
            start = at - len(word[:at]) + len(word[:at].rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+"))
            url = word[start:].rstrip(_EDGES + "/")
            return (("url", url),) if len(url) > at - start + 3 else ()
        path = self._as_path(word)
        return (("path", path),) if path else _pieces(word)

    def _as_path(self, word: str) -> str:
        word = _LINE_NUMBERS.sub("", word.strip(",!?…").lstrip("@").rstrip(_EDGES))
        path = self.path(word)
        if path in self._files:
            return path
        if path[:2] in ("a/", "b/") and path[2:] in self._files:  # as a diff names it
            return path[2:]
        if "/" not in path:
            name, _, ending = path.rpartition(".")
            known = ending.lower() in _ENDINGS and (len(ending) > 1 or "." not in name)
            return path if name and known and _NAME.fullmatch(path) and path[0] not in ".-" else ""
        if len(path) < 4 or path[0] == "-" or path.startswith("/dev/") or _NO_PATH.search(path):
            return ""
        folders, _, name = path.rpartition("/")
        rooted = word.startswith(("/", "./", "../", "~/")) or word[1:3] in (":/", ":\\")
        if _NAME.fullmatch(name) and name.rpartition(".")[2][:1].isalpha():
            return path
        return path if rooted and _FOLDER.fullmatch(name) and folders.strip("./~") else ""


def _pieces(word: str) -> tuple[Found, ...]:
    found: list[Found] = []
    if len(word) >= 36 and "-" in word:
        for uuid in _UUID.findall(word):
            found.append(("hash", uuid.lower()))
            word = word.replace(uuid, " ")
    for piece in _PIECE.findall(word):
        if len(piece) < 4:
            continue
        digits = piece.replace(",", "")
        if "-" in piece:  # a date is one number
            found.append(("number", piece))
        elif digits.isdecimal():
            found += [("number", digits)] if len(digits) <= 40 else []
        elif _HEX.fullmatch(piece) and not piece.isalpha():
            found.append(("hash", piece.lower()))
        elif len(piece) <= 120 and ("_" in piece or _CAMEL.search(piece)) and len(_LETTER.findall(piece)) > 2:
            found.append(("symbol", piece))
    return tuple(found)


def _errors(text: str) -> Iterable[Found]:
    """Errors with their message: the name and the first words, as an assistant quotes them."""
    hit = _ERROR_NAME.search(text)
    while hit is not None:
        colon = hit.end() - 2
        before = text[max(0, colon - _LONGEST_NAME) : colon]
        name = before[len(before.rstrip(_NAME_CHARS)) :].rpartition(".")[2]
        message = _MESSAGE.match(text, hit.end())
        words = _PARTS.findall(message[0])[:_ERROR_WORDS] if message else []
        if len(words) > 1 and (name[:1].isupper() or name.partition("[")[0] in _PLAIN):
            yield "error", f"{name}: {' '.join(words).casefold()}"
        hit = _ERROR_NAME.search(text, message.end() if message else hit.end())


def plain(text: str) -> str:
    """A text to be searched for in another: white space and case do not count."""
    return " ".join(text.casefold().split())


_ENDS = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_ORDERS = re.compile(r"\b(?:must|mustn['’]t|never|always|only|don['’]t|do not)\b", re.IGNORECASE)
_SENTENCE = 1_000  # characters


def instructions(text: str) -> tuple[str, ...]:
    """The sentences that order or forbid something: those with must, never, always, only, don't or do not.

    Examples
    --------
    >>> instructions("Fix the test. Never push to main! You must\\nask first.")
    ('Never push to main!', 'You must')
    """
    found = (sentence.strip() for sentence in _ENDS.split(text) if _ORDERS.search(sentence))
    return tuple(dict.fromkeys(sentence[:_SENTENCE] for sentence in found if sentence))
