// Frames, which go over a link: each a header of fixed length and the bytes that it announces.
#ifndef SLUICE_SRC_TRANSPORT_TCP_TCP_FRAME_H_
#define SLUICE_SRC_TRANSPORT_TCP_TCP_FRAME_H_

#include <cstddef>
#include <cstdint>

namespace sluice {

// The receiver matches. A send says hello to its receive (kOffer). A short send takes a free one of
// the receiver's kEagerSlots with its offer, and sends its bytes along. kMet gives the slot back. A
// long send, or one without a slot, sends its bytes when the receive has been started (kGrant).
// They go in pieces (kData), so that control and offers pass between them.
enum class TcpFrameKind : uint8_t {
  kControl,   // a record of `channel`
  kTaken,     // a record of `channel`, of `bytes`, has been taken
  kOffer,     // transport, tag, sender's slot, the message's bytes; with them: kEagerFlag
  kGrant,     // transport, sender's slot; `tag` is the receiver's slot
  kMet,       // transport, sender's slot: the receive has been started, nothing more comes
  kData,      // transport, receiver's slot; `bytes` have come before these
  kAbort,     // transport, receiver's slot: the rest will not come
  kPart,      // transport: the sender of this has parted; kGoneFlag: and it is no more
  kFarewell,  // nothing more comes
  kNothing,   // in the place of a frame that was taken back
};

inline constexpr uint8_t kEagerFlag = 1;
inline constexpr uint8_t kGoneFlag = 2;

struct TcpFrame {
  TcpFrameKind kind = TcpFrameKind::kControl;
  uint8_t channel = 0;  // of control
  uint8_t flags = 0;
  uint8_t reserved = 0;
  uint32_t transport = 0;
  uint32_t tag = 0;
  uint32_t slot = 0;
  uint64_t bytes = 0;
  uint64_t length = 0;  // of what follows
};
static_assert(sizeof(TcpFrame) == 32);

// The longest message that goes with its offer, and how many such may wait at a rank for their
// receives, from each other rank.
inline constexpr size_t kEagerBytes = size_t{64} << 10;
inline constexpr int kEagerSlots = 16;
// The most bytes of a message in one frame.
inline constexpr size_t kPieceBytes = size_t{256} << 10;

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TCP_TCP_FRAME_H_
