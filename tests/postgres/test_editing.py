"""Statements made of others by replacing text: one that lacks what is to be replaced is refused, never made shorter."""

from collections.abc import Callable

import pytest

from threadmark_postgres.sql import adding, adding_alone, fencing, judging
from threadmark_postgres.sql.editing import replaced, without

SEVERAL = adding.ADD_CHECKPOINTS, adding.ADD_TOUCHING_CHECKPOINTS, adding.ADD_WRITES, adding.ADD_SPECIAL_WRITES
ALONE = adding_alone.ADD_CHECKPOINT_ALONE, adding_alone.ADD_CHECKPOINT_IN_ORDER, adding_alone.ADD_WRITES_ALONE


def test_what_is_replaced_must_be_there() -> None:
    assert replaced("a b a", ("a", "c"), ("b", "d")) == "c d c"
    assert without("a b a", "a ", "b ") == "a"
    with pytest.raises(ValueError, match="this was to be replaced by 'd', and is not in the statement: 'b'"):
        replaced("a", ("a", "c"), ("b", "d"))


@pytest.mark.parametrize(
    ("edited", "statements"),
    [
        (judging.for_begun, SEVERAL),
        (judging.for_several, SEVERAL),
        (fencing.recording, SEVERAL),
        (fencing.judging, (judging.JUDGE,)),
        (fencing.alone, ALONE),
        (fencing.following, ALONE),
        (adding_alone.without_segments, ALONE),
        (adding_alone.without_token, ALONE),
    ],
)
def test_a_statement_without_the_texts_is_refused(edited: Callable[[str], str], statements: tuple[str, ...]) -> None:
    for statement in statements:
        assert edited(statement) != statement
        with pytest.raises(ValueError, match="statement"):
            edited("SELECT 1")


@pytest.mark.parametrize("statement", ALONE)
def test_a_statement_for_one_change_has_the_term_and_the_lock(statement: str) -> None:
    term = fencing.ALLOWED.format(given="")[-20:]
    for fenced in (fencing.alone(statement), fencing.following(statement)):
        assert term in fenced
        assert "FOR SHARE SKIP LOCKED" in fenced
        assert "$term" not in fenced
    with pytest.raises(ValueError, match="is not in the statement: '    FOR SHARE SKIP LOCKED"):
        fencing.alone(statement.replace("FOR SHARE SKIP LOCKED", "FOR SHARE"))
    with pytest.raises(ValueError, match="is not in the statement: '    FOR SHARE SKIP LOCKED"):
        fencing.following(statement.replace("FOR SHARE SKIP LOCKED", "FOR SHARE"))


@pytest.mark.parametrize(
    "lost", ["$9::bigint[]\n", "only_owner, number\n", "            WHEN change.only_owner", "FROM judged"]
)
@pytest.mark.parametrize("statement", SEVERAL)
def test_a_statement_for_several_changes_loses_no_guard(statement: str, lost: str) -> None:
    assert "THEN 'term'" in fencing.recording(statement)
    with pytest.raises(ValueError, match="is not in the statement"):
        fencing.recording(statement.replace(lost, "another text"))
