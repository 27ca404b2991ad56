// SPDX-License-Identifier: Apache-2.0
// The egress matrix: requests, and what becomes of each with no rules of ours, under "*", and under
// kMatrixRules. One Python program asks them, wherever a Python runs: in a network of a gateway, in
// machines of every driver. In a world of World::Servers::kNames with NamedServers
// (egress/test_names.h); a guest's questions for names may go to any resolver.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "egress/denial_log.h"

namespace caisson::egress {

inline const std::vector<std::string> kMatrixRules = {"good.test", "*.good.test", "rebind.test",
                                                      "203.0.113.64/26:8080"};

// What the functions of kProber say: "200" (a server's answer), "no name", "refused" (at once),
// "closed" (taken, and then ended), "prohibited" (at once, by whoever is in between, or there is no
// such protocol), "hangs"; of questions for names addresses, "none", "NXDOMAIN", "SERVFAIL".
//
//   fetch(name, port, address, says): a request to the address, or else to what the name resolves
//     to, that wants `says`, or else the name; TLS at port 443; '' says nothing at all
//   ask(name, server, type), ask_by_tcp(name, server): a question
//   udp(address, port): "open" when what is sent comes back
inline constexpr const char* kProber = R"(
import socket, ssl, struct, time
def failure(error):
    if isinstance(error, socket.gaierror): return 'no name'
    if isinstance(error, ConnectionRefusedError): return 'refused'
    if isinstance(error, (ConnectionResetError, BrokenPipeError, ssl.SSLError)): return 'closed'
    if isinstance(error, TimeoutError): return 'hangs'
    return 'prohibited'
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
def fetch(name, port, address=None, says=None):
    says = name if says is None else says
    taken = False
    try:
        with socket.create_connection((address or name, port), 8) as s:
            taken = True
            if port == 443: s = context.wrap_socket(s, server_hostname=says or None)
            host = 'Host: ' + says + '\r\n' if says else ''
            s.sendall(('GET / HTTP/1.' + ('1' if says else '0') + '\r\n' + host + '\r\n').encode())
            got = s.recv(100)
            s.close()
            return got.split(b' ')[1].decode() if got else 'closed'
    except OSError as error:
        said = failure(error)
        return 'closed' if taken and said == 'refused' else said
def question(name, type):
    labels = b''.join(bytes([len(label)]) + label.encode() for label in name.split('.'))
    return struct.pack('>6H', 4660, 256, 1, 0, 0, 0) + labels + struct.pack('>BHH', 0, type, 1)
def told(answer, asked):
    if len(answer) < 12: return 'closed'
    code, count = answer[3] & 15, answer[7]
    if code: return {2: 'SERVFAIL', 3: 'NXDOMAIN'}.get(code, 'code %d' % code)
    at, addresses = len(asked), []
    for _ in range(count):
        while answer[at] and answer[at] < 192: at += 1 + answer[at]
        at += 2 if answer[at] else 1
        kind, _, _, size = struct.unpack_from('>HHIH', answer, at)
        at += 10 + size
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
        if family: addresses.append(socket.inet_ntop(family, answer[at - size:at]))
    return ' '.join(addresses) or 'none'
def ask(name, server, type=1, patience=8):
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(patience)
            s.connect((server, 53))
            s.send(question(name, type))
            return told(s.recv(2048), question(name, type))
    except OSError as error: return failure(error)
def ask_by_tcp(name, server):
    try:
        with socket.create_connection((server, 53), 8) as s:
            asked = question(name, 1)
            s.sendall(struct.pack('>H', len(asked)) + asked)
            return told(s.recv(2050)[2:], asked)
    except OSError as error: return failure(error)
def udp(address, port):
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(2)
            s.connect((address, port))
            s.send(b'hello')
            return 'open' if s.recv(100) == b'hello' else 'other'
    except OSError as error: return failure(error)
)";

struct MatrixRow {
  const char* what;
  const char* request;  // of kProber
  // Nullptr: it means nothing there.
  const char* bare;  // without rules
  const char* star;  // under "*"
  const char* rules;
};

