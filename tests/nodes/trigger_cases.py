# SPDX-License-Identifier: Apache-2.0
"""Cases for the nodes that declare triggers."""

import itertools
import random

from cases_of_values import OTHERS, TEXTS, plain

EXPRESSIONS = [
    "* * * * *", "*/5 * * * *", "0 0 31 2 *", "@hourly", "@Daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually",
    "@reboot", "@every 5m", "@", "", " ", "* * * *", "* * * * * *", "* * * * * * *", "* * * * * * * *", "60 * * * *", "5-70 * * * *",
    "5/10 * * * *", "50/15 * * * *", "10-5 * * * *", "1,2,3 * * * *", "1,,2 * * * *", "a * * * *", "0 0 * jan mon",
    "0 0 * JAN-MAR MON-FRI", "0 0 ? * ?", "? * * * *", "0 0 l * *", "0 0 L * *", "0 0 * * l5", "0 0 * * 5l", "0 0 * * 5#2",
    "0 0 * * mon#1", "0 0 * * 5#6", "0 0 * * 5#0", "0 0 * * L", "0 0 15w * *", "0 0 w15 * *", "0 0 1,15w * *", "0 0 32w * *", "0 0 0w * *",
    "0 0 * * 7", "0 0 * * 8", "0 0 0 * *", "0 0 32 * *", "0 0 1 13 *", "0 0 1 0 *", "*/0 * * * *", "*/ * * * *", "1-2-3 * * * *",
    "-1 * * * *", "1- * * * *", "* * * * */2", "*/100 * * * *", "0-59/60 * * * *", "0 0 1 1 1", "h h * * *", "r r * * *",
    "r(1-5) * * * *", "r(5-1) * * * *", "H(0-5) * * * *", "0 0 30 2 *", "0 0 29 2 *", "  0   0 *\t* * ", "0 0 * * 1-7",
    "0 0 * * 6-0", "0 0 * * sun-sat", "0 0 * * sat-sun", "* * * * * 0", "* * * * * */10", "0 0 1 1 * 0 2099", "0 0 1 1 * 0 1960",
    "0 0 1 1 * 0 2100", "0 0 1 1 * 0 2020-2090", "0 22-2 * * *", "0 0 * nov-feb *", "0 0 28-3 * *", "*-5 * * * *", "1.5 * * * *",
    "00 00 * * *", "000 * * * *", "1/1/1 * * * *", "0 0 l-1 * *", "0 0 1-l * *", "0 0 * * 1,3#2", "0 0 * * mon,tue#1", "0 0 * * 0#1,7",
    "* * * * mon-fri/2", "0 0 * * 1#1#2", "0 0 jan * *", "0 0 * mon *", "0 0 * * january", "0 0 * * tues", "٣ * * * *", "0 0 ,1 * *",
    "0 0 1, * *", "0 0 */l * *", "+5 * * * *", "1_0 * * * *", "0 0 l,15 * *", "0 0 * * *,1", "0,30,0-59/1 * * * *", "59-0 * * * *",
    "0 0 l/2 * *", "5-5 * * * *", "5-5/3 * * * *", "0 0 * * fri-mon", "0 0 * * 5-1", "0 0 * * 1-0", "0 0 * * 5-7", "0 0 31 4,6 *",
    "0 0 * * 1#5", "0\u00a00 * * *", "0 0 * * mon-fri#2", "0 0 * * 1-5#2", "0 0 * * jan#1", "0 0 * * l9", "0 0 * * l7", "0 0 * * lmon",
    "1-5/ * * * *", "1-5/a * * * *", "1/5-9 * * * *", "0 0 5W * *", "0 0 ww * *", "0 0 w * *", "*,* * * * *", "99999999999999999999 * * * *",
]
TIMES = [
    "2024-01-01T00:00:00Z", "2024-01-01T00:00Z", "2024-01-01 00:00:00+05:30", "2024-01-01T00:00:00+0530", "2024-01-01T00:00:00+05",
    "2024-01-01t00:00:00z", "2024-01-01_00:00:00-00:00", "2024-01-01", "2024-01-01T00:00:00", "1700000000", "1700000000000",
    "1700000040.0", "1700000000.5", 1700000000, 1700000040, 1700000040000, 170000000012345, 1.5e9, True, "2024-01-01T00:00:00 Z",
    "2024-01-01T00:00:00.123456789Z", "2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00.0Z", "2024-13-01T00:00Z", "2024-02-30T00:00Z",
    "2024-02-29T00:00Z", "2023-02-29T00:00Z", "2024-01-01T24:00Z", "2024-01-01T00:00+24:00", "2024-01-01T00:00+23:59",
    " 2024-01-01T00:00Z ", "20240101T000000Z", "2024-W01-1T00:00Z", "0000-01-01T00:00Z", "0001-01-01T00:00Z", "9999-12-31T23:59Z", -60,
    "-60", "2024-01-01T00:00-05:00", "+1700000040", "2024-01-01T0:00Z", "2024-01-01T00:00:60Z", "2024-01-01T00:00:30Z", 20000000040,
    "nan", [], {}, "1e9", "2024-01-01T00Z", "2024-01-01T00:00:00.Z", "2024-01-01T00:00\u221205:00", 10**20, "x", "", None,
]
ZONES = ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "europe/berlin", "Nowhere/Land", "", "/etc/localtime", "../etc", "GMT+5",
         "Etc/GMT+5", "America", "zone.tab", "Europe/../Europe/Berlin", "Europe//Berlin", "EST5EDT", "UTC ", "Zulu", 5, None]


