"""Prints the events of a stream, one JSON object a line, as httpx-sse reads them.

Usage: sse.py METHOD URL [BODY]
"""

import json
import sys

import httpx
from httpx_sse import connect_sse


def main():
    method, url, *body = sys.argv[1:]
    headers = {"Content-Type": "application/json"} if body else {}
    with httpx.Client(timeout=300) as client:
        with connect_sse(client, method, url, headers=headers, content=body[0] if body else None) as source:
            source.response.raise_for_status()
            for event in source.iter_sse():
                line = {"event": event.event, "id": event.id, "data": json.loads(event.data), "retry": event.retry}
                print(json.dumps(line, ensure_ascii=False), flush=True)
    print(json.dumps({"event": "END"}), flush=True)


main()