// In this order: what has been resolved opens what stands behind it.
inline constexpr std::array kMatrix = {
    MatrixRow{"an address before its name was asked for", "fetch('', 443, '203.0.113.10')", "200",
              "200", "refused"},
    MatrixRow{"the same, with an allowed name", "fetch('good.test', 443, '203.0.113.10')", "200",
              "200", "refused"},
    MatrixRow{"an allowed network", "fetch('x', 8080, '203.0.113.77')", "200", "200", "200"},
    MatrixRow{"an allowed network, at another port", "fetch('x', 80, '203.0.113.77')", "200", "200",
              "refused"},
    MatrixRow{"an allowed name by TLS", "fetch('good.test', 443)", "200", "200", "200"},
    MatrixRow{"an allowed name by HTTP", "fetch('good.test', 80)", "200", "200", "200"},
    MatrixRow{"another name by TLS", "fetch('evil.test', 443)", "200", "200", "no name"},
    MatrixRow{"another name by HTTP", "fetch('evil.test', 80)", "200", "200", "no name"},
    MatrixRow{"a name that would carry a secret out", "ask('secret.evil.test', '198.51.100.53')",
              "NXDOMAIN", "NXDOMAIN", "NXDOMAIN"},
    MatrixRow{"another name at an allowed address, by SNI",
              "fetch('evil.test', 443, '203.0.113.10')", "200", "200", "closed"},
    MatrixRow{"another name at an allowed address, by Host",
              "fetch('evil.test', 80, '203.0.113.10')", "200", "200", "closed"},
    MatrixRow{"another name of that very address", "fetch('shared.test', 443, '203.0.113.10')",
              "200", "200", "closed"},
    MatrixRow{"an allowed name at another address", "fetch('good.test', 443, '203.0.113.20')",
              "200", "200", "refused"},
    MatrixRow{"an allowed name at the address of another allowed one",
              "fetch('sub.good.test', 443, '203.0.113.10')", "200", "200", "closed"},
    MatrixRow{"metadata", "fetch('x', 80, '169.254.169.254')", "200", "refused", "refused"},
    MatrixRow{"a private network", "fetch('x', 80, '10.9.9.9')", "200", "refused", "refused"},
    MatrixRow{"an allowed name that resolves to metadata", "fetch('rebind.test', 80)", "200",
              "refused", "no name"},
    MatrixRow{"the same, by its address", "fetch('rebind.test', 80, '169.254.169.254')", "200",
              "refused", "refused"},
    MatrixRow{"another port of a resolved address", "fetch('good.test', 8080)", "200", "200",
              "refused"},
    MatrixRow{"another resolver", "ask('evil.test', '198.51.100.53')", "203.0.113.20",
              "203.0.113.20", "NXDOMAIN"},
    MatrixRow{"another resolver, for an allowed name", "ask('good.test', '198.51.100.53')",
              "203.0.113.10", "203.0.113.10", "203.0.113.10"},
    MatrixRow{"another resolver that is none", "ask('good.test', '8.8.8.8')", nullptr, nullptr,
              "203.0.113.10"},
    MatrixRow{"a resolver by TCP", "ask_by_tcp('evil.test', '198.51.100.53')", "203.0.113.20",
              "203.0.113.20", "NXDOMAIN"},
    MatrixRow{"a resolver by TLS", "fetch('x', 853, '8.8.8.8')", nullptr, nullptr, "refused"},
    MatrixRow{"a resolver by HTTPS", "fetch('evil.test', 443, '203.0.113.20')", "200", "200",
              "refused"},
    MatrixRow{"TLS without a name", "fetch('good.test', 443, '203.0.113.10', '')", "200", "200",
              "closed"},
    MatrixRow{"HTTP without a name", "fetch('good.test', 80, '203.0.113.10', '')", "200", "200",
              "closed"},
    MatrixRow{"TLS for an address", "fetch('203.0.113.10', 443)", "200", "200", "closed"},
    MatrixRow{"the gate's own port", "fetch('x', 10080, '10.231.0.1')", nullptr, "refused",
              "refused"},
    MatrixRow{"the gateway", "fetch('x', 443, '10.231.0.1')", nullptr, "refused", "refused"},
    MatrixRow{"the host", "fetch('x', 8080, '198.51.100.1')", "/", "refused", "refused"},
    MatrixRow{"a name below a wildcard", "fetch('sub.good.test', 443)", "200", "200", "200"},
    MatrixRow{"QUIC", "udp('203.0.113.10', 443)", "open", "open", "prohibited"},
    MatrixRow{"UDP", "udp('203.0.113.10', 9000)", "open", "open", "prohibited"},
    MatrixRow{"IPv6", "fetch('x', 443, '2001:db8::10')", "200", "prohibited", "prohibited"},
    MatrixRow{"a name that has nothing but IPv6", "fetch('six.good.test', 443)", "200",
              "prohibited", "no name"},
    MatrixRow{"an address of IPv6", "ask('six.good.test', '198.51.100.53', 28)", "2001:db8::10",
              nullptr, "none"},
};

