// Drawing over what was drawn.
#include "simulate/progress_line.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_format.h"

namespace sluice::bench {
namespace {

constexpr absl::Duration kBetweenLines = absl::Milliseconds(200);

}  // namespace

ProgressLine::ProgressLine(bool asked_for)
    : shown_(asked_for || isatty(STDERR_FILENO) == 1), next_(begin_ + kBetweenLines) {}

void ProgressLine::Draw(absl::string_view text) {
  next_ = absl::Now() + kBetweenLines;
  absl::FPrintF(stderr, "\r\033[K%s", text);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::Clear() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

}  // namespace sluice::bench
