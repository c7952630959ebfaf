"""The benchmark of what Redis costs runs from end to end; so little is measured here that the figures mean nothing."""

import redis_cost


def test_memory_and_speed_are_measured_on_every_kind_of_server() -> None:
    lines = list(redis_cost.report(redis_cost.SMOKE))
    rows = [line for line in lines if line.startswith("| ") and "---" not in line]
    assert [row.split("|")[1].strip() for row in rows] == [
        *redis_cost.WORKLOADS,
        "single server",
        *(f"cluster, {masters} master{'s' * (masters > 1)}" for masters in (1, 2, 3)),
    ]
