// SPDX-License-Identifier: Apache-2.0
// usage: run_example WORKFLOW INPUTS
// The same as run_example.c by caisson.hpp, and: an exception of the listener comes out.
#include <caisson.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace {

std::string ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string IrOf(std::string_view compiled) {
  const std::size_t begin = compiled.find("\"ir\":") + 5;
  return std::string(compiled.substr(begin, compiled.find(",\"content_id\":") - begin));
}

bool ThrowsThrough(caisson::Engine& engine, const std::string& ir, const std::string& inputs) {
  try {
    engine.Run(ir, inputs, "{}", nullptr,
               [](std::string_view) -> bool { throw std::runtime_error("of the listener"); });
  } catch (const std::runtime_error& error) {
    return std::string(error.what()) == "of the listener";
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const caisson::Answer compiled = caisson::Compile(ReadFile(argv[1]));
  caisson::Engine first("{\"workers\":1}");
  caisson::Engine engine = std::move(first);
  if (!compiled.ok() || !engine || first) return 1;
  const std::string ir = IrOf(compiled.json());
  const std::string inputs = ReadFile(argv[2]);
  int events = 0;
  const caisson::Answer answer =
      engine.Run(ir, inputs, "{}", nullptr, [&events](std::string_view) { return ++events > 0; });
  std::cout << answer.json() << '\n';
  caisson::Cancel cancel;
  cancel.Request();
  const caisson::Answer cancelled = engine.Run(ir, inputs, "{}", &cancel);
  if (cancelled.json().find("\"status\":\"cancelled\"") == std::string_view::npos) return 1;
  const caisson::Engine none("{\"no_such_option\":1}");
  if (none || none.made().json().find("library.options") == std::string_view::npos) return 1;
  return answer.ok() && events > 3 && ThrowsThrough(engine, ir, inputs) ? 0 : 1;
}
