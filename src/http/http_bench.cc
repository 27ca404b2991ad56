// SPDX-License-Identifier: Apache-2.0
// The server against bare Beast (small answers, under wrk) and bare Asio sockets (1 GiB each way),
// each pair in turns within one run; prints JSON lines for bench/run.py. Exits with 77 where wrk is
// not installed. usage: http_bench [SECONDS-PER-RUN]
//        http_bench control beast|sink|source   such a control alone, for other benches: prints its
//                                               port, ends with its parent
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "http/test_server.h"

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using caisson::http::RawClient;

constexpr std::size_t kTransfer = 1 << 30;
constexpr std::size_t kBlock = 64 << 10;
constexpr int kRounds = 3;

// Beast's own example of an asynchronous server, cut down to one answer.
class BeastSession : public std::enable_shared_from_this<BeastSession> {
 public:
  explicit BeastSession(tcp::socket socket) : stream_(std::move(socket)) {}
  void Read() {
    request_ = {};
    beast::http::async_read(stream_, buffer_, request_,
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              if (!error) self->Answer();
                            });
  }

 private:
  void Answer() {
    response_ = {beast::http::status::ok, request_.version()};
    response_.set(beast::http::field::content_type, "text/plain");
    response_.keep_alive(request_.keep_alive());
    response_.body() = "small\n";
    response_.prepare_payload();
    beast::http::async_write(stream_, response_,
                             [self = shared_from_this()](beast::error_code error, std::size_t) {
                               if (!error) self->Read();
                             });
  }
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  beast::http::request<beast::http::string_body> request_;
  beast::http::response<beast::http::string_body> response_;
};

void Accept(tcp::acceptor& acceptor, const std::function<void(tcp::socket)>& take) {
  acceptor.async_accept([&](beast::error_code error, tcp::socket socket) {
    if (error) return;
    socket.set_option(tcp::no_delay(true));
    take(std::move(socket));
    Accept(acceptor, take);
  });
}

void Discard(tcp::socket& socket) {
  std::vector<char> block(kBlock);
  beast::error_code error;
  for (std::size_t left = kTransfer; left > 0 && !error;) {
    left -= socket.read_some(asio::buffer(block), error);
  }
  asio::write(socket, asio::buffer("k", 1), error);
}

void Produce(tcp::socket& socket) {
  const std::vector<char> block(kBlock, 'x');
  beast::error_code error;
  for (std::size_t left = kTransfer; left > 0 && !error;) {
    left -= socket.write_some(asio::buffer(block), error);
  }
}

// A server in a process of its own; tells its port through a pipe.
class ServerProcess {
 public:
  explicit ServerProcess(
      const std::function<void(const std::function<void(std::uint16_t)>&)>& run) {
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      signal(SIGPIPE, SIG_IGN);
      run([&](std::uint16_t port) { (void)!write(pipe_ends[1], &port, sizeof(port)); });
      _exit(0);
    }
    close(pipe_ends[1]);
    if (read(pipe_ends[0], &port_, sizeof(port_)) != sizeof(port_)) std::abort();
    close(pipe_ends[0]);
  }
  ~ServerProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::uint16_t port() const { return port_; }
  double peak_mib() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::atof(line.c_str() + 6) / 1024;
    }
    return 0;
  }

 private:
  pid_t pid_ = 0;
  std::uint16_t port_ = 0;
};

void RunOurs(const std::function<void(std::uint16_t)>& ready) {
  caisson::http::TestServer test;
  ready(test.port());
  pause();
}

void RunBeast(const std::function<void(std::uint16_t)>& ready) {
  asio::io_context context{1};
  tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  const std::function<void(tcp::socket)> take = [](tcp::socket socket) {
    std::make_shared<BeastSession>(std::move(socket))->Read();
  };
  Accept(acceptor, take);
  ready(acceptor.local_endpoint().port());
  context.run();
}

