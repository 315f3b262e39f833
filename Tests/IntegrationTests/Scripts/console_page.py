"""What drives the console as its users do: by roles and accessible names."""

import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import axe_core_python
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

SELECTORS = {
    "link": "a[href]", "button": "button", "input": "input, select, textarea", "heading": "h1", "img": "svg",
    "columnheader": "thead th", "cell": "td",
}
PATIENCE = 300


class Server:
    """Another client of the server."""

    def __init__(self, url, token=None):
        self.url = url
        self.headers = {"Authorization": "Bearer " + token} if token else {}

    def send(self, method, path, *body):
        data = json.dumps(*body).encode() if body else None
        headers = dict(self.headers, **({"Content-Type": "application/json"} if data else {}))
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def get(self, path):
        return self.send("GET", "/v1/objects/" + path)

    def set(self, path, value):
        return self.send("PUT", "/v1/objects/" + path, value)

    def is_there(self, reference):
        try:
            self.get(reference)
            return True
        except urllib.error.HTTPError as error:
            return error.code != 404

    def commit(self, *operations):
        return self.send("POST", "/v1/transactions", {"operations": operations})


class Console:
    """A browser that shows the console."""

    def __init__(self, url):
        self.url = url
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.resize(1280, 800)

    def quit(self):
        self.driver.quit()

    def open(self, address=""):
        self.driver.get("about:blank")
        self.driver.get(self.url + "/" + address)

    def resize(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    # Finding

    def all(self, role):
        return self.driver.find_elements(By.CSS_SELECTOR, SELECTORS[role])

    def named(self, role, name):
        """Those of a role whose accessible name begins so."""
        try:
            return [element for element in self.all(role) if element.accessible_name.startswith(name)]
        except StaleElementReferenceException:
            return []

    def find(self, role, name):
        return self.until(lambda: next(iter(self.named(role, name)), None), f"a {role} named {name}")

    def text(self, selector):
        """The text of what a selector finds, of hidden elements too."""
        script = "return [...document.querySelectorAll(arguments[0])].map(node => node.textContent).join('\\n')"
        return self.driver.execute_script(script, selector)

    def until(self, condition, what):
        """What a condition gives once it is not false; fails where it stays so."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                found = condition()
            except StaleElementReferenceException:
                found = None
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError("the console does not show " + what + ": " + self.text("main")[:500])

    def until_equal(self, expected, get, what):
        seen = []

        def compare():
            seen[:] = [get()]
            return seen[0] == expected

        try:
            self.until(compare, what)
        except AssertionError:
            raise AssertionError(f"{what}: {seen[0]!r} and not {expected!r}")

    # Tables

    def column(self, key):
        """The texts of a column, from the top, of the rows that are shown."""
        script = """
          const [key] = arguments
          const table = document.querySelector('table')
          if (!table) return []
          const place = [...table.tHead.rows[0].cells].findIndex(cell => cell.textContent.startsWith(key))
          return [...table.querySelectorAll('tr[data-ref]')].map(row => row.cells[place]?.textContent)"""
        return self.driver.execute_script(script, key)

    def cell(self, reference, key):
        """The cell of an object in the table of its entity, or of a key in the table of an object."""
        script = """
          const [reference, key] = arguments
          const row = document.querySelector(`tr[data-ref="${reference}"]`)
          if (!row) return [...document.querySelectorAll('.keys tbody tr')]
            .find(row => row.cells[0].textContent === key)?.cells[1]
          const place = [...row.closest('table').tHead.rows[0].cells].findIndex(cell => cell.textContent === key)
          return row.cells[place]"""
        return self.until(lambda: self.driver.execute_script(script, reference, key), f"{key} of {reference}")

    def value(self, reference, key):
        return self.cell(reference, key).text

    def double_click(self, element):
        ActionChains(self.driver).double_click(element).perform()

    def press(self, *keys):
        """Keys for whatever has the focus."""
        chain = ActionChains(self.driver)
        for key in keys:
            chain.send_keys(key)
        chain.perform()

    def press_with(self, modifier, key):
        ActionChains(self.driver).key_down(modifier).send_keys(key).key_up(modifier).perform()

    def clear_and_type(self, element, text):
        element.clear()
        element.send_keys(text)

    @property
    def problem(self):
        return self.driver.execute_script(
            "const line = document.querySelector('[role=alert]'); return line && !line.hidden ? line.textContent : ''")

    # What must hold of every view

    def check_access(self, view):
        """Nothing that axe-core finds wrong."""
        source = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
        self.driver.execute_script(source)
        result = self.driver.execute_async_script(
            "const [done] = arguments; axe.run(document, { resultTypes: ['violations'] }).then(done, error => done(String(error)))")
        assert isinstance(result, dict), result
        found = [(rule["id"], [node["html"][:200] for node in rule["nodes"][:3]]) for rule in result["violations"]]
        assert not found, f"{view}: {found}"

    def check_width(self, view):
        """The page itself is no wider than the window; its parts may scroll."""
        inner, outer = self.driver.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert inner <= outer, f"{view} is {inner} wide in a window of {outer}"

    def check_log(self, *statuses):
        """Nothing in the browser's log but answers with the statuses that were provoked."""
        entries = [entry["message"] for entry in self.driver.get_log("browser")]
        rest = [text for text in entries if not any(f"the server responded with a status of {s}" in text for s in statuses)]
        assert not rest, rest


def run(steps):
    """Carries out the step that the command line names, on the server that it names."""
    server, step, *rest = sys.argv[1:]
    console = Console(server)
    try:
        steps[step](console, Server(server, *rest), *rest)
        print("done", step, flush=True)
    finally:
        console.quit()
