"""Prints what pages of three origins may do with a session, one JSON object a line: the server's own page, one of a
listed origin, and one of another.

Usage: session.py SERVER TOKEN OBJECT LISTED OTHER
SERVER is the server's URL, OBJECT the path of an attribute that the token may read and write, LISTED and OTHER are the
ports where the two pages are to be served.
"""

import http.server
import json
import sys
import threading

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

SCRIPT = """
const [server, token, path, done] = arguments;
const url = server + path;
const attempt = async body => {
  try { return await body(); } catch (error) { return "refused"; }
};
const result = {};
(async () => {
  result.session = await attempt(async () => {
    const headers = {"Authorization": "Bearer " + token};
    return (await fetch(server + "/v1/session", {method: "POST", headers, credentials: "include"})).status;
  });
  result.read = await attempt(async () => (await (await fetch(url, {credentials: "include"})).json()));
  result.write = await attempt(async () => {
    const headers = {"Content-Type": "application/json"};
    return (await fetch(url, {method: "PUT", headers, body: "true", credentials: "include"})).status;
  });
  // A request that needs no permission from the server to be sent: its answer cannot be read.
  result.sent = await attempt(async () => {
    const headers = {"Content-Type": "text/plain"};
    const options = {method: "POST", mode: "no-cors", headers, body: "{}", credentials: "include"};
    return (await fetch(server + "/v1/transactions", options)).type;
  });
  result.stream = await new Promise(resolve => {
    const source = new EventSource(url, {withCredentials: true});
    source.addEventListener("change", event => {
      source.close();
      resolve(JSON.parse(event.data).changes[0].new);
    });
    source.addEventListener("error", () => {
      source.close();
      resolve("refused");
    });
  });
  done(result);
})();
"""


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>page</title>")

    def log_message(self, *arguments):
        pass


def serve(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "http://127.0.0.1:%d/" % port


def main():
    server, token, path, listed, other = sys.argv[1:]
    pages = [server + "/healthz", serve(int(listed)), serve(int(other))]
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        driver.set_script_timeout(300)
        for page in pages:
            driver.get(page)
            print(json.dumps(driver.execute_async_script(SCRIPT, server, token, path)), flush=True)
    finally:
        driver.quit()


main()
