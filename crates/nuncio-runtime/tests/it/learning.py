"""An MCP server of the Python SDK: it learns a tool when it is asked to, and says that its tools have changed."""

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("learning")


def double(number: int) -> int:
    """Doubles a number."""
    return number * 2


@server.tool()
async def learn(context: Context) -> str:
    """Learns to double numbers."""
    server.add_tool(double)
    await context.session.send_tool_list_changed()
    return "learned"


server.run()