enum class Under : std::uint8_t { kNothing, kStar, kRules };

inline const char* Expected(const MatrixRow& row, Under under) {
  return under == Under::kNothing ? row.bare : under == Under::kStar ? row.star : row.rules;
}

// The whole program for these requests: prints what each says and how long it took, one a line.
inline std::string ProbeProgram(const std::vector<std::string>& requests,
                                const std::string& before = "") {
  std::string program = before + kProber;
  for (const std::string& request : requests) {
    program += "begin = time.monotonic(); said = " + request +
               "; print(int(1000 * (time.monotonic() - begin)), said, flush=True)\n";
  }
  return program;
}

struct Answer {
  int milliseconds = 0;
  std::string said;
};

// What such a program printed; what is no answer is one that says all of it.
inline std::vector<Answer> AnswersOf(const std::string& printed, std::size_t count) {
  std::vector<Answer> answers;
  std::istringstream lines(printed);
  for (std::string line; answers.size() < count && std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || line.find_first_not_of("0123456789") != space) break;
    answers.push_back({std::atoi(line.c_str()), line.substr(space + 1)});
  }
  answers.resize(count, {0, "printed: " + printed});
  return answers;
}

// A denial is told at once, so that no guest waits for nothing: beyond what a request that succeeds
// takes there, which is seconds where a processor is emulated.
inline constexpr int kDeniedWithinMilliseconds = 2'000;

// Runs a Python program there, and gives what it printed.
using RunPython = std::function<std::string(const std::string& program)>;

// `deaf`: the guest's own kernel does not tell a socket of UDP that its packets are refused, as
// gVisor does not.
inline void ExpectMatrix(const RunPython& run, Under under, bool deaf = false) {
  std::vector<const MatrixRow*> rows;
  std::vector<std::string> requests;
  for (const MatrixRow& row : kMatrix) {
    if (Expected(row, under) == nullptr) continue;
    rows.push_back(&row);
    requests.emplace_back(row.request);
  }
  const std::vector<Answer> answers = AnswersOf(run(ProbeProgram(requests)), rows.size());
  int slowest = 0;
  for (const Answer& answer : answers) {
    if (answer.said == "200") slowest = std::max(slowest, answer.milliseconds);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string expected = Expected(*rows[i], under);
    if (deaf && expected == "prohibited" && std::string_view(rows[i]->request).starts_with("udp("))
      expected = "hangs";
    EXPECT_EQ(answers[i].said, expected) << rows[i]->what << ": " << rows[i]->request;
    if (expected != "200" && expected != "open" && expected != "hangs") {
      EXPECT_LT(answers[i].milliseconds, kDeniedWithinMilliseconds + slowest) << rows[i]->what;
    }
  }
}

// What is told of the denials of kMatrix: kind, and name or address.
struct MatrixDenial {
  const char* kind;
  const char* about;
};
inline constexpr std::array kMatrixDenials = {
    MatrixDenial{"name", "evil.test"},
    MatrixDenial{"foreign_name", "shared.test"},
    MatrixDenial{"foreign_address", "sub.good.test"},
    MatrixDenial{"rebinding", "rebind.test"},
    MatrixDenial{"packet", "203.0.113.20"},
};

inline bool Is(const Denial& denial, const MatrixDenial& wanted) {
  return denial.kind == wanted.kind &&
         (denial.name == wanted.about || denial.address == wanted.about);
}

}  // namespace caisson::egress
