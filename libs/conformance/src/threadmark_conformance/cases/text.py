"""Names may be any text, on every backend: NUL, lone surrogates, quotes, placeholders."""

from threadmark.ids import new_id
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, got, ids, listed, pending, values

TEXTS = (
    "\x00",
    "a\x00b",
    "\x01",
    "\x00\x01\x02",
    "\ud800",
    "\udfff\ud800",
    "\ud83d\ude00",
    "\ud7ff",
    "\ud7ff\ud800\ue000",
    "'",
    '"; DROP TABLE threadmark_thread; --',
    "%s %d %(x)s {} {0} ? :1 $1",
    "\\ \\x00 \\\\",
    "\U0001f600\U0010ffff",
    "e\u0301",
    "\u00e9",
    " leading and trailing ",
    "\n\r\t",
    "%_*",
    "a" * 250,
    "\u2028\ufeff",
    "None",
    "null",
)


async def any_text_may_be_a_thread(world: World) -> None:
    for number, text in enumerate(TEXTS):
        run = Run(world.saver, text)
        config = await run.step({"a": number})
        await run.write(("a", number))
        assert config["configurable"]["thread_id"] == text
    for number, text in enumerate(TEXTS):
        found = await got(world.another(), at(text))
        assert found.checkpoint["channel_values"] == {"a": number}
        assert found.pending_writes == [("task", "a", number)]
    threads = [item.config["configurable"]["thread_id"] for item in await listed(world.saver, None)]
    assert threads == list(TEXTS[::-1])


async def threads_of_any_name_can_be_copied_pruned_and_deleted(world: World) -> None:
    for text in TEXTS:
        run = Run(world.saver, text)
        await run.step({"a": 1})
        await run.step({"a": text})
        await world.saver.acopy_thread(text, text + "copy")
        assert (await world.saver.aprune([text])).checkpoints == 1
        assert await values(world.saver, at(text)) == {"a": text}
        await world.saver.adelete_thread(text)
        assert await listed(world.saver, at(text)) == []
        assert len(await listed(world.saver, at(text + "copy"))) == 2


async def any_text_may_be_a_namespace(world: World) -> None:
    for text in TEXTS:
        run = Run(world.saver, ns=text)
        await run.step({"a": text})
        await run.write(("a", 1))
    for text in TEXTS:
        found = await got(world.cold, at("thread", text))
        assert found.checkpoint["channel_values"] == {"a": text}
        assert found.config["configurable"]["checkpoint_ns"] == text
        assert len(await listed(world.saver, at("thread", text))) == 1
    assert len(await listed(world.saver, at("thread"))) == len(TEXTS)


async def any_text_may_be_a_checkpoint_id(world: World) -> None:
    for text in TEXTS:
        config = await world.saver.aput(at("thread"), checkpoint({"a": text}, checkpoint_id=text), {}, {"a": 1})
        await world.saver.aput_writes(config, [("a", text)], "task")
    for text in TEXTS:
        found = await got(world.another(), at("thread", "", text))
        assert found.checkpoint["id"] == text
        assert found.pending_writes == [("task", "a", text)]
    assert ids(await listed(world.saver, at("thread"))) == sorted(TEXTS, reverse=True)


async def any_text_may_be_a_parent(world: World) -> None:
    for text in TEXTS:
        config = await world.saver.aput(at("thread", "", text), checkpoint(), {}, {})
        parent = (await got(world.another(), config)).parent_config
        assert parent == at("thread", "", text)


async def a_child_is_newer_whatever_its_parent_is_called(world: World) -> None:
    for text in TEXTS:
        run = Run(world.saver, ns=text)
        for checkpoint_id in dict.fromkeys(("\x02" + text, text, "\x00")):
            newest = await run.step({"a": 1}, checkpoint_id=checkpoint_id)
            assert (await got(world.cold, at("thread", text))).config == newest


async def any_text_may_be_a_channel_or_version(world: World) -> None:
    versions = {text: f"{number:032d}.{text}" for number, text in enumerate(TEXTS)}
    made = checkpoint({text: [text] for text in TEXTS}, versions, versions_seen=dict.fromkeys(TEXTS, versions))
    config = await world.saver.aput(at("thread"), made, {}, versions)
    await world.saver.aput_writes(config, [(text, text) for text in TEXTS], "task")
    found = await got(world.another(), config)
    assert found.checkpoint == made
    assert found.pending_writes == [("task", text, text) for text in TEXTS]


async def any_text_may_be_a_task_or_its_path(world: World) -> None:
    config = await Run(world.saver).step()
    for text in TEXTS:
        await world.saver.aput_writes(config, [("a", text)], text, text)
        await world.saver.aput_writes(config, [("__error__", 1)], text, text)
        await world.saver.aput_writes(config, [("__error__", text)], text, text)
    expected = [(text, channel, text) for text in sorted(TEXTS) for channel in ("__error__", "a")]
    assert await pending(world.another(), config) == expected


async def any_text_may_be_in_values_and_metadata(world: World) -> None:
    original = {text: [text, {text: text}] for text in TEXTS}
    config = await world.saver.aput(at("thread"), checkpoint({"a": original}), original, {"a": 1})
    found = await got(world.another(), config)
    assert found.metadata == original
    assert found.checkpoint["channel_values"] == {"a": original}


async def any_text_in_a_channel_has_a_delta_history(world: World) -> None:
    for text in TEXTS:
        run = Run(world.saver, new_id())
        await run.step({text: text})
        del run.values[text]
        await run.write((text, 1))
        await run.step(unsaved=[text])
        found = await world.saver.aget_delta_channel_history(config=run.config, channels=[text])
        assert found == {text: {"writes": [("task", text, 1)], "seed": text}}


async def any_text_may_be_a_run_to_delete(world: World) -> None:
    for text in TEXTS:
        await world.saver.aput(at("thread"), checkpoint(), {"run_id": text}, {})
    for left, text in zip(range(len(TEXTS) - 1, -1, -1), TEXTS, strict=True):
        await world.saver.adelete_for_runs([text])
        assert len(await listed(world.saver, None)) == left
