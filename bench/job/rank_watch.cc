// Sleeping in poll until the kernel says that a process has ended.
#include "job/rank_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice::bench {

RankWatch::RankWatch(int rank, std::unique_ptr<RankProcesses> processes)
    : rank_(rank), processes_(std::move(processes)), stop_fd_(eventfd(0, EFD_CLOEXEC)) {
  if (stop_fd_ < 0 || processes_->empty()) return;
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {
    // Waiting ranks find out by themselves.
  }
}

RankWatch::~RankWatch() {
  const uint64_t one = 1;
  if (thread_.joinable()) {
    static_cast<void>(!write(stop_fd_, &one, sizeof(one)));
    thread_.join();
  }
  if (stop_fd_ >= 0) close(stop_fd_);
}

void RankWatch::Run() {
  constexpr int kLookMs = 20;
  std::array<pollfd, 2> watched = {pollfd{stop_fd_, POLLIN, 0},
                                   pollfd{processes_->exit_fd(), POLLIN, 0}};
  // Where nothing can wake it, it looks.
  int pause_ms = watched[1].fd < 0 ? kLookMs : -1;
  absl::Status status;
  while (status.ok()) {
    poll(watched.data(), watched.size(), pause_ms);
    if (watched[0].revents != 0) return;
    // It says so some time after the end.
    watched[1].fd = -1;
    pause_ms = kLookMs;
    status = processes_->Check();
  }
  const std::string line = absl::StrCat("sluice-bench: rank ", rank_, ": ", status.message(), "\n");
  std::fputs(line.c_str(), stderr);
}

}  // namespace sluice::bench
