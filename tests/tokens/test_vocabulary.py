"""The vocabularies are tiktoken's own, come from the package alone, and are loaded once."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import threading

import pytest
import tiktoken
import tiktoken.registry
import tiktoken_ext.openai_public as public

from tests.shared import ROOT
from workbench.errors import CounterError
from workbench.tokens import TiktokenCounter, counter_for, get, measure, preload, vocabulary

NAMES = tuple(vocabulary.VOCABULARIES)


@pytest.mark.parametrize("name", NAMES)
def test_the_ranks_are_the_ones_that_the_installed_tiktoken_names(name, monkeypatch):
    asked = {}
    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda url, expected_hash: asked.update(url=url, sha256=expected_hash) or {})
    theirs = public.ENCODING_CONSTRUCTORS[name]()
    assert hashlib.sha256(vocabulary.read_ranks(name)).hexdigest() == asked["sha256"] == vocabulary.VOCABULARIES[name].sha256
    assert vocabulary.VOCABULARIES[name].pattern == theirs["pat_str"]
    assert vocabulary.VOCABULARIES[name].special == theirs["special_tokens"]
    notice = (ROOT / "workbench/tokens/vocab/NOTICE").read_text()
    assert asked["sha256"] in notice
    assert asked["url"].split("/", 3)[-1] in notice


def test_harmony_shares_the_ranks_and_the_pattern_of_o200k(monkeypatch):
    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda url, expected_hash: {"ranks": expected_hash})
    base, harmony = public.ENCODING_CONSTRUCTORS["o200k_base"](), public.ENCODING_CONSTRUCTORS["o200k_harmony"]()
    assert (base["pat_str"], base["mergeable_ranks"]) == (harmony["pat_str"], harmony["mergeable_ranks"])


@pytest.mark.parametrize(("name", "expected"), [("o200k_base", [24912, 2375]), ("cl100k_base", [15339, 1917])])
def test_known_ids(name, expected):
    assert vocabulary.load(name).encode_ordinary("hello world") == expected


_ALONE = """
import socket
def refuse(*args, **kwargs):
    raise AssertionError("a network call")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
import tiktoken.registry
from workbench.tokens import TiktokenCounter
for name in ("o200k_base", "cl100k_base"):
    assert TiktokenCounter(name).count_texts(["hello world"]).tolist() == [2]
assert not tiktoken.registry.ENCODINGS, "our vocabularies must stay out of tiktoken's registry"
assert tiktoken.registry.ENCODING_CONSTRUCTORS is None
"""


def test_a_fresh_process_counts_without_a_network_or_a_cache(tmp_path):
    """Inputs 1, 2 and 13: no network, a wrong and read-only cache folder, nothing asked of tiktoken's registry."""
    wrong = tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790"
    wrong.write_bytes(b"not a vocabulary")
    tmp_path.chmod(0o500)
    env = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path), "DATA_GYM_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", _ALONE], env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert wrong.read_bytes() == b"not a vocabulary"


def test_no_network_in_this_process(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a network call")

    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(vocabulary, "_loaded", {})
    assert measure(get("o200k_base"), ["a b c"]).tokens.tolist() == [3]
    assert counter_for("claude-sonnet-4-5").count_texts(["hello world"]).tolist() == [2]


def test_two_threads_that_load_at_once_get_one_encoding(monkeypatch):
    """Inputs 11 and 14."""
    builds = []
    real = vocabulary._build
    monkeypatch.setattr(vocabulary, "_loaded", {})
    monkeypatch.setattr(vocabulary, "_build", lambda name: builds.append(name) or real(name))
    got = []
    threads = [threading.Thread(target=lambda: got.append(vocabulary.load("cl100k_base"))) for _ in range(4)]
    threads.append(preload("cl100k_base"))
    for thread in threads[:-1]:
        thread.start()
    for thread in threads:
        thread.join()
    assert builds == ["cl100k_base"]
    assert len(got) == 4
    assert len({id(encoding) for encoding in got}) == 1


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: data[:100] + b"x" + data[101:], lambda data: b""])
def test_a_damaged_file_is_named_in_one_line(damage, monkeypatch, tmp_path):
    folder = tmp_path / "vocab"
    folder.mkdir()
    good = (ROOT / "workbench/tokens/vocab/cl100k_base.tiktoken.gz").read_bytes()
    (folder / "cl100k_base.tiktoken.gz").write_bytes(damage(good))
    monkeypatch.setattr(vocabulary, "files", lambda package: tmp_path)
    monkeypatch.setattr(vocabulary, "_loaded", {})
    with pytest.raises(CounterError, match=r"vocabulary cl100k_base.*install the workbench again") as caught:
        TiktokenCounter("cl100k_base").count_texts(["a"])
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_child_process_counts_after_a_fork():
    """Input 15: the child inherits the loaded vocabulary and fresh locks."""
    measure(get("o200k_base"), ["before the fork"])
    code = (
        "import os, sys, threading\n"
        "from workbench.tokens import get, measure, store, vocabulary\n"
        "measure(get('o200k_base'), ['before'])\n"
        "vocabulary._lock.acquire(); store.shared()._lock.acquire()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    ok = measure(get('o200k_base'), ['hello world']).tokens.tolist() == [2] and vocabulary._lock.acquire(timeout=1)\n"
        "    os._exit(0 if ok else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_our_encodings_leave_tiktoken_alone():
    vocabulary.load("o200k_base")
    assert vocabulary.load("o200k_base") not in tiktoken.registry.ENCODINGS.values()


def test_the_ledger_is_imported_without_tiktoken_and_pandas():
    code = "import sys, workbench.ledger; sys.exit(any(name in sys.modules for name in ('tiktoken', 'pandas', 'regex', 'requests')))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
