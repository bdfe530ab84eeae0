"""Reader of dialogues: lines such as ``{"speaker": "Ann", "line": "Hello"}``. The bot is the speaker called ``bot``."""

from __future__ import annotations

from workbench.model import Text, Transcript
from workbench.readers import Document, Match, ReaderInfo
from workbench.readers.build import Builder


class DialogueReader:
    """A reader has an `info` and these two methods, and nothing else."""

    info = ReaderInfo("dialogue", "Dialogues: lines with speaker and line")

    def detect(self, document: Document) -> Match | None:
        """Say how sure we are, and why."""
        head = document.head(50)
        own = sum({"speaker", "line"} <= value.keys() for value in head)
        return Match(0.9, ("lines with speaker and line",)) if head and own * 2 > len(head) else None

    def read(self, document: Document) -> list[Transcript]:
        """Account for every record: a message, or one that was skipped and why."""
        builder = Builder(self.info.name, document)
        for record in document.rows():
            value = record.value if isinstance(record.value, dict) else {}
            speaker, line = value.get("speaker"), value.get("line")
            if not isinstance(speaker, str) or not isinstance(line, str):
                builder.skip(record.number, "record", f"record {record.number}: no speaker or no line")
            elif speaker == "bot":
                builder.message("assistant", [Text(line)], record.number, call=builder.call().index)
            else:
                builder.message("user", [Text(line)], record.number)
        return [builder.build()]


READER = DialogueReader()
