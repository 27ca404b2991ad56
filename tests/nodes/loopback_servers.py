# SPDX-License-Identifier: Apache-2.0
"""Servers of HTTP and mail on the loopback that remember what came in. What they answer depends on
the request alone, so that both sides see the same."""

import gzip
import http.server
import json
import re
import socketserver
import ssl
import threading
import time
import urllib.parse

FEED = """<?xml version="1.0" encoding="{encoding}"?>
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
<title>Feed</title><link>http://example.com</link>{items}</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>A</title>{items}</feed>"""
DATES = [
    "Mon, 01 Jan 2024 10:00:00 GMT", "Mon, 01 Jan 2024 10:00:00 +0530", "1 Jan 2024 10:00 EST", "01-Jan-2024 10:00:00 -0000",
    "Jan 1 2024 10:00:00", "2024-01-01T10:00:00Z", "2024-01-01T10:00:00.123456+02:00", "2024-01-01", "20240101T101112", "2024-W05-3",
    "2024-01-01 10:00", "2024-01-01T10", "Mon, 32 Jan 2024 10:00:00 GMT", "Monday, 1 January 2024 10:00:00 PDT", "Mon 1 Jan 24 10:00:00 Z",
    "1 Jan 70 00:00:00 +0000", "nonsense", "Mon, 01 Jan 2024 25:00:00 GMT", "Mon, 01 Jan 2024 10.30.00 GMT", "Mon, 1 Jan 2024, 10:00:00, GMT",
    "Tue, 10:00:00 Jan 2024 1", "2024-01-01T10:00:00+0200", "2024-01-01T10:00:00+02", "2024-01-01T10:00:00,5Z", "2024-01-01x10:00:00",
    "Mon, 01 Jan 2024 10:00:00+0100", "Mon,01 Jan 2024 10:00:00 +2500", "Mon, 01 Foo 2024 10:00:00 GMT", "2024-12-30T23:59:60Z", "  ",
    "2024-001", "2024-W53-1", "2020-W53-7", "1 2 3", "1 Jan", "Mon,", ",", "01 Jan 2024 10:00:00 XYZ", "01 Jan 2024 10:00:00 -0330",
]


def feed_items():
    items = [f"<item><title>t{i}</title><link>http://x/{i}</link><pubDate>{date}</pubDate></item>" for i, date in enumerate(DATES)]
    items += [
        "<item/>", "<item><title> </title><title>second</title></item>", "<item><title>a <b>bold</b> c</title></item>",
        "<item><title><![CDATA[<i>raw</i> & more]]></title><description>&lt;p&gt; &#8364; &amp;</description></item>",
        '<item><atom:link href="http://a"/><atom:link rel="alternate" href="http://b"/><link>http://c</link></item>',
        '<item><link>http://c</link><atom:link rel="alternate" href="http://b"/></item>', '<item><atom:link rel="self" href=" http://s "/></item>',
        "<item><dc:title>dc</dc:title><TITLE>upper</TITLE><Description>d</Description><summary>s</summary></item>",
        "<item><updated>2024-02-02</updated><pubDate>2024-01-01</pubDate></item>", "<item><item><title>inner</title></item><title>outer</title></item>",
        "<item><title>näïve 😀 日本</title><link></link><link>second</link></item>", "<entry><title>mixed</title></entry>",
        "<item><!-- c --><title>a<!-- b -->c<?pi x?></title></item>",
    ]
    return "\n".join(items)


