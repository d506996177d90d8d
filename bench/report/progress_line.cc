// Drawing over what was drawn.
#include "report/progress_line.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_format.h"

namespace sluice::bench {
namespace {

constexpr int64_t kBetweenNs = 200'000'000;
constexpr int64_t kFirstLineNs = 3'000'000'000;  // that is not drawn over
constexpr int64_t kBetweenLinesNs = 10'000'000'000;

}  // namespace

ProgressLine::ProgressLine(bool draws)
    : draws_(draws || isatty(STDERR_FILENO) == 1),
      next_ns_(begin_ns_ + (draws_ ? kBetweenNs : kFirstLineNs)) {}

void ProgressLine::Draw(absl::string_view text) {
  next_ns_ = MonotonicNs() + (draws_ ? kBetweenNs : kBetweenLinesNs);
  const absl::string_view begin = draws_ ? "\r\033[K" : "# ";
  absl::FPrintF(stderr, "%s%s%s", begin, text, draws_ ? "" : "\n");
  std::fflush(stderr);
  drawn_ = draws_;
}

void ProgressLine::Clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace sluice::bench
