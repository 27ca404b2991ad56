// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>

#include "errors/oci.h"
#include "isolate/oci/harness.h"
#include "json/reader.h"
#include "json/value.h"
#include "json/writer.h"

namespace caisson::isolate::oci {

std::string_view CompileProgram() {
  return R"(import json, marshal, sys
given = json.load(sys.stdin.buffer)
scope = {"__name__": "caisson_container"}
exec(compile(given["sources"]["caisson_container"], "caisson_container.py", "exec"), scope)
code = marshal.dumps(scope["compile_all"](given["sources"], given["policy"]))
out = sys.stdout.buffer
out.write(b"caisson harness " + sys.version.split()[0].encode() + b"\n")
out.write(sys.hexversion.to_bytes(8, "little") + len(code).to_bytes(8, "little") + code)
)";
}

std::string_view StartProgram() {
  return R"(import marshal, sys
import _frozen_importlib as f
i = open(0, "rb", closefd=False)
n = lambda: int.from_bytes(i.read(8), "little")
if n() != sys.hexversion: sys.exit("the image has another Python than before")
d = marshal.loads(i.read(n()))
class Sent:
    @staticmethod
    def find_spec(name, path=None, target=None): return f.ModuleSpec(name, Sent) if name in d else None
    @staticmethod
    def create_module(spec): return None
    @staticmethod
    def exec_module(module): exec(marshal.loads(d.pop(module.__name__)), module.__dict__)
sys.meta_path.insert(0, Sent)
import caisson_container
caisson_container.main(i)
)";
}

Result<std::string> CompileInput(bool may_start_processes) {
  json::Object sources;
  for (const HarnessFile& file : HarnessFiles()) sources.Set(file.module, json::Value(file.source));
  CAISSON_ASSIGN(json::Value policy, json::Read(GuardPolicy()));
  policy.mutable_object().Set("processes", may_start_processes);
  CAISSON_ASSIGN(std::string policy_text, json::Write(policy));
  return json::Write(
      json::Object{{"sources", std::move(sources)}, {"policy", std::move(policy_text)}});
}

Result<Compiled> ReadCompiled(std::string_view output) {
  constexpr std::string_view kStart = "caisson harness ";
  const std::size_t line = output.find('\n');
  if (!output.starts_with(kStart) || line == std::string_view::npos || output.size() < line + 17) {
    return Fail(errors::kOciFailed,
                "the interpreter of the image does not compile the harness; the image needs Python "
                "3.11 or newer");
  }
  return Compiled{.python = std::string(output.substr(kStart.size(), line - kStart.size())),
                  .code = std::string(output.substr(line + 1))};
}

std::string MakeHead(const Compiled& compiled, const Head& head) {
  const std::array<std::uint64_t, 7> numbers = {
      head.channel,       head.flags, head.expected, head.data_bytes, head.file_bytes,
      head.filter.size(), 0};
  std::string text = compiled.code;
  text.append(reinterpret_cast<const char*>(numbers.data()), sizeof numbers);
  text += head.filter;
  return text;
}

}  // namespace caisson::isolate::oci
