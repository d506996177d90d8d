// The lines that this process has written, and where they go.
#include "transport/say_once.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

std::atomic<LineSink> line_sink = nullptr;

}  // namespace

void SetLineSink(LineSink sink) { line_sink.store(sink); }

void Say(absl::string_view text) {
  if (const LineSink sink = line_sink.load(); sink != nullptr) {
    sink(text);
  } else {
    std::fputs(absl::StrCat("sluice: ", text, "\n").c_str(), stderr);
  }
}

void SayOnce(absl::string_view text) {
  static std::mutex mutex;
  static auto* const kSaid = new std::set<std::string>;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!kSaid->emplace(text).second) return;
  }
  Say(text);
}

void LongWait::Look(int64_t since_ns, int64_t now_ns, absl::FunctionRef<std::string()> for_what) {
  if (since_ns != since_ns_) {
    since_ns_ = since_ns;
    due_ns_ = since_ns + kFirstNs;
  }
  if (now_ns < due_ns_) return;
  due_ns_ = now_ns + 2 * kFirstNs;
  const std::string text = for_what();
  if (text.empty()) return;
  const int64_t seconds = (now_ns - since_ns) / 1'000'000'000;
  Say(absl::StrCat("waiting for ", text, ", for ", seconds, " s so far"));
}

}  // namespace sluice
