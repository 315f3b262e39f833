"""Opens pages in Chromium, one after the other, and prints what each of them shows once it shows enough.

Usage: client_page.py URL=LINES ...
A page is done when its body has so many lines of text, or after a minute.
"""

import sys

from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

options = Options()
for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]:
    options.add_argument(argument)
driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def lines():
    text = driver.find_element(By.TAG_NAME, "body").text
    return [line for line in text.split("\n") if line]


try:
    for page in sys.argv[1:]:
        url, _, count = page.rpartition("=")
        driver.get(url)
        try:
            WebDriverWait(driver, 300).until(lambda _: len(lines()) >= int(count))
        except TimeoutException:
            pass
        print("\n".join(lines()))
finally:
    driver.quit()