void RunSockets(const std::function<void(std::uint16_t)>& ready, void (*work)(tcp::socket&)) {
  asio::io_context context{1};
  tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  ready(acceptor.local_endpoint().port());
  while (true) {
    tcp::socket socket = acceptor.accept();
    work(socket);
  }
}

struct Load {
  double rate = 0;  // per second
  double p99_ms = 0;
};

double Milliseconds(const std::string& text) {
  const double value = std::atof(text.c_str());
  if (text.find("us") != std::string::npos) return value / 1000;
  if (text.find("ms") != std::string::npos) return value;
  return value * 1000;
}

Load Wrk(std::uint16_t port, const std::string& path, int seconds, int connections,
         const std::string& script = {}) {
  const std::string command =
      fmt::format("wrk -t1 -c{} -d{}s --latency {} http://127.0.0.1:{}{} 2>&1", connections,
                  seconds, script.empty() ? "" : "-s " + script, port, path);
  Load load;
  std::FILE* output = popen(command.c_str(), "r");
  char line[512];
  while (output && std::fgets(line, sizeof(line), output)) {
    std::string text = line;
    text.erase(0, text.find_first_not_of(' '));
    if (text.starts_with("Requests/sec:")) load.rate = std::atof(text.c_str() + 13);
    if (text.starts_with("99%")) load.p99_ms = Milliseconds(text.substr(3));
    if (text.starts_with("Non-2xx") || text.starts_with("Socket errors")) std::fputs(line, stderr);
  }
  if (output) pclose(output);
  return load;
}

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void SendAll(RawClient& client) {
  const std::string block(kBlock, 'x');
  for (std::size_t left = kTransfer; left > 0; left -= block.size()) client.Send(block);
}

void ReceiveAll(RawClient& client, std::size_t left) {
  std::vector<char> block(kBlock);
  while (left > 0) {
    const ssize_t got = recv(client.fd(), block.data(), std::min(left, block.size()), 0);
    if (got <= 0) std::abort();
    left -= static_cast<std::size_t>(got);
  }
}

double UploadOurs(std::uint16_t port) {
  RawClient client(port);
  return Seconds([&] {
    client.Send(
        fmt::format("PUT /count HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", kTransfer));
    SendAll(client);
    if (client.Answer().first != 200) std::abort();
  });
}

double DownloadOurs(std::uint16_t port) {
  RawClient client(port);
  return Seconds([&] {
    client.Send(fmt::format("GET /stream?sized=1&bytes={} HTTP/1.1\r\nHost: x\r\n\r\n", kTransfer));
    client.Until("\r\n\r\n");
    ReceiveAll(client, kTransfer - client.received.size());
  });
}

double UploadBare(std::uint16_t port) {
  RawClient client(port);
  return Seconds([&] {
    SendAll(client);
    client.Bytes(1);
  });
}

double DownloadBare(std::uint16_t port) {
  RawClient client(port);
  return Seconds([&] { ReceiveAll(client, kTransfer); });
}

void Print(const char* what, double value, const char* unit, double control, const char* name,
           const char* target, double least) {
  fmt::print(
      "{{\"what\":\"{}\",\"value\":{:.0f},\"unit\":\"{}\",\"control\":{:.0f},"
      "\"control_name\":\"{}\",\"ratio\":{:.2f},\"target\":\"{}\",\"ok\":{}}}\n",
      what, value, unit, control, name, value / control, target,
      value / control >= least ? "true" : "false");
  std::fflush(stdout);
}

