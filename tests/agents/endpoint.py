#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A chat endpoint of the OpenAI form that answers by a script and remembers what it was asked.

usage: endpoint.py [SCRIPT.json]   serves on a free port of 127.0.0.1, which it prints as {"port": N}

POST /script          {"answers": [...]} replaces the script and forgets the requests
GET  /requests        [{"path", "authorization", "body"}, ...] in the order in which they came
POST /v1/chat/completions   takes the first answer that is unused and fits

An answer is one of
  {"content", "tool_calls": [{"id", "name", "arguments"}], "refusal", "finish_reason", "usage", "model"}
  {"status", "headers", "error"}       an HTTP error with that body
  {"status", "raw"}                    an HTTP error with that text, in Latin-1
  {"fault": NAME}                      see FAULTS
Every answer may have "when": {"model", "last"} (the model's name; a part of the last message's text),
"repeat": true (it is never used up), "pieces" (characters in a fragment of a stream), "delay" (seconds
before each of them) and "wait" (seconds before the answer).
"""

import http.server
import json
import sys
import threading
import time

FAULTS = ("cut", "cut_tool", "close", "malformed", "not_object", "content_type", "endless", "huge_line", "slow",
          "no_choices", "no_done", "error_event", "empty")


class Script:
    def __init__(self):
        self.lock = threading.Lock()
        self.answers, self.requests = [], []

    def load(self, document):
        with self.lock:
            self.answers = [dict(answer, used=False) for answer in document["answers"]]
            self.requests = []

    def next(self, path, authorization, body):
        with self.lock:
            self.requests.append({"path": path, "authorization": authorization, "body": body})
            for answer in self.answers:
                if not answer["used"] and fits(answer.get("when", {}), body):
                    answer["used"] = not answer.get("repeat", False)
                    return answer
        return {"status": 500, "error": {"message": "the script has no answer to this", "type": "script"}}


def text_of(message):
    content = message.get("content")
    return content if isinstance(content, str) else json.dumps(content)


def fits(when, body):
    last = text_of((body.get("messages") or [{}])[-1])
    return when.get("model", body.get("model")) == body.get("model") and when.get("last", "") in last


def arguments_of(call):
    return call["arguments"] if isinstance(call["arguments"], str) else json.dumps(call["arguments"])


def calls_of(answer):
    return [{"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": arguments_of(call)}}
            for call in answer.get("tool_calls", [])]


def finish_of(answer):
    return answer.get("finish_reason", "tool_calls" if answer.get("tool_calls") else "stop")


USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def whole(answer, body, number):
    message = {"role": "assistant", "content": answer.get("content"), "refusal": answer.get("refusal")}
    if answer.get("tool_calls"):
        message["tool_calls"] = calls_of(answer)
    return {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1700000000,
            "model": answer.get("model", body.get("model")), "system_fingerprint": "fp_script",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_of(answer), "logprobs": None}],
            "usage": answer.get("usage", USAGE)}


def fragments(text, size):
    return [text[i:i + size] for i in range(0, len(text), size)]


def deltas(answer):
    """What the chunks of a stream carry; the fragments of parallel calls are interleaved."""
    size = answer.get("pieces", 5)
    yield {"role": "assistant", "content": "" if answer.get("content") is not None else None, "refusal": None}
    for piece in fragments(answer.get("content") or "", size):
        yield {"content": piece}
    for piece in fragments(answer.get("refusal") or "", size):
        yield {"refusal": piece}
    rows = []
    for index, call in enumerate(calls_of(answer)):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]}
        rows.append(fragments(call["function"]["arguments"], size))
    for turn in range(max(map(len, rows), default=0)):
        for index, row in enumerate(rows):
            if turn < len(row):
                yield {"tool_calls": [{"index": index, "function": {"arguments": row[turn]}}]}


def chunks(answer, body, number):
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1700000000,
            "model": answer.get("model", body.get("model")), "system_fingerprint": "fp_script"}
    tail = {"usage": None} if (body.get("stream_options") or {}).get("include_usage") else {}
    for delta in deltas(answer):
        yield head | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]} | tail
    yield head | {"choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": finish_of(answer)}]} | tail
    if tail:
        yield head | {"choices": [], "usage": answer.get("usage", USAGE)}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path == "/requests":
            with self.server.script.lock:
                self.send_json(200, self.server.script.requests)
        else:
            self.send_json(404, {"error": {"message": "no such path"}})

    def do_POST(self):
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(text)
        except ValueError:
            self.send_json(400, {"error": {"message": "the body is not JSON", "type": "invalid_request_error"}})
            return
        if self.path == "/script":
            self.server.script.load(body)
            self.send_json(200, {"loaded": len(body["answers"])})
        elif self.path.endswith("/chat/completions"):
            self.answer(self.server.script.next(self.path, self.headers.get("Authorization"), body), body)
        else:
            self.send_json(404, {"error": {"message": "no such path"}})

    def answer(self, answer, body):
        time.sleep(answer.get("wait", 0))
        number = len(self.server.script.requests)
        try:
            if "fault" in answer:
                self.fault(answer, body, number)
            elif "raw" in answer:
                self.send_text(answer["status"], answer["raw"], "text/plain", encoding="latin-1")
            elif "status" in answer:
                self.send_json(answer["status"], {"error": answer.get("error")}, answer.get("headers", {}))
            elif body.get("stream"):
                self.stream(answer, chunks(answer, body, number))
            else:
                self.send_json(200, whole(answer, body, number))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def send_json(self, status, document, headers=()):
        self.send_text(status, json.dumps(document), "application/json", dict(headers))

    def send_text(self, status, text, content_type, headers=(), encoding="utf-8"):
        data = text.encode(encoding)
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def write(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def stream(self, answer, documents, done=True):
        self.begin_stream()
        for document in documents:
            time.sleep(answer.get("delay", 0))
            self.write(f"data: {json.dumps(document)}\n\n")
        if done:
            self.write("data: [DONE]\n\n")
        self.write("")

    def fault(self, answer, body, number):
        name = answer["fault"]
        if name not in FAULTS:
            raise ValueError(f"unknown fault {name}")
        self.close_connection = True
        getattr(self, "fault_" + name)(answer, body, number)

    def fault_cut(self, answer, body, number):
        """The connection ends in the middle, without the end of the chunked body."""
        text = {"content": "this will never be finished"} | answer
        if not body.get("stream"):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b'{"id": "chatcmpl-cut", "choices": [')
            return
        self.begin_stream()
        for document in list(chunks(text, body, number))[:3]:
            self.write(f"data: {json.dumps(document)}\n\n")

    def fault_cut_tool(self, answer, body, number):
        """The same within the arguments of a call."""
        self.begin_stream()
        for document in list(chunks(answer, body, number))[:-3]:
            self.write(f"data: {json.dumps(document)}\n\n")

    def fault_close(self, answer, body, number):
        """No answer at all."""

    def fault_malformed(self, answer, body, number):
        if body.get("stream"):
            self.begin_stream()
            self.write('data: {"choices": [{"delta": {"content": "a"\n\n')
            self.write("data: [DONE]\n\n")
            self.write("")
        else:
            self.send_text(200, '{"choices": [', "application/json")

    def fault_not_object(self, answer, body, number):
        if body.get("stream"):
            self.stream(answer, [[1, 2]])
        else:
            self.send_json(200, [1, 2])

    def fault_content_type(self, answer, body, number):
        self.send_text(200, "<html><body>Log in, please</body></html>", "text/html")

    def fault_endless(self, answer, body, number):
        self.begin_stream()
        while True:
            chunk = {"choices": [{"index": 0, "delta": {"content": "and so on, " * 1000}}]}
            self.write(f"data: {json.dumps(chunk)}\n\n")

    def fault_huge_line(self, answer, body, number):
        self.begin_stream()
        self.write("data: ")
        for _ in range(100_000):
            self.write("x" * 4096)

    def fault_slow(self, answer, body, number):
        """Begins, and then says nothing more."""
        self.begin_stream()
        self.write(f"data: {json.dumps(next(chunks({'content': 'a'}, body, number)))}\n\n")
        time.sleep(answer.get("seconds", 30))

    def fault_no_choices(self, answer, body, number):
        document = {"id": "chatcmpl-x", "object": "chat.completion", "choices": []}
        if body.get("stream"):
            self.stream(answer, [document])
        else:
            self.send_json(200, document)

    def fault_no_done(self, answer, body, number):
        """A stream that ends in order, but for the mark of its end and the reason."""
        self.stream(answer, list(chunks({"content": "half"}, body, number))[:2], done=False)

    def fault_error_event(self, answer, body, number):
        """An error in the middle of a stream, as some servers send it."""
        error = {"error": answer.get("error", {"message": "the server is overloaded", "type": "server_error"})}
        if body.get("stream"):
            self.stream(answer, [next(chunks({"content": "a"}, body, number)), error], done=False)
        else:
            self.send_json(200, error)

    def fault_empty(self, answer, body, number):
        self.send_text(200, "", "text/event-stream" if body.get("stream") else "application/json")


class Endpoint(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = Script()


def main():
    endpoint = Endpoint()
    if len(sys.argv) > 1:
        with open(sys.argv[1], encoding="utf-8") as file:
            endpoint.script.load(json.load(file))
    print(json.dumps({"port": endpoint.server_address[1]}), flush=True)
    try:
        endpoint.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
