"""A context strategy behind an address: ``python context_server.py``, then ``--subject http://127.0.0.1:8900``."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Strategy(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps({"messages": asked["messages"][-20:]}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", 8900), Strategy).serve_forever()
