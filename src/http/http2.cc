// SPDX-License-Identifier: Apache-2.0
#include "http/http2.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "errors/http.h"
#include "http/head.h"

namespace caisson::http {
namespace {

constexpr std::chrono::milliseconds kLingerTime{1'000};
constexpr std::chrono::milliseconds kDrainLingerTime{200};
constexpr std::size_t kMostDiscarded = 64 << 20;  // of a body that nobody wants
constexpr std::chrono::milliseconds kDiscardTime{2'000};
constexpr std::size_t kMostLingered = 4 << 20;  // bytes that are dropped before the close
constexpr std::size_t kOutputBlock = 64 << 10;
constexpr int kFillsAtOnce = 16;            // then it is the turn of other connections
constexpr std::size_t kHopelessHeader = 8;  // times the limit: not worth an answer
constexpr std::int32_t kConnectionWindow = 16 << 20;
constexpr std::uint64_t kResetBurst = 200;  // streams that a client may reset at once
constexpr std::uint64_t kResetRate = 20;    // and per second
constexpr std::size_t kMostAcks = 100;      // of pings and settings that wait to go out

struct Stream {
  explicit Stream(std::int32_t number, Clock::time_point now) : id(number), since(now) {}

  const std::int32_t id;
  Clock::time_point since;  // its header began, later: output moved
  Request request;          // until serving takes it
  std::size_t header_bytes = 0;
  bool header_too_large = false;
  bool malformed = false;

  std::optional<Serving> serving;
  std::size_t owed = 0;  // bytes that came and that the client may not send anew yet
  bool body_ended = false;
  std::string block;  // to be sent, from sent on
  std::size_t sent = 0;
  int status = 0;
  bool submitted = false;  // the head of the answer
  bool deferred = false;   // nghttp2 waits to be told of more
  bool output_ended = false;
  bool end_sent = false;
  bool broken = false;
  bool done = false;
  bool closed = false;    // nghttp2 has forgotten it
  bool discards = false;  // its answer is out, while its body still comes
  std::size_t discarded = 0;
};

struct SessionDeleter {
  void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
};

nghttp2_nv NameValue(std::string_view name, std::string_view value) {
  // nghttp2 copies both and writes to neither.
  return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(),
          value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::string_view Text(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

std::string Lowered(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return lowered;
}

// What nghttp2 leaves unchecked.
Result<void> CheckRequest(Request& request) {
  const auto bad = [](const char* message) { return Fail(errors::kHttpBadRequest, message); };
  if (!IsToken(request.method) || request.method.size() > 32 || request.method == "CONNECT") {
    return bad("the method is malformed or not supported");
  }
  const bool visible =
      std::ranges::all_of(request.target, [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
  if (!visible || !(request.target.starts_with('/') ||
                    (request.target == "*" && request.method == "OPTIONS"))) {
    return bad("the path of the request is malformed");
  }
  if (request.headers.Count("Host") > 1) return bad("the header has more than one Host");
  if (const std::string* host = request.headers.Find("Host")) {
    if (!request.host.empty() && request.host != *host) return bad("Host is not :authority");
    request.host = *host;
  }
  if (!IsHost(request.host)) return bad("the host is malformed");
  CAISSON_TRY(ExpectsContinue(request));
  // nghttp2 has taken one of plain digits at most, and no Transfer-Encoding.
  const std::string* length = request.headers.Find("Content-Length");
  if (!length) return {};
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(length->data(), length->data() + length->size(), bytes);
  if (error != std::errc() || end != length->data() + length->size()) {
    return bad("the Content-Length is no plain number of bytes");
  }
  if (bytes > 0) request.body_length = bytes;
  return {};
}

class Http2 final : public Connection {
 public:
  Http2(std::shared_ptr<Service> service, IoThread& thread, Transport transport, std::string peer,
        std::string_view begin)
      : service_(std::move(service)),
        thread_(thread),
        transport_(std::move(transport)),
        peer_(std::move(peer)),
        begin_(begin) {}

  void Start() override;
  void Tick(Clock::time_point now) override;
  void Drain() override;
  void Break() override { Close({errors::kHttpClientGone, "the server ends"}); }

  // Called by nghttp2.
  int OnBeginHeaders(const nghttp2_frame& frame);
  int OnHeader(const nghttp2_frame& frame, std::string_view name, std::string_view value);
  int OnFrame(const nghttp2_frame& frame);
  int OnData(std::int32_t id, std::string_view bytes);
  int OnFrameSent(const nghttp2_frame& frame);
  int OnClose(std::int32_t id, std::uint32_t error);
  ssize_t ReadData(std::int32_t id, std::span<std::uint8_t> into, std::uint32_t& flags);

 private:
  const Limits& limits() const { return service_->options.limits; }
  nghttp2_session* session() { return session_.get(); }
  Stream* Find(std::int32_t id);
  std::vector<std::int32_t> StreamIds() const;
  bool MakeSession();

  void OnReadable();
  void OnWake(std::int32_t id);
  void Pump();
  void PumpIn();
  void PumpOut();
  void Linger();
  void Feed(std::string_view bytes);
  bool Gather();

  void BeginServing(Stream& stream, bool has_body);
  void EndBody(Stream& stream);
  void GiveWindow(Stream& stream);
  void Advance(Stream& stream);
  void Pick(Stream& stream, std::optional<AnswerHead>& head);
  void Submit(Stream& stream, const AnswerHead& head);
  void EndQuietly(Stream& stream);
  void Abandon(Stream& stream, const Status& status);
  void AbandonAll(const Status& status);
  bool Release(Stream& stream);
  void Reset(Stream& stream, std::uint32_t error);
  void TickStream(Stream& stream, Clock::time_point now);
  void Close(const Status& status);

  const std::shared_ptr<Service> service_;
  IoThread& thread_;
  Transport transport_;
  const std::string peer_;
  std::string begin_;
  std::unique_ptr<nghttp2_session, SessionDeleter> session_;
  std::unordered_map<std::int32_t, std::unique_ptr<Stream>> streams_;
  Clock::time_point idle_since_;
  std::string output_;
  std::size_t sent_ = 0;
  Clock::time_point output_since_;
  bool readable_ = true;
  bool waits_in_ = false;
  bool waits_out_ = false;
  bool again_ = false;
  bool inside_ = false;   // nghttp2 is running: it may not be entered again
  bool lingers_ = false;  // all is sent; what still comes is dropped
  Clock::time_point linger_until_;
  std::size_t lingered_ = 0;
  bool closed_ = false;
};

Http2& Self(void* user) { return *static_cast<Http2*>(user); }

// To go through the streams while some of them end.
std::vector<std::int32_t> Http2::StreamIds() const {
  std::vector<std::int32_t> ids;
  ids.reserve(streams_.size());
  for (const auto& [id, stream] : streams_) ids.push_back(id);
  return ids;
}

bool Http2::MakeSession() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_option* option = nullptr;
  if (nghttp2_session_callbacks_new(&callbacks) != 0) return false;
  const std::unique_ptr<nghttp2_session_callbacks, decltype(&nghttp2_session_callbacks_del)> own(
      callbacks, nghttp2_session_callbacks_del);
  if (nghttp2_option_new(&option) != 0) return false;
  const std::unique_ptr<nghttp2_option, decltype(&nghttp2_option_del)> own_option(
      option, nghttp2_option_del);
  nghttp2_session_callbacks_set_on_begin_headers_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
        return Self(user).OnBeginHeaders(*frame);
      });
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                    std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                    std::uint8_t, void* user) {
        return Self(user).OnHeader(*frame, Text(name, name_size), Text(value, value_size));
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
        return Self(user).OnFrame(*frame);
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks,
      [](nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
         std::size_t size, void* user) { return Self(user).OnData(id, Text(bytes, size)); });
  nghttp2_session_callbacks_set_on_frame_send_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
        return Self(user).OnFrameSent(*frame);
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session*, std::int32_t id, std::uint32_t error, void* user) {
        return Self(user).OnClose(id, error);
      });
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_option_set_max_outbound_ack(option, kMostAcks);
  nghttp2_option_set_stream_reset_rate_limit(option, kResetBurst, kResetRate);
  nghttp2_session* made = nullptr;
  if (nghttp2_session_server_new2(&made, callbacks, this, option) != 0) return false;
  session_.reset(made);
  return true;
}

void Http2::Start() {
  idle_since_ = thread_.now();
  const std::array<nghttp2_settings_entry, 3> settings{{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, static_cast<std::uint32_t>(limits().streams)},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(limits().buffer)},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(limits().header_bytes)},
  }};
  if (!MakeSession() ||
      nghttp2_submit_settings(session(), NGHTTP2_FLAG_NONE, settings.data(), settings.size()) !=
          0 ||
      nghttp2_session_set_local_window_size(session(), NGHTTP2_FLAG_NONE, 0, kConnectionWindow) !=
          0) {
    return Close({errors::kHttpClientGone, "no memory for HTTP/2"});
  }
  Feed(begin_);
  Pump();
  begin_ = {};
}