BODIES = {
    "json": (b'{"a": [1, 2.5, null, "\xc3\xa9"], "big": 123456789012345678901234567890}', "application/json"),
    "bom": (b'\xef\xbb\xbf{"a": 1}', "application/json"),
    "text": ("naïve 😀\r\nline".encode(), "text/plain; charset=utf-8"),
    "latin1": ("naïve".encode("latin-1"), "text/plain; charset=ISO-8859-1"),
    "quoted": ("naïve".encode("latin-1"), 'text/plain; a=b; charset="latin-1"'),
    "ascii": (b"na\xefve", "text/plain; charset=us-ascii"),
    "cp1252": ("“x” €".encode("cp1252"), "text/html; charset=windows-1252"),
    "utf16": ("näh 😀".encode("utf-16"), "text/plain; charset=utf-16"),
    "sjis": ("日本".encode("shift_jis"), "text/plain; charset=shift_jis"),
    "unknown": ("é".encode(), "text/plain; charset=nonsense"),
    "broken": (b'"\xff\xc3(\xe2\x82 \xf0\x9f\x98 \xed\xa0\x80"x', "text/plain"),
    "empty": (b"", "text/plain"),
    "number": (b" 12 ", "text/plain"),
    "notjson": (b"{a: 1}", "application/json"),
    "rss": (FEED.format(encoding="utf-8", items=feed_items()).encode(), "application/rss+xml"),
    "rss-latin1": (FEED.format(encoding="utf-8", items="<item><title>é</title></item>").encode("latin-1"), "text/xml; charset=latin-1"),
    "rss-declared": (FEED.format(encoding="iso-8859-1", items="<item><title>é</title></item>").encode(), "text/xml"),
    "atom": (ATOM.format(items='<entry><title type="html">&lt;b&gt;</title><link href="http://h"/><summary>s</summary><updated>2024-01-01T00:00:00Z</updated></entry>').encode(), "application/atom+xml"),
    "rdf": (b'<rdf:RDF xmlns:rdf="http://r" xmlns="http://purl.org/rss/1.0/"><item><title>x</title></item></rdf:RDF>', "text/xml"),
    "bad-xml": (b"<rss><item></rss>", "text/xml"),
    "two-roots": (b"<a/><b/>", "text/xml"),
    "prefix": (b"<a><x:item/></a>", "text/xml"),
    "entity": (b"<a><item><title>&nbsp;</title></item></a>", "text/xml"),
    "doctype": (b'<!DOCTYPE rss PUBLIC "x" "http://127.0.0.1:1/x.dtd"><rss><item><title>d</title></item></rss>', "text/xml"),
    "leading": (b"\n <?xml version='1.0'?><a/>", "text/xml"),
    "html": (b"<html><body><p>no feed<br></body></html>", "text/html"),
    "control": (b"<a><item><title>\x01</title></item></a>", "text/xml"),
    "no-items": (b"<rss/>", "text/xml"),
}
# Where the peer's client adds what ours does not, and the other way round.
OWN_HEADERS = {"user-agent", "connection", "accept-encoding", "host"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "test", ""
    wbufsize, disable_nagle_algorithm = 65536, True

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return "Mon, 01 Jan 2024 00:00:00 GMT"

    def answer(self, status, body=b"", headers=(), reason=None):
        self.send_response(status, reason)
        if not any(name.lower() == "content-length" for name, _ in headers) and status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = sorted((name.lower(), value) for name, value in self.headers.items() if name.lower() not in OWN_HEADERS)
        seen = {"method": self.command, "path": self.path, "headers": headers, "body": body.decode("utf-8", "replace")}
        self.server.record(seen)
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query))
        kind, _, rest = parts.path.lstrip("/").partition("/")
        here = f"http://127.0.0.1:{self.server.server_address[1]}"
        if kind == "body" and rest in BODIES:
            data, media = BODIES[rest]
            self.answer(200, data, [("Content-Type", media)])
        elif kind == "status":
            self.answer(int(rest or 200), b"" if rest in ("204", "304") else b"status body", [("Location", query["to"])] if "to" in query else [],
                        query.get("reason"))
        elif kind == "redirect":
            self.answer(int(query.get("status", 302)), b"moved", [("Location", query["to"].replace("HERE", here))] + [("Set-Cookie", "c=1; Path=/")])
        elif kind == "loop":
            self.answer(302, b"", [("Location", "/loop")])
        elif kind == "gzip":
            self.answer(200, gzip.compress(b'{"zipped": true}'), [("Content-Type", "application/json"), ("Content-Encoding", "gzip")])
        elif kind == "many":
            self.answer(200, b"x", [("X-Many", "a"), ("x-many", "b"), ("X-Empty", ""), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])
        elif kind == "slow":
            time.sleep(float(rest))
            self.answer(200, b"late")
        elif kind == "cut":
            self.answer(200, b"abc", [("Content-Length", "100")])
            self.close_connection = True
        else:
            self.answer(200, json.dumps(seen).encode(), [("Content-Type", "application/json")])

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = serve


