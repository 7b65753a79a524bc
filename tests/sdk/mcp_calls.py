"""Calls host tools with the official Python client of MCP.

usage: mcp_calls.py URL TOOL ARGUMENTS DENIED   Prints one JSON object: what the server is, lists and answers.
"""

import asyncio
import json
import sys

from mcp import Client, MCPError


async def call(client, name, arguments):
    try:
        result = await client.call_tool(name, arguments)
    except MCPError as error:
        return {"error": str(error)}
    texts = [block.text for block in result.content if block.type == "text"]
    return {"failed": bool(result.is_error), "text": "".join(texts)}


async def main(url, tool, arguments, denied):
    async with Client(url) as client:
        tools = (await client.list_tools()).tools
        print(json.dumps({
            "protocol": client.protocol_version,
            "tools": sorted(tool.name for tool in tools),
            "called": await call(client, tool, json.loads(arguments)),
            "invalid": await call(client, tool, {"no_such_argument": 1}),
            "denied": await call(client, denied, {}),
        }))


asyncio.run(main(*sys.argv[1:]))
