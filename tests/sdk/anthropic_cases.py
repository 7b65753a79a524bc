"""Cases of Anthropic's SDK: messages and token counts."""

import asyncio

from cases import CITY, DOT, HELLO, LONG, MODEL, STATUSES, TOOLS, case, turn
from target import plain

MESSAGES_TOOL = {"name": "get_weather", "description": "What the sky does.", "input_schema": CITY}


def messages(target, messages=HELLO, model=MODEL, **more):
    return target.anthropic.messages.create(model=model, max_tokens=2000, messages=messages, **more)


@case
def messages_plain(target):
    return messages(target, stop_sequences=["END"], metadata={"user_id": "somebody"})


@case
def messages_streamed(target):
    return list(messages(target, stream=True))


@case
def messages_stream_helper(target):
    with target.anthropic.messages.stream(model=MODEL, max_tokens=99, messages=HELLO) as stream:
        return list(stream.text_stream), plain(stream.get_final_message())


@case
def messages_tools(target):
    return messages(target, model=TOOLS, tools=[MESSAGES_TOOL], tool_choice={"type": "any"})


@case
def messages_tools_streamed(target):
    return list(messages(target, model=TOOLS, tools=[MESSAGES_TOOL], stream=True))


@case
def messages_tool_result(target):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DOT}}
    used = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}}
    text = {"type": "text", "text": "Rain, see https://e.org"}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [text, image]}
    turns = [*HELLO, {"role": "assistant", "content": [used]}, *turn(result)]
    return messages(target, turns, tools=[MESSAGES_TOOL])


@case
def messages_answer_sent_back(target):
    content = messages(target).content
    return messages(target, [*HELLO, {"role": "assistant", "content": content}, *HELLO])


@case
def messages_cached_system(target):
    cached = {"cache_control": {"type": "ephemeral"}}
    return messages(target, system=[{"type": "text", "text": "Be short.", **cached}], tools=[MESSAGES_TOOL | cached])


@case
def messages_image(target):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DOT}}
    return messages(target, turn(image, {"type": "text", "text": "What is it?"}))


@case
def messages_thinking(target):
    return messages(target, thinking={"type": "enabled", "budget_tokens": 1024})


@case
def messages_beta(target):
    return target.anthropic.beta.messages.create(
        model=MODEL, max_tokens=99, messages=HELLO, betas=["interleaved-thinking-2025-05-14"]
    )


@case
def messages_streamed_asynchronously(target):
    async def text():
        async with target.async_anthropic() as client:
            async with client.messages.stream(model=MODEL, max_tokens=99, messages=HELLO) as stream:
                return plain(await stream.get_final_message())

    return asyncio.run(text())


@case
def messages_abandoned(target):
    with target.anthropic.messages.stream(model=LONG, max_tokens=99, messages=HELLO) as stream:
        return [piece for _, piece in zip(range(3), stream.text_stream)]


@case
def messages_counted(target):
    return target.anthropic.messages.count_tokens(model=MODEL, messages=HELLO, system="Be short.")


for status in STATUSES:

    @case(f"messages_{status}")
    def fails(target, model=f"fake-status{status}"):
        return messages(target, model=model)


@case
def messages_retried(target):
    patient = target.anthropic.with_options(max_retries=1)
    return patient.messages.create(model="fake-status503", max_tokens=9, messages=HELLO)
