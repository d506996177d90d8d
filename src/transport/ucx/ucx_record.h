// Records that ranks exchange so that payload only moves once its receive is there.
//
// A sender announces each message. The receiver matches announcements with receives, in order. Once
// an announcement has met its receive, the receiver starts a receive of UCX, under a tag of its
// own. Then it lets the sender go. So UCX never holds payload that nobody has asked for, whatever
// its own protocols are. UCX's synchronous sends would not do: there are none in peer-failure mode.
#ifndef SLUICE_SRC_TRANSPORT_UCX_UCX_RECORD_H_
#define SLUICE_SRC_TRANSPORT_UCX_UCX_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sluice {

// As it travels. Both ends have one byte order: ranks of one job run the same binary.
struct UcxRecord {
  enum class Kind : uint8_t {
    kHello,     // nothing, so that both ends of a connection notice the other's end
    kAnnounce,  // a message of `bytes` with `tag` waits; its sender knows it as `send`
    kGo,        // the announced `send` has met `receive`: it goes with UCX's tag `data`
    kDone,      // the announced `send` has ended without payload: all that there is to say
    kLanded,    // all of the payload of `send` has come. Only then does the send end: nobody polls
                // for what has ended, so nothing of it may still be in its process.
    kRefused,   // `send` does not come whole: UCX fails, or the receiver's transport has ended
    kGone,      // what was to come for `receive` does not come: its sender's transport has ended
    kParted,    // this rank has parted, or its transport has ended: it lets no more sends go.
                // `bytes` is 1 where no answer is asked for.
    kHeard,     // the answer to kParted
    kLast = kHeard,
  };

  Kind kind = Kind::kHello;
  uint8_t unused = 0;
  uint16_t transport = 0;
  uint32_t tag = 0;
  uint64_t bytes = 0;
  uint64_t send = 0;
  uint64_t receive = 0;
  uint64_t data = 0;
};
static_assert(sizeof(UcxRecord) == 40 && std::is_trivially_copyable_v<UcxRecord>);

// An active message of UCX: this, and `count` records.
struct UcxBatchHead {
  uint64_t token = 0;     // of the receiver's address
  uint32_t sequence = 0;  // of the batches between two ranks, from 0 on
  uint32_t src = 0;
  uint32_t count = 0;
  uint32_t version = 1;
};

// One fragment on every network, so that batches keep their order.
inline constexpr size_t kUcxBatchRecords = 20;
inline constexpr unsigned kUcxActiveMessage = 0x51;  // its number

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_UCX_UCX_RECORD_H_
