// SPDX-License-Identifier: Apache-2.0
#include "http/outbound_mail.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "errors/outbound.h"
#include "http/outbound_transfer.h"

namespace caisson::http {
namespace {

constexpr std::size_t kMostRecipients = 1000;
constexpr std::size_t kMostReplyBytes = 64u << 10;

// Follows the conversation, of which libcurl tells only whether it succeeded.
struct Conversation {
  const MailRequest& mail;
  std::size_t sent = 0;        // of the message
  std::size_t asked = 0;       // RCPT commands
  bool authenticated = false;  // an AUTH command was sent
  bool awaits_recipient = false;
  std::size_t reply_bytes = 0;
  std::string last_reply;
  MailOutcome outcome;
  std::optional<Status> failed;
};

void TakeReply(Conversation& conversation, std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.size() < 3 || (line.size() > 3 && line[3] == '-')) return;  // more lines follow
  int code = 0;
  std::from_chars(line.data(), line.data() + 3, code);
  conversation.last_reply = line;
  if (!std::exchange(conversation.awaits_recipient, false) || (code >= 200 && code < 300)) return;
  conversation.outcome.refused.push_back(
      {conversation.mail.recipients[conversation.asked - 1], code,
       std::string(line.substr(std::min<std::size_t>(4, line.size())))});
}

int Watch(CURL*, curl_infotype type, char* bytes, std::size_t size, void* user) {
  auto& conversation = *static_cast<Conversation*>(user);
  const std::string_view text(bytes, size);
  if (type == CURLINFO_HEADER_OUT) {
    if (text.starts_with("AUTH ")) conversation.authenticated = true;
    if (text.starts_with("RCPT TO") && conversation.asked < conversation.mail.recipients.size()) {
      ++conversation.asked;
      conversation.awaits_recipient = true;
    }
  } else if (type == CURLINFO_HEADER_IN && conversation.reply_bytes <= kMostReplyBytes) {
    TakeReply(conversation, text);
  }
  return 0;
}

std::size_t CountReply(char*, std::size_t, std::size_t size, void* user) {
  auto& conversation = *static_cast<Conversation*>(user);
  conversation.reply_bytes += size;
  if (conversation.reply_bytes <= kMostReplyBytes) return size;
  conversation.failed =
      Status{errors::kOutboundTooLarge,
             fmt::format("the mail server's replies have more than {} bytes", kMostReplyBytes)};
  return 0;
}

std::size_t GiveMessage(char* into, std::size_t, std::size_t size, void* user) {
  auto& conversation = *static_cast<Conversation*>(user);
  // libcurl goes on without a login where the server offers none.
  if (conversation.mail.username && !conversation.authenticated) {
    conversation.failed = Status{errors::kOutboundMail,
                                 "the mail server does not offer a login; the mail was not sent"};
    return CURL_READFUNC_ABORT;
  }
  const std::size_t count = std::min(size, conversation.mail.message.size() - conversation.sent);
  std::copy_n(conversation.mail.message.data() + conversation.sent, count, into);
  conversation.sent += count;
  return count;
}

bool IsPlain(std::string_view text) {
  return !text.empty() && text.size() <= 320 && std::ranges::none_of(text, [](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == '<' || c == '>';
  });
}

Result<Target> CheckMail(const MailRequest& mail) {
  std::vector<std::string> addresses = mail.recipients;
  if (!mail.from.empty()) addresses.push_back(mail.from);
  for (const std::string& address : addresses) {
    if (IsPlain(address)) continue;
    return Fail(errors::kOutboundBadRequest,
                fmt::format("'{}' is no mail address", address.substr(0, 100)));
  }
  if (mail.recipients.empty() || mail.recipients.size() > kMostRecipients) {
    return Fail(errors::kOutboundBadRequest,
                fmt::format("a mail has from 1 to {} recipients, not {}", kMostRecipients,
                            mail.recipients.size()));
  }
  // The same reading of the host as for a URL.
  const bool is_v6 = mail.host.find(':') != std::string::npos;
  const std::string host = is_v6 ? "[" + mail.host + "]" : mail.host;
  auto target = ReadTarget(fmt::format("http://{}:{}/", host, mail.port));
  if (!target || mail.host.find_first_of("/?#@ \\") != std::string::npos) {
    return Fail(errors::kOutboundBadRequest,
                fmt::format("'{}:{}' is no mail server", mail.host.substr(0, 300), mail.port));
  }
  target->scheme = "smtp";
  // The path is what we call ourselves; libcurl would tell the name of this machine.
  target->url = fmt::format("smtp://{}:{}/localhost", is_v6 ? host : target->host, target->port);
  return target;
}

void SetMail(CURL* raw, const Target& target, Conversation& conversation, curl_slist* recipients) {
  const MailRequest& mail = conversation.mail;
  curl_easy_setopt(raw, CURLOPT_URL, target.url.c_str());
  curl_easy_setopt(raw, CURLOPT_USE_SSL,
                   static_cast<long>(mail.start_tls ? CURLUSESSL_ALL : CURLUSESSL_NONE));
  if (mail.username && mail.password) {
    curl_easy_setopt(raw, CURLOPT_USERNAME, mail.username->c_str());
    curl_easy_setopt(raw, CURLOPT_PASSWORD, mail.password->c_str());
  }
  curl_easy_setopt(raw, CURLOPT_MAIL_FROM, mail.from.c_str());
  curl_easy_setopt(raw, CURLOPT_MAIL_RCPT, recipients);
  curl_easy_setopt(raw, CURLOPT_MAIL_RCPT_ALLLOWFAILS, 1L);
  curl_easy_setopt(raw, CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(raw, CURLOPT_READFUNCTION, GiveMessage);
  curl_easy_setopt(raw, CURLOPT_READDATA, &conversation);
  curl_easy_setopt(raw, CURLOPT_HEADERFUNCTION, CountReply);
  curl_easy_setopt(raw, CURLOPT_HEADERDATA, &conversation);
  curl_easy_setopt(raw, CURLOPT_WRITEFUNCTION, CountReply);
  curl_easy_setopt(raw, CURLOPT_WRITEDATA, &conversation);
  curl_easy_setopt(raw, CURLOPT_VERBOSE, 1L);  // for the next one; nothing is printed
  curl_easy_setopt(raw, CURLOPT_DEBUGFUNCTION, Watch);
  curl_easy_setopt(raw, CURLOPT_DEBUGDATA, &conversation);
}

}  // namespace

Result<MailOutcome> SendMail(const Guard& guard, const std::string& ca_file,
                             const MailRequest& mail, std::stop_token stop) {
  CAISSON_ASSIGN(const Target target, CheckMail(mail));
  CurlTransfer transfer(mail.times, mail.give_up, std::move(stop));
  if (transfer.easy() == nullptr) return Fail(errors::kOutboundBroken, "libcurl cannot be set up");
  CAISSON_ASSIGN(const auto addresses,
                 guard.Check(target, transfer.deadline(), [&] { return transfer.Stopped(); }));
  transfer.Begin(target, addresses, true, ca_file);
  Conversation conversation{mail};
  CurlList recipients;
  for (const std::string& recipient : mail.recipients) Append(recipients, recipient);
  SetMail(transfer.easy(), target, conversation, recipients.get());
  auto done = transfer.Perform(target, conversation.failed);
  if (done) return std::move(conversation.outcome);
  Status& failure = done.error();
  // What the server said tells more than the number of libcurl's complaint.
  if (failure.code == errors::kOutboundBroken && !conversation.last_reply.empty()) {
    return Fail(errors::kOutboundMail,
                fmt::format("{}; the mail server's last reply was: {}", failure.message,
                            conversation.last_reply.substr(0, 500)));
  }
  return Fail(std::move(failure));
}

}  // namespace caisson::http
