"""Every request of a session under a policy: what it would have carried, what it would have cost."""

from .base import Edit, Replay, Sent

__all__ = ["Edit", "Replay", "Sent"]
