// SPDX-License-Identifier: Apache-2.0
#include "http/public_address.h"

#include <gtest/gtest.h>

namespace caisson::http {
namespace {

TEST(PublicAddress, what_is_closed_and_why) {
  struct Case {
    const char* address;
    const char* why;  // "" for a public one
  };
  constexpr Case kCases[] = {
      {"0.0.0.0", "an unspecified address"},
      {"0.1.2.3", "an address of \"this\" network"},
      {"1.0.0.0", ""},
      {"9.255.255.255", ""},
      {"10.0.0.0", "a private address"},
      {"10.255.255.255", "a private address"},
      {"11.0.0.0", ""},
      {"100.63.255.255", ""},
      {"100.64.0.0", "a shared address of providers"},
      {"100.127.255.255", "a shared address of providers"},
      {"100.128.0.0", ""},
      {"127.0.0.1", "a loopback address"},
      {"127.255.255.255", "a loopback address"},
      {"128.0.0.0", ""},
      {"168.63.129.15", ""},
      {"168.63.129.16", "a cloud's service to its own hosts"},
      {"169.254.169.254", "a link-local address"},
      {"172.15.255.255", ""},
      {"172.16.0.0", "a private address"},
      {"172.31.255.255", "a private address"},
      {"172.32.0.0", ""},
      {"192.0.0.9", "an address for protocol assignments"},
      {"192.0.2.1", "a documentation address"},
      {"192.88.99.1", "a 6to4 relay"},
      {"192.168.0.1", "a private address"},
      {"198.18.0.0", "a benchmark address"},
      {"198.19.255.255", "a benchmark address"},
      {"198.20.0.0", ""},
      {"198.51.100.1", "a documentation address"},
      {"203.0.113.1", "a documentation address"},
      {"223.255.255.255", ""},
      {"224.0.0.0", "a multicast address"},
      {"239.255.255.255", "a multicast address"},
      {"240.0.0.0", "a reserved address"},
      {"255.255.255.255", "a reserved address"},
      {"::", "an unspecified address"},
      {"::1", "a loopback address"},
      {"::2", "a reserved address"},
      {"::127.0.0.1", "a reserved address"},
      {"::ffff:127.0.0.1", "a loopback address"},
      {"::ffff:8.8.8.8", ""},
      {"::ffff:0:8.8.8.8", "a reserved address"},
      {"64:ff9b::8.8.8.8", "a NAT64 address"},
      {"64:ff9b:1::1", "a NAT64 address"},
      {"100::1", "a reserved address"},
      {"1fff::1", "a reserved address"},
      {"2001::1", "a Teredo address"},
      {"2001:1::1", "an address for protocol assignments"},
      {"2001:1ff::1", "an address for protocol assignments"},
      {"2001:200::1", ""},
      {"2001:db8::1", "a documentation address"},
      {"2001:db9::1", ""},
      {"2002:808:808::1", "a 6to4 address"},
      {"2003::1", ""},
      {"2606:4700:4700::1111", ""},
      {"3fff::1", "a documentation address"},
      {"3fff:fff::1", "a documentation address"},
      {"3fff:1000::1", ""},
      {"4000::1", "a reserved address"},
      {"5f00::1", "a reserved address"},
      {"fbff::1", "a reserved address"},
      {"fc00::1", "a unique local address"},
      {"fdff::1", "a unique local address"},
      {"fe80::1", "a link-local address"},
      {"fec0::1", "a reserved address"},
      {"ff02::1", "a multicast address"},
  };
  for (const Case& given : kCases) {
    const auto address = ParseIp(given.address);
    ASSERT_TRUE(address) << given.address;
    const char* why = ClosedReason(*address);
    EXPECT_STREQ(why != nullptr ? why : "", given.why) << given.address;
    EXPECT_EQ(ParseIp(FormatIp(*address)), address) << given.address;
  }
}

TEST(PublicAddress, only_plain_texts_are_addresses) {
  for (const char* text : {"", "127.1", "0x7f.0.0.1", "010.0.0.1", "1.2.3", "1.2.3.4.5", " 1.2.3.4",
                           "[::1]", "::1%lo", "1::2::3", "1.2.3.4/8"}) {
    EXPECT_FALSE(ParseIp(text)) << text;
  }
  EXPECT_FALSE(ParseIp(std::string_view("1.2.3.4\0", 8)));
}

}  // namespace
}  // namespace caisson::http
