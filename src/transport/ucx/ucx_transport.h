// Messages between ranks over UCX: announced, met, and only then moved. It only moves bytes.
#ifndef SLUICE_SRC_TRANSPORT_UCX_UCX_TRANSPORT_H_
#define SLUICE_SRC_TRANSPORT_UCX_UCX_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/transport.h"
#include "transport/last_words.h"
#include "transport/ucx/ucx_flights.h"
#include "transport/ucx/ucx_hub.h"
#include "transport/ucx/ucx_record.h"

namespace sluice {

// The protocol is in ucx_record.h. Rows are packed and unpacked by UCX, piece by piece.
class UcxTransport final : public Transport {
 public:
  // `post` stays until the hub is told of the end.
  UcxTransport(std::shared_ptr<UcxHub> hub, int number, UcxPost* post);
  ~UcxTransport() override;

  absl::Status Reserve(int capacity) override;
  absl::Status UseStaging(absl::Span<std::byte> /*staging*/) override { return absl::OkStatus(); }
  absl::Status Start(absl::Span<const TransportOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override;
  void Withdraw() override;
  bool Part() override;
  int outstanding() const override;

  // For the hub, which holds the lock.
  // The receive has met a message.
  void Meet(int slot, const UcxAnnounced& message);
  // A send may go. False: it is not here any more.
  bool Go(int src, const UcxRecord& record);
  // The receiver's word on a send: it has ended without payload, has come, or has failed.
  void EndSend(int src, const UcxRecord& record);
  // The send that a receive has met does not come.
  void Lose(int src, const UcxRecord& record);
  void Land(const UcxFlight& flight);
  // The other rank lets no more sends go.
  void SeeParted(int rank);
  void MarkHeard(int rank) { heard_[static_cast<size_t>(rank)] = 1; }
  // The connection has broken. Operations that UCX has in hand end by themselves, or with
  // GiveUpPeer.
  void LosePeer(int rank);
  // Nothing is left of it.
  void GiveUpPeer(int rank);

 private:
  enum class Phase : uint8_t {
    kFree,
    kAnnounced,  // of a send: its receiver has not let it go
    kWaiting,    // of a receive: nothing has met it
    kFlying,     // UCX moves its bytes
    kFlown,  // of a send: UCX needs its bytes no more, its receiver has not said that it has them
  };
  struct Slot {
    TransportOp op;
    Phase phase = Phase::kFree;
    uint32_t uses =
        0;  // tells what was said of an earlier operation in it from what is of this one
    UcxFlight* flight = nullptr;
    uint64_t send = 0;     // of a receive that has met a message: by which its sender knows it
    bool landed = false;   // of a send: its receiver has all of it
    absl::Status failure;  // of a flight that cannot come whole
  };

  int OutstandingNow() const { return active_ + ended_ + static_cast<int>(cut_off_.size()); }
  uint64_t NameOf(int slot) const {
    return uint64_t{slots_[static_cast<size_t>(slot)].uses} << 32 | static_cast<uint32_t>(slot);
  }
  // The operation of that name with `peer`; null: it has ended.
  Slot* Find(uint64_t name, TransportOp::Kind kind, int peer);
  int IndexOf(const Slot& slot) const { return static_cast<int>(&slot - slots_.data()); }

  void StartOne(const TransportOp& op);
  void Tell(int rank, UcxRecord record);
  // An operation that another rank's end has cut off is told of late, as LastWords has it. UCX may
  // notice that end before the control links bring the rank's last words.
  void End(Slot& slot, absl::Status status);
  void AddEvent(TransportEvent event);
  void TellCutOff();
  absl::Status LostError(const TransportOp& op, const absl::Status& why) const;
  void WithdrawNow();
  // Calls `action` for each slot of this kind and phase with the rank.
  template <typename Action>
  void ForEach(int rank, Phase phase, const Action& action);

  const std::shared_ptr<UcxHub> hub_;
  const int number_;
  UcxPost* const post_;
  std::vector<Slot> slots_;
  std::vector<int> free_;               // of slots_
  std::vector<TransportEvent> events_;  // a ring: ended_ events from first_ended_ on
  LastWords<TransportEvent> cut_off_;
  int active_ = 0;  // started, and neither ended nor cut off
  int first_ended_ = 0;
  int ended_ = 0;
  bool parted_ = false;
  std::vector<uint8_t> heard_;  // by rank: it knows that this one has parted
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_UCX_UCX_TRANSPORT_H_
