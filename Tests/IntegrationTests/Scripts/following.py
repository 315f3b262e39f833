"""Runs the generator `changes` of a page against a server that follows a script, and prints what becomes of it.

Usage: following.py FILE
The file has the page's Python up to that generator, with a server's address in it as SERVER. Printed are the changes,
the seconds of each pause, which is not waited for, and at the end the Last-Event-ID of each request.
"""

import http.server
import sys
import threading
import time

EVENTS = "retry: 7\nid: k-1\nevent: change\ndata: {%s: [1]}\n\nid: k-2\nevent: change\ndata: {%s: [2]}\n\n"
ANSWERS = [
    (200, "text/event-stream", EVENTS % ('"changes"', '"changes"')),
    (503, "application/problem+json", "{}"),
    (429, "application/problem+json", "{}"),
    (200, "text/event-stream", "id: k-3\nevent: gone\ndata: {}\n\n"),
    (404, "application/problem+json", "{}"),
]
ids = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, kind, body = ANSWERS[len(ids)]
        ids.append(self.headers["Last-Event-ID"])
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
with open(sys.argv[1]) as file:
    exec(file.read().replace("SERVER", f"http://127.0.0.1:{server.server_port}"))
time.sleep = lambda seconds: print("pause", seconds)
for change in changes("/"):
    print("change", change)
try:
    next(changes("/", "k-9"))
except httpx.HTTPStatusError as error:
    print("refused", error.response.status_code)
print(*ids)
