"""The command line of `call` and `load`."""

import json
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from voicecluster.cli.client.commands import KEY_VARIABLE, call, load, read_key


@pytest.mark.parametrize("command", [call, load], ids=["call", "load"])
def test_the_help_teaches_with_examples_and_exit_statuses(command: click.Command) -> None:
    text = CliRunner().invoke(command, ["--help"]).output
    assert "Examples:" in text
    assert "Exit status: 0" in text
    assert KEY_VARIABLE in text


@pytest.mark.parametrize("command", [call, load], ids=["call", "load"])
def test_a_server_that_is_not_there_is_one_line_of_json_and_status_1(command: click.Command) -> None:
    result = CliRunner().invoke(
        command, ["http://127.0.0.1:9", "--json", *(["--calls", "1"] if command is load else [])]
    )
    document = json.loads(result.stdout)
    assert (result.exit_code, document["ok"], document["stage"]) == (1, False, "signaling")
    assert "127.0.0.1:9" in document["error"]


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://127.0.0.1", "http://"])
def test_what_is_no_url_is_said_with_an_example(url: str) -> None:
    result = CliRunner().invoke(call, [url])
    assert result.exit_code == 1
    assert "http://127.0.0.1:8080" in result.stderr


def test_a_key_file_goes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "of the environment")
    file = tmp_path / "key"
    file.write_text("of the file\n")
    assert read_key(file) == "of the file"
    assert read_key(None) == "of the environment"


def test_a_key_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(call, ["http://127.0.0.1:9", "--key-file", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "--key-file" in result.stderr


def test_a_missing_library_is_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "voicecluster.cli.client.dial", None)
    result = CliRunner().invoke(call, ["http://127.0.0.1:9"])
    assert result.exit_code == 1
    assert "voicecluster[client]" in result.stderr