void BenchSmall(const ServerProcess& ours, int seconds) {
  const ServerProcess beast(RunBeast);
  double inline_rate = 0, pooled_rate = 0, beast_rate = 0;
  for (int i = 0; i < kRounds; ++i) {
    beast_rate = std::max(beast_rate, Wrk(beast.port(), "/small", seconds, 50).rate);
    inline_rate = std::max(inline_rate, Wrk(ours.port(), "/small", seconds, 50).rate);
    pooled_rate = std::max(pooled_rate, Wrk(ours.port(), "/pooled", seconds, 50).rate);
  }
  Print("GET of a small answer, inline", inline_rate, "/s", beast_rate, "Beast", ">= 0.3", 0.3);
  Print("GET of a small answer, from the pool", pooled_rate, "/s", beast_rate, "Beast", ">= 0.3",
        0.3);

  // wrk sends as fast as it can; a delay per connection brings it to about half of that.
  constexpr int kDelayMs = 4;
  const int connections = std::clamp(static_cast<int>(inline_rate / 2 * kDelayMs / 1000), 10, 400);
  const std::string script = "/tmp/caisson-http-bench.lua";
  std::ofstream(script) << "function delay() return " << kDelayMs << " end\n";
  Load half, beast_half;
  half.p99_ms = beast_half.p99_ms = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    const Load theirs = Wrk(beast.port(), "/small", seconds, connections, script);
    if (theirs.p99_ms < beast_half.p99_ms) beast_half = theirs;
    const Load mine = Wrk(ours.port(), "/small", seconds, connections, script);
    if (mine.p99_ms < half.p99_ms) half = mine;
  }
  fmt::print(
      "{{\"what\":\"GET of a small answer, p99 at {:.0f} % of its highest rate\",\"value\":"
      "{:.2f},\"unit\":\"ms\",\"control\":{:.2f},\"control_name\":\"Beast, the same load\","
      "\"ratio\":{:.2f},\"target\":\"< 20\",\"ok\":{}}}\n",
      100 * half.rate / inline_rate, half.p99_ms, beast_half.p99_ms,
      half.p99_ms / beast_half.p99_ms, half.p99_ms < 20 ? "true" : "false");
  std::fflush(stdout);
}

void BenchTransfers(const ServerProcess& ours) {
  const ServerProcess sink([](const auto& ready) { RunSockets(ready, Discard); });
  const ServerProcess source([](const auto& ready) { RunSockets(ready, Produce); });
  const double before = ours.peak_mib();
  double upload = 1e9, download = 1e9, upload_bare = 1e9, download_bare = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    upload_bare = std::min(upload_bare, UploadBare(sink.port()));
    upload = std::min(upload, UploadOurs(ours.port()));
    download_bare = std::min(download_bare, DownloadBare(source.port()));
    download = std::min(download, DownloadOurs(ours.port()));
  }
  constexpr double kMiB = static_cast<double>(kTransfer) / (1 << 20);
  Print("upload of 1 GiB", kMiB / upload, "MiB/s", kMiB / upload_bare, "Asio socket", ">= 0.4",
        0.4);
  Print("download of 1 GiB", kMiB / download, "MiB/s", kMiB / download_bare, "Asio socket",
        ">= 0.4", 0.4);
  const double grown = ours.peak_mib() - before;
  fmt::print(
      "{{\"what\":\"memory that 1 GiB each way took\",\"value\":{:.1f},\"unit\":\"MiB\","
      "\"target\":\"< 8\",\"ok\":{}}}\n",
      grown, grown < 8 ? "true" : "false");
}

int RunControl(const std::string& which) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  const auto ready = [](std::uint16_t port) {
    fmt::print("{}\n", port);
    std::fflush(stdout);
  };
  if (which == "beast") RunBeast(ready);
  if (which == "sink") RunSockets(ready, Discard);
  if (which == "source") RunSockets(ready, Produce);
  return 2;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3 && std::string(arguments[1]) == "control") return RunControl(arguments[2]);
  if (std::system("command -v wrk > /dev/null") != 0) {
    std::fputs("wrk is not installed\n", stderr);
    return 77;
  }
  const int seconds = count > 1 ? std::atoi(arguments[1]) : 3;
  const ServerProcess ours(RunOurs);
  BenchTransfers(ours);
  BenchSmall(ours, seconds);
  return 0;
}
