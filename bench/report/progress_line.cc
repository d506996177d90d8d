// Drawing over what was drawn.
#include "report/progress_line.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_format.h"

namespace sluice::bench {
namespace {

constexpr int64_t kBetweenNs = 200'000'000;

}  // namespace

ProgressLine::ProgressLine(bool asked_for)
    : shown_(asked_for || isatty(STDERR_FILENO) == 1), next_ns_(begin_ns_ + kBetweenNs) {}

void ProgressLine::Draw(absl::string_view text) {
  next_ns_ = MonotonicNs() + kBetweenNs;
  absl::FPrintF(stderr, "\r\033[K%s", text);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::Clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace sluice::bench
