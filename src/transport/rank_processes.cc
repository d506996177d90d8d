// One epoll set of pidfds; where there are none, a look at each process.
#include "transport/rank_processes.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tensor/error_text.h"

namespace sluice {

RankProcesses::RankProcesses(int rank, absl::Span<const ProcessName> names,
                             absl::Span<const int> nodes)
    : rank_(rank),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      ended_(names.size()),
      gone_(names.size()) {
  const size_t own = static_cast<size_t>(rank);
  for (size_t other = 0; other < names.size(); ++other) {
    const ProcessName& name = names[other];
    if (other == own || nodes[other] != nodes[own] || name.pid == names[own].pid) continue;
    if (!SeeEachOther(name, names[own])) continue;
    processes_.push_back({static_cast<int>(other), ProcessHandle(name)});
    const ProcessHandle& handle = processes_.back().handle;
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = processes_.size() - 1;
    const bool watched = epoll_fd_.is_open() && handle.exit_fd() >= 0 &&
                         epoll_ctl(epoll_fd_.get(), EPOLL_CTL_ADD, handle.exit_fd(), &event) == 0;
    if (!watched || handle.HasEnded()) unwatched_.push_back(processes_.size() - 1);
  }
}

std::string RankProcesses::Limit() const {
  const Process* asked = nullptr;
  for (const Process& process : processes_) {
    const int error = process.handle.pidfd_error();
    if (error == 0) continue;
    if (!process.handle.can_look()) {
      return std::string(
          absl::ErrnoToStatus(
              error,
              absl::StrCat("rank ", rank_, " does not notice when rank ", process.rank,
                           ", process ", process.handle.pid(),
                           ", ends, but by its silence: there is no /proc to look there, and "
                           "pidfd_open fails"))
              .message());
    }
    if (asked == nullptr) asked = &process;
  }
  if (asked == nullptr) return "";
  return std::string(absl::ErrnoToStatus(asked->handle.pidfd_error(),
                                         absl::StrCat("rank ", rank_,
                                                      " looks in /proc whether others have ended, "
                                                      "again and again: pidfd_open fails"))
                         .message());
}

absl::Status RankProcesses::Check() {
  if (processes_.empty()) return absl::OkStatus();
  const int64_t now_ns = MonotonicNs();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (now_ns - looked_ns_ < kLookNs) return status_;
  looked_ns_ = now_ns;
  Look(now_ns);
  if (told_ < seen_) TakeEnds(now_ns);
  return status_;
}

bool RankProcesses::HasEnded(int rank) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ended_[static_cast<size_t>(rank)] != 0;
}

bool RankProcesses::Sees(int rank) const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [rank](const Process& process) { return process.rank == rank; });
}

bool RankProcesses::IsGone(int rank) {
  if (processes_.empty()) return false;
  const int64_t now_ns = MonotonicNs();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (now_ns - gone_looked_ns_ >= kGoneLookNs) LookAtWatched(now_ns);
  return gone_[static_cast<size_t>(rank)] != 0;
}

void RankProcesses::See(Process* process, int64_t now_ns) {
  if (process->ended_ns != 0) return;
  process->ended_ns = now_ns;
  gone_[static_cast<size_t>(process->rank)] = 1;
  ++seen_;
}

void RankProcesses::Look(int64_t now_ns) {
  for (const size_t i : unwatched_) {
    if (processes_[i].ended_ns == 0 && processes_[i].handle.HasEnded()) {
      See(&processes_[i], now_ns);
    }
  }
  LookAtWatched(now_ns);
}

void RankProcesses::LookAtWatched(int64_t now_ns) {
  gone_looked_ns_ = now_ns;
  std::array<epoll_event, 16> events;
  const int count = epoll_wait(epoll_fd_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    Process& process = processes_[events[static_cast<size_t>(i)].data.u64];
    See(&process, now_ns);
    epoll_ctl(epoll_fd_.get(), EPOLL_CTL_DEL, process.handle.exit_fd(), nullptr);
  }
}

void RankProcesses::AddEnd(int rank, int pid, ErrorText* text) {
  text->Add(text->empty() ? "" : "; ", RankInWords(rank), ", process ", pid,
            ", has ended, and its own output may say why");
}

void RankProcesses::TakeEnds(int64_t now_ns) {
  ErrorText text;
  size_t told = 0;
  for (const Process& process : processes_) {
    if (process.ended_ns == 0 || now_ns - process.ended_ns < kLastWordsNs) continue;
    ++told;
    ended_[static_cast<size_t>(process.rank)] = 1;
    AddEnd(process.rank, process.handle.pid(), &text);
  }
  told_ = told;
  if (told > 0) status_ = text.ToStatus(absl::StatusCode::kUnavailable);
}

}  // namespace sluice
