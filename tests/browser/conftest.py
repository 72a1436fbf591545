"""A JupyterLab server and a headless Chromium for the widget tests, started and stopped here."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--window-size=1400,1600",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory):
    """(folder, address) of a running JupyterLab; a notebook put into the folder opens at address(name)."""
    folder, private = tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("jupyter")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    environment = os.environ | {f"JUPYTER_{name}_DIR": str(private / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment["PYTHONPATH"] = str(ROOT)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.port={port}",
               "--ServerApp.ip=127.0.0.1", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"]  # fmt: skip
    log = open(private / "log", "wb")
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api?token={token}", timeout=5).close()
                break
            except OSError:
                assert server.poll() is None, (private / "log").read_text()
                time.sleep(0.1)
        yield folder, lambda name: f"http://127.0.0.1:{port}/lab/tree/{name}?token={token}&reset"
    finally:
        server.terminate()
        server.wait(20)
        log.close()


@pytest.fixture
def browser(need, tmp_path):
    """A headless Chromium."""
    need(bool(shutil.which("chromium") and shutil.which("chromedriver")), "chromium and chromedriver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()
