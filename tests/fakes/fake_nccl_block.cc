// Words for what lies in the shared memory of a communicator.
#include "fakes/fake_nccl_block.h"

#include <string>

#include "fakes/fake_shared_memory.h"

namespace sluice::fake_nccl {

std::string DescribePosition(const Block& block, int rank) {
  const RankSlot& slot = block.slots[static_cast<size_t>(rank)];
  std::string text = "rank " + std::to_string(rank);
  const RankState state = slot.state.load();
  if (state == RankState::kAbsent) return text + " never came";
  if (state == RankState::kFinalized || HasLeft(slot)) text += ", which has left,";
  const Doing doing = slot.doing.load();
  if (doing == Doing::kNothing) {
    return text + " is in no kernel after its kernel " + std::to_string(slot.kernel.load());
  }
  const bool sends = doing == Doing::kSending;
  return text + ", in its kernel " + std::to_string(slot.kernel.load()) + ", waits to " +
         (sends ? "send" : "receive") + " message " + std::to_string(slot.message.load()) + " (" +
         std::to_string(slot.bytes.load()) + " bytes) " + (sends ? "to" : "from") + " rank " +
         std::to_string(slot.peer.load());
}

bool HasLeft(const RankSlot& slot) {
  const RankState state = slot.state.load();
  return state == RankState::kLeaving || state == RankState::kLeft;
}

bool HaveMet(const Block& block, int a, int b) {
  const auto first = static_cast<size_t>(a);
  const auto second = static_cast<size_t>(b);
  return block.channels[first][second].written > 0 || block.channels[second][first].written > 0;
}

bool IsGone(const RankSlot& slot) {
  const RankState state = slot.state.load();
  if (state == RankState::kStuck || state == RankState::kAborted) return true;
  const int32_t process = slot.process.load();
  return process != 0 && !fake_cuda::IsAlive(process);
}

}  // namespace sluice::fake_nccl
