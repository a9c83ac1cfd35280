"""The Claude Agent SDK: its transcript in a store of ours, and what its window lost brought back to a prompt.

pip install 'ctxsteward[claude-agent-sdk]'
ANTHROPIC_API_KEY=… python docs/examples/integrations/claude_sdk_mirror.py
"""

import asyncio

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, project_key_for_directory

from ctxsteward.envelope import open_store
from ctxsteward.envelope.integrations.claude_agent_sdk import ClaudeMirror

SESSION = "7d1f5a52-2a0e-4f0b-9a5e-6a3cf4f1f7b3"  # a UUID of yours; `resume=SESSION` goes on with it elsewhere


async def main() -> None:
    store = open_store("file:./context")
    mirror = ClaudeMirror(store, principal="ann")
    options = ClaudeAgentOptions(
        session_id=SESSION, session_store=mirror, session_store_flush="eager", hooks=mirror.hooks()
    )
    async with ClaudeSDKClient(options) as client:
        for prompt in ("My locker code is 4711.", "/compact", "Which locker code did I tell you?"):
            await client.query(prompt)
            async for _ in client.receive_response():
                pass
    log = store.session(mirror.conversation_id(SESSION, project_key_for_directory()))
    for entry in log.entries():
        print(entry.ref, entry.message.role, entry.message.text)


if __name__ == "__main__":
    asyncio.run(main())
