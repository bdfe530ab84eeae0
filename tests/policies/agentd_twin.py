"""The readable twin of the agentd policy: the original's context itself, given the messages of one request after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench import notes
from workbench.ledger import View
from workbench.notes.structured import as_summary
from workbench.notes.structured_fill import fill
from workbench.policies.agentd import Agentd
from workbench.systems.agentd import ContextState, Msg, apply_compaction, plan_compaction, summary_json
from workbench.systems.mapping.agentd import as_messages


@dataclass
class Twin:
    """A context, and how many messages of the history it was given and has folded."""

    context: ContextState = field(default_factory=lambda: ContextState.new("root", 0, 0))
    seen: int = 0
    folded: int = 0

    def send(self, view: View, policy: Agentd, window: int, held: list[Msg] | None = None) -> list[Msg]:
        """What the original sends for a request. `held`: its messages, if they were mapped beforehand."""
        history = view.messages[view.lead :]
        context = self.context
        context.model_window = window
        for message in (as_messages(view, history) if held is None else held)[self.seen :]:
            context.append(message, 0)
        self.seen = len(history)
        plan = plan_compaction(context, policy.keep_last, policy.target) if context.needs_compaction(policy.compact_at) else None
        if plan is not None:
            end = self.folded + plan.fold
            if policy.note == "structured":
                verdict: object = summary_json(as_summary(fill(history[self.folded : end])))
            else:
                verdict = notes.get(policy.note).write(view, range(view.lead, view.lead + end), policy.note_max_chars).text
            apply_compaction(context, plan, verdict, 0)
            self.folded = end
        return context.slice(0)