def cron():
    cases = [({"expression": text}, {}, {}) for text in EXPRESSIONS]
    cases += [({"expression": "{{inputs.e}}"}, {"e": value}, {}) for value in ["0 1 * * *", "bad", 5, None, ["x"]]]
    cases += [({"timezone": zone}, {}, {}) for zone in ZONES]
    cases += [({field: time}, {}, {}) for time in TIMES for field in ("start_at", "end_at")]
    cases += [({"start_at": a, "end_at": b}, {}, {}) for a, b in itertools.pairwise(TIMES[:20])]
    cases += [({"start_at": "2024-01-01T00:00+05:00", "end_at": end}, {}, {}) for end in ("2024-01-01T00:00Z", "2023-12-31T18:59Z")]
    cases += [({"allow_overlapping": value}, {}, {}) for value in (True, False, "yes", 0, "maybe", None)]
    return cases + plain({}, {"trigger_type": "x"}, {"expression": 5}, {"expression": None}, {"start_at": "{{inputs.t}}"})


def random_expressions():
    """Whether they come too often depends on the time of day, so that these are for comparing only."""
    rng = random.Random(5)
    bounds = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]

    def part(low, high):
        a, b, step = rng.randint(low, high), rng.randint(low, high), rng.randint(1, 20)
        return rng.choice(["*", "*", "*", f"{a}", f"{a}-{b}", f"*/{step}", f"{a}-{b}/{step}", f"{a}/{step}", f"{a},{b}"])

    expressions = [" ".join(part(*bound) for bound in bounds) for _ in range(300)]
    # Rare days cost the peer seconds each.
    return [({"expression": text, "allow_overlapping": False}, {}, {}) for text in expressions + EXPRESSIONS]


def webhook():
    cases = [({"allowed_methods": methods}, {}, {}) for methods in
             ([], ["get"], ["POST", "get", "GET", "put"], ["ß", "é", ""], [1], "GET", None, ["ǆ"], ["{{inputs.m}}"])]
    for header, secret in itertools.product([None, "", "X-Secret", "É", 5], [None, "", "s", 5, "{{inputs.s}}"]):
        cases.append(({"shared_secret_header": header, "shared_secret": secret}, {"s": "resolved"}, {}))
    for maps in ({}, {"X-A": "1", "x-a": "2"}, {"É": "v"}, {"a": 1}, {"a": None}, [], None, {"a": "{{inputs.m}}"}):
        cases += [({field: maps}, {"m": "val"}, {}) for field in ("required_headers", "required_query_params")]
    for rate in (None, {}, {"limit": 5}, {"limit": 0}, {"limit": "7"}, {"limit": 1.5}, {"interval_seconds": -1}, {"x": 1}, [], "x", 5,
                 {"limit": 2, "interval_seconds": 3}, {"limit": True}, {"limit": None}):
        cases.append(({"rate_limit": rate}, {}, {}))
    cases += [({"shared_secret": "{{inputs.s}}", "shared_secret_header": "H"}, {"s": value}, {}) for value in OTHERS]
    cases += [({"required_headers": {"a": "{{inputs.s}}"}}, {"s": value}, {}) for value in OTHERS]
    cases += [({"trigger_type": text, "required_headers": {text: text}}, {}, {}) for text in TEXTS]
    return cases + plain({}, {"hmac_header": "x"}, {"trigger_type": None})


