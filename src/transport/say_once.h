// Lines for whoever runs the job: about what this system lacks, and for what a call waits.
#ifndef SLUICE_SRC_TRANSPORT_SAY_ONCE_H_
#define SLUICE_SRC_TRANSPORT_SAY_ONCE_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"

namespace sluice {

// Writes "sluice: `text`" to stderr, as a line. Thread: any.
void Say(absl::string_view text);

// The same, unless this process has written it before.
void SayOnce(absl::string_view text);

// Takes the texts from now on, in place of stderr; null: stderr. The sink must not wait for
// anybody, as callers may hold locks. Thread: any.
using LineSink = void (*)(absl::string_view text);
void SetLineSink(LineSink sink);

// Says for what one call waits: after 5 seconds, and every 10 seconds from then on. Thread: one.
class LongWait {
 public:
  // To be called whenever the call looks again. `for_what` says "server 1 to join", and is called
  // where a line is due. An empty text is not said.
  void Look(absl::FunctionRef<std::string()> for_what) { Look(since_ns_, MonotonicNs(), for_what); }
  // The same at `now_ns` of a wait that began at `since_ns`; another one than before, anew.
  void Look(int64_t since_ns, int64_t now_ns, absl::FunctionRef<std::string()> for_what);

 private:
  static constexpr int64_t kFirstNs = 5'000'000'000;

  int64_t since_ns_ = MonotonicNs();
  int64_t due_ns_ = since_ns_ + kFirstNs;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_SAY_ONCE_H_
