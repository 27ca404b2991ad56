// SPDX-License-Identifier: Apache-2.0
#include "egress/refused_packets.h"

#include <gtest/gtest.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

#include <cstring>
#include <string>

namespace caisson::egress {
namespace {

// As the kernel tells of a packet with these bytes.
std::string Told(const std::string& packet) {
  std::string body(sizeof(nfgenmsg), '\0');
  const nlattr header{static_cast<std::uint16_t>(sizeof(nlattr) + packet.size()), NFULA_PAYLOAD};
  body.append(reinterpret_cast<const char*>(&header), sizeof(header));
  return body + packet;
}
// From 10.231.0.16:4660 to 203.0.113.10:443.
std::string Packet(char protocol, std::size_t words = 5, std::uint16_t fragment = 0) {
  std::string packet(words * 4, '\0');
  packet[0] = static_cast<char>(0x40 | words);
  packet[6] = static_cast<char>(fragment >> 8);
  packet[7] = static_cast<char>(fragment & 255);
  packet[9] = protocol;
  packet.replace(12, 8, "\x0a\xe7\x00\x10\xcb\x00\x71\x0a", 8);
  return packet + std::string("\x12\x34\x01\xbb\0\0\0\0", 8);
}

TEST(RefusedPackets, reads_addresses_and_the_port_they_go_to) {
  const auto tcp = DecodeRefusedPacket(Told(Packet(6)));
  EXPECT_EQ(tcp, (RefusedPacket{0x0ae70010, 0xcb00710a, 6, 443}));
  EXPECT_EQ(DecodeRefusedPacket(Told(Packet(17, 15))),
            (RefusedPacket{0x0ae70010, 0xcb00710a, 17, 443}));
}

TEST(RefusedPackets, knows_no_port_where_there_is_none) {
  EXPECT_EQ(DecodeRefusedPacket(Told(Packet(1)))->port, 0);
  EXPECT_EQ(DecodeRefusedPacket(Told(Packet(6, 5, 0x00b9)))->port, 0) << "a later fragment";
  EXPECT_EQ(DecodeRefusedPacket(Told(Packet(6, 5, 0x2000)))->port, 443) << "the first of some";
  EXPECT_EQ(DecodeRefusedPacket(Told(Packet(6).substr(0, 20)))->port, 0);
}

TEST(RefusedPackets, refuses_what_is_no_whole_header_of_ipv4) {
  EXPECT_FALSE(DecodeRefusedPacket(""));
  EXPECT_FALSE(DecodeRefusedPacket(Told("")));
  EXPECT_FALSE(DecodeRefusedPacket(Told(Packet(6).substr(0, 19))));
  std::string six = Packet(6);
  six[0] = 0x60;
  EXPECT_FALSE(DecodeRefusedPacket(Told(six)));
  six[0] = 0x42;
  EXPECT_FALSE(DecodeRefusedPacket(Told(six)));
}

TEST(RefusedPackets, names_protocols) {
  EXPECT_EQ(ProtocolName(6), "tcp");
  EXPECT_EQ(ProtocolName(17), "udp");
  EXPECT_EQ(ProtocolName(1), "icmp");
  EXPECT_EQ(ProtocolName(47), "47");
}

}  // namespace
}  // namespace caisson::egress