Stream* Http2::Find(std::int32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
}

void Http2::OnReadable() {
  waits_in_ = false;
  if (closed_) return;
  readable_ = true;
  thread_.Refresh();
  Pump();
}

void Http2::OnWake(std::int32_t id) {
  if (Stream* stream = Find(id)) Advance(*stream);
  if (!closed_) Pump();
}

void Http2::Pump() {
  PumpIn();
  PumpOut();
  if (closed_) return;
  if (!nghttp2_session_want_read(session()) && !nghttp2_session_want_write(session()) &&
      sent_ == output_.size()) {
    Linger();
  }
}

// Bytes that are on their way would make the kernel reset the connection before the client has read
// what was sent last.
void Http2::Linger() {
  if (std::exchange(lingers_, true)) return;
  linger_until_ = thread_.now() + (service_->draining ? kDrainLingerTime : kLingerTime);
  transport_.ShutdownWrite();
}

void Http2::PumpIn() {
  if (again_ || !readable_) {
    if (!again_ && !closed_ && !waits_in_) {
      waits_in_ = true;
      transport_.WaitReadable([self = shared_from_this(), this] { OnReadable(); });
    }
    return;
  }
  auto buffer = thread_.TakeBuffer();
  for (int fills = 0; !closed_ && readable_; ++fills) {
    if (fills == kFillsAtOnce) {
      again_ = true;
      thread_.Post([self = shared_from_this(), this] {
        again_ = false;
        if (!closed_) Pump();
      });
      break;
    }
    const auto progress = transport_.Read({buffer.get(), IoThread::kInputBuffer});
    if (progress.state == Transport::State::kEnd || progress.state == Transport::State::kBroken) {
      Close({errors::kHttpClientGone, "the client closed the connection"});
      break;
    }
    readable_ = progress.bytes == IoThread::kInputBuffer;
    Feed({buffer.get(), progress.bytes});
    PumpOut();
  }
  thread_.GiveBuffer(std::move(buffer));
  if (!closed_ && !readable_ && !waits_in_) {
    waits_in_ = true;
    transport_.WaitReadable([self = shared_from_this(), this] { OnReadable(); });
  }
}

