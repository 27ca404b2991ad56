// SPDX-License-Identifier: Apache-2.0
// Beast's parser of HTTP/1 with hooks that do nothing, for those who need few of them. Only for the
// .cc files of this folder: it brings Beast's headers along. Its limits are ours to set, and are
// taken off here: what it is given has passed form.h.
#pragma once

#include <boost/beast/core/error.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/field.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace caisson::http {

template <bool is_request>
class BeastParser : public boost::beast::http::basic_parser<is_request> {
 public:
  BeastParser() {
    this->body_limit(boost::none);
    this->header_limit(std::numeric_limits<std::uint32_t>::max());
  }

  // Takes `bytes`, all of them; false when Beast refuses or wants more than these.
  bool Take(std::string_view bytes) {
    boost::beast::error_code error;
    const std::size_t taken =
        this->put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    return !error && taken == bytes.size();
  }

 protected:
  using Error = boost::beast::error_code;
  using Text = boost::beast::string_view;

  void on_request_impl(boost::beast::http::verb, Text, Text, int, Error&) override {}
  void on_response_impl(int, Text, int, Error&) override {}
  void on_field_impl(boost::beast::http::field, Text, Text, Error&) override {}
  void on_header_impl(Error&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Error&) override {}
  std::size_t on_body_impl(Text bytes, Error&) override { return bytes.size(); }
  void on_chunk_header_impl(std::uint64_t, Text, Error&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, Text bytes, Error&) override {
    return bytes.size();
  }
  void on_finish_impl(Error&) override {}
};

}  // namespace caisson::http
