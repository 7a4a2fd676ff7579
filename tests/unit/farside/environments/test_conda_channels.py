"""Names of conda channels become addresses by the host's own settings; secrets stay apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.farside.environments.conda_channels import Settings, channel_urls, parse, plain_spec, read_settings

CONDARC = """\
# of the whole company
channel_alias: https://conda.example.com/api/conda/   # a proxy
default_channels:
  - https://conda.example.com/main
  - r-packages
custom_channels:
  team: https://mirror.example.com/channels
  "team/nightly": file:///srv/channels
custom_multichannels:
  ours:
    - team
    - https://conda.example.com/extra
proxy_servers:
  http: http://proxy:3128
  https: 'http://proxy:3129'
ssl_verify: /etc/company.pem
channel_priority: strict
channels: [conda-forge, defaults]
"""


@pytest.fixture
def nothing(tmp_path: Path) -> Settings:
    return read_settings({"HOME": str(tmp_path)}, str(tmp_path))


@pytest.fixture
def company(tmp_path: Path) -> Settings:
    (tmp_path / ".condarc").write_text(CONDARC)
    return read_settings({"HOME": str(tmp_path)}, str(tmp_path))


def groups(settings: Settings, *names: str, specs: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    return dict(channel_urls(names, specs, settings).groups)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("conda-forge", {"conda-forge": ("conda-forge",)}),
        ("bioconda/label/dev", {"bioconda/label/dev": ("bioconda/label/dev",)}),
        ("https://example.com/channel/", {"https://example.com/channel": ("https://example.com/channel",)}),
        ("file:///srv/channel", {"file:///srv/channel": ("file:///srv/channel",)}),
        ("/srv/other", {"/srv/other": ("file:///srv/other",)}),
        ("file:///t/data/channel", {"file:///t/data/channel": ("file:///t/data/channel",)}),  # `t` is no token here
    ],
)
def test_names_of_public_channels_are_left_to_rattler_and_addresses_and_folders_stay_as_they_are(
    nothing, name, expected
):
    assert groups(nothing, name) == expected


def test_defaults_has_its_real_addresses_and_is_the_last_resort(nothing):
    addresses = ("https://repo.anaconda.com/pkgs/main", "https://repo.anaconda.com/pkgs/r")

    assert groups(nothing) == groups(nothing, "defaults") == {"defaults": addresses}
    assert groups(nothing, "pkgs/main") == {"pkgs/main": addresses[:1]}
    assert groups(nothing, "conda-forge", "nodefaults") == {"conda-forge": ("conda-forge",)}


def test_a_channel_that_only_a_package_names_is_searched_last(nothing):
    specs = ("pytorch::pytorch >=2", "numpy", "conda-forge::scipy", "https://example.com/c::x")

    assert list(groups(nothing, "conda-forge", specs=specs)) == ["conda-forge", "pytorch", "https://example.com/c"]


def test_the_settings_of_the_host_say_where_a_name_leads(company):
    assert groups(company, "bioconda", "team", "team/nightly/x", "ours") == {
        "bioconda": ("https://conda.example.com/api/conda/bioconda",),
        "team": ("https://mirror.example.com/channels/team",),
        "team/nightly/x": ("file:///srv/channels/team/nightly/x",),
        "ours": ("https://mirror.example.com/channels/team", "https://conda.example.com/extra"),
        "conda-forge": ("https://conda.example.com/api/conda/conda-forge",),
        "defaults": ("https://conda.example.com/main", "https://conda.example.com/api/conda/r-packages"),
    }


def test_proxies_certificates_and_priority_are_taken_over(company, tmp_path):
    assert company.network == {
        "verify": True,
        "certificates": "/etc/company.pem",
        "http_proxy": "http://proxy:3128",
        "https_proxy": "http://proxy:3129",
    }
    (tmp_path / ".condarc").write_text("ssl_verify: no\n")
    other = read_settings({"HOME": str(tmp_path)}, str(tmp_path))
    assert (company.priority, other.priority, other.network) == ("strict", "flexible", {"verify": False})


def test_the_users_file_counts_more_than_the_machines_and_a_variable_most(tmp_path):
    (tmp_path / "etc/conda").mkdir(parents=True)
    (tmp_path / "etc/conda/.condarc").write_text("channel_alias: https://machine/\nchannels:\n- machine\n- both\n")
    (tmp_path / ".condarc").write_text("channel_alias: https://${PLACE}/\nchannels:\n- user\n- both\n")
    environment = {"HOME": str(tmp_path), "PLACE": "user"}

    found = read_settings(environment, str(tmp_path))
    assert (found.alias, found.channels) == ("https://user", ("user", "both", "machine"))
    found = read_settings(dict(environment, CONDA_CHANNEL_ALIAS="https://variable"), str(tmp_path))
    assert found.alias == "https://variable"


def test_a_file_that_is_no_settings_file_changes_nothing(tmp_path, nothing):
    (tmp_path / ".condarc").write_bytes(b"\xff\xfe- x\n: :\n  deep: 1\n[\nchannels: {}\ncustom_channels: text\n")

    found = read_settings({"HOME": str(tmp_path)}, str(tmp_path))
    assert (found.alias, found.places, found.groups) == ("", {}, nothing.groups)


def test_user_password_and_token_stand_apart_from_the_addresses(nothing):
    names = ("https://ada:p%40ss@one.example.com:8443/c", "https://two.example.com/t/tk-123/c")

    found = channel_urls(names, (), nothing)

    plain = ["https://one.example.com:8443/c", "https://two.example.com/c"]
    assert [(name, *urls) for name, urls in found.groups] == [(each, each) for each in plain]
    assert found.credentials == {"one.example.com": ["ada", "p@ss"]}
    assert found.secret_urls == {plain[1]: names[1]}


def test_a_secret_that_travels_apart_is_put_in(nothing):
    name = "https://${HOLDFAST_INDEX_1}@example.com/c"

    found = channel_urls([name], [name + "::x"], nothing, {"HOLDFAST_INDEX_1": "ada:word"})

    assert found.groups == (("https://example.com/c", ("https://example.com/c",)),)
    assert found.credentials == {"example.com": ["ada", "word"]}
    assert plain_spec(name + "::x >=1") == "https://example.com/c::x >=1"


def test_lists_are_read_with_and_without_indent():
    assert parse("a:\n- 1\n- '2'\nb:\n    - 3\nc:\n  x:\n  - 4\n  y: 5\nd: [6, \"7\"]\n") == {
        "a": ["1", "2"],
        "b": ["3"],
        "c": {"x": ["4"], "y": "5"},
        "d": ["6", "7"],
    }
