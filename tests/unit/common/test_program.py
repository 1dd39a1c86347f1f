"""A program that cannot start says one line and exits with 2."""

import pytest
from voicecluster.common.config.model import ConfigError
from voicecluster.common.program import exit_on_config_error


def test_a_config_error_out_of_a_task_group_becomes_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, exit_on_config_error():
        raise ExceptionGroup("tasks", [ExceptionGroup("more", [ConfigError("file: field: wrong; fix it")])])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: file: field: wrong; fix it\n"
