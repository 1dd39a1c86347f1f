"""What the probes answer."""

from voicecluster.operator.health import SILENT_SECONDS, UNANSWERED_SECONDS, Health, Watch
from voicecluster.operator.kube.port import PODS, SERVICES

PODS_WATCH: Watch = (PODS, None)
SERVICES_WATCH: Watch = (SERVICES, "voice")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def watching(clock: Clock) -> Health:
    health = Health(clock)
    health.starts_watching([PODS_WATCH, SERVICES_WATCH])
    health.listed(PODS_WATCH)
    health.listed(SERVICES_WATCH)
    return health


def wrong(answer: object) -> dict[str, str]:
    assert isinstance(answer, dict)
    return {name: reason for name, reason in answer.items() if reason is not None}


def test_a_replica_that_waits_for_the_lease_is_live_and_ready() -> None:
    health = Health(Clock())
    assert not wrong(health.live())
    assert not wrong(health.ready())


def test_a_leader_is_ready_when_everything_has_been_listed() -> None:
    health = Health(Clock())
    health.starts_watching([PODS_WATCH])
    assert wrong(health.ready()) == {"watch pods": "not listed yet"}
    assert not wrong(health.live())
    health.listed(PODS_WATCH)
    assert not wrong(health.ready())


def test_what_stands_in_the_way_is_told() -> None:
    health = Health(Clock())
    health.waits_for("CustomResourceDefinition is missing")
    assert wrong(health.ready()) == {"start": "CustomResourceDefinition is missing"}


def test_a_watch_that_says_nothing_is_deaf_and_named() -> None:
    clock = Clock()
    health = watching(clock)
    clock.now += SILENT_SECONDS
    health.heard(PODS_WATCH)
    clock.now += 1
    assert wrong(health.live()) == {"watch services in voice": "the watch has said nothing for 421 s"}
    assert health.silence() == SILENT_SECONDS + 1


def test_a_watch_that_misses_objects_is_deaf_until_it_does_not() -> None:
    health = watching(Clock())
    health.swept(PODS_WATCH, missed="Pod voice/one")
    assert wrong(health.live()) == {"watch pods": "the watch has not brought Pod voice/one"}
    health.swept(PODS_WATCH, missed=None)
    assert not wrong(health.live())


def test_an_api_server_that_is_away_makes_it_unready_not_dead() -> None:
    clock = Clock()
    health = watching(clock)
    health.answered()
    clock.now += UNANSWERED_SECONDS + 1
    assert wrong(health.ready()) == {"api": "no answer from the API server for 31 s"}
    assert not wrong(health.live())
