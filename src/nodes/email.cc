// SPDX-License-Identifier: Apache-2.0
// EmailNode: one mail by SMTP.
#include "json/truth.h"
#include "nodes/exchange.h"
#include "nodes/families.h"
#include "nodes/mail_text.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

enum : std::size_t {
  kHost,
  kPort,
  kUseTls,
  kUsername,
  kPassword,
  kFrom,
  kTo,
  kCc,
  kBcc,
  kSubject,
  kBody,
  kSubtype,
  kTimeout,
};
constexpr Field kFields[] = {
    {.name = "smtp_host", .kind = FieldKind::kString, .default_json = "\"localhost\""},
    {.name = "smtp_port", .kind = FieldKind::kInt, .default_json = "587"},
    {.name = "use_tls", .kind = FieldKind::kBool, .default_json = "true"},
    {.name = "username", .kind = FieldKind::kString, .nullable = true},
    {.name = "password", .kind = FieldKind::kString, .nullable = true},
    {.name = "from_address", .kind = FieldKind::kString, .required = true},
    {.name = "to_addresses", .kind = FieldKind::kStringList, .default_json = "[]"},
    {.name = "cc_addresses", .kind = FieldKind::kStringList, .nullable = true},
    {.name = "bcc_addresses", .kind = FieldKind::kStringList, .nullable = true},
    {.name = "subject", .kind = FieldKind::kString, .default_json = "\"\""},
    {.name = "body", .kind = FieldKind::kString, .default_json = "\"\""},
    {.name = "subtype", .kind = FieldKind::kString, .default_json = "\"plain\""},
    {.name = "timeout", .kind = FieldKind::kFloat, .nullable = true, .default_json = "30.0"},
};

std::vector<std::string> Texts(const json::Value& list) {
  std::vector<std::string> texts;
  if (!list.is_array()) return texts;
  for (const json::Value& item : list.as_array()) texts.push_back(item.as_string());
  return texts;
}

// Everybody who shall have the mail, as the configuration names them.
std::vector<std::string> RecipientsOf(const json::Array& fields) {
  std::vector<std::string> all = Texts(fields[kTo]);
  for (const std::size_t field : {kCc, kBcc}) {
    for (std::string& address : Texts(fields[field])) all.push_back(std::move(address));
  }
  return all;
}

Result<http::MailRequest> RequestOf(const json::Array& fields,
                                    const std::vector<std::string>& recipients) {
  http::MailRequest request{.host = fields[kHost].as_string()};
  if (!fields[kPort].is_int() || fields[kPort].as_int() < 1 || fields[kPort].as_int() > 65535) {
    return NodeFailed("smtp_port must be from 1 to 65535, not " + PyStr(fields[kPort]));
  }
  request.port = static_cast<std::uint16_t>(fields[kPort].as_int());
  request.start_tls = fields[kUseTls].as_bool();
  if (json::Truth(fields[kUsername]) && json::Truth(fields[kPassword])) {
    request.username = fields[kUsername].as_string();
    request.password = fields[kPassword].as_string();
  }
  request.from = BareAddress(fields[kFrom].as_string());
  for (const std::string& recipient : recipients) {
    request.recipients.push_back(BareAddress(recipient));
  }
  CAISSON_ASSIGN(request.message, WriteMail({.subject = fields[kSubject].as_string(),
                                             .from = fields[kFrom].as_string(),
                                             .to = Texts(fields[kTo]),
                                             .cc = Texts(fields[kCc]),
                                             .body = fields[kBody].as_string(),
                                             .subtype = fields[kSubtype].as_string()}));
  CAISSON_ASSIGN(request.times,
                 TimesOf(fields[kTimeout].is_null() ? json::Value(30.0) : fields[kTimeout]));
  return request;
}

Result<json::Value> RunEmail(const Visit& visit) {
  CAISSON_ASSIGN(const json::Array fields, ValidateAgain(kFields, visit));
  const std::vector<std::string> recipients = RecipientsOf(fields);
  if (recipients.empty()) return NodeFailed("At least one recipient must be specified");
  CAISSON_ASSIGN(const http::MailRequest request, RequestOf(fields, recipients));
  CAISSON_ASSIGN(http::Outbound* const network, visit.host.Network());
  CAISSON_ASSIGN(const http::MailOutcome outcome, network->SendMail(request, {}));
  json::Object refused;
  for (const auto& refusal : outcome.refused) {
    for (std::size_t i = 0; i < recipients.size(); ++i) {
      if (request.recipients[i] != refusal.recipient) continue;
      refused.Set(recipients[i], json::Array{refusal.code, refusal.reply});
    }
  }
  json::Array accepted;
  for (const std::string& recipient : recipients) {
    if (!refused.Contains(recipient)) accepted.emplace_back(recipient);
  }
  return json::Object{{"accepted", std::move(accepted)}, {"refused", std::move(refused)}};
}

}  // namespace

extern constexpr NodeType kEmailNode{"EmailNode", kFields, RunEmail, nullptr, Need::kNetwork};

}  // namespace caisson::nodes
