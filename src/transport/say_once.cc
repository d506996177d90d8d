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

void LongWait::Look(absl::FunctionRef<std::string()> for_what) {
  const Clock::time_point now = Clock::now();
  if (now < due_) return;
  due_ = now + std::chrono::seconds(10);
  const std::string text = for_what();
  if (text.empty()) return;
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now - start_).count();
  Say(absl::StrCat("waiting for ", text, ", for ", seconds, " s so far"));
}

}  // namespace sluice