void Http2::Feed(std::string_view bytes) {
  if (bytes.empty()) return;
  if (lingers_) {
    lingered_ += bytes.size();
    if (lingered_ > kMostLingered) Close({errors::kHttpClientGone, "the connection is over"});
    return;
  }
  inside_ = true;
  const auto taken = nghttp2_session_mem_recv(
      session(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  inside_ = false;
  if (taken >= 0) return;
  PumpOut();  // tells the client why
  if (closed_) return;
  Linger();
  AbandonAll({errors::kHttpClientGone, "the client broke the rules of HTTP/2"});
}

// Fills output_ from nghttp2; false when there is nothing to send.
bool Http2::Gather() {
  output_.clear();
  sent_ = 0;
  inside_ = true;
  while (output_.size() < kOutputBlock) {
    const std::uint8_t* bytes = nullptr;
    const auto size = nghttp2_session_mem_send(session(), &bytes);
    if (size <= 0) break;
    output_.append(Text(bytes, static_cast<std::size_t>(size)));
  }
  inside_ = false;
  return !output_.empty();
}

void Http2::PumpOut() {
  while (!closed_ && !lingers_ && !waits_out_ && !inside_) {
    if (sent_ == output_.size() && !Gather()) return;
    const iovec piece{output_.data() + sent_, output_.size() - sent_};
    const auto progress = transport_.Write({&piece, 1});
    if (progress.state == Transport::State::kBroken) {
      return Close({errors::kHttpClientGone, "the connection of the client broke"});
    }
    output_since_ = thread_.now();
    if (progress.state == Transport::State::kBlocked) {
      waits_out_ = true;
      return transport_.WaitWritable([self = shared_from_this(), this] {
        waits_out_ = false;
        thread_.Refresh();
        if (!closed_) Pump();
      });
    }
    sent_ += progress.bytes;
  }
}

int Http2::OnBeginHeaders(const nghttp2_frame& frame) {
  if (frame.hd.type != NGHTTP2_HEADERS || frame.headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  auto stream = std::make_unique<Stream>(frame.hd.stream_id, thread_.now());
  stream->request.version = 20;
  stream->request.peer = peer_;
  stream->request.scheme = "http";
  streams_.emplace(frame.hd.stream_id, std::move(stream));
  return 0;
}

int Http2::OnHeader(const nghttp2_frame& frame, std::string_view name, std::string_view value) {
  Stream* stream = Find(frame.hd.stream_id);
  if (!stream || stream->serving) return 0;  // trailers are dropped
  stream->header_bytes += name.size() + value.size() + 32;
  if (stream->header_bytes > limits().header_bytes * kHopelessHeader) {
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  Request& request = stream->request;
  if (stream->header_bytes > limits().header_bytes ||
      request.headers.size() == limits().header_fields) {
    stream->header_too_large = true;
  } else if (name == ":method") {
    request.method = value;
  } else if (name == ":path") {
    request.target = value;
  } else if (name == ":authority") {
    request.host = value;
  } else if (!name.starts_with(':')) {
    if (!IsToken(name) || !IsFieldValue(value)) stream->malformed = true;
    request.headers.Add(name, value);
  }
  return 0;
}

int Http2::OnFrame(const nghttp2_frame& frame) {
  Stream* stream = Find(frame.hd.stream_id);
  if (!stream) return 0;
  const bool ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (frame.hd.type == NGHTTP2_HEADERS && frame.headers.cat == NGHTTP2_HCAT_REQUEST) {
    BeginServing(*stream, !ends);
  } else if (ends && (frame.hd.type == NGHTTP2_DATA || frame.hd.type == NGHTTP2_HEADERS)) {
    EndBody(*stream);
  }
  return 0;
}

void Http2::BeginServing(Stream& stream, bool has_body) {
  Request request = std::move(stream.request);
  Result<void> checked;
  if (stream.header_too_large) {
    checked = Fail(errors::kHttpHeaderTooLarge,
                   fmt::format("the header is larger than {} bytes or {} fields",
                               limits().header_bytes, limits().header_fields));
  } else if (stream.malformed) {
    checked = Fail(errors::kHttpBadRequest, "a field of the header is malformed");
  } else {
    checked = CheckRequest(request);
  }
  const bool expects = has_body && request.headers.Count("Expect") > 0;
  if (!has_body) request.body_length = 0;
  stream.body_ended = !has_body;
  stream.serving.emplace(*service_, std::move(request), false,
                         [self = shared_from_this(), this, id = stream.id] {
                           thread_.Post([self, this, id] { OnWake(id); });
                         });
  if (checked) {
    stream.serving->Start(has_body, expects);
  } else {
    stream.serving->Refuse(checked.error());
  }
  Advance(stream);
}

int Http2::OnData(std::int32_t id, std::string_view bytes) {
  nghttp2_session_consume_connection(session(), bytes.size());
  Stream* stream = Find(id);
  if (!stream || !stream->serving) return 0;
  stream->owed += bytes.size();
  if (stream->discards) stream->discarded += bytes.size();
  stream->serving->Offer(bytes, thread_.now());
  stream->serving->exchange().Deliver();
  if (stream->serving->BodyOverflows()) Advance(*stream);
  GiveWindow(*stream);
  EndQuietly(*stream);
  return 0;
}

void Http2::EndBody(Stream& stream) {
  if (!stream.serving || std::exchange(stream.body_ended, true)) return;
  stream.serving->BodyEnded();
  Advance(stream);
}

// Lets the client send anew what the handler has taken.
void Http2::GiveWindow(Stream& stream) {
  if (stream.owed == 0 || stream.closed) return;
  if (stream.serving->exchange().Room(limits().buffer / 2) == 0) return;  // a wake will come
  nghttp2_session_consume_stream(session(), stream.id, std::exchange(stream.owed, 0));
}

void Http2::Pick(Stream& stream, std::optional<AnswerHead>& head) {
  stream.block.clear();
  stream.sent = 0;
  auto picked = stream.serving->exchange().PickUp(stream.block);
  head = std::move(picked.head);
  stream.output_ended |= picked.end;
  stream.broken |= picked.broken;
  stream.done |= picked.done;
  stream.since = thread_.now();
  if (picked.send_continue && !stream.submitted) {
    const auto status = NameValue(":status", "100");
    nghttp2_submit_headers(session(), NGHTTP2_FLAG_NONE, stream.id, nullptr, &status, 1, nullptr);
  }
}

// Acts on what the exchange has to say.
void Http2::Advance(Stream& stream) {
  if (!stream.serving) return;
  if (stream.closed) {
    std::optional<AnswerHead> head;
    Pick(stream, head);
    Release(stream);
    return;
  }
  GiveWindow(stream);
  if (stream.sent < stream.block.size()) return;  // ReadData goes on with it
  std::optional<AnswerHead> head;
  Pick(stream, head);
  if (head) Submit(stream, *head);
  if (stream.broken && stream.block.empty()) return Reset(stream, NGHTTP2_INTERNAL_ERROR);
  const bool has_news = !stream.block.empty() || stream.output_ended;
  if (has_news && std::exchange(stream.deferred, false)) {
    nghttp2_session_resume_data(session(), stream.id);
  }
  EndQuietly(stream);
}

void Http2::Submit(Stream& stream, const AnswerHead& head) {
  stream.submitted = true;
  stream.status = head.status;
  std::vector<std::string> held;
  held.reserve(head.headers.size() + 2);
  std::vector<nghttp2_nv> fields;
  held.push_back(std::to_string(head.status));
  fields.push_back(NameValue(":status", held.back()));
  fields.push_back(NameValue("date", thread_.date()));
  fields.push_back(NameValue("x-request-id", stream.serving->exchange().request().id));
  for (const Field& field : head.headers) {
    held.push_back(Lowered(field.name));
    const std::string& name = held.back();
    const bool drops = name == "date" || name == "x-request-id" || name == "content-length" ||
                       name == "transfer-encoding" || name == "connection" ||
                       name == "keep-alive" || name == "upgrade" || name == "proxy-connection" ||
                       name == "te";
    if (!drops) fields.push_back(NameValue(name, field.value));
  }
  const bool has_body = head.status != 204 && head.status != 304;
  if (has_body && head.length) {
    held.push_back(std::to_string(*head.length));
    fields.push_back(NameValue("content-length", held.back()));
  }
  nghttp2_data_provider provider{};
  provider.read_callback = [](nghttp2_session*, std::int32_t id, std::uint8_t* into,
                              std::size_t size, std::uint32_t* flags, nghttp2_data_source*,
                              void* user) { return Self(user).ReadData(id, {into, size}, *flags); };
  const bool is_whole = stream.output_ended && stream.block.empty();
  nghttp2_submit_response(session(), stream.id, fields.data(), fields.size(),
                          is_whole ? nullptr : &provider);
}

ssize_t Http2::ReadData(std::int32_t id, std::span<std::uint8_t> into, std::uint32_t& flags) {
  Stream* stream = Find(id);
  if (!stream) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  if (stream->sent == stream->block.size() && !stream->output_ended) {
    std::optional<AnswerHead> head;  // there is none any more
    Pick(*stream, head);
  }
  const std::size_t size = std::min(into.size(), stream->block.size() - stream->sent);
  std::memcpy(into.data(), stream->block.data() + stream->sent, size);
  stream->sent += size;
  const bool is_empty = stream->sent == stream->block.size();
  if (is_empty && stream->output_ended) {
    flags |= NGHTTP2_DATA_FLAG_EOF;
  } else if (size == 0) {
    if (stream->broken) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    stream->deferred = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  stream->since = thread_.now();
  return static_cast<ssize_t>(size);
}

int Http2::OnFrameSent(const nghttp2_frame& frame) {
  const bool ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (!ends || (frame.hd.type != NGHTTP2_DATA && frame.hd.type != NGHTTP2_HEADERS)) return 0;
  if (Stream* stream = Find(frame.hd.stream_id)) {
    stream->end_sent = true;
    EndQuietly(*stream);
  }
  return 0;
}

// The answer is out: what is left of the body is not wanted (RFC 9113 section 8.1).
void Http2::EndQuietly(Stream& stream) {
  const bool is_over = stream.end_sent && stream.done && !stream.body_ended && !stream.closed;
  if (!is_over) return;
  // Some clients (curl 7.88) lose the answer when the reset comes before they have looked for it.
  stream.discards = true;
  stream.serving->exchange().EndReading();
  GiveWindow(stream);
  const bool is_enough =
      stream.discarded > kMostDiscarded || thread_.now() - stream.since > kDiscardTime;
  if (is_enough) Reset(stream, NGHTTP2_NO_ERROR);
}

void Http2::Reset(Stream& stream, std::uint32_t error) {
  nghttp2_submit_rst_stream(session(), NGHTTP2_FLAG_NONE, stream.id, error);
}

int Http2::OnClose(std::int32_t id, std::uint32_t error) {
  Stream* stream = Find(id);
  if (!stream) return 0;
  stream->closed = true;
  if (error != NGHTTP2_NO_ERROR || !stream->end_sent) {
    Abandon(*stream, {errors::kHttpClientGone, "the client reset the stream"});
  } else {
    Release(*stream);
  }
  return 0;
}

void Http2::Abandon(Stream& stream, const Status& status) {
  if (stream.serving) stream.serving->exchange().Lose(status);
  Release(stream);
}

// Forgets a stream that is over once its handler is; true when it is gone.
bool Http2::Release(Stream& stream) {
  if (stream.serving) {
    if (stream.serving->runs_in_pool() && !stream.done) return false;
    stream.serving->Report(stream.status, stream.end_sent);
  }
  streams_.erase(stream.id);
  if (streams_.empty()) idle_since_ = thread_.now();
  return true;
}

void Http2::TickStream(Stream& stream, Clock::time_point now) {
  if (stream.closed) return;
  if (!stream.serving) {
    if (now - stream.since > limits().header_timeout) Reset(stream, NGHTTP2_CANCEL);
    return;
  }
  if (stream.discards) return EndQuietly(stream);
  if (!stream.body_ended && stream.serving->BodyIsLate(now)) {
    stream.serving->BreakBody(
        {errors::kHttpTimedOut, "the body of the request did not come in time"});
    return Advance(stream);
  }
  if (stream.sent < stream.block.size() && now - stream.since > limits().write_timeout) {
    Reset(stream, NGHTTP2_CANCEL);
  }
}

void Http2::Tick(Clock::time_point now) {
  if (closed_) return;
  if (lingers_ && now > linger_until_) {
    return Close({errors::kHttpClientGone, "the connection is over"});
  }
  if (waits_out_ && now - output_since_ > limits().write_timeout) {
    return Close({errors::kHttpClientGone, "the client took nothing of its answers for too long"});
  }
  if (streams_.empty() && now - idle_since_ > limits().idle_timeout) {
    nghttp2_session_terminate_session(session(), NGHTTP2_NO_ERROR);
  }
  for (const std::int32_t id : StreamIds()) {
    if (Stream* stream = Find(id)) TickStream(*stream, now);
  }
  Pump();
}

void Http2::Drain() {
  if (closed_) return;
  nghttp2_submit_goaway(session(), NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session()), NGHTTP2_NO_ERROR,
                        nullptr, 0);
  Pump();
}

void Http2::Close(const Status& status) {
  if (std::exchange(closed_, true)) return;
  const auto self = shared_from_this();
  transport_.Close();
  thread_.Remove(*this);
  AbandonAll(status);
}

void Http2::AbandonAll(const Status& status) {
  for (const std::int32_t id : StreamIds()) {
    Stream* stream = Find(id);
    if (!stream || std::exchange(stream->closed, true)) continue;
    Abandon(*stream, status);
  }
}

}  // namespace

std::shared_ptr<Connection> MakeHttp2(std::shared_ptr<Service> service, IoThread& thread,
                                      Transport transport, std::string peer,
                                      std::string_view begin) {
  return std::make_shared<Http2>(std::move(service), thread, std::move(transport), std::move(peer),
                                 begin);
}

}  // namespace caisson::http
