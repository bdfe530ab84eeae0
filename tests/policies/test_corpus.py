"""Every policy answers on every real transcript that can be read: nothing but a `WorkbenchError`, everything accounted for."""

import pytest

from tests.readers.test_corpus import ROOT, manifest
from workbench import policies, readers
from workbench.errors import ReadError, WorkbenchError
from workbench.ledger import count
from workbench.model import Budget
from workbench.tokens import RatioCounter

#: Of a file with many runs: the first ones stand for all.
RUNS = 4


def budgets(total):
    yield Budget(0, 0, 0)
    yield Budget(200, 10, 10)
    for share in (3, 2):
        yield Budget(total // share + 100, 50, 50)
    yield Budget(10**7)


def check(selection):
    view = selection.request.view
    assert sum(selection.counts.values()) == len(view.indices)
    assert sum(selection.fate_tokens.values()) == int(view.tokens.sum())
    assert selection.after_tokens == view.fixed - int(view.tokens[: view.lead].sum()) + int(selection.item_tokens.sum())
    assert all("\n" not in finding.text for finding in selection.findings)
    assert all(step.text for step in selection.steps)
    for index in view.indices[:: max(1, len(view.indices) // 3)].tolist():
        assert selection.explain(index)


@pytest.mark.transcripts
@pytest.mark.parametrize("folder", sorted({format for _, format in manifest()}))
def test_every_policy_on_every_file(folder):
    answered = dict.fromkeys(policies.list(), 0)
    for path, format in manifest():
        if format != folder:
            continue
        try:
            transcripts = readers.read_all(ROOT / path)
        except ReadError:
            continue
        for transcript in transcripts[:RUNS]:
            ledger = count(transcript, RatioCounter())
            for thread in [item.id for item in transcript.threads][:3]:
                for history in ("full", "live") if transcript.compacted(thread) else ("full",):
                    view = ledger.view(thread, history)
                    for name in answered:
                        for budget in budgets(view.total):
                            try:
                                check(policies.select(ledger, name, budget, history=history, thread=thread))
                            except WorkbenchError:
                                continue
                            answered[name] += 1
    assert len(set(map(bool, answered.values()))) <= 1, answered  # where one policy answers, all do at some budget
