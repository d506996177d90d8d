// Writing and reading of numbers as bytes.
#include "trace/serialize.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "plan/bucket.h"

namespace sluice {
namespace {

constexpr absl::string_view kMagic = "sluice trace 3\n";
// Then the rank, what was dropped, how many tracks, tensors and events follow.
constexpr size_t kHeaderBytes = kMagic.size() + 4 + 8 + 4 + 4 + 8;
// The seven fields of an id; times, bytes and item; count, track and epoch; has_id; the kind.
constexpr size_t kEventBytes = 7 * 4 + 4 * 8 + 3 * 4 + 1 + 1;

template <int kBytes>
void Put(std::string* out, uint64_t value) {
  for (int i = 0; i < kBytes; ++i) out->push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

// Takes numbers off the front of `bytes`, which must hold them.
template <int kBytes>
uint64_t Take(absl::string_view* bytes) {
  uint64_t value = 0;
  for (int i = 0; i < kBytes; ++i) {
    const auto byte = static_cast<unsigned char>((*bytes)[static_cast<size_t>(i)]);
    value |= uint64_t{byte} << (8 * i);
  }
  bytes->remove_prefix(kBytes);
  return value;
}

void PutEvent(std::string* out, const TraceEvent& event) {
  const BucketIdFields id = event.id.fields();
  for (const uint64_t field : {id.run, id.window, id.round, id.phase, id.src, id.dst, id.n}) {
    Put<4>(out, field);
  }
  Put<8>(out, static_cast<uint64_t>(event.begin_ns));
  Put<8>(out, static_cast<uint64_t>(event.end_ns));
  Put<8>(out, static_cast<uint64_t>(event.bytes));
  Put<8>(out, static_cast<uint64_t>(event.item));
  Put<4>(out, static_cast<uint64_t>(event.count));
  Put<4>(out, static_cast<uint64_t>(event.track));
  Put<4>(out, static_cast<uint64_t>(event.epoch));
  Put<1>(out, event.has_id ? 1 : 0);
  Put<1>(out, static_cast<uint64_t>(event.kind));
}

bool Fit(const BucketIdFields& id) {
  const auto fits = [](uint64_t value, int bits) { return value >> bits == 0; };
  return fits(id.run, kRunBits) && fits(id.window, kWindowBits) && fits(id.round, kRoundBits) &&
         fits(id.phase, kPhaseBits) && fits(id.src, kRankBits) && fits(id.dst, kRankBits) &&
         fits(id.n, kCountBits);
}

// False if there is no such event.
bool TakeEvent(absl::string_view* bytes, TraceEvent* event) {
  BucketIdFields id;
  for (uint64_t* const field :
       {&id.run, &id.window, &id.round, &id.phase, &id.src, &id.dst, &id.n}) {
    *field = Take<4>(bytes);
  }
  event->begin_ns = static_cast<int64_t>(Take<8>(bytes));
  event->end_ns = static_cast<int64_t>(Take<8>(bytes));
  event->bytes = static_cast<int64_t>(Take<8>(bytes));
  event->item = static_cast<int64_t>(Take<8>(bytes));
  event->count = static_cast<int32_t>(Take<4>(bytes));
  event->track = static_cast<int32_t>(Take<4>(bytes));
  event->epoch = static_cast<int32_t>(Take<4>(bytes));
  event->has_id = Take<1>(bytes) != 0;
  const uint64_t kind = Take<1>(bytes);
  if (!Fit(id) || kind > static_cast<uint64_t>(kLastTraceKind)) return false;
  if (event->begin_ns <= -kTraceTimeEndNs || event->end_ns >= kTraceTimeEndNs) return false;
  if (event->end_ns < event->begin_ns || event->count < 0 || event->track < 0) return false;
  event->id = BucketId(id);
  event->kind = static_cast<TraceKind>(kind);
  return true;
}

// False if there is no such name.
bool TakeName(absl::string_view* bytes, std::string* name) {
  if (bytes->size() < 4) return false;
  const uint64_t length = Take<4>(bytes);
  if (bytes->size() < length) return false;
  *name = std::string(bytes->substr(0, length));
  bytes->remove_prefix(length);
  return true;
}

}  // namespace

std::string EncodeTrace(const TraceContent& content) {
  std::string out(kMagic);
  out.reserve(kHeaderBytes + content.events.size() * kEventBytes);
  Put<4>(&out, static_cast<uint64_t>(content.rank));
  Put<8>(&out, static_cast<uint64_t>(content.dropped));
  Put<4>(&out, content.tracks.size());
  Put<4>(&out, content.tensors.size());
  Put<8>(&out, content.events.size());
  for (const auto* const names : {&content.tracks, &content.tensors}) {
    for (const std::string& name : *names) {
      Put<4>(&out, name.size());
      out += name;
    }
  }
  for (const TraceEvent& event : content.events) PutEvent(&out, event);
  return out;
}

absl::StatusOr<TraceContent> DecodeTrace(absl::string_view bytes) {
  if (bytes.size() < kHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::InvalidArgumentError("not a serialised trace");
  }
  bytes.remove_prefix(kMagic.size());
  TraceContent content;
  content.rank = static_cast<int32_t>(Take<4>(&bytes));
  content.dropped = static_cast<int64_t>(Take<8>(&bytes));
  const uint64_t tracks = Take<4>(&bytes);
  const uint64_t tensors = Take<4>(&bytes);
  const uint64_t count = Take<8>(&bytes);
  if (content.rank < 0) return absl::InvalidArgumentError("a trace of a negative rank");
  for (uint64_t i = 0; i < tracks; ++i) {
    if (!TakeName(&bytes, &content.tracks.emplace_back())) {
      return absl::InvalidArgumentError(absl::StrCat("track ", i, " of a trace has no name"));
    }
  }
  for (uint64_t i = 0; i < tensors; ++i) {
    if (!TakeName(&bytes, &content.tensors.emplace_back())) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", i, " of a trace has no name"));
    }
  }
  if (bytes.size() % kEventBytes != 0 || bytes.size() / kEventBytes != count) {
    return absl::InvalidArgumentError(absl::StrCat("a trace of ", count, " events has ",
                                                   bytes.size(), " bytes of them, and not ",
                                                   kEventBytes, " each"));
  }
  content.events.resize(count);
  for (size_t i = 0; i < content.events.size(); ++i) {
    if (!TakeEvent(&bytes, &content.events[i])) {
      return absl::InvalidArgumentError(absl::StrCat("event ", i, " of a trace is none"));
    }
  }
  return content;
}

}  // namespace sluice
