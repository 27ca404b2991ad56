// SPDX-License-Identifier: Apache-2.0
// The stock artifact frees frames of running functions when its collector runs; the derived one
// must not. Hundreds of random bodies allocate several times their heap, some collect by
// themselves, and each result is compared with the value computed here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "isolate/micropython/test_runtime.h"
#include "json/writer.h"

namespace caisson::isolate {
namespace {

constexpr std::size_t kKept = 50;
constexpr std::size_t kCutTo = 10;

struct Kind {
  const char* expression;  // of q
  json::Value (*value)(std::int64_t q);
};

const std::vector<Kind> kKinds = {
    {"[q, str(q)]", [](std::int64_t q) { return json::Value(json::Array{q, std::to_string(q)}); }},
    {"'row-%d' % q", [](std::int64_t q) { return json::Value("row-" + std::to_string(q)); }},
    {"q * 0.25", [](std::int64_t q) { return json::Value(static_cast<double>(q) * 0.25); }},
    {"{'i': q, 't': (q, q + 1)}",
     [](std::int64_t q) {
       return json::Value(json::Object{{"i", q}, {"t", json::Array{q, q + 1}}});
     }},
    {"q * 10000000000", [](std::int64_t q) { return json::Value(q * 10'000'000'000); }},
    {"(lambda a, b: [a, [b, str(a)]])(q, -q)",
     [](std::int64_t q) {
       return json::Value(json::Array{q, json::Array{-q, std::to_string(q)}});
     }},
    {"''.join([c for c in str(q)] + ['!'])",
     [](std::int64_t q) { return json::Value(std::to_string(q) + "!"); }},
    {"sorted([q % 7, q % 5, q % 3, 0 * len(str(q))], reverse=True)",
     [](std::int64_t q) {
       std::vector<std::int64_t> items = {q % 7, q % 5, q % 3, 0};
       std::ranges::sort(items, std::greater<>());
       return json::Value(json::Array(items.begin(), items.end()));
     }},
};

struct Case {
  std::string source;
  json::Value expected;
};

// `locals` values stay alive over the whole loop of `turns`; every `collect` turns, if not 0, the
// body collects.
Case MakeCase(std::mt19937& random) {
  const auto pick = [&random](std::size_t from, std::size_t to) {
    return from + random() % (to - from + 1);
  };
  const std::size_t locals = pick(2, 14);
  const std::size_t turns = pick(8000, 20000);
  Kind kind = kKinds[pick(0, kKinds.size() - 1)];
  const bool collects = pick(0, 2) == 0;
  std::string source = collects ? "import gc\n" : "";
  source += "def run(self, state, config):\n";
  std::string names;
  json::Array expected_names;
  for (std::size_t i = 0; i < locals; ++i) {
    const std::string n = std::to_string(i);
    source += "    v" + n + " = {'k': " + n + ", 'n': 'name' + str(" + n + ")}\n";
    names += (i == 0 ? "v" : ", v") + n + "['n']";
    expected_names.emplace_back("name" + n);
  }
  source += "    out = []\n    total = 0\n";
  source += "    for q in range(" + std::to_string(turns) + "):\n";
  source += std::string("        x = ") + kind.expression + "\n";
  source += "        out.append((q, x))\n";
  if (collects) {
    source +=
        "        if q % " + std::to_string(pick(300, 3000)) + " == 7:\n            gc.collect()\n";
  }
  source += "        if len(out) > 50:\n";
  source += "            total += sum([p[0] for p in out[:-10]])\n            out = out[-10:]\n";
  source += "    return {'names': [" + names + "], 'total': total, 'out': out}\n";

  std::vector<std::int64_t> out;
  std::int64_t total = 0;
  for (std::size_t q = 0; q < turns; ++q) {
    out.push_back(static_cast<std::int64_t>(q));
    if (out.size() <= kKept) continue;
    for (std::size_t i = 0; i + kCutTo < out.size(); ++i) total += out[i];
    out.erase(out.begin(), out.end() - kCutTo);
  }
  json::Array pairs;
  for (const std::int64_t q : out) pairs.push_back(json::Array{q, kind.value(q)});
  return {source,
          json::Object{
              {"names", std::move(expected_names)}, {"total", total}, {"out", std::move(pairs)}}};
}

// `count` cases from `seed` in a heap of 1 MiB, which each fills several times.
void RunCases(std::uint32_t seed, int count) {
  std::mt19937 random(seed);
  Limits limits;
  limits.heap_bytes = 1u << 20;
  limits.fuel = 0;
  for (int i = 0; i < count; ++i) {
    const Case test = MakeCase(random);
    const Outcome outcome = CallOn(OpenExecutor(), test.source, "{}", limits);
    ASSERT_EQ(Show(outcome), *json::WriteCanonical(test.expected)) << test.source;
  }
}

TEST(Collector, AHundredRandomAllocatingBodiesAreRight) { RunCases(1, 100); }
TEST(Collector, AnotherHundredRandomAllocatingBodiesAreRight) { RunCases(2, 100); }
TEST(Collector, AThirdHundredOfRandomAllocatingBodiesAreRight) { RunCases(3, 100); }

TEST(Collector, DeepFramesWithManyLocalsSurviveCollections) {
  // Each level holds its own values over the collections of the levels below.
  const std::string source =
      "import gc\n"
      "def tree(n):\n"
      "    a = [n]; b = str(n); c = {n: n}; d = (n, n); e = n * 0.5; f = 'x' + b; g = [b]\n"
      "    h = [c]; i = (d,); j = [e, f]; k = {'g': g}\n"
      "    if n == 0:\n"
      "        gc.collect()\n"
      "        return 0\n"
      "    below = tree(n - 1)\n"
      "    if n % 5 == 0:\n"
      "        gc.collect()\n"
      "    junk = [[q] for q in range(100)]\n"
      "    ok = (a == [n] and b == str(n) and c[n] == n and d == (n, n) and e == n * 0.5\n"
      "          and f == 'x' + b and g == [b] and h[0][n] == n and i[0][1] == n\n"
      "          and j[0] == e and k['g'][0] == b)\n"
      "    return below + (1 if ok else 0)\n"
      "def run(self, state, config):\n"
      "    return {'right': [tree(n) for n in (1, 50, 200, 300)]}\n";
  Limits limits;
  limits.heap_bytes = 1u << 20;
  limits.fuel = 0;
  EXPECT_EQ(Show(CallOn(OpenExecutor(), source, "{}", limits)), R"({"right":[1,50,200,300]})");
}

TEST(Collector, GeneratorsAndClosuresSurviveCollections) {
  const std::string source =
      "import gc\n"
      "def words(n):\n"
      "    for i in range(n):\n"
      "        if i % 50 == 0:\n"
      "            gc.collect()\n"
      "        yield str(i) * 3\n"
      "def run(self, state, config):\n"
      "    expected = [str(i) * 3 for i in range(300)]\n"
      "    bad = 0\n"
      "    for r in range(20):\n"
      "        def add(x, r=r):\n"
      "            return x + str(r)\n"
      "        bad += list(words(300)) != expected\n"
      "        bad += ','.join(words(300)) != ','.join(expected)\n"
      "        bad += sorted(words(300)) != sorted(expected)\n"
      "        bad += len(set(words(300))) != 300\n"
      "        bad += len(dict((k, [k]) for k in words(300))) != 300\n"
      "        bad += list(map(add, words(300)))[-1] != '299299299' + str(r)\n"
      "        bad += tuple(words(300)) != tuple(expected)\n"
      "    return {'bad': int(bad)}\n";
  Limits limits;
  limits.heap_bytes = 1u << 20;
  limits.fuel = 0;
  EXPECT_EQ(Show(CallOn(OpenExecutor(), source, "{}", limits)), R"({"bad":0})");
}

}  // namespace
}  // namespace caisson::isolate
