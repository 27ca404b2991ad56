# SPDX-License-Identifier: Apache-2.0
"""Cases for the nodes that send requests and mail. WEB, SMTP, SECURE_SMTP, LOGIN_SMTP and CLOSED in
configurations stand for the test's servers, and for a port where nobody listens."""

import itertools

from cases_of_values import OTHERS, TEXTS, VALUES
from loopback_servers import BODIES

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


def http_request():
    echo = {"url": "http://WEB/echo"}
    cases = [({"url": f"http://WEB/body/{name}"}, {}, {}) for name in BODIES if name != "broken"]
    for method, body in itertools.product(METHODS, [{}, {"json_body": {"a": [1, "é", None]}}, {"content": "téxt"}, {"data": {"a": "b c", "l": [1, True]}}]):
        cases.append((echo | {"method": method} | body, {}, {}))
    cases += [(echo | {"method": "POST", "json_body": value}, {}, {}) for value in VALUES]
    cases += [(echo | {"method": "POST", "json_body": "{{inputs.v}}"}, {"v": value}, {}) for value in OTHERS]
    cases += [(echo | {"method": "POST", "data": {"k": value}}, {}, {}) for value in VALUES]
    cases += [(echo | {"method": "POST", "data": value}, {}, {}) for value in (None, "a=b", "", {}, 5, True, "é")]
    cases += [(echo | {"method": "POST", "content": value}, {}, {}) for value in (None, "", "x", 5, {"a": 1}, True, "😀")]
    cases += [(echo | {"method": "POST", "content": "c", "data": {"a": 1}, "json_body": 1}, {}, {}), (echo | {"method": "POST", "data": {}, "json_body": [1]}, {}, {})]
    cases += [(echo | {"params": {"k": value}}, {}, {}) for value in VALUES]
    cases += [({"url": "http://WEB/echo?a=b#f", "params": params}, {}, {}) for params in (None, {}, {"x": 1}, {"x": [1, 2], "é": "ü&="}, [], "x")]
    cases += [(echo | {"headers": headers}, {"v": "val"}, {}) for headers in
              (None, {}, {"X-A": "1"}, {"X-A": "{{inputs.v}}"}, {"Accept": "text/x"}, {"Authorization": "Bearer t"}, {"Cookie": "a=b"}, {"X-A": 5}, [],
               {"X-A": "a\r\nB: c"}, {"bad name": "x"}, {"": "x"}, {"X-A": ""}, {"content-type": "a/b"})]
    cases += [(echo | {"method": "POST", "json_body": 1, "headers": {"Content-Type": "a/b"}}, {}, {})]
    cases += [(echo | {"method": method}, {"m": "POST"}, {}) for method in ("get", "TRACE", "", None, 5)]
    for status in (200, 201, 204, 301, 302, 304, 400, 401, 404, 418, 429, 500, 503, 599):
        cases += [({"url": f"http://WEB/status/{status}", "raise_for_status": flag}, {}, {}) for flag in (False, True)]
    cases += [({"url": "http://WEB/status/200?reason=Very+Well"}, {}, {}), ({"url": "http://WEB/status/404?reason="}, {}, {})]
    for status, method in itertools.product((301, 302, 303, 307, 308), METHODS):
        config = {"url": f"http://WEB/redirect?status={status}&to=/echo%3Fx%3D1", "method": method, "headers": {"Authorization": "t", "Cookie": "mine=1", "X-A": "1"}}
        cases.append((config | ({"json_body": {"a": 1}} if method in ("POST", "PUT") else {}), {}, {}))
    cases += [({"url": f"http://WEB/redirect?to={to}", "headers": {"Authorization": "t"}}, {}, {}) for to in
              ("HERE/echo", "echo", "../echo", "?q=1", "//OTHER/echo", "http://OTHER/echo", "ftp://x/", "http://CLOSED/", "/redirect?to=/echo", "/a%20b", "%23frag", "")]
    cases += [({"url": "http://WEB/redirect?to=/echo", "follow_redirects": flag}, {}, {}) for flag in (False, "no", True)]
    cases += [({"url": "http://WEB/redirect?to=/status/404", "raise_for_status": True}, {}, {}), ({"url": "http://WEB/loop"}, {}, {})]
    cases += [({"url": f"http://WEB/{path}"}, {}, {}) for path in ("gzip", "many", "cut", "", "a b", "ü?ö=ä", "a/../b", "%7e", "x?", "x?a=b c", "a|b", "x?q='\"<>")]
    cases += [({"url": url}, {"u": "http://WEB/echo"}, {}) for url in
              ("http://WEB", "WEB/echo", "", "ftp://WEB/", "http://", "{{inputs.u}}", "{{inputs.u}}/x", "{{zz}}", "http://CLOSED/", "http://[::1", "http://a b/", None, 5)]
    cases += [({"url": "http://WEB/slow/2", "timeout": timeout}, {}, {}) for timeout in (0.2,)]
    cases += [({"url": "http://WEB/echo", "timeout": timeout}, {}, {}) for timeout in (None, 5, "5", -1, "x", True)]
    return cases + [({}, {}, {})]


