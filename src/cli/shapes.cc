// SPDX-License-Identifier: Apache-2.0
#include "control/shapes.h"

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/service.h"

namespace caisson::cli {

ExitCode PrintShapes(const ShapesArguments& arguments, Console& console) {
  if (arguments.json) {
    json::Array list;
    for (const control::Shape& shape : control::Shapes()) {
      list.emplace_back(json::Object{{"id", shape.id},
                                     {"vcpu", shape.vcpus},
                                     {"mem_mib", shape.memory_mib},
                                     {"default_disk_mib", shape.default_disk_mib}});
    }
    return PrintJson(json::Object{{"shapes", std::move(list)}}, console);
  }
  std::string text = fmt::format("{:<16} {:>5} {:>10} {:>10}\n", "ID", "VCPUS", "MEMORY", "DISK");
  for (const control::Shape& shape : control::Shapes()) {
    text += fmt::format("{:<16} {:>5} {:>6} MiB {:>6} MiB\n", shape.id, shape.vcpus,
                        shape.memory_mib, shape.default_disk_mib);
  }
  return PrintText(text, console);
}

}  // namespace caisson::cli
