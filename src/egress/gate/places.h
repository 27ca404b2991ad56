// SPDX-License-Identifier: Apache-2.0
// Who holds the places of a table that all machines share, and whose goes when it is full: no
// machine can keep the others out, whatever it does with its own. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace caisson::egress::gate {

// `Holder`: what has a place; cheap to copy.
template <typename Holder>
class Places {
  using Line = std::list<Holder>;  // those of one machine, the one that did nothing longest first

 public:
  // One that was given up is not valid any more.
  struct Place {
    std::uint32_t machine = 0;
    typename Line::iterator at;
  };

  std::size_t size() const { return size_; }
  std::size_t CountOf(std::uint32_t machine) const {
    const auto line = lines_.find(machine);
    return line == lines_.end() ? 0 : line->second.size();
  }
  std::vector<Holder> Of(std::uint32_t machine) const {
    const auto line = lines_.find(machine);
    if (line == lines_.end()) return {};
    return {line->second.begin(), line->second.end()};
  }
  std::vector<Holder> All() const {
    std::vector<Holder> all;
    all.reserve(size_);
    for (const auto& [machine, line] : lines_) all.insert(all.end(), line.begin(), line.end());
    return all;
  }

  Place Take(std::uint32_t machine, Holder holder) {
    Line& line = lines_[machine];
    by_count_.erase({line.size(), machine});
    line.push_back(std::move(holder));
    by_count_.insert({line.size(), machine});
    ++size_;
    return {machine, std::prev(line.end())};
  }
  // It did something just now.
  void Refresh(const Place& place) {
    Line& line = lines_.at(place.machine);
    line.splice(line.end(), line, place.at);
  }
  void Leave(const Place& place) {
    const auto at = lines_.find(place.machine);
    by_count_.erase({at->second.size(), place.machine});
    at->second.erase(place.at);
    --size_;
    if (at->second.empty()) {
      lines_.erase(at);
    } else {
      by_count_.insert({at->second.size(), place.machine});
    }
  }

  // Who has to go when there is no room for one more of `machine`: the idlest of the machine that
  // has most; the idlest of its own, if it has as many, so that two do not take from each other for
  // ever. Null when nobody has a place.
  std::optional<Holder> WhoGoes(std::uint32_t machine) const {
    if (by_count_.empty()) return std::nullopt;
    const auto [most, greediest] = *by_count_.rbegin();
    const std::size_t own = CountOf(machine);
    const bool is_fair = own > 0 && most <= own + 1;
    return lines_.at(is_fair ? machine : greediest).front();
  }

 private:
  std::map<std::uint32_t, Line> lines_;
  std::set<std::pair<std::size_t, std::uint32_t>> by_count_;
  std::size_t size_ = 0;
};

}  // namespace caisson::egress::gate
