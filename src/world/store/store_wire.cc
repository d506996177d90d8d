// Encoding and parsing of frames.
#include "world/store/store_wire.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "world/store/store_check.h"

namespace sluice {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr size_t kMaxErrorBytes = 1024;
// Taken bytes are forgotten in steps of this, and an inbox keeps no more room than this.
constexpr size_t kInboxRoom = size_t{256} << 10;

template <class Number>
void PutNumber(std::string* out, Number number) {
  auto rest = static_cast<uint64_t>(number);
  for (size_t i = 0; i < sizeof(number); ++i, rest >>= 8) out->push_back(static_cast<char>(rest));
}

void PutText(std::string* out, absl::string_view text) {
  PutNumber(out, static_cast<uint32_t>(text.size()));
  out->append(text.data(), text.size());
}

// Takes fields from the front. Once one is missing, all later ones are.
class Fields {
 public:
  explicit Fields(absl::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  Number TakeNumber() {
    const absl::string_view field = TakeBytes(sizeof(Number));
    uint64_t number = 0;
    for (size_t i = field.size(); i > 0; --i) {
      number = number << 8 | static_cast<unsigned char>(field[i - 1]);
    }
    return static_cast<Number>(number);
  }

  absl::string_view TakeText() { return TakeBytes(TakeNumber<uint32_t>()); }

  bool missing() const { return missing_; }
  // All was there, and nothing is left.
  bool complete() const { return !missing_ && bytes_.empty(); }

 private:
  absl::string_view TakeBytes(size_t count) {
    if (missing_ || count > bytes_.size()) {
      missing_ = true;
      return {};
    }
    const absl::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  absl::string_view bytes_;
  bool missing_ = false;
};

absl::Status NoFrame(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("what came is not ", what, " of a store"));
}

absl::Status MakeStatus(uint8_t code, absl::string_view text) {
  constexpr uint8_t kLastCode = 16;
  if (code == 0) return absl::OkStatus();
  const auto known =
      code <= kLastCode ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown;
  return absl::Status(known, text.substr(0, kMaxErrorBytes));
}

// A text from elsewhere, so that it can be printed.
std::string Printable(absl::string_view text) {
  std::string shown(text.substr(0, kMaxErrorBytes));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return shown.empty() ? "no reason was given" : shown;
}

}  // namespace

std::string EncodeFrame(StoreFrame kind, absl::string_view fields) {
  std::string frame;
  frame.reserve(kLengthBytes + 1 + fields.size());
  PutNumber(&frame, static_cast<uint32_t>(1 + fields.size()));
  PutNumber(&frame, static_cast<uint8_t>(kind));
  frame.append(fields.data(), fields.size());
  return frame;
}

std::string EncodeRequest(const StoreRequest& request) {
  std::string fields;
  PutNumber(&fields, request.id);
  PutNumber(&fields, static_cast<uint8_t>(request.call));
  PutNumber(&fields, request.number);
  PutNumber(&fields, request.version);
  PutText(&fields, request.key);
  PutText(&fields, request.value);
  PutText(&fields, request.expected);
  return EncodeFrame(StoreFrame::kRequest, fields);
}

absl::StatusOr<StoreRequest> ParseRequest(absl::string_view frame) {
  Fields fields(frame);
  const auto kind = fields.TakeNumber<uint8_t>();
  StoreRequest request;
  request.id = fields.TakeNumber<uint32_t>();
  request.call = static_cast<StoreCall>(fields.TakeNumber<uint8_t>());
  request.number = fields.TakeNumber<int64_t>();
  request.version = fields.TakeNumber<uint64_t>();
  request.key = fields.TakeText();
  request.value = fields.TakeText();
  request.expected = fields.TakeText();
  if (!fields.complete() || kind != static_cast<uint8_t>(StoreFrame::kRequest) ||
      request.call < StoreCall::kPing || request.call > StoreCall::kWatch) {
    return NoFrame("a request");
  }
  return request;
}

std::string EncodeReply(const StoreReply& reply) {
  std::string fields;
  PutNumber(&fields, reply.id);
  PutNumber(&fields, static_cast<uint8_t>(reply.status.code()));
  PutText(&fields, reply.status.message().substr(0, kMaxErrorBytes));
  PutNumber(&fields, reply.number);
  PutNumber(&fields, reply.version);
  PutText(&fields, reply.value);
  PutNumber(&fields, static_cast<uint32_t>(reply.entries.size()));
  for (const auto& [key, value] : reply.entries) {
    PutText(&fields, key);
    PutText(&fields, value);
  }
  return EncodeFrame(StoreFrame::kReply, fields);
}

absl::StatusOr<StoreReply> ParseReply(absl::string_view frame) {
  Fields fields(frame);
  const auto kind = fields.TakeNumber<uint8_t>();
  StoreReply reply;
  reply.id = fields.TakeNumber<uint32_t>();
  const auto code = fields.TakeNumber<uint8_t>();
  const absl::string_view text = fields.TakeText();
  reply.status = MakeStatus(code, code == 0 ? std::string() : Printable(text));
  reply.number = fields.TakeNumber<int64_t>();
  reply.version = fields.TakeNumber<uint64_t>();
  reply.value = std::string(fields.TakeText());
  // The count is not believed: each entry has to be there.
  for (auto left = fields.TakeNumber<uint32_t>(); left > 0 && !fields.missing(); --left) {
    const absl::string_view key = fields.TakeText();
    reply.entries.emplace_back(key, fields.TakeText());
  }
  if (!fields.complete() || kind != static_cast<uint8_t>(StoreFrame::kReply)) {
    return NoFrame("a reply");
  }
  return reply;
}

std::string EncodeError(const absl::Status& status) {
  std::string fields;
  PutNumber(&fields, static_cast<uint8_t>(status.code()));
  PutText(&fields, status.message().substr(0, kMaxErrorBytes));
  return EncodeFrame(StoreFrame::kError, fields);
}

absl::Status ParseError(absl::string_view frame) {
  Fields fields(frame);
  const auto kind = fields.TakeNumber<uint8_t>();
  const auto code = fields.TakeNumber<uint8_t>();
  const absl::string_view text = fields.TakeText();
  if (!fields.complete() || kind != static_cast<uint8_t>(StoreFrame::kError) || code == 0) {
    return NoFrame("an error");
  }
  return MakeStatus(code, Printable(text));
}

FrameSpan FrameAt(absl::string_view frames, size_t at) {
  FrameSpan span;
  while (span.end < frames.size() && span.end <= at) {
    span.begin = span.end;
    span.end += kLengthBytes + Fields(frames.substr(span.begin)).TakeNumber<uint32_t>();
  }
  return span.end <= at ? FrameSpan{span.end, span.end} : span;
}

absl::StatusOr<absl::string_view> StoreInbox::Next() {
  if (taken_ == bytes_.size()) {
    bytes_.clear();
    taken_ = 0;
    if (bytes_.capacity() > kInboxRoom) bytes_.shrink_to_fit();
  } else if (taken_ >= kInboxRoom) {
    bytes_.erase(0, taken_);
    taken_ = 0;
  }
  const absl::string_view rest = absl::string_view(bytes_).substr(taken_);
  if (rest.size() < kLengthBytes) return absl::string_view();
  const size_t length = Fields(rest).TakeNumber<uint32_t>();
  if (length == 0 || length > max_frame_bytes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("what came is not the frames of a store: one of ", length,
                     " bytes, where 1 to ", max_frame_bytes_,
                     " may be. If another program listens there, end it or give the store another "
                     "port"));
  }
  if (rest.size() < kLengthBytes + length) return absl::string_view();
  taken_ += kLengthBytes + length;
  return rest.substr(kLengthBytes, length);
}

}  // namespace sluice