URLS = [
    "http://example.com", "HTTP://Example.COM:80/A b?x=y z#f g", "https://example.com:443", "https://example.com:8443/a/../b/./c",
    "http://user:pa ss@example.com/", "http://münchen.de/ä?ö=ü", "http://127.1/", "http://0x7f.0.0.1", "http://[::1]:8080/", "ftp://x/",
    "http://", "//x", "example.com", "http://a b/", "http://a..b/", "http://example.com?x", "http://example.com#y", "http:/example.com",
    "http:example.com", "http://example.com:99999/", "http://example.com:/x", "http://example.com/%7Euser/%zz",
    "http://example.com/a|b^c`{}\"<>", "http://example.com/?a|b^c`{}\"<>'", "http://example.com\\x\\y", " http://example.com ",
    "http://ex\tample.com/", "http://example.com/\n", "http://EXAMPLE.com./", "http://%65xample.com", "http://a_b.com", "http://-a.com",
    "http://xn--mnchen-3ya.de/", "http://1.2.3", "http://1.2.3.256", "", 5, None, "http://localhost", "http://x/?", "http://x/#",
    "http://x/a?b=c&d=e%20f+g", "http://user@host", "http://:pw@host", "http://@host/", "http://example.com/😀", "https://例え.jp/パス",
    "http://[::ffff:1.2.3.4]/", "http://[1::2::3]", "http://ab%20c/", "http://a@b@c/", "http://host:0/", "http://host:0080/",
    "http://host/a;b,c=d$e!f*g(h)i'j", "http://h/..", "http://h/a/..", "http://h/%2e%2e/a", "wss://x", "{{inputs.url}}", "http://1.2.3.4.5/",
    "http://0300.1/", "http://4294967295/", "http://4294967296/", "http://a.0x/", "http://h/a//b", "http://h/a/%2E/b", "http://h//", "http://[::1",
    "http://h:80:80/", "http://h/?q#f?g#h", "http://user:@host/", "http://[fe80::1%25eth0]/", "http://a<b/", "http://example.com:8a/",
]


def polling():
    good = {"url": "http://example.com/feed"}
    cases = [({"url": url}, {"url": "http://x"}, {}) for url in URLS]
    cases += [(good | {"method": method}, {}, {}) for method in ("get", " Post ", "HEAD", "", "delete", 5, None, "{{inputs.m}}", "patch", "PUT")]
    for maps in ({}, {" X-A ": "1", "X-A": "2"}, {"a": 1}, [], None, {"a": "{{inputs.m}}"}):
        cases += [(good | {field: maps}, {"m": "val"}, {}) for field in ("headers", "query_params")]
    for seconds in (9, 10, 300, 301, 86400, 86401, "60", 1.0, 1.5, 0, 1, True, None, "x", 10**30):
        cases += [(good | {field: seconds}, {}, {}) for field in ("interval_seconds", "timeout_seconds")]
    cases += [(good | {"deduplicate_on": text}, {}, {}) for text in (None, "/a", " /a/b ", "a", "", "/", 5, "{{inputs.m}}")]
    cases += [(good | {"body": body}, {"m": 1}, {}) for body in (None, {}, {"a": [1, None]}, [], "x", {"a": "{{inputs.m}}"})]
    cases += [(good | {field: value}, {}, {}) for field in ("verify_tls", "follow_redirects") for value in (True, "no", 1, "maybe", None)]
    return cases + plain({}, good | {"trigger_type": "x"}, good | {"other": 1})


FAMILIES = {
    "CronTriggerNode": [cron],
    "WebhookTriggerNode": [webhook],
    "HttpPollingTriggerNode": [polling],
}
# For comparing only: what is right today is not tomorrow.
PASSING = {"CronTriggerNode": [random_expressions]}
