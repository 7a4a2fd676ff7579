"""Names, passwords and tokens are removed from addresses, and restored into the same ones only."""

from __future__ import annotations

import re

import pytest

from holdfast.farside.environments.conda_worker import without_secrets
from holdfast.project.credentials import Concealer, without_credentials


def concealed(*texts: str) -> tuple[list[str], dict[str, str]]:
    concealer = Concealer()
    return [concealer.conceal(text) for text in texts], dict(concealer.taken())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("https://me:one@a.example/simple", "https://me:two@b.example/simple"),
        ("https://a.example/t/one/c", "https://b.example/t/two/c"),
        ("https://a.example/w.whl?sig=one", "https://b.example/w.whl?sig=two"),
        ("https://a.example/w.whl?sig=one", "https://a.example/w.whl?token=two"),
        ("https://me:one@a.example/x?key=k", "https://a.example/x?key=k"),
    ],
)
def test_a_name_means_one_address_in_every_spec(first, second):
    (_, one), (_, two) = concealed(first), concealed(second)
    assert not {name for name in one if name in two and one[name] != two[name]}
    assert len(one) >= 1 <= len(two)


@pytest.mark.parametrize(
    "name", ["https://me:{}@a.example/s", "https://a.example/t/{}/c", "https://a.example/w?sig={}"]
)
def test_a_name_tells_nothing_of_the_secret_and_stays_when_that_changes(name):
    (text,), _ = concealed(name.format("one"))
    assert concealed(name.format("another"))[0] == [text]
    assert re.search(r"\$\{HOLDFAST_INDEX_[0-9A-F]{8}\}", text)


def test_one_address_asked_in_two_ways_has_two_names():
    texts, taken = concealed(*(f"https://{each}@a.example/s" for each in ("me:one", "you:two", "me:one")))
    assert texts[0] == texts[2] != texts[1]
    assert sorted(taken.values()) == ["me:one", "you:two"]
    assert len({without_credentials(each) for each in texts}) == 1


PARAMETERS = [
    *("sig", "Signature", "X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token", "AWSAccessKeyId"),
    *("api_key", "apikey", "client_secret", "auth", "password", "PRIVATE-TOKEN", "sas", "pwd"),
]


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_every_parameter_that_sounds_secret_is_taken_out_whole(parameter):
    texts, taken = concealed(f"https://h.example/w.whl?a=1&{parameter}=AK/2024%2Fs3&z=2#sha256=ab")
    assert list(taken.values()) == ["AK/2024%2Fs3"]
    assert re.fullmatch(rf"https://h.example/w.whl\?a=1&{parameter}=\$\{{\w+\}}&z=2#sha256=ab", texts[0])


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("https://u:p/w@h.example/simple", "u:p/w"),
        ("git+https://u:p/w@h.example/x.git@v1", "u:p/w"),
        ("https://u:p/a@b@h.example:8080/s", "u:p/a@b"),
        ("https://h.example/c?token=s3::numpy", "s3"),
        ("--index-url 'https://h.example/s?token=s3'", "s3"),
        ("https://h.example/t/s3::numpy", "s3"),
    ],
)
def test_a_secret_ends_where_the_address_goes_on(text, secret):
    (shown,), taken = concealed(text)
    assert list(taken.values()) == [secret]
    assert shown == text.replace(secret, "${" + next(iter(taken)) + "}")


@pytest.mark.parametrize(
    "text",
    [
        "git+https://h.example:3000/x.git@v1",
        "git+https://h.example/x.git@v1",
        "https://h.example:${PORT}/x@v1",
        "https://[::1]:80/x@v1",
        "git+ssh://git@h.example/x.git",
        "https://h.example/s?page=2&sort=name",
        "https://h.example/s?token=${TOKEN}",
    ],
)
def test_what_is_no_secret_stays(text):
    assert concealed(text) == ([text], {})


@pytest.mark.parametrize(
    "address",
    [
        "https://h.example/t/q/c",
        "https://h.example/t/tk-12_3456789012/c/noarch",
        "https://h.example/api/t/tk/c",
        "https://h.example/t/tk",
        "file:///t/data/c",
        "https://h.example/tt/data/c",
        "https://h.example/t",
        "https://me:p@ss@h.example/c",
    ],
)
def test_both_sides_agree_about_what_is_secret_in_the_address_of_a_channel(address):
    (shown,), taken = concealed(address)
    assert bool(taken) == (without_secrets(address) != address)
    assert without_secrets(shown) == without_secrets(address)


def test_what_was_taken_out_is_shown_by_name_only() -> None:
    concealer = Concealer()
    concealer.conceal("https://me:geheim@h.example/simple")
    taken = concealer.taken()
    assert list(taken.values()) == ["me:geheim"]
    assert "geheim" not in f"{taken} {taken!r}"
    assert next(iter(taken)) in repr(taken)