def discord():
    hook = {"webhook_url": "http://WEB/hook"}
    cases = [(hook | {"content": text, "username": text, "avatar_url": text}, {}, {}) for text in TEXTS]
    cases += [(hook | {"content": "{{inputs.v}}"}, {"v": value}, {}) for value in VALUES]
    cases += [(hook | {"embeds": embeds}, {"v": 1}, {}) for embeds in (None, [], [{}], [{"title": "x", "n": {"a": [1]}}], {}, ["x"], "x", [{"a": "{{inputs.v}}"}])]
    cases += [(hook | {"tts": flag}, {}, {}) for flag in (True, "yes", 0, "maybe", None)]
    cases += [({"webhook_url": f"http://WEB/status/{status}", "content": "x"}, {}, {}) for status in (200, 204, 302, 400, 404, 429, 500)]
    cases += [({"webhook_url": url, "content": "x"}, {"u": "http://WEB/hook?wait=true"}, {}) for url in ("http://CLOSED/", "", "x", "{{inputs.u}}", None, 5)]
    cases += [(hook | {"timeout": timeout}, {}, {}) for timeout in (None, 5, "5", "x")]
    return cases + [({}, {}, {}), (hook, {}, {}), ({"webhook_url": "http://WEB/redirect?to=/echo", "content": "x"}, {}, {})]


def rss():
    feeds = [name for name in BODIES if name != "broken"]
    cases = [({"sources": f"http://WEB/body/{name}"}, {}, {}) for name in feeds]
    cases += [({"sources": [f"http://WEB/body/{name}" for name in ("rss", "bad-xml", "atom", "empty", "rdf")]}, {}, {})]
    cases += [({"sources": [f"http://WEB/status/{status}"]}, {}, {}) for status in (200, 204, 400, 404, 500)]
    cases += [({"sources": sources}, {"u": "http://WEB/body/atom", "l": ["http://WEB/body/rdf"]}, {}) for sources in
              ([], "{{inputs.u}}", ["{{inputs.u}}", "{{inputs.l}}"], "{{inputs.l}}", [["http://WEB/body/rdf"]], None, 5, ["http://CLOSED/x"], "x", [""],
               ["http://WEB/redirect?to=/body/rdf"], {"http://WEB/body/rdf": 1}, ["http://WEB/body/rdf", "http://WEB/cut"])]
    cases += [({"sources": "http://WEB/body/rdf", "timeout": timeout}, {}, {}) for timeout in (5, "5", 0, -1, None, "x", 0.5)]
    return cases + [({}, {}, {})]


def email():
    base = {"smtp_host": "127.0.0.1", "smtp_port": "PORT:SMTP", "use_tls": False, "from_address": "me@example.com", "to_addresses": ["you@example.com"]}
    cases = [(base | {"subject": text.replace("\n", " ").replace("\x07", "").replace("\x7f", ""), "body": text}, {}, {}) for text in TEXTS]
    cases += [(base | {"body": "{{inputs.v}}", "subject": "s {{inputs.v}}"}, {"v": value}, {}) for value in (1, 2.5, True, "x", None)]
    people = [[], ["a@x.org"], ["a@x.org", "b@x.org"], ["Ann <a@x.org>"], ["refused@x.org", "b@x.org"], ["gone@x.org", "refused@x.org", "c@x.org"]]
    for to, cc, bcc in itertools.product(people, [None, [], ["c@x.org"], ["refused-c@x.org"]], [None, ["d@x.org"]]):
        cases.append((base | {"to_addresses": to, "cc_addresses": cc, "bcc_addresses": bcc}, {}, {}))
    cases += [(base | {"body": body}, {}, {}) for body in ("", "\n", ".", ".\n.\n..x\n", "a\r\nb\rc\n", "x" * 200, "é" * 100, "a\n\nb\n\n", "last ")]
    cases += [(base | {"subtype": "html", "body": "<b>é</b>"}, {}, {}), (base | {"from_address": "Me <me@x.org>"}, {}, {}), (base | {"from_address": "Mé <me@x.org>"}, {}, {}),
              (base | {"subject": "a\nB: c"}, {}, {}), (base | {"from_address": "nobody@x.org"}, {}, {}), (base | {"to_addresses": ["refused@x.org"]}, {}, {})]
    cases += [(base | {"subject": "long " * 40}, {}, {}), (base | {"subject": "long é " * 40}, {}, {}), (base | {"subject": "=?utf-8?b?eA==?="}, {}, {})]
    login = {"smtp_port": "PORT:LOGIN_SMTP", "username": "u", "password": "p"}
    cases += [(base | login, {}, {}), (base | login | {"password": None}, {}, {}), (base | {"username": "u", "password": "p"}, {}, {})]
    cases += [(base | {"use_tls": True}, {}, {}), (base | {"smtp_port": "PORT:CLOSED"}, {}, {})]
    cases += [(base | {"smtp_host": "localhost", "smtp_port": "PORT:SECURE_SMTP", "use_tls": True}, {}, {})]
    cases += [(base | {field: value}, {}, {}) for field in ("smtp_port", "use_tls", "to_addresses", "cc_addresses", "subject", "body", "from_address", "timeout", "username")
              for value in (None, "x", [1])]
    cases += [({}, {}, {}), (base | {"timeout": None}, {}, {}), (base | {"timeout": "5"}, {}, {})]
    return cases


FAMILIES = {
    "HttpRequestNode": http_request,
    "DiscordWebhookNode": discord,
    "RSSNode": rss,
    "EmailNode": email,
}


def is_known_difference(kind, config, ours, theirs):
    """What docs/compatibility.md lists."""
    if kind == "HttpRequestNode":
        url, params = str(config.get("url")), config.get("params")
        return (
            "codec can't decode" in theirs.get("error", "")  # a body that is no UTF-8
            or config.get("method") == "HEAD" and len(config) > 2  # HEAD has no body
            or url.endswith("?") or params == {"k": []}  # an empty query
        )
    return kind == "EmailNode" and str(config.get("subject")).startswith("=?")  # a subject is text
