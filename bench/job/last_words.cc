// A handler that wakes a thread, which may take locks and print.
#include "job/last_words.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "job/exit_codes.h"

namespace sluice::bench {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<int> wake_fd{-1};  // -1: nobody would print anything

void Wake(int signal) {
  std::signal(signal, SIG_DFL);
  interrupted = true;
  const int fd = wake_fd;
  const char byte = static_cast<char>(signal);
  if (fd < 0 || write(fd, &byte, 1) != 1) _exit(kInterruptedExit);
}

}  // namespace

LastWords::LastWords(bool speaks) {
  if (speaks && pipe2(pipe_, O_CLOEXEC) == 0) {
    try {
      thread_ = std::thread([this] { Run(); });
      wake_fd = pipe_[1];
    } catch (const std::system_error&) {
      // The end is silent.
    }
  }
  before_int_ = std::signal(SIGINT, Wake);
  if (before_int_ == SIG_IGN) std::signal(SIGINT, SIG_IGN);  // as shells start what is behind them
  before_term_ = std::signal(SIGTERM, Wake);
}

LastWords::~LastWords() {
  std::signal(SIGINT, before_int_);
  std::signal(SIGTERM, before_term_);
  wake_fd = -1;
  for (const int end : {1, 0}) {
    if (pipe_[end] >= 0) close(pipe_[end]);
    if (end == 1 && thread_.joinable()) thread_.join();
  }
}

void LastWords::Set(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  text_ = text;
}

void LastWords::Run() {
  char byte = 0;
  if (read(pipe_[0], &byte, 1) != 1) return;  // the writing end is closed
  const std::lock_guard<std::mutex> lock(mutex_);
  const char* const by = byte == SIGTERM ? " (SIGTERM)\n" : "\n";
  std::fputs(absl::StrCat(text_, "# interrupted", by).c_str(), stdout);
  std::fflush(stdout);
  std::_Exit(kInterruptedExit);
}

bool WasInterrupted() { return interrupted; }

}  // namespace sluice::bench
