"""Uses the application of the page "Your first application" in two tabs of Chromium; prints "done" in the end.

Usage: first_application.py SERVER [TOKEN | visitors]
SERVER is the server's URL. With a TOKEN the page signs in with it, as its visitor. With `visitors` the page shows who is
here, and that alone is tried.
"""

import sys

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

TITLE = "Write <b>it</b> & more"

server = sys.argv[1]
choice = sys.argv[2] if len(sys.argv) > 2 else None
token = choice if choice != "visitors" else None

options = Options()
for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]:
    options.add_argument(argument)
driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
wait = WebDriverWait(driver, 60)


def rows():
    """What is shown: the titles, and whether each is done."""
    script = "return [...document.querySelectorAll('li')].map(i => [i.children[1].value, i.children[0].checked])"
    return driver.execute_script(script)


def shown(tab, expected):
    driver.switch_to.window(tab)
    wait.until(lambda _: rows() == expected, f"{expected} is not shown, but {rows()}")


def here(expected):
    wait.until(lambda _: driver.find_element(By.TAG_NAME, "output").text == expected, f"{expected} are not shown")


def visitors():
    """Ann and Bob come, and Bob's tab is closed."""
    driver.get(server + "/?name=Ann")
    first = driver.current_window_handle
    here("Ann")
    driver.switch_to.new_window("tab")
    driver.get(server + "/?name=Bob")
    here("Ann, Bob")
    second = driver.current_window_handle
    driver.switch_to.window(first)
    here("Ann, Bob")
    driver.switch_to.window(second)
    driver.close()
    driver.switch_to.window(first)
    here("Ann")


try:
    if choice == "visitors":
        visitors()
        print("done")
        sys.exit()
    driver.get(server)
    if token:
        script = """
        const [token, done] = arguments;
        fetch('/v1/session', { method: 'POST', headers: { Authorization: `Bearer ${token}` } }).then(r => done(r.status))
        """
        status = driver.execute_async_script(script, token)
        assert status == 204, f"signing in is answered {status}"
        driver.refresh()
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    driver.get(server)
    second = driver.current_window_handle

    driver.switch_to.window(first)
    driver.find_element(By.NAME, "title").send_keys(TITLE)
    driver.find_element(By.CSS_SELECTOR, "form button").click()
    shown(second, [[TITLE, False]])

    driver.find_element(By.CSS_SELECTOR, "li input[aria-label=Done]").click()
    shown(first, [[TITLE, True]])

    title = driver.find_element(By.CSS_SELECTOR, "li input[aria-label=Title]")
    title.send_keys(Keys.CONTROL, "a", Keys.NULL, "Another", Keys.TAB)
    shown(second, [["Another", True]])

    driver.find_element(By.CSS_SELECTOR, "li button").click()
    shown(first, [])
    assert driver.find_elements(By.TAG_NAME, "b") == []
    print("done")
finally:
    driver.quit()
