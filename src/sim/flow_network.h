// Bytes on their way through a network model: which flows share which port, and when each one ends.
//
// A fluid model. All flows through a port have equal shares of it, and a flow goes at the smaller
// of its two ports' shares. The rest of its share of the other port stays unused. So a flow depends
// on nothing but its two ports, which keeps meshes of tens of thousands of ranks affordable.
#ifndef SLUICE_SRC_SIM_FLOW_NETWORK_H_
#define SLUICE_SRC_SIM_FLOW_NETWORK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/event_queue.h"
#include "sim/network_model.h"

namespace sluice::sim {

// Flows that a port holds back are served alike, so it keeps one clock for them: the bytes that
// each has been served. A flow ends when the clock of the port that holds it back reaches the
// flow's mark. A port has one event, for its earliest mark, however many flows it has.
//
// Thread: one.
class FlowNetwork {
 public:
  // `model` must be valid. Events that Settle pushes are of kind `end_kind`.
  FlowNetwork(const NetworkModel& model, int ranks, uint64_t end_kind);

  // From when both ranks are ready until bytes flow.
  TimePs LatencyPs(int src, int dst) const;

  // A flow from one rank to another begins with the next Settle; `cookie` comes back when it ends.
  void Start(int src, int dst, int64_t bytes, int32_t cookie);

  // Once everything has begun and ended that does at `now`: gives the flows of the ports concerned
  // their new rates, and pushes when they end. Earlier events about them are stale from then on.
  void Settle(TimePs now, EventQueue* queue);

  // Takes an event: appends the cookies of the flows that end with it.
  void End(const Event& event, std::vector<int32_t>* cookies);

  int64_t active() const { return active_; }
  // How long the busiest port takes for all flows that were started, at its full rate.
  TimePs LinkBoundPs() const;

 private:
  enum Side : uint8_t { kOut, kIn, kNeither };
  struct Flow {
    double left = 0;  // bytes, before any port holds it back; then the mark on that port's clock
    std::array<int32_t, 2> port{};
    std::array<int32_t, 2> next{};  // flow of the same port; -1: none
    std::array<int32_t, 2> previous{};
    int32_t cookie = 0;
    uint32_t version = 0;  // marks of other versions are stale
    Side held_by = kNeither;
  };
  struct Mark {
    double at;
    int32_t flow;
    uint32_t version;

    friend bool operator>(const Mark& a, const Mark& b) {
      return a.at != b.at ? a.at > b.at : a.flow > b.flow;
    }
  };
  struct Port {
    double rate = 0;   // bytes per ps
    double share = 0;  // of one flow
    double clock = 0;  // bytes served to each flow, at `since`
    TimePs since = 0;
    int64_t bytes = 0;  // of all flows that were started
    int32_t first = -1;
    int32_t flows = 0;
    uint32_t version = 0;     // events of other versions are stale
    bool touched = false;     // flows have begun or ended
    bool renewed = false;     // needs a new event
    std::vector<Mark> marks;  // a heap, the earliest on top

    double ClockAt(TimePs now) const { return clock + share * static_cast<double>(now - since); }
  };

  Port& PortAt(int32_t port) { return ports_[static_cast<size_t>(port)]; }
  Flow& FlowAt(int32_t flow) { return flows_[static_cast<size_t>(flow)]; }
  std::array<int32_t, 2> PortsOf(int src, int dst) const;
  bool SameNode(int src, int dst) const;
  void Touch(int32_t port);
  void Renew(int32_t port);
  void Link(int32_t flow, Side side);
  void Unlink(int32_t flow, Side side);
  void HoldBack(int32_t flow, TimePs now);
  bool DropStaleMarks(Port* port);
  void Schedule(int32_t port, TimePs now, EventQueue* queue);

  const NetworkModel model_;
  const int ranks_;
  const uint64_t end_kind_;
  int64_t active_ = 0;
  std::vector<Flow> flows_;
  std::vector<int32_t> free_;
  std::vector<Port> ports_;  // out and in of each rank, then out and in of each NIC
  std::vector<int32_t> touched_;
  std::vector<int32_t> renewed_;
};

}  // namespace sluice::sim

#endif  // SLUICE_SRC_SIM_FLOW_NETWORK_H_
