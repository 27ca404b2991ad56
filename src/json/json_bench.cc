// SPDX-License-Identifier: Apache-2.0
// Throughput of reader and writer over a generated document of records; prints JSON lines for
// bench/run.py, best of five.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "json/reader.h"
#include "json/scanner.h"
#include "json/writer.h"

namespace {

std::string MakeDocument(int records) {
  std::string text = "[";
  for (int i = 0; i < records; ++i) {
    const std::string n = std::to_string(i);
    text += R"({"id":)" + n + R"(,"name":"record number )" + n + R"(","score":0.)" + n +
            R"(,"tags":["alpha","beta \"quoted\"","gamma"],)" +
            R"("text":"The quick brown fox jumps over the lazy dog, again and again; grün.",)" +
            R"("ok":true,"none":null},)";
  }
  text.back() = ']';
  return text;
}

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

template <typename Work>
double BestRate(std::size_t bytes, Work work) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const double start = CpuSeconds();
    work();
    best = std::max(best, static_cast<double>(bytes) / (CpuSeconds() - start) / 1e6);
  }
  return best;
}

}  // namespace

int main() {
  const std::string text = MakeDocument(40'000);
  auto value = caisson::json::Read(text);
  if (!value) return std::fprintf(stderr, "%s\n", value.error().message.c_str()), 1;
  const auto print = [&](const char* what, double rate) {
    std::printf("{\"what\":\"%s a document of %.1f MB\",\"value\":%.0f,\"unit\":\"MB/s\"}\n", what,
                static_cast<double>(text.size()) / 1e6, rate);
  };
  print("read", BestRate(text.size(), [&] { (void)caisson::json::Read(text); }));
  print("scan", BestRate(text.size(), [&] { (void)caisson::json::Scan(text); }));
  print("write", BestRate(text.size(), [&] { (void)caisson::json::Write(*value); }));
}
