"""A server that can be killed and wiped, a proxy that cuts, and a Chromium, for the tests of keyway.js in a browser."""

import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

HERE = pathlib.Path(__file__).parent
MODULE = pathlib.Path(
    os.environ.get("KEYWAY_MODULE") or HERE.parents[3] / "Sources/KeywayBrowser/Resources/keyway.js")
SCHEMA = """
entities:
  Item:
    keys:
      name:  { type: string }
      value: { type: integer, default: 0 }
      group: { type: string, default: g0 }
"""


# How long something is awaited before it is taken for hung: a machine that is busy with other work is only slow.
PATIENCE = 300


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"in vain: {what}")
        time.sleep(0.05)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Server:
    """`keyway serve` on a store of its own, with pages of the folder `public`, where there is one."""

    def __init__(self, program, public=None):
        self.program = program
        self.public = public
        self.folder = tempfile.mkdtemp(prefix="keyway-browser-")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None
        pathlib.Path(self.folder, "schema.yaml").write_text(SCHEMA)

    def start(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KEYWAY_")}
        arguments = ["serve", "--port", str(self.port), "--schema", self.folder + "/schema.yaml", "--set", "seed=none",
                     "--store", self.folder + "/store", "--set", "heartbeat.seconds=1"]
        if self.public:
            arguments += ["--public", self.public]
        with open(self.folder + "/log", "ab") as log:
            self.process = subprocess.Popen([self.program] + arguments, env=environment, stdout=log, stderr=log)

        def is_ready():
            try:
                return self.ask("GET", "/readyz")
            except OSError:
                return False
        until(is_ready, "a server that is ready")

    def end(self, number):
        self.process.send_signal(number)
        self.process.wait(20)

    def wipe(self):
        self.end(signal.SIGKILL)
        shutil.rmtree(self.folder + "/store")
        self.start()

    def close(self):
        if self.process and self.process.poll() is None:
            self.end(signal.SIGKILL)
        shutil.rmtree(self.folder)

    def ask(self, method, path, body=None):
        """The answer's JSON and its cursor; None for what is not there."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                text = answer.read()
                try:
                    return json.loads(text or b"null"), answer.headers["Keyway-Cursor"]
                except ValueError:
                    return text.decode(), None
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None, None
            raise

    def streams(self):
        return self.ask("GET", "/v1/streams")[0]["streams"]


class Proxy:
    """Passes connections on, and cuts them: all at once, or each after some bytes, in the middle of whatever it is."""

    def __init__(self, target, seed):
        self.target = target
        self.random = random.Random(seed)
        self.bytes = None
        self.isShut = False
        self.pairs = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            if self.isShut:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            pair = (client, server)
            self.pairs.add(pair)
            left = self.random.randint(1, self.bytes) if self.bytes else None
            threading.Thread(target=self.pump, args=(pair, client, server, None), daemon=True).start()
            threading.Thread(target=self.pump, args=(pair, server, client, left), daemon=True).start()

    def pump(self, pair, source, target, left):
        try:
            while data := source.recv(65536):
                if left is not None and len(data) >= left:
                    target.sendall(data[:left])
                    break
                target.sendall(data)
                left = None if left is None else left - len(data)
        except OSError:
            pass
        self.end(pair)

    def end(self, pair):
        self.pairs.discard(pair)
        for each in pair:
            try:
                # Reset rather than ended: nothing that is on its way arrives.
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()

    def cut(self):
        for pair in list(self.pairs):
            self.end(pair)


def chromium():
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1000,800"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    driver.set_script_timeout(PATIENCE)
    return driver


def load(driver, page, body, *arguments):
    """Opens a page of the server's origin and runs `body` in it, with the module as `keyway`."""
    driver.get(page)
    script = """
    const [module, helper, given, done] = arguments
    const load = text => import(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })))
    Promise.all([load(module), load(helper)]).then(async ([keyway, helper]) => {
      %s
      done(null)
    }).catch(error => done(String(error.stack ?? error)))
    """ % body
    error = driver.execute_async_script(script, MODULE.read_text(), (HERE / "page.js").read_text(), arguments)
    assert error is None, error
