"""Who answers ssh's questions while a target is being attached."""

from __future__ import annotations

from pathlib import Path

from holdfast.hosts.ssh_questions import Secret, SshQuestion, understand
from holdfast.workbench.machines.answers import Answers, SshAccount, Ways

GPU1 = SshAccount("me", "gpu1", is_behind_another=True)
HOST_KEY = (
    "The authenticity of host 'gpu1 (10.0.0.1)' can't be established.\nED25519 key fingerprint is SHA256:abc.\n"
    "Are you sure you want to continue connecting (yes/no/[fingerprint])? "
)


MINE = Ways(private_key=Path("/keys/mine"))
PASSWORD = understand("me@gpu1's password: ")
OF_THE_DOOR = understand("you@door's password: ")


class Person:
    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, question: SshQuestion) -> str | None:
        self.asked.append(question.text)
        return self.answers.pop(0)


def test_a_password_goes_once_and_to_the_machine_it_is_for():
    person = Person("of the door", "of a person")
    answers = Answers(Ways(Secret("given")), GPU1, person)
    assert answers(OF_THE_DOOR) == "of the door"
    assert answers.asked == set(), "the door's questions say nothing about the machine"
    assert answers(PASSWORD) == "given"
    assert answers(PASSWORD) == "of a person", "it was wrong: not again"
    assert answers.asked == {"password"}


def test_a_prompt_without_a_name_is_trusted_only_where_nothing_is_in_between():
    behind = Answers(Ways(Secret("given")), GPU1, None)
    assert behind(understand("Password: ")) is None
    direct = Answers(Ways(Secret("given")), SshAccount("me", "gpu1", is_behind_another=False), None)
    assert direct(understand("Password: ")) == "given"
    assert Answers(Ways(Secret("given")), GPU1, None)(understand("(me@gpu1) Password: ")) == "given"


def test_if_ssh_cannot_say_who_asks_the_given_password_is_not_sent():
    person = Person("of a person")
    answers = Answers(Ways(Secret("given")), None, person)
    assert answers(PASSWORD) == "of a person"
    assert answers.asked == {"password"}, "it took a password, so a key is left there"
    alone = Answers(Ways(Secret("given")), None, None)
    assert [alone(understand(text)) for text in ("me@gpu1's password: ", "Password: ")] == [None, None]
    assert alone.has_withheld


def test_a_passphrase_is_for_the_key_that_was_named():
    ways = Ways(private_key=Path("/keys/mine"), passphrase=Secret("open"))
    answers = Answers(ways, GPU1, Person("another"))
    assert answers(understand("Enter passphrase for key '/keys/other': ")) == "another"
    assert answers(understand("Enter passphrase for key '/keys/mine': ")) == "open"
    assert answers.asked == {"passphrase"}


def test_a_person_is_asked_once_per_question_and_again_when_it_was_wrong():
    person = Person("first", "second", "code 1", "code 2")
    answers = Answers(Ways(), GPU1, person)
    assert answers(OF_THE_DOOR) == "first"
    answers.begin()
    assert answers(OF_THE_DOOR) == "first", "a new connection gets the same"
    assert answers(OF_THE_DOOR) == "second", "asked twice in one connection: it was wrong"
    code = SshQuestion("other", "Verification code: ")
    assert [answers(code), answers(code)] == ["code 1", "code 2"], "codes are new each time"


def test_a_host_key_is_confirmed_by_fingerprint_by_a_person_or_not_at_all():
    asked = understand(HOST_KEY)
    assert Answers(Ways(accepted=("SHA256:abc",)), None, None)(asked) == "SHA256:abc"
    person = Person("yes")
    confirmed = Answers(Ways(), None, person)
    assert [confirmed(asked), confirmed(asked)] == ["yes", "SHA256:abc"], "a person is asked once"
    without_person = Answers(Ways(accepted=("SHA256:other",)), None, None)
    assert without_person(asked) == "no"
    assert without_person.unconfirmed == asked
    assert Answers(Ways(), None, Person("no"))(asked) == "no"


def test_the_key_that_did_not_do_is_named_once_before_a_password_is_asked_for():
    person = Person(None, "wrong", "right")
    answers = Answers(MINE, GPU1, person)
    assert [answers(PASSWORD), answers(PASSWORD)] == ["wrong", "right"]
    assert person.asked == ["The key /keys/mine alone does not open gpu1.", PASSWORD.text, PASSWORD.text]


def test_a_passphrase_that_was_not_right_is_thought_of_before_a_password_is_asked_for():
    person = Person("wrong", None, "the password")
    answers = Answers(MINE, GPU1, person)
    answers(understand("Enter passphrase for key '/keys/mine': "))
    assert answers(PASSWORD) == "the password"
    assert "/keys/mine" in person.asked[1] and "passphrase was not right" in person.asked[1]


def test_nothing_is_said_of_a_key_when_a_machine_on_the_way_asks():
    person = Person("of the door")
    assert Answers(MINE, GPU1, person)(OF_THE_DOOR) == "of the door"
    assert person.asked == [OF_THE_DOOR.text]
