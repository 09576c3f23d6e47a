"""A form on its way to one client: as a form or a link if it takes those, else by choosing, else not at all.

Imported with the first form that is asked. Whatever the client answers, the session that asked gets
a `FormAnswer` whose values fit its form.
"""

from __future__ import annotations

import logging
from typing import Protocol

from acp_manifold.translators.acp.capabilities import ClientCapabilities
from acp_manifold.translators.acp.forms import elicitation_params, form_answer
from acp_manifold.translators.choices import call_of, stepwise, unaskable
from acp_manifold.translators.forms import Form, FormAnswer
from acp_manifold.translators.updates import MessageChunk, Question, Text, ToolCall, ToolCallUpdate, Update

logger = logging.getLogger(__name__)


class Asker(Protocol):
    """The connection of the client that is asked."""

    @property
    def can(self) -> ClientCapabilities:
        """What the client takes."""
        ...

    def tell(self, session_id: str, update: Update) -> None:
        """Tell the client, if it still hears of the session."""
        ...

    async def put(self, session_id: str, method: str, params: dict[str, object]) -> object:
        """The client's answer to a request; None if it is an error, or the client is gone."""
        ...

    async def ask(self, session_id: str, question: Question) -> str | None:
        """The id of the option that was chosen."""
        ...


async def put_form(asker: Asker, session_id: str, form: Form) -> FormAnswer:
    """Ask the person; cancelling it takes the question back."""
    takes = asker.can.elicitation_form if form.url is None else asker.can.elicitation_url
    if takes:
        params = elicitation_params(session_id, form, air=bool(asker.can.air))
        answer = form_answer(form, await asker.put(session_id, "elicitation/create", params))
    elif (why := unaskable(form)) is None:
        answer = await _by_choosing(asker, session_id, form)
    else:
        asker.tell(session_id, not_asked(form.message, f"this editor shows no forms, and {why}"))
        return FormAnswer("decline", reason=f"The client can't show this question: {why}.")
    if answer.reason is not None:
        logger.warning("session %s: a question counts as not answered: %s", session_id, answer.reason)
    return answer


def not_asked(message: str, why: str) -> MessageChunk:
    """A note for the person about a question that can't be shown to them."""
    return MessageChunk("agent", Text(f"\n\n*A question was not asked, because {why}:* {message}\n\n"))


async def _by_choosing(asker: Asker, session_id: str, form: Form) -> FormAnswer:
    if form.call is not None:
        return await _steps(asker, session_id, form)
    # A question needs a tool call to be shown with: one of its own, that ends with it.
    call, answered = call_of(form), False
    asker.tell(session_id, ToolCall(call.id, call.title or "", call.kind or "other"))
    try:
        answer = await _steps(asker, session_id, form)
        answered = answer.action == "accept"
        return answer
    finally:
        asker.tell(session_id, ToolCallUpdate(call.id, status="completed" if answered else "failed"))


async def _steps(asker: Asker, session_id: str, form: Form) -> FormAnswer:
    steps = stepwise(form)
    question = next(steps)
    while True:
        chosen = await asker.ask(session_id, question)
        try:
            question = steps.send(chosen)
        except StopIteration as end:
            answer: FormAnswer = end.value
            return answer
