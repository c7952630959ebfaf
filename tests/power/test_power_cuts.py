"""Power cuts: a saver or a dictionary opens whatever disk they leave, with all that "full" has acknowledged."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from power import programs
from power.cuts import DictionaryJudge, Judge, SaverJudge, moments, states_of_dictionary, states_of_saver
from power.disk import Disk
from power.recording import Recording, compiled, record

SEED, OPERATIONS, CLIENTS, SYNCS = 1, 6, 2, 12
LOTS, SHARE = 2, 0.05

Recordings = dict[str, Recording]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    """The recording of each program."""
    place = tmp_path_factory.mktemp("power")
    library = compiled(place)
    arguments: dict[str, tuple[str, *tuple[object, ...]]] = {
        "full": (programs.SAVER, "full", SEED, OPERATIONS, CLIENTS),
        "normal": (programs.SAVER, "normal", SEED, OPERATIONS, CLIENTS),
        "dictionary": (programs.DICTIONARIES, SEED, SYNCS),
    }

    def recorded(name: str) -> Recording:
        (place / name).mkdir()
        return record(library, place / name, *arguments[name])

    with ThreadPoolExecutor() as pool:
        return dict(zip(arguments, pool.map(recorded, arguments), strict=True))


@pytest.mark.parametrize("name", ["full", "normal", "dictionary"])
def test_a_recording_has_all_that_was_written(recordings: Recordings, name: str) -> None:
    disk = Disk()
    for event in recordings[name].events:
        disk.play(event)
    assert disk.all() == recordings[name].left


def judge(name: str) -> Judge:
    if name == "dictionary":
        return DictionaryJudge(states_of_dictionary(SEED, SYNCS), full=True)
    return SaverJudge(states_of_saver(SEED, OPERATIONS, CLIENTS), full=name == "full")


@pytest.mark.parametrize("name", ["full", "normal", "dictionary"])
def test_power_cuts_tear_nothing_and_lose_what_the_durability_allows(recordings: Recordings, name: str) -> None:
    with judge(name) as judging:
        found = judging.judge(moments(recordings[name], SEED, LOTS, SHARE))
    assert found.objections == []
    assert found.distinct > 30
    assert found.unsynced > 30
    assert (found.fewer > 0) == (name == "normal")


def test_a_lost_acknowledgement_is_noticed(recordings: Recordings) -> None:
    with judge("full") as judging:
        found = judging.judge(moments(recordings["normal"], SEED, 0, SHARE))
    assert any("were acknowledged" in objection for objection in found.objections)


@pytest.mark.parametrize("name", ["full", "dictionary"])
def test_a_disk_that_does_not_sync_is_noticed(recordings: Recordings, name: str) -> None:
    unsynced = [event for event in recordings[name].events if event.kind not in "SE" or not event.file]
    with judge(name) as judging:
        found = judging.judge(moments(recordings[name]._replace(events=unsynced), SEED, LOTS, SHARE))
    assert found.objections
