"""A form as questions with one answer to choose, one after another: for clients that show no forms.

Only what can be chosen can be asked so: one of several, yes or no, and some of several by asking
again until the person says that it is all. Text that may be left out is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias

from .forms import Field, FieldKind, Form, FormAnswer, Misfit, Value, checked
from .updates import Option, Question, Text, ToolCallUpdate

Asking: TypeAlias = Generator[Question, str | None, FormAnswer]
"""Yields a question, takes the id of the chosen option (None: none was chosen), and gives the answer at its end."""

_Step: TypeAlias = Generator[Question, str | None, "Value | None"]

_YES, _NO, _SKIP, _DONE = "accept", "decline", "skip", "done"
_ANSWER = "answer:"
_MISUNDERSTOOD = "The client chose what was not offered."


class _Refused(Exception):
    """The person gave no answer; holds what that means for the form."""

    def __init__(self, answer: FormAnswer) -> None:
        super().__init__(answer.reason)
        self.answer = answer


def unaskable(form: Form) -> str | None:
    """Why a form can't be asked by choosing; None if it can."""
    if form.url is not None or not form.fields:
        return None
    typed = [field for field in form.fields if field.kind not in _ASKERS]
    needed = [field.title or field.name for field in typed if field.required]
    if needed:
        return f"{needed[0]!r} has to be typed into a form"
    return "everything in it has to be typed into a form" if len(typed) == len(form.fields) else None


def stepwise(form: Form) -> Asking:
    """Ask a form that is not `unaskable`."""
    try:
        values = yield from _fields(form) if form.fields else _consent(form)
        return FormAnswer("accept", checked(form, values))
    except _Refused as refusal:
        return refusal.answer
    except Misfit as exc:
        return FormAnswer("cancel", reason=f"The answers do not fit the form: {exc}.")


def _fields(form: Form) -> Generator[Question, str | None, dict[str, Value]]:
    fields = [field for field in form.fields if field.kind in _ASKERS]
    values: dict[str, Value] = {}
    for field in fields:
        value = yield from _ASKERS[field.kind](_Asked(form, field, several=len(fields) > 1))
        if value is not None:
            values[field.name] = value
    return values


def _consent(form: Form) -> Generator[Question, str | None, dict[str, Value]]:
    call = call_of(form)
    if form.url is None:
        options = (Option(_YES, "Yes", "allow_once"), Option(_NO, "No", "reject_once"))
        yield from _choose(Question(call._replace(content=_said(form.message)), options))
    else:
        options = (Option(_YES, "I have opened it", "allow_once"), Option(_NO, "Don't open it", "reject_once"))
        yield from _choose(Question(call._replace(content=_said(form.message, form.url)), options))
    return {}


def call_of(form: Form) -> ToolCallUpdate:
    """The tool call that a form's questions are shown with: its own, or one that stands for the form."""
    call = form.call or ToolCallUpdate(form.id, kind="other", status="pending")
    asks = form.message if form.source is None else f"{form.source}: {form.message}"
    return call._replace(title=asks)


def _said(*texts: str | None) -> tuple[Text, ...] | None:
    return tuple(Text(said) for said in texts if said) or None


class _Asked:
    """One field on its way to the person."""

    def __init__(self, form: Form, field: Field, *, several: bool) -> None:
        self.field = field
        self._form = form
        self._several = several

    def question(self, options: list[Option], so_far: str = "") -> Question:
        """The question with these options, and a way out."""
        field, form = self.field, self._form
        call = call_of(form)
        label = field.description or field.title or field.name
        title = label if self._several else call.title or label
        described = [f"- {choice.title}: {choice.description}" for choice in field.choices if choice.description]
        told = _said(form.message if self._several else None, field.description, "\n".join(described), so_far)
        if self._several and not field.required and not so_far:
            options = [*options, Option(_SKIP, "Skip this question", "allow_once")]
        options = [*options, Option(_NO, "Don't answer", "reject_once")]
        return Question(call._replace(title=f"{title}{f' ({so_far})' if so_far else ''}", content=told), tuple(options))


def _choose(question: Question) -> Generator[Question, str | None, str]:
    """The id of the chosen option.

    Raises:
        _Refused: None was chosen, the one that refuses, or one that was not offered.
    """
    chosen = yield question
    if chosen is None:
        raise _Refused(FormAnswer("cancel"))
    if chosen == _NO:
        raise _Refused(FormAnswer("decline"))
    if all(option.id != chosen for option in question.options):
        raise _Refused(FormAnswer("cancel", reason=_MISUNDERSTOOD))
    return chosen


def _boolean(asked: _Asked) -> _Step:
    options = [Option(f"{_ANSWER}0", "Yes", "allow_once"), Option(f"{_ANSWER}1", "No", "allow_once")]
    chosen = yield from _choose(asked.question(options))
    return None if chosen == _SKIP else chosen == f"{_ANSWER}0"


def _one(asked: _Asked) -> _Step:
    options = _options(asked.field, ())
    chosen = yield from _choose(asked.question(options))
    return None if chosen == _SKIP else _value(asked.field, chosen)


def _some(asked: _Asked) -> _Step:
    field = asked.field
    picked: list[str] = []
    most = len(field.choices) if field.most is None else min(field.most, len(field.choices))
    while len(picked) < most:
        options = _options(field, picked)
        so_far = ", ".join(choice.title for choice in field.choices if choice.value in picked)
        if picked and len(picked) >= (field.least or 0):
            options = [Option(_DONE, f"That is all: {so_far}", "allow_once"), *options]
        chosen = yield from _choose(asked.question(options, f"chosen: {so_far}" if so_far else ""))
        if chosen == _SKIP:
            return None
        if chosen == _DONE:
            break
        picked.append(_value(field, chosen))
    return [choice.value for choice in field.choices if choice.value in picked]


def _options(field: Field, picked: list[str] | tuple[()]) -> list[Option]:
    return [
        Option(f"{_ANSWER}{index}", choice.title, "allow_once")
        for index, choice in enumerate(field.choices)
        if choice.value not in picked
    ]


def _value(field: Field, chosen: str) -> str:
    return field.choices[int(chosen.removeprefix(_ANSWER))].value


_ASKERS: dict[FieldKind, Callable[[_Asked], _Step]] = {"boolean": _boolean, "one": _one, "some": _some}
