// Forgetting whole frames that have left.
#include "world/store/store_outbox.h"

#include "world/store/store_wire.h"

namespace sluice {
namespace {

// Sent bytes are forgotten in steps of this, and an empty outbox keeps no more room than this.
constexpr size_t kOutboxRoom = size_t{256} << 10;

}  // namespace

void StoreOutbox::NoteSent(size_t bytes) {
  sent_ += bytes;
  if (sent_ == bytes_.size()) {
    bytes_.clear();
    sent_ = 0;
    if (bytes_.capacity() > kOutboxRoom) bytes_.shrink_to_fit();
  } else if (sent_ >= kOutboxRoom) {
    const size_t whole = FrameAt(bytes_, sent_).begin;
    bytes_.erase(0, whole);
    sent_ -= whole;
  }
}

size_t StoreOutbox::DropUnbegun() {
  const FrameSpan next = FrameAt(bytes_, sent_);
  const size_t end = next.begin == sent_ ? sent_ : next.end;
  const size_t dropped = bytes_.size() - end;
  bytes_.resize(end);
  bytes_.shrink_to_fit();
  NoteSent(0);
  return dropped;
}

}  // namespace sluice
