// SPDX-License-Identifier: Apache-2.0
#include "http/http1.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "errors/http.h"
#include "http/chunks.h"
#include "http/head.h"
#include "http/http2.h"

namespace caisson::http {
namespace {

constexpr std::chrono::milliseconds kLingerTime{5'000};
constexpr std::chrono::milliseconds kDrainLingerTime{200};
constexpr std::uint64_t kMostDiscarded = 64 << 10;  // of a body that nobody read, to keep alive
constexpr int kTurnsAtOnce = 64;                    // requests; then other connections go on
constexpr int kTurnsOfRead = 4;                     // what a read counts for
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::uint64_t kLargeBody = 16 << 10;  // what is left of it is read in large blocks
constexpr std::size_t kSmallBlock = 4096;       // copied behind the head, into one write

// True when what has come of a head cannot become a good one.
bool IsHopeless(std::string_view bytes, std::size_t scanned) {
  if (!IsToken(bytes.substr(0, 1))) return true;
  for (std::size_t at = bytes.find('\n', scanned); at != std::string_view::npos;
       at = bytes.find('\n', at + 1)) {
    if (at == 0 || bytes[at - 1] != '\r') return true;
  }
  return false;
}

bool IsOurs(std::string_view field) {
  for (const std::string_view name : {"Date", "X-Request-Id", "Content-Length", "Transfer-Encoding",
                                      "Connection", "Keep-Alive"}) {
    if (EqualsIgnoringCase(field, name)) return true;
  }
  return false;
}

class Http1 final : public Connection {
 public:
  Http1(std::shared_ptr<Service> service, IoThread& thread, Transport transport, std::string peer)
      : service_(std::move(service)),
        thread_(thread),
        transport_(std::move(transport)),
        peer_(std::move(peer)) {}

  void Start() override;
  void Tick(Clock::time_point now) override;
  void Drain() override;
  void Break() override;

 private:
  enum class Phase { kHandshake, kIdle, kHead, kServing, kUpgraded, kDiscard, kLinger, kClosed };
  enum class Next { kAgain, kMore, kNone };
  enum class Body { kDone, kLength, kChunked, kGarbage };

  const Limits& limits() const { return service_->options.limits; }
  std::string_view buffered() const { return {input_.get() + begin_, end_ - begin_}; }
  void Enter(Phase phase, std::chrono::milliseconds time);

  void OnReadable();
  void OnWritable();
  void OnWake();
  void Shake();

  // Input.
  void PumpIn();
  void ReadOn();
  void LetOthersGo();
  Transport::State Fill();
  bool IsLargeBody() const;
  Transport::State FillBody();
  void WaitInput();
  void ReturnBuffer();
  void OnInputEnd();
  Next Consume();
  Next ConsumeHead();
  Next RefuseHead(const Status& status);
  void StartServing(Request request, const Framing& framing);
  void TakeFraming(const Framing& framing);
  Next ConsumeBody();
  Result<bool> DecodeSome(std::size_t room, std::string_view& data);
  void RefuseBody(const Status& status);
  Next ConsumeRaw();
  Next Discard();
  void CheckBodyTime(Clock::time_point now);

  // Output.
  void PumpOut();
  bool Gather();
  bool FoldAnswer(const ServerExchange::Picked& picked);
  void FormatHead(const AnswerHead& head);
  void DecideKeepAlive();
  void AdvanceOutput(std::size_t bytes);
  void FinishExchange();

  void Linger();
  void Close();
  void BreakOff(const Status& status);

  const std::shared_ptr<Service> service_;
  IoThread& thread_;
  Transport transport_;
  const std::string peer_;
  Phase phase_ = Phase::kIdle;
  Clock::time_point deadline_;

  std::unique_ptr<char[]> input_;  // bytes from begin_ to end_ are not consumed yet
  std::size_t begin_ = 0, end_ = 0;
  std::size_t scanned_ = 0;  // of a head that is not whole
  bool readable_ = true;
  bool waits_in_ = false;
  bool input_ended_ = false;
  bool is_first_ = true;
  bool again_ = false;  // OnReadable is on its way without a wait

  std::optional<Serving> serving_;
  bool keep_alive_ = true;
  int version_ = 11;
  bool of_head_ = false;
  Body body_ = Body::kDone;
  std::uint64_t left_ = 0;
  std::uint64_t discarded_ = 0;
  std::string block_;  // of a large body, on its way to the exchange
  ChunkDecoder chunks_;
  bool continue_pending_ = false;

  // Three pieces that go out together: head or size of a chunk, block, what follows it.
  std::array<std::string, 3> output_;
  std::size_t sent_ = 0;
  bool waits_out_ = false;
  Clock::time_point output_since_;
  int sent_status_ = 0;
  bool chunked_ = false;
  bool output_ended_ = false;
  bool write_shut_ = false;
  bool broken_ = false;
  bool done_ = false;
};

void Http1::Enter(Phase phase, std::chrono::milliseconds time) {
  phase_ = phase;
  deadline_ = thread_.now() + time;
}

void Http1::Start() {
  if (transport_.has_tls()) {
    Enter(Phase::kHandshake, limits().header_timeout);
    Shake();
  } else {
    Enter(Phase::kIdle, limits().idle_timeout);
    PumpIn();
  }
}

void Http1::Shake() {
  switch (transport_.Handshake()) {
    case Transport::State::kDone:
      Enter(Phase::kIdle, limits().idle_timeout);
      readable_ = true;
      PumpIn();
      return;
    case Transport::State::kBlocked:
      WaitInput();
      return;
    default:
      Close();
  }
}

void Http1::OnReadable() {
  waits_in_ = false;
  thread_.Refresh();
  if (phase_ == Phase::kClosed) return;
  if (phase_ == Phase::kHandshake) return Shake();
  readable_ = true;
  PumpIn();
}

void Http1::OnWritable() {
  waits_out_ = false;
  thread_.Refresh();
  PumpOut();
  PumpIn();
}

void Http1::OnWake() {
  if (phase_ != Phase::kClosed) {
    PumpOut();
    PumpIn();
    return;
  }
  if (!serving_) return;
  output_[1].clear();
  if (!serving_->exchange().PickUp(output_[1]).done) return;
  serving_->Report(sent_status_, false);
  serving_.reset();
}

void Http1::PumpIn() {
  if (again_) return;
  ReadOn();
  if (serving_) serving_->exchange().Deliver();
}

// Reads and consumes until there is nothing more, or no room for it.
void Http1::ReadOn() {
  for (int turns = kTurnsAtOnce; phase_ != Phase::kClosed;) {
    if (turns <= 0) return LetOthersGo();
    const Next next = Consume();
    if (next == Next::kAgain) {
      --turns;
      continue;
    }
    if (next == Next::kNone || phase_ == Phase::kClosed) return ReturnBuffer();
    if (input_ended_) return OnInputEnd();
    turns -= kTurnsOfRead;
    switch (IsLargeBody() ? FillBody() : Fill()) {
      case Transport::State::kDone:
        break;
      case Transport::State::kBlocked:
        ReturnBuffer();
        return WaitInput();
      case Transport::State::kEnd:
        input_ended_ = true;
        return OnInputEnd();
      case Transport::State::kBroken:
        return BreakOff({errors::kHttpClientGone, "the connection of the client broke"});
    }
  }
}

void Http1::LetOthersGo() {
  again_ = true;
  thread_.Post([self = shared_from_this(), this] {
    again_ = false;
    PumpIn();
  });
}

Transport::State Http1::Fill() {
  if (!readable_) return Transport::State::kBlocked;
  if (!input_) input_ = thread_.TakeBuffer();
  if (begin_ > 0) {
    std::memmove(input_.get(), input_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const std::size_t space = IoThread::kInputBuffer - end_;
  const Transport::Progress progress = transport_.Read({input_.get() + end_, space});
  end_ += progress.bytes;
  if (progress.state == Transport::State::kBlocked ||
      (progress.bytes < space && transport_.tells_emptiness())) {
    readable_ = false;
  }
  return progress.state;
}

bool Http1::IsLargeBody() const {
  return phase_ == Phase::kServing && body_ == Body::kLength && begin_ == end_ &&
         left_ >= kLargeBody && serving_->runs_in_pool();
}

// Reads into what goes to the handler, past the buffer of the connection.
Transport::State Http1::FillBody() {
  if (!readable_) return Transport::State::kBlocked;
  Transport::Progress progress{};
  const std::size_t space = std::min<std::uint64_t>(left_, serving_->exchange().Room());
  block_.resize_and_overwrite(space, [&](char* into, std::size_t size) {
    progress = transport_.Read({into, size});
    return progress.bytes;
  });
  if (progress.state == Transport::State::kBlocked ||
      (progress.bytes < space && transport_.tells_emptiness())) {
    readable_ = false;
  }
  left_ -= progress.bytes;
  serving_->OfferBlock(block_, thread_.now());
  if (left_ == 0) {
    body_ = Body::kDone;
    serving_->BodyEnded();
  }
  return progress.state;
}

void Http1::WaitInput() {
  if (waits_in_) return;
  waits_in_ = true;
  transport_.WaitReadable([self = shared_from_this(), this] { OnReadable(); });
}

void Http1::ReturnBuffer() {
  if (begin_ != end_) return;
  begin_ = end_ = 0;
  if (input_) thread_.GiveBuffer(std::move(input_));
}

void Http1::OnInputEnd() {
  switch (phase_) {
    case Phase::kServing:
      if (body_ != Body::kDone) {
        serving_->exchange().BreakInput(
            {errors::kHttpClientGone, "the client closed the connection amid the body"});
        if (serving_->waits_for_body()) {
          return BreakOff(
              {errors::kHttpClientGone, "the client closed the connection amid the body"});
        }
      }
      serving_->exchange().RequestStop();
      return;
    case Phase::kUpgraded:
      serving_->exchange().EndInput();
      return;
    default:
      Close();
  }
}

Http1::Next Http1::Consume() {
  switch (phase_) {
    case Phase::kIdle:
    case Phase::kHead:
      return ConsumeHead();
    case Phase::kServing:
      return ConsumeBody();
    case Phase::kUpgraded:
      return ConsumeRaw();
    case Phase::kDiscard:
      return Discard();
    case Phase::kLinger:
      begin_ = end_ = 0;
      return Next::kMore;
    default:
      return Next::kNone;
  }
}

Http1::Next Http1::ConsumeHead() {
  if (begin_ == end_) return Next::kMore;
  if (phase_ == Phase::kIdle) {
    Enter(Phase::kHead, limits().header_timeout);
    scanned_ = 0;
    if (buffered().starts_with("\r\n")) begin_ += 2;  // RFC 9112 section 2.2
  }
  const std::string_view bytes = buffered();
  if (is_first_ && !transport_.has_tls()) {
    if (bytes.size() < kPreface.size() && kPreface.starts_with(bytes)) return Next::kMore;
    if (bytes.starts_with(kPreface)) {
      auto http2 = MakeHttp2(service_, thread_, std::move(transport_), peer_, bytes);
      phase_ = Phase::kClosed;
      thread_.Remove(*this);
      thread_.Add(http2);
      http2->Start();
      return Next::kNone;
    }
  }
  const std::size_t size = FindHeadEnd(bytes, scanned_);
  if (size > limits().header_bytes || (size == 0 && bytes.size() > limits().header_bytes)) {
    return RefuseHead({errors::kHttpHeaderTooLarge,
                       fmt::format("the header is larger than {} bytes", limits().header_bytes)});
  }
  if (size == 0) {
    if (!bytes.empty() && IsHopeless(bytes, scanned_)) {
      return RefuseHead({errors::kHttpBadRequest, "this is no request of HTTP/1.1"});
    }
    scanned_ = bytes.size();
    return Next::kMore;
  }
  Request request;
  request.peer = peer_;
  request.scheme = transport_.has_tls() ? "https" : "http";
  const auto framing = ParseRequestHead(bytes.substr(0, size), limits().header_fields, request);
  if (!framing) return RefuseHead(framing.error());
  begin_ += size;
  StartServing(std::move(request), *framing);
  return Next::kAgain;
}

Http1::Next Http1::RefuseHead(const Status& status) {
  begin_ = end_ = 0;
  Request request;
  request.peer = peer_;
  StartServing(std::move(request), {});
  body_ = Body::kGarbage;
  keep_alive_ = false;
  serving_->Refuse(status);
  PumpOut();
  return Next::kAgain;
}

void Http1::TakeFraming(const Framing& framing) {
  keep_alive_ = framing.keep_alive;
  continue_pending_ = framing.expects_continue;
  left_ = framing.length;
  discarded_ = 0;
  chunks_ = {};
  switch (framing.body) {
    case Framing::Body::kLength:
      body_ = Body::kLength;
      break;
    case Framing::Body::kChunked:
      body_ = Body::kChunked;
      break;
    default:
      body_ = Body::kDone;
  }
}

void Http1::StartServing(Request request, const Framing& framing) {
  TakeFraming(framing);
  is_first_ = false;
  version_ = request.version;
  of_head_ = request.method == "HEAD";
  sent_status_ = 0;
  chunked_ = output_ended_ = write_shut_ = broken_ = done_ = false;
  const bool was_read = !request.method.empty();
  const bool has_body = body_ != Body::kDone;
  if (body_ != Body::kChunked) request.body_length = left_;
  const bool may_upgrade = version_ == 11 && !has_body &&
                           request.headers.HasToken("Connection", "Upgrade") &&
                           request.headers.Count("Upgrade") == 1;
  phase_ = Phase::kServing;
  serving_.emplace(*service_, std::move(request), may_upgrade,
                   [self = shared_from_this(), this] { thread_.Post([self, this] { OnWake(); }); });
  if (!was_read) return;
  serving_->Start(has_body, framing.expects_continue);
  PumpOut();
}

// Takes a piece of the body off the input, at most `room` bytes of data; false when more is needed.
Result<bool> Http1::DecodeSome(std::size_t room, std::string_view& data) {
  if (body_ == Body::kLength) {
    data = buffered().substr(0, std::min<std::uint64_t>(room, left_));
    left_ -= data.size();
    begin_ += data.size();
    if (left_ == 0) body_ = Body::kDone;
    return true;
  }
  CAISSON_ASSIGN(const ChunkDecoder::Step step, chunks_.Next(buffered(), room));
  begin_ += step.consumed;
  data = step.data;
  if (chunks_.done()) body_ = Body::kDone;
  return step.consumed > 0;
}

Http1::Next Http1::ConsumeBody() {
  if (body_ == Body::kGarbage) begin_ = end_ = 0;
  if (body_ == Body::kDone || body_ == Body::kGarbage) {
    return end_ - begin_ < IoThread::kInputBuffer ? Next::kMore : Next::kNone;
  }
  ServerExchange& exchange = serving_->exchange();
  if (begin_ == end_ && exchange.Room() == 0) return Next::kNone;
  while (begin_ != end_ && body_ != Body::kDone) {
    const std::size_t room = exchange.Room();
    if (room == 0) return Next::kNone;
    std::string_view data;
    const auto decoded = DecodeSome(room, data);
    if (!decoded) {
      RefuseBody(decoded.error());
      return Next::kAgain;
    }
    if (!*decoded) return Next::kMore;
    serving_->Offer(data, thread_.now());
    if (serving_->BodyOverflows()) {
      body_ = Body::kGarbage;
      keep_alive_ = false;
      PumpOut();
      return Next::kAgain;
    }
  }
  if (body_ != Body::kDone) return Next::kMore;
  serving_->BodyEnded();
  PumpOut();
  return Next::kAgain;
}

void Http1::RefuseBody(const Status& status) {
  body_ = Body::kGarbage;
  keep_alive_ = false;
  serving_->BreakBody(status);
  PumpOut();
}

Http1::Next Http1::ConsumeRaw() {
  while (begin_ != end_) {
    const std::string_view bytes = buffered().substr(0, serving_->exchange().Room());
    if (bytes.empty()) return Next::kNone;
    serving_->exchange().Offer(bytes);
    begin_ += bytes.size();
  }
  return Next::kMore;
}

Http1::Next Http1::Discard() {
  while (begin_ != end_ && body_ != Body::kDone) {
    std::string_view data;
    const auto decoded = DecodeSome(IoThread::kInputBuffer, data);
    discarded_ += data.size();
    if (!decoded || discarded_ > kMostDiscarded) {
      Linger();
      return Next::kAgain;
    }
    if (!*decoded) return Next::kMore;
  }
  if (body_ != Body::kDone) return Next::kMore;
  Enter(Phase::kIdle, limits().idle_timeout);
  return Next::kAgain;
}

void Http1::PumpOut() {
  while (phase_ != Phase::kClosed && !waits_out_) {
    std::array<iovec, 3> pieces;
    std::size_t count = 0;
    std::size_t skip = sent_;
    for (std::string& piece : output_) {
      const std::size_t past = std::min(skip, piece.size());
      skip -= past;
      if (past < piece.size()) pieces[count++] = {piece.data() + past, piece.size() - past};
    }
    if (count == 0) {
      if (!Gather()) return;
      continue;
    }
    const Transport::Progress progress = transport_.Write({pieces.data(), count});
    if (progress.state == Transport::State::kBroken) {
      return BreakOff({errors::kHttpClientGone, "the connection of the client broke"});
    }
    if (progress.state == Transport::State::kBlocked) {
      waits_out_ = true;
      transport_.WaitWritable([self = shared_from_this(), this] { OnWritable(); });
      return;
    }
    AdvanceOutput(progress.bytes);
  }
}

void Http1::AdvanceOutput(std::size_t bytes) {
  sent_ += bytes;
  output_since_ = thread_.now();
  if (sent_ < output_[0].size() + output_[1].size() + output_[2].size()) return;
  for (std::string& piece : output_) piece.clear();
  sent_ = 0;
}

// Takes from the exchange what there is to send; false when there is nothing.
bool Http1::Gather() {
  if (!serving_) return false;
  const ServerExchange::Picked picked = serving_->exchange().PickUp(output_[1]);
  done_ = picked.done;
  broken_ = picked.broken;
  if (FoldAnswer(picked)) {
    output_since_ = thread_.now();
    return true;
  }
  if (broken_) {
    // Without a reset, an answer that lasts until the end of the connection would look whole.
    transport_.ResetOnClose();
    BreakOff({errors::kHttpClientGone, "the answer was broken off"});
    return false;
  }
  if (output_ended_ && phase_ == Phase::kUpgraded && !std::exchange(write_shut_, true)) {
    transport_.ShutdownWrite();
  }
  if (done_ && output_ended_) FinishExchange();
  return false;
}

bool Http1::FoldAnswer(const ServerExchange::Picked& picked) {
  auto& [head, block, tail] = output_;
  if (picked.send_continue && std::exchange(continue_pending_, false)) {
    head += "HTTP/1.1 100 Continue\r\n\r\n";
  }
  if (picked.head) FormatHead(*picked.head);
  if (!block.empty() && chunked_) {
    fmt::format_to(std::back_inserter(head), "{:x}\r\n", block.size());
    tail = "\r\n";
  }
  if (picked.end && !std::exchange(output_ended_, true) && chunked_) tail += "0\r\n\r\n";
  if (block.size() <= kSmallBlock) {
    head += block;
    head += tail;
    block.clear();
    tail.clear();
  }
  return !head.empty() || !block.empty();
}

void Http1::DecideKeepAlive() {
  if (service_->draining) keep_alive_ = false;
  if (body_ == Body::kGarbage) keep_alive_ = false;
  if (body_ != Body::kDone && (continue_pending_ || left_ > kMostDiscarded)) keep_alive_ = false;
}

void Http1::FormatHead(const AnswerHead& head) {
  std::string& out = output_[0];
  const auto into = std::back_inserter(out);
  sent_status_ = head.status;
  DecideKeepAlive();
  fmt::format_to(into, "HTTP/1.1 {} {}\r\nDate: {}\r\nX-Request-Id: {}\r\n", head.status,
                 ReasonPhrase(head.status), thread_.date(), serving_->exchange().request().id);
  for (const Field& field : head.headers) {
    if (!IsOurs(field.name)) fmt::format_to(into, "{}: {}\r\n", field.name, field.value);
  }
  if (head.upgrade) {
    out += "Connection: Upgrade\r\n\r\n";
    phase_ = Phase::kUpgraded;
    body_ = Body::kDone;
    return;
  }
  const bool has_body = head.status != 204 && head.status != 304;
  if (has_body && head.length) {
    fmt::format_to(into, "Content-Length: {}\r\n", *head.length);
  } else if (has_body && version_ >= 11) {
    out += "Transfer-Encoding: chunked\r\n";
    chunked_ = !of_head_;
  } else if (has_body) {
    keep_alive_ = false;
  }
  if (!keep_alive_) {
    out += "Connection: close\r\n";
  } else if (version_ < 11) {
    out += "Connection: keep-alive\r\n";
  }
  out += "\r\n";
}

void Http1::FinishExchange() {
  serving_->Report(sent_status_, true);
  serving_.reset();
  block_ = {};
  if (phase_ == Phase::kUpgraded || !keep_alive_ || service_->draining) return Linger();
  if (body_ == Body::kDone) {
    Enter(Phase::kIdle, limits().idle_timeout);
  } else {
    Enter(Phase::kDiscard, limits().body_timeout);
  }
}

void Http1::Linger() {
  if (input_ended_) return Close();
  // Bytes that are on their way would make the kernel reset the connection before the client has
  // read the answer.
  transport_.ShutdownWrite();
  Enter(Phase::kLinger, service_->draining ? kDrainLingerTime : kLingerTime);
}

void Http1::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  transport_.Close();
  begin_ = end_ = 0;
  ReturnBuffer();
  thread_.Remove(*this);
}

// The connection broke: closes it and tells the handler, if one runs.
void Http1::BreakOff(const Status& status) {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();
  Close();
  if (!serving_) return;
  serving_->exchange().Lose(status);
  if (serving_->runs_in_pool() && !done_) return;  // OnWake ends it
  serving_->Report(sent_status_, false);
  serving_.reset();
}

void Http1::Tick(Clock::time_point now) {
  if (waits_out_ && now - output_since_ > limits().write_timeout) {
    return BreakOff(
        {errors::kHttpClientGone, "the client took nothing of its answer for too long"});
  }
  switch (phase_) {
    case Phase::kHandshake:
    case Phase::kIdle:
    case Phase::kDiscard:
    case Phase::kLinger:
      if (now > deadline_) Close();
      break;
    case Phase::kHead:
      if (now <= deadline_) break;
      RefuseHead({errors::kHttpTimedOut, "the header of the request did not come in time"});
      PumpIn();
      break;
    case Phase::kServing:
      CheckBodyTime(now);
      if (phase_ == Phase::kServing && !waits_in_ && !input_ended_ && transport_.PeerEnded()) {
        serving_->exchange().RequestStop();
      }
      break;
    default:
      break;
  }
}

void Http1::CheckBodyTime(Clock::time_point now) {
  if (body_ != Body::kLength && body_ != Body::kChunked) return;
  if (!serving_->BodyIsLate(now)) return;
  RefuseBody({errors::kHttpTimedOut, "the body of the request did not come in time"});
  PumpIn();
}

void Http1::Drain() {
  if (phase_ == Phase::kIdle || phase_ == Phase::kHandshake) return Close();
  if (phase_ == Phase::kLinger) deadline_ = std::min(deadline_, thread_.now() + kDrainLingerTime);
}

void Http1::Break() { BreakOff({errors::kHttpClientGone, "the server ends"}); }

}  // namespace

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

std::shared_ptr<Connection> MakeHttp1(std::shared_ptr<Service> service, IoThread& thread,
                                      Transport transport, std::string peer) {
  return std::make_shared<Http1>(std::move(service), thread, std::move(transport), std::move(peer));
}

}  // namespace caisson::http
