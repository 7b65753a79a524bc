"""Cases of OpenAI's SDK: responses."""

import openai

from cases import DOT, FUNCTION, HELLO, MODEL, TOOLS, Answer, case, turn
from target import plain


def responses(target, input="Say hello.", model=MODEL, store=False, **more):
    """Makes a call that is not stored, as clients concerned about their data request, and as Sluicegate enforces."""
    return target.openai.responses.create(model=model, input=input, store=store, **more)


RESPONSES_TOOL = {"type": "function", **FUNCTION}


@case
def responses_plain(target):
    return responses(target, instructions="Be short.", max_output_tokens=99, truncation="auto")


@case
def responses_stored_unless_said(target):
    return responses(target, store=openai.omit)


@case
def responses_streamed(target):
    return list(responses(target, stream=True))


@case
def responses_stream_helper(target):
    with target.openai.responses.stream(model=MODEL, input="Say hello.", store=False) as stream:
        return [event.type for event in stream], plain(stream.get_final_response())


@case
def responses_tools(target):
    return responses(target, model=TOOLS, tools=[RESPONSES_TOOL], tool_choice="required", parallel_tool_calls=False)


@case
def responses_tool_result(target):
    called = {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Paris"}'}
    result = {"type": "function_call_output", "call_id": "call_1", "output": "Rain, see https://e.org"}
    return responses(target, [{"role": "user", "content": "Weather?"}, called, result], tools=[RESPONSES_TOOL])


@case
def responses_reasoning(target):
    return responses(target, reasoning={"effort": "low", "summary": "auto"}, include=["reasoning.encrypted_content"])


@case
def responses_answer_sent_back(target):
    output = responses(target).output
    return responses(target, [*HELLO, *plain(output), *HELLO])


@case
def responses_structured(target):
    return target.openai.responses.parse(model=MODEL, input="Where?", text_format=Answer, store=False)


@case
def responses_image(target):
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{DOT}", "detail": "auto"}
    return responses(target, turn({"type": "input_text", "text": "What is it?"}, image))


@case
def responses_every_other_field(target):
    return responses(
        target, temperature=0.5, top_p=0.9, top_logprobs=0, service_tier="auto", prompt_cache_key="k",
        safety_identifier="s", max_tool_calls=3, text={"format": {"type": "text"}, "verbosity": "low"},
    )  # fmt: skip


@case
def refused_tool(target):
    return responses(target, tools=[{"type": "web_search_preview"}])
