"""A model on a server: a real one on loopback, and one that does everything wrong."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from modtools.errors import MissingPieceError, UnsupportedError, UsageError
from modtools.models import Message, Request, Sampling, load_model
from modtools.models.fetch import model_path
from modtools.models.server import KEY, ServerModel

ASK = Request((Message("user", "Say hello."),))
GOOD = {
    "id": "1", "object": "chat.completion", "created": 0, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
}  # fmt: skip


@pytest.fixture
def wrong(monkeypatch):
    """A server whose answers a test gives it, one after the other, the last one again and again: (status, headers, body)."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # between tries
    heard, answers, models = [], [], ["m"]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._answer(200, {}, {"object": "list", "data": [{"id": name, "object": "model"} for name in models]})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.append(({name.lower(): text for name, text in self.headers.items()}, body))
            self._answer(*(answers.pop(0) if len(answers) > 1 else answers[0]))

        def _answer(self, status, headers, body):
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(data)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if headers.get("X-Cut") else data)

        def log_message(self, *given):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.url, server.heard, server.answers, server.models = (
        f"http://127.0.0.1:{server.server_port}/v1",
        heard,
        answers,
        models,
    )
    yield server
    server.shutdown()
    server.server_close()


def test_a_reply_is_what_the_server_says_and_the_request_what_was_asked(wrong, monkeypatch):
    monkeypatch.setenv(KEY, "s3cret")
    wrong.answers.append((200, {}, GOOD))
    model = load_model(f"server:{wrong.url}")
    request = Request((Message("system", "Be brief."), *ASK.messages), rng=np.random.default_rng(1))
    (reply,) = model.generate([request], Sampling(9, 0.7, stop=("\n",)))
    assert (reply.text, reply.finish, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (
        "hello",
        "stop",
        7,
        2,
    )
    headers, body = wrong.heard[0]
    assert headers["authorization"] == "Bearer s3cret" and "s3cret" not in json.dumps(model.info) + model.digest
    assert (body["max_tokens"], body["temperature"], body["stop"], body["model"]) == (9, 0.7, ["\n"], "m")
    assert body["messages"][0] == {"role": "system", "content": "Be brief."} and isinstance(body["seed"], int)
    model.generate([Request(request.messages, rng=np.random.default_rng(1))], Sampling(9, 0.7))
    assert wrong.heard[1][1]["seed"] == body["seed"]


def test_replies_come_in_the_order_of_their_requests(wrong):
    wrong.answers += [(200, {}, {**GOOD, "choices": [{**GOOD["choices"][0], "message": {"role": "assistant", "content": str(i)}}]})
                      for i in range(5)]  # fmt: skip
    replies = ServerModel(wrong.url, at_once=1).generate([ASK] * 5, Sampling())
    assert [reply.text for reply in replies] == list("01234")


@pytest.mark.parametrize(
    ("status", "headers", "body", "word"),
    [
        (401, {}, {"error": {"message": "no"}}, KEY),
        (404, {}, {"error": {"message": "no"}}, "no such model"),
        (500, {}, {"error": {"message": "broken inside"}}, "answered 500"),
        (400, {}, {"error": {"message": "too long"}}, "too long"),
        (200, {}, b"<html>", "cannot be read|something else"),
        (200, {}, {"choices": []}, "something else"),
        (200, {}, {**GOOD, "usage": None}, "something else"),
        (200, {}, {**GOOD, "choices": [{**GOOD["choices"][0], "finish_reason": "content_filter"}]}, "content_filter"),
        (200, {"X-Cut": "1"}, GOOD, "cannot be reached|cannot be read"),
    ],
)
def test_what_a_server_does_wrong_is_told_with_what_to_do(wrong, status, headers, body, word):
    wrong.answers.append((status, headers, body))
    with pytest.raises(MissingPieceError, match=word) as told:
        ServerModel(wrong.url, timeout_s=5).generate([ASK], Sampling())
    assert wrong.url in str(told.value) and "the same run goes on" in str(told.value)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_is_busy_for_a_while_is_asked_again(wrong, status):
    wrong.answers += [(status, {"Retry-After": "1"}, {"error": {"message": "busy"}})] * 2 + [(200, {}, GOOD)]
    assert ServerModel(wrong.url).generate([ASK], Sampling())[0].text == "hello" and len(wrong.heard) == 3


def test_a_server_that_stays_busy_is_given_up(wrong):
    wrong.answers.append((429, {}, {"error": {"message": "busy"}}))
    with pytest.raises(MissingPieceError, match="429"):
        ServerModel(wrong.url).generate([ASK], Sampling())
    assert len(wrong.heard) == 4


def test_which_of_several_models_is_meant_must_be_said(wrong):
    wrong.models.append("other")
    with pytest.raises(UsageError, match="offers m, other"):
        ServerModel(wrong.url)
    assert ServerModel(wrong.url, model="other").name == "other"


def test_what_cannot_be_done_through_a_server_is_a_named_error(wrong):
    model = ServerModel(wrong.url)
    for asked in (lambda: model.count("x"), lambda: model.render(ASK.messages), lambda: model.score(ASK.messages, "x"),
                  lambda: model.generate([ASK], Sampling(), logprobs=True)):  # fmt: skip
        with pytest.raises(UnsupportedError):
            asked()


def test_a_server_that_is_not_there_is_an_error_that_says_so(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(MissingPieceError, match="cannot be reached"):
        load_model(f"server:http://127.0.0.1:{port}/v1")


def test_a_tokenizer_of_another_model_is_found_out(wrong, model):
    wrong.answers.append((200, {}, GOOD))
    with pytest.raises(UsageError, match="counts 7 tokens where"):
        ServerModel(wrong.url, tokenizer=str(model_path())).generate([ASK], Sampling())


@pytest.fixture(scope="module")
def real(model):
    """transformers' own server with the embedded model; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [os.path.join(os.path.dirname(sys.executable), "transformers"), "serve", str(model_path()), "--host", "127.0.0.1",
               "--port", str(port), "--device", "cpu", "--dtype", "float32"]  # fmt: skip
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            until_s = time.monotonic() + 180
            while time.monotonic() < until_s and process.poll() is None:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.5)
            assert process.poll() is None, process.stdout.read().decode()[-2000:]
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def test_the_lab_runs_on_a_server_and_goes_on_where_it_stopped(real, model, tmp_path):
    from modtools.lab.episode import Budget
    from modtools.lab.plan import Plan
    from modtools.lab.run import read_run, run
    from modtools.sandbox import strongest_level

    behind = ServerModel(real, model=str(model_path()), tokenizer=str(model_path()))
    plan = Plan(("fine",), (1,), per_stratum=2, group=1, budget=Budget(reply_tokens=8, failures_in_a_row=1))

    def stop(progress):
        if progress.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(plan, behind, tmp_path, strongest_level(), stop)
    assert len(read_run(tmp_path)[1]) == 1
    assert len(run(plan, behind, tmp_path, strongest_level())) == 2
    with pytest.raises(UsageError, match="--tokenizer"):
        run(plan, ServerModel(real, model=str(model_path())), tmp_path / "other", strongest_level())


def test_a_real_server_says_what_the_model_says_here(real, model):
    behind = ServerModel(real, model=str(model_path()), tokenizer=str(model_path()))
    questions = [Request((Message("user", f"What is the capital of {place}?"),)) for place in ("France", "Italy")]
    here, there = (each.generate(questions, Sampling(max_tokens=10)) for each in (model, behind))
    assert [reply.text for reply in there] == [reply.text for reply in here]
    assert [reply.usage.prompt_tokens for reply in there] == [reply.usage.prompt_tokens for reply in here]
