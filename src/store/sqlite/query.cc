// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/query.h"

namespace caisson::store::sqlite {

std::string Joined(const std::vector<std::string>& names, std::string_view form) {
  const std::size_t place = form.find("{}");
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ", ";
    out += form.substr(0, place);
    if (place != std::string_view::npos) {
      out += name;
      out += form.substr(place + 2);
    }
  }
  return out;
}

}  // namespace caisson::store::sqlite
