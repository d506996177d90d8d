// Time as a simulated rank sees it: SimGrid's clock, which goes on only where a rank pauses.
//
// The linker puts these functions in the place of those that they are named after (--wrap). Without
// them a rank would poll for ever at one instant, and report how long the simulation took.
// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-forward-declaration-namespace): the linker's
// names, and SimGrid's.
#include <poll.h>
#include <sched.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <time.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace {

// What looking at messages without finding one costs; times are not told more finely than this.
double PollSeconds() {
  static const double seconds = [] {
    const char* text = std::getenv("SLUICE_SMPI_POLL_US");
    return (text == nullptr ? 1.0 : std::atof(text)) * 1e-6;
  }();
  return seconds;
}

// Ranks are contexts of the thread that loaded this; other threads are real.
bool IsRank() {
  static const std::thread::id ranks = std::this_thread::get_id();
  return std::this_thread::get_id() == ranks;
}
const bool kLoaded = IsRank();

timespec Now() {
  const double seconds = simgrid_get_clock();
  timespec now{};
  now.tv_sec = static_cast<time_t>(seconds);
  now.tv_nsec = static_cast<long>((seconds - static_cast<double>(now.tv_sec)) * 1e9);
  return now;
}

}  // namespace

extern "C" {

int __real_sched_yield();
int __wrap_sched_yield() {
  if (!IsRank()) return __real_sched_yield();
  sg_actor_sleep_for(PollSeconds());
  return 0;
}

// A rank that has waited for long sleeps, to leave the processor to others. Here each has its own.
int __wrap_nanosleep(const timespec* /*pause*/, timespec* /*left*/) { return __wrap_sched_yield(); }
int __wrap_ppoll(pollfd* /*polled*/, nfds_t /*count*/, const timespec* /*pause*/,
                 const sigset_t* /*mask*/) {
  __wrap_sched_yield();
  return 0;
}

int __wrap_clock_gettime(clockid_t /*clock*/, timespec* now) {
  *now = Now();
  return 0;
}

// std::chrono::steady_clock::now()
std::chrono::steady_clock::time_point __wrap__ZNSt6chrono3_V212steady_clock3nowEv() {
  const timespec now = Now();
  return std::chrono::steady_clock::time_point(std::chrono::seconds(now.tv_sec) +
                                               std::chrono::nanoseconds(now.tv_nsec));
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,bugprone-forward-declaration-namespace)
