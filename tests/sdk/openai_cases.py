"""Cases of OpenAI's SDK: chat and legacy completions, embeddings, models."""

import asyncio

import openai

from cases import CITY, DOT, FUNCTION, HELLO, LONG, MODEL, STATUSES, TOOLS, Answer, case, turn
from target import failure, plain

CHAT_TOOL = {"type": "function", "function": FUNCTION}


def chat(target, model=MODEL, messages=HELLO, **more):
    return target.openai.chat.completions.create(model=model, messages=messages, **more)


@case
def chat_plain(target):
    return chat(target)


@case
def chat_streamed(target):
    return list(chat(target, stream=True))


@case
def chat_streamed_with_usage(target):
    return list(chat(target, stream=True, stream_options={"include_usage": True}))


@case
def chat_streamed_without_usage(target):
    return list(chat(target, stream=True, stream_options={"include_usage": False}))


@case
def chat_stream_helper(target):
    with target.openai.chat.completions.stream(model=MODEL, messages=HELLO) as stream:
        return [event.type for event in stream], plain(stream.get_final_completion())


@case
def chat_tools(target):
    return chat(target, TOOLS, tools=[CHAT_TOOL], tool_choice="auto", parallel_tool_calls=True)


@case
def chat_tools_streamed(target):
    return list(chat(target, TOOLS, tools=[CHAT_TOOL], tool_choice="required", stream=True))


@case
def chat_tool_results(target):
    calls = [
        {"id": f"call_{n}", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}
        for n in (1, 2)
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "Rain, see https://e.org"} for call in calls]
    return chat(target, messages=[*HELLO, {"role": "assistant", "tool_calls": calls}, *results], tools=[CHAT_TOOL])


@case
def chat_answer_sent_back(target):
    message = chat(target).choices[0].message
    return chat(target, messages=[*HELLO, message, *HELLO])


@case
def chat_structured(target):
    return target.openai.chat.completions.parse(model=MODEL, messages=HELLO, response_format=Answer)


@case
def chat_json_schema(target):
    schema = {"name": "answer", "strict": True, "schema": CITY}
    return chat(target, response_format={"type": "json_schema", "json_schema": schema})


@case
def chat_image(target):
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}", "detail": "low"}}
    return chat(target, messages=turn({"type": "text", "text": "What is it?"}, image))


@case
def chat_sampling(target):
    return chat(
        target, n=2, seed=7, stop=["\n", "END"], logprobs=True, top_logprobs=2, temperature=0.5, top_p=0.9,
        max_completion_tokens=50, frequency_penalty=0.1, presence_penalty=0.1, logit_bias={"50256": -100},
    )  # fmt: skip


@case
def chat_reasoning(target):
    return chat(target, reasoning_effort="low", verbosity="low", max_completion_tokens=50)


@case
def chat_every_other_field(target):
    return chat(
        target, max_tokens=50, user="somebody", store=False, service_tier="auto", modalities=["text"],
        prompt_cache_key="k", safety_identifier="s", prediction={"type": "content", "content": "Hello"},
    )  # fmt: skip


@case
def chat_raw_response(target):
    raw = target.openai.chat.completions.with_raw_response.create(model=MODEL, messages=HELLO)
    return raw.status_code, raw.headers["content-type"].split(";")[0], plain(raw.parse())


@case
def chat_concurrently(target):
    async def both():
        async with target.async_openai() as client:
            return await asyncio.gather(
                *(client.chat.completions.create(model=MODEL, messages=HELLO) for _ in range(4))
            )

    return asyncio.run(both())


@case
def chat_streamed_asynchronously(target):
    async def events():
        async with target.async_openai() as client:
            stream = await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
            return [event async for event in stream]

    return asyncio.run(events())


@case
def chat_abandoned(target):
    stream = chat(target, LONG, stream=True)
    pieces = (event.choices[0].delta.content for event in stream if event.choices)
    texts = [piece for _, piece in zip(range(3), filter(None, pieces))]
    stream.close()
    return texts


@case
def chat_after_one_that_was_abandoned(target):
    return chat(target)


@case
def chat_error_in_the_middle(target):
    texts = []
    try:
        for event in chat(target, "fake-errmid3", stream=True):
            texts.append(event.choices[0].delta.content)
    except openai.APIError as error:
        return texts, failure(error)
    return texts


@case
def completions_plain(target):
    return target.openai.completions.create(model=MODEL, prompt="Say hello.", max_tokens=9, echo=False, logprobs=1)


@case
def completions_streamed(target):
    return list(target.openai.completions.create(model=MODEL, prompt=["Say hello."], stream=True))


@case
def completions_streamed_with_usage(target):
    more = {"stream": True, "stream_options": {"include_usage": True}}
    return list(target.openai.completions.create(model=MODEL, prompt="Say hello.", **more))


@case
def embeddings_as_the_sdk_wants_them(target):
    return target.openai.embeddings.create(model=MODEL, input=["one", "two"])


@case
def embeddings_floats(target):
    return target.openai.embeddings.create(model=MODEL, input="one", encoding_format="float", dimensions=3)


@case
def embeddings_base64(target):
    return target.openai.embeddings.create(model=MODEL, input="one", encoding_format="base64")


@case
def models(target):
    listed = {model.id: model.object for model in target.openai.models.list()}
    return listed[MODEL]


@case
def models_one(target):
    return target.openai.models.retrieve(MODEL).object


for status in STATUSES:

    @case(f"chat_{status}")
    def fails(target, model=f"fake-status{status}"):
        return chat(target, model)

    @case(f"chat_streamed_{status}")
    def fails_before_it_streams(target, model=f"fake-status{status}"):
        return list(chat(target, model, stream=True))


@case
def chat_retried(target):
    return target.openai.with_options(max_retries=1).chat.completions.create(model="fake-status503", messages=HELLO)


@case
def chat_timed_out(target):
    return target.openai.with_options(timeout=0.5).chat.completions.create(
        model="fake-firstbyte2000ms", messages=HELLO
    )


@case
def refused_unknown_field(target):
    return chat(target, extra_body={"fallbacks": [MODEL]})


@case
def refused_media_url(target):
    return chat(target, messages=turn({"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/a.png"}}))
