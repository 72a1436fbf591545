"""What an episode begins with: the system message with the tools, and the task.

The words are the same on every surface; only the lines that describe the tools differ.
"""

from __future__ import annotations

from modtools.lab.tasks import Task
from modtools.models import Message, Model
from modtools.pipeline import FINISH
from modtools.surfaces import Surface

_SYSTEM = """You change a small Python repository by calling tools. The tools:
{tools}
Reply with one call and nothing after it: {{"name": "<tool>", "arguments": {{...}}}}
You then see its result. When the task is done, reply {finish}"""


def first_messages(task: Task, surface: Surface) -> tuple[Message, Message]:
    """The system message and the task, as the model sees them at its first turn."""
    return _system(surface.snapshot.schema_text), Message(
        "user", f"Files: {', '.join(sorted(task.files))}\nTask: {task.text}"
    )


def schema_tokens(model: Model, surface: Surface) -> int:
    """l(s): tokens that the tools' schemas add to the system message, in the model's own tokens."""
    with_tools = model.count_messages((_system(surface.snapshot.schema_text),))
    without = model.count_messages((_system(""),))
    return sum(with_tools) - sum(without)


def _system(tools: str) -> Message:
    return Message("system", _SYSTEM.format(tools=tools, finish=FINISH))
