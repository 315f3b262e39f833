"""Follows live queries in Chromium by livelist.js until SIGTERM.

Usage: livelist.py PAGE STREAM...
The page is opened first, so that the streams, given as paths, are of its origin. Prints a line of JSON for each list whose
last id has changed, {"stream", "id", "errors"}, and at SIGUSR1 one for each list with its "sections" too.
"""

import json
import pathlib
import signal
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

LIST = pathlib.Path(__file__).with_name("livelist.js").read_text() + """
window.lists = arguments[0].map(liveList);
"""
STATE = "return window.lists.map(({id, errors}, stream) => ({stream, id, errors}));"
# As text: the driver's own way through Python would lose what JSON calls it.
WHOLE = "return window.lists.map(({id, errors, sections}, stream) => JSON.stringify({stream, id, errors, sections}));"


def main():
    page, *streams = sys.argv[1:]
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    # A request to the driver is not to be cut in the middle: the loop looks at the signals when it can.
    signals = []
    signal.signal(signal.SIGTERM, lambda *_: signals.append("end"))
    signal.signal(signal.SIGUSR1, lambda *_: signals.append("print"))
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        driver.get(page)
        driver.execute_script(LIST, streams)
        end = time.monotonic() + 3600
        known = {}
        while "end" not in signals and time.monotonic() < end:
            for state in driver.execute_script(STATE):
                if known.get(state["stream"]) != state:
                    known[state["stream"]] = state
                    print(json.dumps(state), flush=True)
            if "print" in signals:
                signals.remove("print")
                for line in driver.execute_script(WHOLE):
                    print(line, flush=True)
            time.sleep(0.1)
    finally:
        driver.quit()


main()
