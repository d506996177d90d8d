// The lines that this process has written.
#include "transport/say_once.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace sluice {

void SayOnce(absl::string_view text) {
  static std::mutex mutex;
  static auto* const kSaid = new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!kSaid->emplace(text).second) return;
  std::fputs(absl::StrCat("sluice: ", text, "\n").c_str(), stderr);
}

}  // namespace sluice
