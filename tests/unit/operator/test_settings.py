"""What the operator may be started with."""

import pytest
from click.testing import CliRunner
from voicecluster.common.config.model import ConfigError
from voicecluster.operator.main import main
from voicecluster.operator.settings import Settings, settings

IMAGES = ("relay:1", "transceiver:1", "redis:7")


def chosen(*namespaces: str, **environ: str) -> Settings:
    return settings(
        namespaces=namespaces,
        nodes=False,
        images=IMAGES,
        admin="0.0.0.0:8086",
        workers=4,
        environ={"POD_NAMESPACE": "system", "POD_NAME": "operator-1", **environ},
    )


def test_the_lease_is_in_the_pods_namespace() -> None:
    assert chosen().lease_namespace == "system"
    assert chosen().defaults.operator_namespace == "system"


def test_two_processes_of_one_name_are_two_candidates() -> None:
    one, other = chosen(), chosen()
    assert one.identity.startswith("operator-1_")
    assert one.identity != other.identity


def test_a_namespace_given_twice_is_served_once() -> None:
    assert chosen("voice", "voice").namespaces == ("voice",)


def test_a_pattern_is_no_namespace() -> None:
    with pytest.raises(ConfigError, match="'voice-\\*' is no namespace; patterns are not supported"):
        chosen("voice-*")


def test_without_a_namespace_for_the_lease_it_does_not_start() -> None:
    with pytest.raises(ConfigError, match="POD_NAMESPACE is not set"):
        chosen(POD_NAMESPACE="")


def test_what_cannot_start_says_so_in_one_line() -> None:
    arguments = ["--relay-image", "a", "--transceiver-image", "b"]
    result = CliRunner().invoke(main, arguments, env={"POD_NAMESPACE": ""})
    assert result.exit_code == 2
    assert result.output.count("\n") == 1


def test_help_names_every_option_signals_and_exit_codes() -> None:
    text = CliRunner().invoke(main, ["--help"]).output
    for word in (
        "--namespace",
        "--nodes",
        "--redis-image",
        "POD_NAMESPACE",
        "TERM",
        "Exit code 1",
        "/readyz",
    ):
        assert word in text


def test_options_may_come_from_the_environment() -> None:
    environ = {
        "VOICECLUSTER_OPERATOR_RELAY_IMAGE": "a",
        "VOICECLUSTER_OPERATOR_TRANSCEIVER_IMAGE": "b",
        "POD_NAMESPACE": "",
    }
    assert "POD_NAMESPACE" in CliRunner().invoke(main, [], env=environ).output
