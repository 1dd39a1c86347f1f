"""How a worker finds its siblings: listed one by one, or as the range of a StatefulSet."""

import pytest
from voicecluster.common.config.transceiver import DirectoryFile
from voicecluster.transceiver.directory import Directory
from voicecluster.wire import Route

ALONE = {"ordinal": 1025, "host": "10.0.0.9", "internalPort": 9000, "workers": 4}
RANGE = {
    "first": 2048,
    "count": 3,
    "host": "voice-{ordinal}.media.voice.svc",
    "internalPort": 9000,
    "workers": 2,
}


@pytest.fixture
def directory() -> Directory:
    regions = [
        {"name": "eu-west", "index": 0},
        {"name": "us-east", "index": 1, "transceivers": [ALONE]},
        {"name": "ap-south", "index": 2, "range": RANGE},
    ]
    return Directory(DirectoryFile.model_validate({"regions": regions}))


def test_a_listed_transceivers_workers_are_found_at_its_host(directory: Directory) -> None:
    worker = directory.worker_at(Route(7, 1025, 3))
    assert worker is not None
    assert worker.base_url == "http://10.0.0.9:9003"
    assert [each.index for each in directory.workers_of("us-east")] == [0, 1, 2, 3]


def test_a_ranges_transceivers_are_found_by_the_host_name_of_their_ordinal(directory: Directory) -> None:
    worker = directory.worker_at(Route(7, 2050, 1))
    assert worker is not None
    assert (worker.region, worker.ordinal, worker.index) == ("ap-south", 2050, 1)
    assert worker.base_url == "http://voice-2050.media.voice.svc:9001"


@pytest.mark.parametrize("route", [(1025, 4), (1024, 0), (2047, 0), (3072, 0), (2048, 2)])
def test_a_route_to_no_transceiver_or_no_worker_of_it_leads_nowhere(
    directory: Directory, route: tuple[int, int]
) -> None:
    assert directory.worker_at(Route(7, *route)) is None


def test_a_transceiver_that_the_range_does_not_count_yet_is_found(directory: Directory) -> None:
    worker = directory.worker_at(Route(7, 2051, 0))
    assert worker is not None
    assert worker.host == "voice-2051.media.voice.svc"


def test_a_regions_workers_are_those_of_all_its_transceivers_in_order(directory: Directory) -> None:
    found = [(each.ordinal, each.index) for each in directory.workers_of("ap-south")]
    assert found == [(2048, 0), (2048, 1), (2049, 0), (2049, 1), (2050, 0), (2050, 1)]
    assert directory.workers_of("eu-west") == directory.workers_of("nowhere") == []


def test_the_workers_of_one_transceiver_are_only_its_own(directory: Directory) -> None:
    assert [each.ordinal for each in directory.workers_of_transceiver("ap-south", 2049)] == [2049, 2049]
    assert directory.workers_of_transceiver("us-east", 2049) == []


def test_some_workers_are_different_ones_and_no_more_than_there_are(directory: Directory) -> None:
    everyone = set(directory.workers_of("ap-south"))
    some = directory.some_workers_of("ap-south", 4)
    assert len(set(some)) == 4
    assert set(some) < everyone
    assert set(directory.some_workers_of("ap-south", 99)) == everyone
    assert directory.some_workers_of("eu-west", 8) == []


def test_the_first_region_is_the_default_and_none_at_all_is_an_error(directory: Directory) -> None:
    assert directory.default_region == "eu-west"
    with pytest.raises(ValueError, match="list at least one"):
        Directory(DirectoryFile(regions=[]))
