// Tells whether a consumer computes for longer than it waits.
//
// One that drives the stream itself, by Next, does nothing else meanwhile. If it mostly computes,
// whatever Next would copy is better copied by somebody else. If it mostly waits, it may as well
// copy while it does. Pure: times are the caller's.
#ifndef SLUICE_SRC_SESSION_STREAM_CONSUMER_SHARE_H_
#define SLUICE_SRC_SESSION_STREAM_CONSUMER_SHARE_H_

#include <cstdint>

namespace sluice {

class ConsumerShare {
 public:
  // From the last return of Next to this call, and within this call.
  void Add(int64_t computed_ns, int64_t waited_ns) {
    computed_ns_ += (computed_ns - computed_ns_) / kMemory;
    waited_ns_ += (waited_ns - waited_ns_) / kMemory;
  }

  bool computes() const { return computed_ns_ > waited_ns_; }

 private:
  static constexpr int64_t kMemory = 8;  // calls: an average that forgets
  int64_t computed_ns_ = 0;
  int64_t waited_ns_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_CONSUMER_SHARE_H_
