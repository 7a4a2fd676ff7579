from __future__ import annotations

import pytest

from holdfast.project.container_keys import REFUSED, SHORT, SWITCHES, VALUED, judge


def errors(*items: str) -> list[str]:
    return [mistake.message for mistake, _ in judge(items, "host").errors]


@pytest.mark.parametrize(
    "items",
    [
        ["--ipc=host", "--ulimit", "memlock=-1", "--ulimit stack=67108864"],
        ["--privileged", "--cap-add=SYS_PTRACE", "--security-opt seccomp=unconfined"],
        ["-e", "NCCL_DEBUG=INFO", "-eA=1", "--env=B=2", "-l a=b"],
        ["--mount=type=volume,source=cache,target=/cache", "--tmpfs /tmp"],
        ["--device=/dev/infiniband", "--runtime=runsc", "--init"],
        ["--option-of-a-later-docker=value"],
        [],
    ],
)
def test_what_does_no_harm_is_passed_on(items):
    judged = judge(items, "host")
    assert (judged.errors, judged.warnings) == ((), ())
    assert " ".join(judged.words) == " ".join(items)


@pytest.mark.parametrize("option", sorted(REFUSED))
@pytest.mark.parametrize("form", ["{}=x", "{} x", "{}"])
def test_what_would_break_a_run_is_refused_with_the_reason(option, form):
    if (option in SWITCHES) == (form == "{} x"):
        return
    ((mistake, item),) = judge(["--init", form.format(option)], "host").errors
    if form == "{}" and option in VALUED:
        assert mistake.message == f"`{option}` has no value"
    else:
        assert mistake.message == f"`{option}` cannot be used: {REFUSED[option][0]}"
    assert item == 1 and mistake.remedy


@pytest.mark.parametrize(
    ("word", "name"),
    [
        *(("-d", "--detach"), ("-it", "--interactive"), ("-Pd", "--detach"), ("-u0", "--user"), ("-m8g", "--memory")),
        *(("-v/a:/b", "--volume"), ("-v=/a:/b", "--volume"), ("-w/x", "--workdir"), ("--net=host", "--network")),
    ],
)
def test_short_forms_are_no_way_round(word, name):
    assert errors(word)[0] == f"`{name}` cannot be used: {REFUSED[name][0]}"


NO_OPTION = "is no option: Docker would take it for the image"
UNKNOWN = "is an option that this version of Holdfast does not know"


@pytest.mark.parametrize(
    ("items", "messages"),
    [
        (["ubuntu", "--privileged", "sh"], [f"`ubuntu` {NO_OPTION}", f"`sh` {NO_OPTION}"]),
        (["--", "-"], [f"`--` {NO_OPTION}", f"`-` {NO_OPTION}"]),
        (["--ipc=host", "--ulimit"], ["`--ulimit` has no value"]),
        (["-e"], ["`--env` has no value"]),
        (["--later", "value", "--rm"], [f"`--later` {UNKNOWN}", f"`--rm` cannot be used: {REFUSED['--rm'][0]}"]),
        (["-Z"], [f"`-Z` {UNKNOWN}"]),
        (["--label=holdfast.run=x"], ["labels that begin with `holdfast.` are Holdfast's own"]),
        (["--label 'a", "--label=a\nb"], ["a quote is never closed", "holds a line break or control character"]),
    ],
)
def test_what_docker_or_holdfast_would_misunderstand_is_refused(items, messages):
    assert errors(*items) == messages


@pytest.mark.parametrize(
    "item", ["--gpus=all", "--runtime nvidia", "--device nvidia.com/gpu=all", "-e NVIDIA_VISIBLE_DEVICES=0"]
)
def test_gpus_have_their_own_key(item):
    ((mistake, _),) = judge([item], "host").errors
    assert "`nvidiaDocker`" in mistake.message and "nvidiaDocker: true" in mistake.remedy


@pytest.mark.parametrize("name", sorted(each for each in VALUED if each.startswith("--health-")))
def test_a_run_has_no_health_check(name):
    """`docker run` would refuse it too, beside `--no-healthcheck`, and name neither file nor key."""
    ((mistake, item),) = judge(["--init", f"{name}=1"], "host").errors
    assert mistake.message.startswith(f"`{name}` cannot be used: ") and item == 1


@pytest.mark.parametrize("item", ["-e API_KEY=hunter2", "--env=WANDB_API_KEY=hunter2", "-eTOKEN=hunter2"])
def test_a_secret_on_the_command_line_is_warned_of_and_not_repeated(item):
    judged = judge([item], "host")
    assert judged.errors == ()
    ((mistake, _),) = judged.warnings
    assert "looks like a secret" in mistake.message and "--secret " in mistake.remedy
    assert "hunter2" not in f"{mistake}"


@pytest.mark.parametrize("item", ["-e API_KEY", "-e API_KEY=", "-e EPOCHS=3"])
def test_a_variable_without_a_secret_value_is_none(item):
    assert judge([item], "host").warnings == ()


def test_ports_do_nothing_on_the_machines_own_network():
    assert [each.message for each, _ in judge(["-p8080:80"], "host").warnings] == [
        "`--publish` does nothing on the machine's own network, whose ports the script has anyway"
    ]
    assert judge(["-p8080:80"], "bridge").warnings == ()


def test_every_short_form_stands_for_a_known_option():
    assert set(SHORT.values()) | set(REFUSED) <= SWITCHES | VALUED
    assert not SWITCHES & VALUED