class Recorder:
    """What came in since the last look."""

    def __init__(self):
        self.lock, self.seen = threading.Lock(), []

    def add(self, what):
        with self.lock:
            self.seen.append(what)

    def take(self):
        with self.lock:
            seen, self.seen = self.seen, []
            return seen


class WebServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.recorder = Recorder()
        self.record = self.recorder.add
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass


class MailHandler(socketserver.StreamRequestHandler):
    """Takes mail; what stands in an address decides: "refused" is refused, "gone" with another code."""

    disable_nagle_algorithm = True

    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def greet(self):
        lines = ["test", "SIZE 1000000"]
        if self.server.context and not self.secure:
            lines.append("STARTTLS")
        if self.server.login:
            lines.append("AUTH PLAIN LOGIN")
        for line in lines[:-1]:
            self.say(f"250-{line}")
        self.say(f"250 {lines[-1]}")

    def handle(self):
        self.secure, self.login, sender, recipients = False, None, None, []
        self.say("220 test ESMTP")
        while line := self.rfile.readline(4096).decode("utf-8", "replace").rstrip("\r\n"):
            verb = line[:4].upper()
            if verb in ("EHLO", "HELO"):
                self.greet()
            elif line.upper() == "STARTTLS":
                self.say("220 go on")
                self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
                self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
                self.secure = True
            elif verb == "AUTH":
                self.authenticate(line)
            elif verb == "MAIL":
                sender = re.search(r"<(.*?)>", line)[1]
                self.say("550 no such sender" if "nobody" in sender else "250 ok")
            elif verb == "RCPT":
                self.recipient(re.search(r"<(.*?)>", line)[1], recipients)
            elif verb == "DATA":
                self.data(sender, recipients)
            elif verb == "RSET":
                self.say("250 ok")
            elif verb == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("502 what?")

    def authenticate(self, line):
        words = line.split()
        if words[1].upper() == "LOGIN":
            self.login = [words[2]] if len(words) > 2 else []
            while len(self.login) < 2:
                self.say("334 " + ("VXNlcm5hbWU6" if not self.login else "UGFzc3dvcmQ6"))
                self.login.append(self.rfile.readline(4096).decode().strip())
        else:
            if len(words) < 3:
                self.say("334 ")
                words.append(self.rfile.readline(4096).decode().strip())
            self.login = [words[2]]
        self.say("235 welcome")

    def recipient(self, address, recipients):
        if "refused" in address:
            self.say("550 5.1.1 not here")
        elif "gone" in address:
            self.say("551 moved away")
        else:
            recipients.append(address)
            self.say("250 ok")

    def data(self, sender, recipients):
        if not recipients:
            self.say("554 no valid recipients")
            return
        self.say("354 go ahead")
        lines = []
        while (line := self.rfile.readline(65536)) != b".\r\n":
            if not line:
                return  # gone without an end: no mail
            lines.append(line[1:] if line.startswith(b".") else line)
        self.server.recorder.add({"from": sender, "to": recipients, "secure": self.secure, "login": bool(self.login),
                                  "mail": b"".join(lines).decode("latin-1")})
        self.say("250 taken")


class MailServer(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True

    def __init__(self, context=None, login=False):
        self.context, self.login, self.recorder = context, login, Recorder()
        super().__init__(("127.0.0.1", 0), MailHandler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass


def tls_context(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
