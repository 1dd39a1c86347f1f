"""A list that would remove over half of the routes has to be said twice."""

from voicecluster.relay.routes import RouteKey, RouteTable


def listed(*ordinals: int, port: int = 40000) -> dict[RouteKey, str]:
    return {(7, ordinal, 0): f"127.0.0.1:{port}" for ordinal in ordinals}


def table(*ordinals: int) -> RouteTable:
    made = RouteTable()
    made.offer(listed(*ordinals), 0.0)
    return made


def test_nothing_is_known_before_the_first_list() -> None:
    assert RouteTable().routes is None


def test_additions_and_changed_addresses_take_effect_at_once() -> None:
    routes = table(1)
    new = {**listed(1, port=41000), **listed(2)}
    assert routes.offer(new, 1.0)
    assert routes.routes == new


def test_removing_half_takes_effect_at_once() -> None:
    routes = table(1, 2, 3, 4)
    assert routes.offer(listed(1, 2), 1.0)
    assert (routes.routes, routes.held) == (listed(1, 2), 0)


def test_removing_over_half_waits() -> None:
    routes = table(1, 2, 3)
    assert not routes.offer(listed(1), 1.0)
    assert (routes.routes, routes.held) == (listed(1, 2, 3), 2)


def test_an_empty_list_waits() -> None:
    routes = table(1)
    routes.offer({}, 1.0)
    assert routes.routes == listed(1)


def test_a_second_list_thirty_seconds_later_confirms_the_removals() -> None:
    routes = table(1, 2, 3)
    routes.offer(listed(1), 1.0)
    assert not routes.offer(listed(1), 30.9)
    assert routes.offer(listed(1), 31.0)
    assert (routes.routes, routes.held) == (listed(1), 0)


def test_only_the_removals_wait() -> None:
    routes = table(1, 2, 3)
    assert routes.offer(listed(4), 1.0)
    assert routes.routes == listed(1, 2, 3, 4)


def test_what_comes_back_meanwhile_is_not_removed() -> None:
    routes = table(1, 2, 3)
    routes.offer({}, 1.0)
    routes.offer(listed(1, 2), 20.0)
    routes.offer(listed(1, 2), 31.0)
    assert routes.routes == listed(1, 2)


def test_a_route_missing_again_waits_anew() -> None:
    routes = table(1, 2)
    routes.offer({}, 1.0)
    routes.offer(listed(1, 2), 20.0)
    routes.offer({}, 25.0)
    routes.offer({}, 31.0)
    assert routes.routes == listed(1, 2)


def test_held_routes_wait_their_time_also_when_new_ones_outnumber_them() -> None:
    routes = table(1, 2, 3)
    routes.offer(listed(*range(10, 20)), 1.0)
    routes.offer(listed(*range(10, 20)), 2.0)
    assert routes.held == 3


def test_the_current_list_is_due_again_when_the_wait_is_over() -> None:
    routes = table(1, 2, 3)
    assert not routes.due(100.0)
    routes.offer({}, 100.0)
    assert (routes.due(129.0), routes.due(130.0)) == (False, True)


def test_a_first_list_smaller_than_half_of_what_the_engine_has_waits() -> None:
    routes = RouteTable(engine_routes=3)
    assert not routes.offer(listed(1), 0.0)
    assert routes.routes is None
    assert routes.due(30.0)
    assert routes.offer(listed(1), 30.0)


def test_a_first_list_of_half_of_what_the_engine_has_is_taken() -> None:
    assert RouteTable(engine_routes=2).offer(listed(1), 0.0)
